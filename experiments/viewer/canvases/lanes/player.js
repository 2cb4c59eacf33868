// Moving the cursor: by playing the run, while the window follows, or by stepping from event to event.
// Mixed into Timeline (timeline.js), which is `this` here.

const SWEEP = 10;    // s to play a whole run
const CLOSELY = 0.4; // share of SWEEP spent on the reader's window, unless that is the whole run
const WIDEST = 0.1;  // outside it, the window shows at least this share of the run
const SPEEDS = [1, 2, 0.5];

class Player {
  // Follow `this.clock` instead of the previous clock.
  hear() {
    this.deaf?.();
    const heard = (clock, source) => this.heard(source);
    heard.shows = () => ({
      canvas: "timeline", run: this.run, cursor: this.cursor, from: this.from, to: this.to,
      ...(this.topology.machines && { topology: this.topology.shows() }),
    });
    this.deaf = this.clock.listen(heard);
  }

  // The clock has been set, or is advancing.
  heard(source) {
    if (!this.spans) return;
    this.overlay.request();
    this.topology.request();
    this.learned.follow();
    if (this.clock.playing) {
      if (!this.played && source !== this) this.close = [this.from, this.to];
      this.follow();
      if (this.played) return; // the words change as the cursor is drawn
    } else if (this.played && this.cursor >= this.total) this.see(this.total - (this.to - this.from), this.total);
    else if (source !== this && this.cursor !== null && !this.looking()) this.bring();
    if (this.played !== this.clock.playing) { this.played = this.clock.playing; this.offer(); }
    this.say();
  }

  // Play from the cursor, or from the start, to the end of the run: slowly inside the reader's window, fast outside it.
  play() {
    if (this.calm.matches) return this.step(1);
    if (this.clock.playing) return this.clock.pause(this);
    if (this.cursor === null || this.cursor >= this.total) this.clock.set(0, this);
    this.close = [this.from, this.to];
    const [from, to] = this.close, outside = this.total - (to - from);
    const slow = outside > this.total * 1e-3 ? (to - from) / (SWEEP * CLOSELY) : this.total / SWEEP;
    const fast = outside / (SWEEP * (1 - CLOSELY));
    this.clock.play((now) => SPEEDS[this.speed] * (now >= from && now < to ? slow : fast), this.total, this);
  }

  // Move the window along while playing: the reader's own window while the cursor is in it, otherwise one around the cursor.
  follow() {
    const now = performance.now(), passed = Math.min(now - (this.followed ?? now), 100) / 1000;
    this.followed = now;
    const [from, to] = this.close ?? [this.from, this.to], time = this.cursor;
    const wide = Math.max(to - from, this.total * WIDEST);
    const lapse = time < from || time > to;
    const target = lapse ? [Math.max(0, Math.min(time - wide / 2, this.total - wide)), 0] : [from, to];
    if (lapse) target[1] = Math.min(this.total, target[0] + wide);
    const share = 1 - Math.exp(-passed * 8);
    let a = this.from + (target[0] - this.from) * share, b = this.to + (target[1] - this.to) * share;
    if (time < a) [a, b] = [time, Math.max(b, time)];
    if (time > b) b = time;
    if (Math.abs(a - this.from) + Math.abs(b - this.to) < (b - a) * 1e-4) return;
    [this.from, this.to] = [a, b];
    this.hide();
    this.surface.request();
  }

  // Go to the next moment at which a span begins or ends, or with -1 to the previous one.
  step(way) {
    if (!this.near()) return this.seek((this.looking() ? this.cursor : this.from) + (way * (this.to - this.from)) / 20);
    const at = this.looking() ? this.cursor : way > 0 ? this.from : this.to;
    const least = way * this.instant() * 2;
    let next = way > 0 ? this.to : this.from;
    const consider = (time) => { if ((time - at - least) * way > 0 && (time - next) * way < 0) next = time; };
    for (let r = 0; r < this.names.length; r++) {
      const { start, duration } = this.spans.columns;
      const [i, j] = this.within(r, this.from, this.to);
      for (let n = i; n < j; n++) { consider(start[n]); consider(start[n] + duration[n]); }
    }
    const edge = way > 0 ? this.to : this.from;
    if (Math.abs(at - edge) > Math.abs(least)) return this.seek(next);
    this.pan((way * (this.to - this.from)) / 2); // the cursor is at the edge, so the next event lies outside the window
    if (edge !== (way > 0 ? this.to : this.from)) this.step(way);
  }

  // Update the buttons. Keep screen readers from reading the text below while it changes constantly.
  offer() {
    const { playing } = this.clock;
    this.playButton.textContent = playing ? "❚❚ Pause" : "▶\uFE0E Play";
    this.playButton.setAttribute("aria-label", playing ? "Pause" : "Play");
    this.playButton.hidden = this.speedButton.hidden = this.calm.matches;
    this.speedButton.textContent = { 0.5: "½×", 1: "1×", 2: "2×" }[SPEEDS[this.speed]];
    this.speedButton.setAttribute("aria-label", `Speed ${this.speedButton.textContent}`);
    this.status.setAttribute("aria-live", playing ? "off" : "polite");
  }

  faster() {
    this.speed = (this.speed + 1) % SPEEDS.length;
    this.offer();
  }

  get moves() { return this.clock === lockstepClock ? this.total ?? 0 : 0; }

  // A film that plays the window once from beginning to end.
  film() {
    return { seconds: SWEEP / SPEEDS[this.speed], at: (share) => this.clock.set(this.from + share * (this.to - this.from), this) };
  }
}
