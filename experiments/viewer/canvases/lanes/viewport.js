// The visible window of time, `from` to `to`, the scroll position of the lanes, and the conversion of both to px.
// Mixed into Timeline (timeline.js), which is `this` here.

const SETTLES = 5000; // ms during which the page above the timeline may still grow

class Viewport {
  // The first window: the whole run if its spans are few enough to read, otherwise its first steps.
  opening() {
    if (this.openAt) return [Math.max(0, this.openAt[0]), Math.min(this.total, this.openAt[1])];
    const { start, duration, step } = this.spans.columns;
    const readable = this.readable * this.names.length;
    if (start.length <= readable) return [0, this.total];
    const order = Array.from(start).sort((a, b) => a - b);
    let until = order[Math.min(readable, order.length - 1)];
    for (let i = 0; i < start.length; i++) if (step[i] === 1) until = Math.max(until, Math.min(start[i] + duration[i], this.total * 0.5));
    return [0, Math.min(this.total, until * 1.02)];
  }

  x(time) { return GUTTER + (time - this.from) * this.scaleX; }
  y(lane) { return TOP + lane * this.pitch - this.scroll; }

  time(x) { return this.from + (x - GUTTER) / this.scaleX; }

  zoom(factor, at = (this.from + this.to) / 2) {
    const least = Math.max(this.total * 1e-6, 1e-8);
    const span = Math.min(this.total, Math.max(least, (this.to - this.from) * factor));
    const part = (at - this.from) / (this.to - this.from);
    this.window(at - part * span, at - part * span + span, true);
  }

  // Show the window between two times, here and in all timelines with the same `together`. Curves over time follow if the
  // reader has zoomed into them or `zooms` now.
  window(from, to, zooms = false) {
    const span = Math.min(to - from, this.total);
    from = Math.max(0, Math.min(from, this.total - span));
    for (const one of lockstepTimelines) {
      if (one === this || (this.together && one.together === this.together)) one.see(from, from + span);
    }
    if (this.clock !== lockstepClock) return;
    for (const curve of globalThis.lockstepCurves ?? []) curve.led(span > this.total * 0.999 ? null : [from, from + span], zooms);
  }

  // Show the window between two times, clipped to this run, without updating other canvases.
  see(from, to) {
    const span = Math.min(to - from, this.total);
    this.from = Math.max(0, Math.min(from, this.total - span));
    this.to = this.from + span;
    this.moved();
  }

  pan(seconds) { this.window(this.from + seconds, this.to + seconds); }

  moved() {
    this.hide();
    this.surface.request();
    this.topology.request();
    this.learned.request();
    if (this.cursor !== null) this.overlay.request();
    clearTimeout(this.later);
    this.later = setTimeout(() => this.say(), 300);
  }

  // The view, for a link: the run, `from` and `to` unless that is the first window, the pinned wait, and the critical path.
  view() {
    const [from, to] = this.opening(), same = (one, other) => Math.abs(one - other) < (to - from) * 1e-3;
    const window = same(from, this.from) && same(to, this.to) ? {} : { from: this.from, to: this.to };
    return { run: this.run, ...window, why: this.why.unfolded(), critical: this.why.marked };
  }

  // Scroll the timeline into view for a reader who followed a link, and again while the page above it grows, until the reader
  // acts.
  comeIntoView() {
    if (globalThis.lockstepArrived) return;
    globalThis.lockstepArrived = true;
    const acts = ["wheel", "pointerdown", "keydown", "touchstart"], until = performance.now() + SETTLES;
    let left = false;
    const leave = () => { left = true; acts.forEach((act) => removeEventListener(act, leave, true)); };
    acts.forEach((act) => addEventListener(act, leave, true));
    const come = () => {
      if (left || performance.now() > until || !this.stage.isConnected) return leave();
      const { top, bottom } = this.box.getBoundingClientRect();
      if (top < 60 || bottom > Math.max(innerHeight, top + 40) || top > innerHeight / 2) this.box.scrollIntoView({ block: "center" });
      setTimeout(come, 200);
    };
    come();
  }
}
