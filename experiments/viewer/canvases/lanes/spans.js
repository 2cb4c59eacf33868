// Finding the spans of a lane, and the span at a time. The columns are those of the frame (timeline.py).
// Mixed into Timeline (timeline.js), which is `this` here.

class Spans {
  // Index each lane's first span, and how far its spans reach so far, since they may overlap.
  index() {
    const { start, duration, lane, step } = this.spans.columns;
    const lanes = this.names.length;
    this.first = new Int32Array(lanes + 1);
    for (let i = 0; i < lane.length; i++) this.first[lane[i] + 1]++;
    for (let r = 0; r < lanes; r++) this.first[r + 1] += this.first[r];
    this.reach = new Float32Array(start.length);
    for (let r = 0; r < lanes; r++) {
      let far = -Infinity;
      for (let i = this.first[r]; i < this.first[r + 1]; i++) this.reach[i] = far = Math.max(far, start[i] + duration[i]);
    }
    const { sent, arrived } = this.messages.columns;
    this.landed = new Float32Array(sent.length);
    let far = -Infinity;
    for (let i = 0; i < sent.length; i++) this.landed[i] = far = Math.max(far, arrived[i] < 0 ? sent[i] : arrived[i]);
    this.steps = step;
    this.digits = Math.max(0, ...new Set(this.spans.labels.map((text) => text.match(/^\d+\D(\d+)$/)?.[1].length ?? 0))); // in the longest op number
  }

  // True if the window's single spans are loaded. Of a long run, only one window's are.
  near() {
    const slack = (this.to - this.from) * 1e-6;
    return !this.coarse || (this.from >= this.exact[0] - slack && this.to <= this.exact[1] + slack);
  }

  // The index range of lane r's spans that touch [from, to).
  within(r, from, to) {
    const { start } = this.spans.columns;
    const end = this.first[r + 1], begin = firstWhere(this.first[r], end, (n) => this.reach[n] > from);
    return [begin, firstWhere(begin, end, (n) => start[n] >= to)];
  }

  // The span of lane r at `time`, work before waiting; -1 if there is none.
  doing(r, time) {
    const { start, duration, kind } = this.spans.columns;
    const [i, j] = this.within(r, time, time + this.instant());
    let found = -1;
    for (let n = i; n < j; n++) {
      if (start[n] + duration[n] > time && (found < 0 || kind[n] < kind[found])) found = n;
    }
    return found;
  }

  // A time too short to see, in s.
  instant() { return (this.to - this.from) * 1e-5; }

  // True if span n continues after the end of the run, which means that it never ends.
  endless(n) { return this.spans.columns.start[n] + this.spans.columns.duration[n] > this.end * (1 + 1e-5); }
}
