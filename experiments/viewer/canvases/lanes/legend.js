// The legend: a swatch and a name for each kind of span.
// Mixed into Timeline (timeline.js), which is `this` here.

class Legend {
  // The kinds in the run that have a meaning; from the table of shares if its single spans are not loaded.
  explained() {
    const there = new Set(this.spans.columns.kind), count = this.kinds.length;
    for (let n = 0; n < (this.coarse?.length ?? 0) && there.size < count; n++) if (this.coarse[n]) there.add(n % count);
    return this.kinds.filter((kind, n) => this.look[kind].meaning && there.has(n));
  }

  // Show the legend on the page, as HTML.
  offerLegend() {
    this.legend.replaceChildren(...this.explained().map((kind) => {
      const swatch = make("i");
      const { colour, height, hatch } = this.look[kind];
      const striped = "repeating-linear-gradient(45deg, transparent 0 3px, rgba(255, 255, 255, 0.5) 3px 4px)";
      swatch.style.background = hatch === "x" ? `repeating-linear-gradient(45deg, ${colour} 0 2px, transparent 2px 4px)` : hatch === "\\" ? `${striped}, ${colour}` : colour;
      swatch.style.height = `${Math.max(4, 12 * height)}px`;
      return make("span", { title: this.look[kind].meaning }, swatch, kind);
    }));
    if (this.spans.columns.marked?.some((one) => one)) {
      const title = "Had any of these taken longer, all would have ended later.";
      this.legend.append(make("span", { title }, make("i", { className: "marked" }), "critical path"));
    }
  }

  // Draw the legend into a saved file; return its height in px.
  head(g, width, page) {
    lettering(g, 12);
    let x = 4, y = 8;
    for (const kind of this.explained()) {
      const { colour, height, hatch } = this.look[kind], wide = 24 + g.measureText(kind).width;
      if (x > 4 && x + wide > width) { x = 4; y += 20; }
      const high = Math.max(4, 12 * height);
      g.fillStyle = colour;
      if (hatch === "x") this.hatched(g, x, y - high / 2, 18, high, colour); else g.fillRect(x, y - high / 2, 18, high);
      if (hatch === "\\") this.stripes(g, x, y - high / 2, 18, high);
      g.fillStyle = page.text;
      g.fillText(kind, x + 24, y);
      x += wide + 16;
    }
    if (this.spans.columns.marked?.some((one) => one)) {
      g.strokeStyle = g.fillStyle = page.text;
      g.lineWidth = 2;
      g.strokeRect(x + 1, y - 5, 16, 10);
      g.fillText("critical path", x + 24, y);
    }
    return y + 16;
  }
}
