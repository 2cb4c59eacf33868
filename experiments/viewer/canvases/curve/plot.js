// Drawing: lines, marks and text, the values being read, and the box being dragged.
// Mixed into Curve (curve.js), which is `this` here.

class Plot {
  draw(g, width, height) {
    if (!this.frame) return;
    const page = pageColours(this.stage);
    const { up, along, turned } = this.arrange(g, width, height);
    const { left, right, top, bottom } = this.edges(width, height), to = this.scales(width, height);
    g.lineWidth = 1;
    g.strokeStyle = page.border;
    g.fillStyle = page.quiet;
    lettering(g, 12, "right");
    for (const { value, text } of up) {
      const y = Math.round(to.y(value)) + 0.5;
      strokeLine(g, [left, y], [right, y]);
      g.fillText(text, left - 8, y);
    }
    lettering(g, 12, "center", "top");
    for (const { value, words } of along) {
      if (turned) upright(g, words[0], to.x(value), bottom + 7, "right");
      else words.forEach((text, n) => {
        const half = g.measureText(text).width / 2;
        g.fillText(text, Math.min(to.x(value), width - half - 1), bottom + 7 + n * WORDS);
      });
    }
    lettering(g, 12, "center", "top");
    g.fillText(this.title(), (left + right) / 2, bottom + this.below - 17);
    if (this.frame.y.told) upright(g, this.frame.y.name, 9, (top + bottom) / 2);
    drawLegend(g, this.keys, page);
    clipTo(g, left - 4, top - 5, right - left + 10, bottom - top + 6);
    const { columns, growing } = this.frame;
    for (const line of this.lines) if (line.bar) drawBars(g, line, columns, to, page);
    for (const line of this.lines) if (line.band && !line.bar) drawBand(g, line, columns, to);
    for (const line of this.lines) if (!line.bar) drawLine(g, line, columns, to, growing);
    if (this.shade) drawShade(g, this.shade, to, top, bottom, page);
    drawLimits(g, this.lines.filter((line) => !line.bar), columns, to, top, page);
    const { finish } = this.frame, now = lockstepClock.seconds;
    if (finish && now !== null) drawVeil(g, Math.max(left, to.x(now / finish.unit)), to, top, bottom, page);
    if (finish) drawFinish(g, finish, now, to, page);
    for (const { line, i } of this.dots) drawDot(g, line, columns, i, to, page);
    if (this.at !== null) this.drawReading(g, to, top, bottom, page);
    if (this.drag?.moved) this.drawDrag(g, this.edges(width, height), page);
    g.restore();
  }

  drawReading(g, to, top, bottom, page) {
    const x = Math.round(to.x(this.at)) + 0.5;
    g.strokeStyle = page.muted;
    g.lineWidth = 1;
    g.setLineDash([3, 3]);
    strokeLine(g, [x, top], [x, bottom]);
    g.setLineDash([]);
    for (const { line, i } of this.under(to)) {
      g.fillStyle = line.colour;
      if (!line.bar) dot(g, to.x(this.frame.columns[line.x][i]), to.y(this.frame.columns[line.y][i]));
    }
  }

  drawDrag(g, edges, page) {
    const [x0, x1, y0, y1] = this.dragged(edges);
    g.fillStyle = g.strokeStyle = page.text;
    g.globalAlpha = 0.1;
    g.fillRect(x0, y0, x1 - x0, y1 - y0);
    g.globalAlpha = 0.6;
    g.lineWidth = 1;
    g.strokeRect(x0 + 0.5, y0 + 0.5, x1 - x0 - 1, y1 - y0 - 1);
    g.globalAlpha = 1;
  }
}
