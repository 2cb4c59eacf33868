// Reading values at the x that the reader points at.
// Mixed into Curve (curve.js), which is `this` here.

const NEAR = 8;      // px within which a point belongs to the line under the pointer

class Reading {
  // The points of all lines at that x: [{line, i}].
  under(to) {
    const found = [], here = to.x(this.at);
    for (const line of this.lines) {
      const xs = this.frame.columns[line.x], ys = this.frame.columns[line.y];
      if (line.faint || !xs.length) continue;
      const i = nearest(xs, this.at);
      if (Number.isFinite(ys[i]) && Math.abs(to.x(xs[i]) - here) <= NEAR) found.push({ line, i });
    }
    return found;
  }

  // Read the point nearest to x = `px`, or the one `further` points after it.
  look(px, further = 0) {
    const to = this.scales(this.surface.width, this.surface.height);
    const x = px === null ? this.at ?? to.valueX(0) : to.valueX(px);
    let best = null;
    for (const line of this.lines) {
      const xs = this.frame.columns[line.x];
      if (line.faint || !xs.length) continue;
      const i = further ? Math.min(xs.length - 1, Math.max(0, nearest(xs, x) + further)) : nearest(xs, x);
      if (best === null || Math.abs(xs[i] - x) < Math.abs(best - x)) best = xs[i];
      if (further) break;
    }
    this.at = best;
    if (best !== null) this.tell(to);
    this.surface.request();
  }

  // Move by `further` points, and announce the values there.
  read(further) {
    if (!this.frame) return;
    this.look(null, further);
    if (this.at !== null) this.heard.textContent = this.words;
  }

  tell(to) {
    const { name, unit } = this.frame.x, { unit: per } = this.frame.y;
    const { told, labels } = this.frame.x, here = labels ? labels[Math.round(this.at)] : `${exact(this.at)}${unit ? ` ${unit}` : ""}`;
    const where = `${name === "step" || told ? `${name} ` : ""}${here}${name.startsWith("samples") ? " samples" : ""}`;
    const rows = this.under(to).map(({ line, i }) => {
      const swatch = make("i");
      swatch.style.background = line.colour;
      const x = this.frame.columns[line.x][i], elsewhere = x === this.at ? "" : `, at ${exact(x)}`;
      const off = range(line, this.frame.columns, i);
      return make("div", {}, swatch, `${line.name} ${exact(this.frame.columns[line.y][i])}${off}${per ? ` ${per}` : ""}${elsewhere}`);
    });
    this.tip.replaceChildren(make("b", {}, where), ...rows);
    this.tip.hidden = false;
    const x = to.x(this.at), wide = this.tip.offsetWidth;
    this.tip.style.left = `${x + 12 + wide > this.surface.width ? Math.max(0, x - wide - 12) : x + 12}px`;
    this.tip.style.top = `${this.top + 4}px`;
    this.words = `${where}: ${rows.map((row) => row.textContent).join(", ")}`;
  }

  leave() { this.at = null; this.tip.hidden = true; this.surface.request(); }
}

// The index of the value nearest to x. More than 300 values must be sorted: it bisects them.
function nearest(xs, x) {
  let low = 0;
  const last = xs.length - 1;
  if (last < 300) {
    for (let i = 1; i <= last; i++) if (Math.abs(xs[i] - x) < Math.abs(xs[low] - x)) low = i;
    return low;
  }
  low = firstWhere(0, last, (n) => xs[n] >= x);
  return low > 0 && x - xs[low - 1] < xs[low] - x ? low - 1 : low;
}
