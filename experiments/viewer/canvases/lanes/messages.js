// Messages between two lanes: which ones are in flight, and their arrows.
// Mixed into Timeline (timeline.js), which is `this` here.

const ARROWS = 300; // at most this many messages are drawn

class Messages {
  // None while the spans move to where those of another run stand (morph.js): a message is at its place from the start.
  drawMessages(g, page) {
    if (this.morph) return;
    const visible = this.travelling(this.from, this.to);
    if (visible.length > ARROWS) return;
    g.strokeStyle = g.fillStyle = page.text;
    g.globalAlpha = visible.length > 60 ? 0.3 : 0.6;
    g.lineWidth = 1;
    for (const n of visible) this.arrow(g, n);
    g.globalAlpha = 1;
  }

  // Messages between two lanes that are in flight at some time in [from, to); at most one more than can be drawn.
  travelling(from, to) {
    const { src, dst, sent, arrived } = this.messages.columns;
    const found = [], begin = firstWhere(0, sent.length, (n) => this.landed[n] > from);
    for (let n = begin; n < sent.length && sent[n] < to && found.length <= ARROWS; n++) {
      if (arrived[n] >= from && src[n] !== dst[n]) found.push(n);
    }
    return found;
  }

  // Draw the arrow of message n, as far as it has travelled at `time`.
  arrow(g, n, time = Infinity) {
    const { src, dst, sent, arrived } = this.messages.columns;
    const come = Math.min(1, (time - sent[n]) / Math.max(arrived[n] - sent[n], 1e-12));
    const middle = this.pitch / 2 - 1;
    const x0 = this.x(sent[n]), y0 = this.y(src[n]) + middle;
    const x1 = x0 + come * (this.x(arrived[n]) - x0), y1 = y0 + come * (this.y(dst[n]) + middle - y0);
    const angle = Math.atan2(y1 - y0, x1 - x0);
    const barb = (turn) => [x1 - 6 * Math.cos(angle + turn), y1 - 6 * Math.sin(angle + turn)];
    strokeLine(g, [x0, y0], [x1, y1]);
    fillShape(g, [x1, y1], barb(-0.35), barb(0.35));
  }
}
