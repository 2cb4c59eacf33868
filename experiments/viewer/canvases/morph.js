// The transition from one run's timeline to the next one's: for a moment, each span moves from its previous position.

const CHANGES = 700;   // ms
const MORPHED = 12000; // spans; with more, there is no transition

class Morph {
  // The timeline as it is now, to start from; null if no transition is possible.
  static of(timeline) {
    const { spans, from, to, names, total, coarse, kinds } = timeline.trouble.kept && !timeline.trouble.sent ? { ...timeline, ...timeline.trouble.kept } : timeline;
    return spans && !coarse && spans.columns.start.length <= MORPHED ? { spans, from, to, total, kinds: kinds.join(), lanes: names.length } : null;
  }

  constructor(timeline, before, done) {
    Object.assign(this, { timeline, before, done });
    const { spans, from, to } = timeline, { start, duration, lane, kind } = spans.columns, { columns: was } = before.spans;
    const order = new Map(); // lane and kind -> the previous spans, in order
    for (let n = 0; n < was.start.length; n++) {
      const key = was.lane[n] * 256 + was.kind[n];
      if (order.has(key)) order.get(key).push(n); else order.set(key, [n]);
    }
    const seen = new Map(), last = Float32Array.from(start);
    this.goal = { start, duration, from, to };
    this.start = new Float32Array(start.length);
    this.duration = new Float32Array(start.length);
    for (let n = 0; n < start.length; n++) {
      const key = lane[n] * 256 + kind[n], place = seen.get(key) ?? 0, old = order.get(key)?.[place];
      seen.set(key, place + 1);
      const at = n && lane[n] === lane[n - 1] ? last[n - 1] : 0; // a new span grows from the end of the previous one
      this.start[n] = old === undefined ? at : was.start[old];
      this.duration[n] = old === undefined ? 0 : was.duration[old];
      last[n] = this.start[n] + this.duration[n];
    }
    this.begun = performance.now();
    this.frame = requestAnimationFrame(() => this.pass());
  }

  pass() {
    const t = this.timeline, share = Math.min(1, (performance.now() - this.begun) / CHANGES), ease = share * share * (3 - 2 * share);
    if (share >= 1) return this.end();
    const { start, duration, from, to } = this.goal, mix = (one, other) => one + (other - one) * ease;
    Object.assign(t.spans.columns, { start: this.start.map((one, n) => mix(one, start[n])), duration: this.duration.map((one, n) => mix(one, duration[n])) });
    [t.from, t.to] = [mix(this.before.from, from), mix(this.before.to, to)];
    t.index();
    t.redraw();
    this.frame = requestAnimationFrame(() => this.pass());
  }

  end() {
    const t = this.timeline, { start, duration, from, to } = this.goal;
    cancelAnimationFrame(this.frame);
    Object.assign(t.spans.columns, { start, duration });
    Object.assign(t, { from, to, morph: null });
    t.index();
    t.redraw();
    this.done?.();
  }
}
