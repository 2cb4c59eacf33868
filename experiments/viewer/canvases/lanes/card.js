// The span or message under the pointer, and the card that describes it.
// Mixed into Timeline (timeline.js), which is `this` here.

const BESIDE = 3; // px between a lane and its card

class Card {
  hover(x, y) {
    const lane = Math.floor((y - TOP + this.scroll) / this.pitch);
    let found = -1;
    if (this.near() && x >= GUTTER && y >= TOP && y < this.surface.height - AXIS && lane >= 0 && lane < this.names.length) {
      const slack = 1.5 / this.scaleX, time = this.time(x);
      const [i, j] = this.within(lane, time - slack, time + slack);
      const { start, duration, kind } = this.spans.columns;
      // the most informative span under the pointer: work before waiting, then the nearest
      const worth = (n) => (kind[n] < this.work ? 0 : kind[n]) * 1e6 * slack + Math.max(0, start[n] - time, time - start[n] - duration[n]);
      for (let n = i; n < Math.min(j, i + 400); n++) if (found < 0 || worth(n) < worth(found)) found = n;
    }
    const grab = this.trouble.hover(x, y);
    this.stage.style.cursor = grab ? grab : (y < STRIP + 6 && x >= GUTTER) || this.axis(x, y) ? "ew-resize" : this.named(x, y) >= 0 ? "pointer" : found >= 0 ? "default" : "grab";
    if (found !== this.over) { this.over = found; this.surface.request(); }
    const arrow = found < 0 || this.spans.columns.kind[found] >= this.work ? this.why.arrow(x, y) : -1;
    if (arrow >= 0) {
      const { src, dst } = this.messages.columns;
      return this.card(x, y, this.why.ofMessage(arrow), [src[arrow], dst[arrow]]);
    }
    if (found < 0) return this.hide();
    if (this.why.trail.at(-1) === found) { this.tip.hidden = true; return; } // the text below the lanes already says it
    const [head, body] = this.titled(found), cause = this.why.culprit(found);
    this.card(x, y, [make("b", {}, head), ...this.why.lines(found), make("div", {}, body)], cause < 0 ? [lane] : [lane, this.spans.columns.lane[cause]]);
  }

  // Show these lines near (x, y), above or below the lanes they are about or, if nothing else fits, below all lanes.
  card(x, y, lines, about) {
    this.tip.replaceChildren(...lines);
    this.tip.hidden = false;
    const wide = this.tip.offsetWidth, high = this.tip.offsetHeight, { width, height } = this.surface;
    const rows = about.map((lane) => [this.y(lane), this.y(lane) + this.pitch]);
    const clear = (top) => top >= 0 && top + high <= height && rows.every(([from, to]) => top >= to || top + high <= from);
    const tops = [...rows.flatMap(([from, to]) => [to + BESIDE, from - high - BESIDE]).filter(clear), height - AXIS + BESIDE];
    const far = (top) => Math.max(top - y, y - top - high);
    const top = tops.sort((one, other) => far(one) - far(other))[0];
    this.tip.style.left = `${Math.max(0, Math.min(x + 12, width - wide - 4))}px`;
    this.tip.style.top = `${top}px`;
  }

  hide() { this.over = -1; this.tip.hidden = true; }
}
