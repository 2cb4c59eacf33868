// The span or the message under the pointer, and the card that tells about it.
// Mixed into Timeline (timeline.js), which is `this` here.

class Card {
  hover(x, y) {
    const lane = Math.floor((y - TOP + this.scroll) / this.pitch);
    let found = -1;
    if (this.near() && x >= GUTTER && y >= TOP && y < this.surface.height - AXIS && lane >= 0 && lane < this.names.length) {
      const slack = 1.5 / this.scaleX, time = this.time(x);
      const [i, j] = this.within(lane, time - slack, time + slack);
      const { start, duration, kind } = this.spans.columns;
      // the most telling span under the pointer: work before waiting, then the nearest
      const worth = (n) => (kind[n] < this.work ? 0 : kind[n]) * 1e6 * slack + Math.max(0, start[n] - time, time - start[n] - duration[n]);
      for (let n = i; n < Math.min(j, i + 400); n++) if (found < 0 || worth(n) < worth(found)) found = n;
    }
    this.stage.style.cursor = (y < STRIP + 6 && x >= GUTTER) || this.axis(x, y) ? "ew-resize" : this.named(x, y) >= 0 ? "pointer" : found >= 0 ? "default" : "grab";
    if (found !== this.over) { this.over = found; this.surface.request(); }
    const arrow = found < 0 || this.spans.columns.kind[found] >= this.work ? this.why.arrow(x, y) : -1;
    if (arrow >= 0) return this.card(x, y, this.why.ofMessage(arrow));
    if (found < 0) return this.hide();
    if (this.why.trail.at(-1) === found) { this.tip.hidden = true; return; } // what it says stands below the lanes already
    const { start, duration, lane: lanes } = this.spans.columns;
    const [head, body] = ["b", "div"].map((tag) => document.createElement(tag));
    [head.textContent, body.textContent] = this.titled(found);
    const cause = this.why.culprit(found), top = cause < 0 ? 0 : this.y(lanes[cause]);
    const free = cause < 0 ? null : [this.x(start[cause]), top, this.x(start[cause] + duration[cause]), top + this.pitch];
    this.card(x, y, [head, ...this.why.lines(found), body], free);
  }

  // Show these lines beside (x, y), where they cover nothing of the rectangle `free` (left, top, right, bottom), if they can.
  card(x, y, lines, free = null) {
    this.tip.replaceChildren(...lines);
    this.tip.hidden = false;
    const wide = this.tip.offsetWidth, high = this.tip.offsetHeight, { width, height } = this.surface;
    const below = y + 16, above = y - high - 10, right = x + 12, left = x - wide - 12;
    const within = ([at, top]) => [Math.max(0, Math.min(at, width - wide - 4)), top];
    const clear = ([at, top]) => !free || at > free[2] || at + wide < free[0] || top > free[3] || top + high < free[1];
    const places = (below + high > height ? [[right, above], [left, above], [right, below], [left, below]] : [[right, below], [left, below], [right, above], [left, above]]);
    if (free) places.push([right, free[3] + 4], [right, free[1] - high - 4]); // below or above the lane of the cause
    const [at, top] = places.map(within).find((place) => place[1] >= 0 && place[1] + high <= height && clear(place)) ?? within(places[0]);
    this.tip.style.left = `${at}px`;
    this.tip.style.top = `${top}px`;
  }

  hide() { this.over = -1; this.tip.hidden = true; }
}
