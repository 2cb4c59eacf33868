// The selected moment, according to the page's clock or the timeline's own. It is drawn on the overlay.
// Mixed into Timeline (timeline.js), which is `this` here.

class Cursor {
  // The selected moment, in s; null if there is none.
  get cursor() { return this.clock.seconds === null ? null : Math.max(0, Math.min(this.clock.seconds, this.total ?? 0)); }

  // True if the selected moment is inside the window.
  looking() { return this.cursor !== null && this.cursor >= this.from && this.cursor <= this.to; }

  // The moment at which to look up what each rank does: an instant after the cursor or, at the end of the view, before it.
  now() {
    const end = this.looking() ? this.to : this.total;
    return Math.min(this.cursor + this.instant(), end - this.instant());
  }

  // Centre the window on the cursor.
  bring() {
    const half = (this.to - this.from) / 2;
    this.window(this.cursor - half, this.cursor + half);
  }

  seek(time) { this.clock.set(Math.max(this.from, Math.min(this.to, time)), this); }

  leave() { this.clock.set(null, this); }

  // The cursor's time, formatted like the axis, with as many digits as the cursor can resolve. The end of the run is written
  // as in sentences, and so is any later moment, where ranks wait forever.
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
    plate(g, page, 0.66, x, TOP - 1, GUTTER + plot + 2 - x, bottom - TOP + 2); // fade what has not happened yet
    clipTo(g, GUTTER, TOP, plot, bottom - TOP);
    const flying = this.arrows && this.near() && !this.morph ? this.travelling(this.cursor, this.cursor) : [];
    g.lineWidth = flying.length > 60 ? 0.7 : 1.5;
    if (flying.length <= ARROWS) flying.forEach((n) => this.arrow(g, n, this.cursor));
    g.restore();
    strokeLine(g, [x, TOP - 5], [x, bottom + 4]);
    fillShape(g, [x - 6, TOP - 13], [x + 6, TOP - 13], [x, TOP - 3]);
    const said = this.moment();
    lettering(g, 11, "center");
    const wide = g.measureText(said).width + 10, left = Math.max(GUTTER - 6, Math.min(x - wide / 2, width - wide));
    g.fillStyle = page.page; // erase any label that the cursor's label would partly cover
    for (const [from, to] of this.ticked ?? []) if (from < left + wide && to > left) g.fillRect(from - 2, bottom + 4, to - from + 4, AXIS - 5);
    g.fillStyle = page.text;
    g.fillRect(left, bottom + 4, wide, AXIS - 5);
    g.fillStyle = page.page;
    g.fillText(said, left + wide / 2, bottom + 4 + (AXIS - 5) / 2 + 0.5);
  }
}
