// The moment that is looked at: the page's clock says which, or one of the timeline's own. It is drawn on the overlay.
// Mixed into Timeline (timeline.js), which is `this` here.

class Cursor {
  // The moment that is looked at, in s; null if none is.
  get cursor() { return this.clock.seconds === null ? null : Math.max(0, Math.min(this.clock.seconds, this.total ?? 0)); }

  // Whether the moment that is looked at lies in the window.
  looking() { return this.cursor !== null && this.cursor >= this.from && this.cursor <= this.to; }

  // The moment of which it is said and drawn what everyone does: an instant later, or earlier at the end of what is seen.
  now() {
    const end = this.looking() ? this.to : this.total;
    return Math.min(this.cursor + this.instant(), end - this.instant());
  }

  // Move the window so that the cursor is in its middle.
  bring() {
    const half = (this.to - this.from) / 2;
    this.window(this.cursor - half, this.cursor + half);
  }

  // Look at this moment.
  seek(time) { this.clock.set(Math.max(this.from, Math.min(this.to, time)), this); }

  leave() { this.clock.set(null, this); }

  // The cursor's time as the axis writes times, as finely as it can be set. The end of the run has the digits that sentences
  // give it, and so has what is drawn after it, where ranks wait for ever.
  moment() {
    if (this.timed && (this.cursor === this.end || (this.goesOn && this.cursor > this.end))) return this.inTime(this.end);
    const finest = (this.to - this.from) / 500;
    if (this.timed) return timeLabels(finest, this.to)(this.cursor);
    return inUnits(Number(this.cursor.toFixed(Math.max(0, Math.ceil(-Math.log10(finest))))));
  }

  drawCursor(g, width, height) {
    if (!this.spans || this.cursor === null) return;
    const page = pageColours(this.box), plot = width - GUTTER - 4;
    g.strokeStyle = g.fillStyle = page.text;
    g.lineWidth = 1.5;
    const whole = GUTTER + (this.cursor / this.total) * plot;
    g.strokeRect(whole, 3, 0, STRIP - 2);
    if (!this.looking()) return;
    const x = this.x(this.cursor), bottom = height - AXIS;
    plate(g, page, 0.66, x, TOP - 1, GUTTER + plot + 2 - x, bottom - TOP + 2); // over what is still to come
    clipTo(g, GUTTER, TOP, plot, bottom - TOP);
    const flying = this.arrows && this.near() ? this.travelling(this.cursor, this.cursor) : [];
    g.lineWidth = flying.length > 60 ? 0.7 : 1.5;
    if (flying.length <= ARROWS) flying.forEach((n) => this.arrow(g, n, this.cursor));
    g.restore();
    strokeLine(g, [x, TOP - 5], [x, bottom + 4]);
    fillShape(g, [x - 6, TOP - 13], [x + 6, TOP - 13], [x, TOP - 3]);
    const said = this.moment();
    lettering(g, 11, "center");
    const wide = g.measureText(said).width + 10, left = Math.max(GUTTER - 6, Math.min(x - wide / 2, width - wide));
    g.fillStyle = page.page; // over the words of a tick of which some would be covered
    for (const [from, to] of this.ticked ?? []) if (from < left + wide && to > left) g.fillRect(from - 2, bottom + 4, to - from + 4, AXIS - 5);
    g.fillStyle = page.text;
    g.fillRect(left, bottom + 4, wide, AXIS - 5);
    g.fillStyle = page.page;
    g.fillText(said, left + wide / 2, bottom + 4 + (AXIS - 5) / 2 + 0.5);
  }
}
