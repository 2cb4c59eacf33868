// Curves: drag to zoom, hover or arrow keys to read, double click or Home for the whole. All of it in the browser.

const TOP = 22;      // px above the plot, where the legend is
const BOTTOM = 40;   // px below it: labels and title
const RIGHT = 12;
const NEAR = 8;      // px within which a point belongs to the line under the pointer
const DRAG = 6;      // px from which a press is a drag
const SLIM = 24;     // px: a drag lower than that zooms along x alone, a narrower one along y alone
const curves = new WeakMap();

export default function ({ data, parentElement }) {
  let curve = curves.get(parentElement);
  if (!curve) curves.set(parentElement, (curve = new Curve(parentElement)));
  const bytes = asBytes(data);
  if (bytes) curve.show(decode(bytes));
  return () => { curve.surface.stop(); curves.delete(parentElement); };
}

class Curve {
  constructor(root) {
    this.stage = root.querySelector(".stage");
    this.tip = root.querySelector(".tip");
    this.whole = root.querySelector(".whole");
    this.heard = root.querySelector(".heard");
    this.window = null;  // what the reader zoomed to: {x: [from, to], y: [from, to]}
    this.at = null;      // x where the reader looks
    this.surface = fit(root.querySelector("canvas"), this.stage, 260, (...args) => this.draw(...args));
    this.listen();
  }

  show(frame) {
    if (this.frame?.of !== frame.of) this.zoom(null);
    this.frame = frame;
    this.surface.height = frame.height;
    this.stage.setAttribute("aria-label", `${frame.description} Against ${this.title()}. Arrow keys read it, plus and minus zoom.`);
    this.surface.request();
  }

  title() { const { name, unit } = this.frame.x; return unit ? `${name}, ${unit}` : name; }

  // ---- where things are

  axis(name) {
    const { least, most, log } = this.frame[name];
    const [from, to] = this.window?.[name] ?? [least, most];
    const f = log ? Math.log10 : (value) => value;
    return { from, to, log, place: (value) => (f(value) - f(from)) / (f(to) - f(from)), value: (share) => log ? 10 ** (f(from) + share * (f(to) - f(from))) : from + share * (to - from) };
  }

  scales(width, height) {
    const x = this.axis("x"), y = this.axis("y");
    const { left, right, bottom } = this.edges(width, height);
    return {
      x: (value) => left + x.place(value) * (right - left),
      y: (value) => bottom - y.place(value) * (bottom - TOP),
      valueX: (px) => x.value(Math.min(1, Math.max(0, (px - left) / (right - left)))),
      valueY: (px) => y.value(Math.min(1, Math.max(0, (bottom - px) / (bottom - TOP)))),
    };
  }

  edges(width, height) { return { left: this.left ?? 46, right: width - RIGHT, bottom: height - BOTTOM }; }

  // ---- drawing

  draw(g, width, height) {
    if (!this.frame) return;
    const page = pageColours(this.stage);
    const marks = this.marks("y", (height - TOP - BOTTOM) / 34);
    g.font = `12px ${FONT}`;
    this.left = Math.max(30, ...marks.map((mark) => g.measureText(mark.text).width + 16));
    const { left, right, bottom } = this.edges(width, height), to = this.scales(width, height);
    g.lineWidth = 1;
    g.strokeStyle = page.border;
    g.fillStyle = page.muted;
    g.textAlign = "right";
    g.textBaseline = "middle";
    for (const { value, text } of marks) {
      const y = Math.round(to.y(value)) + 0.5;
      g.beginPath();
      g.moveTo(left, y);
      g.lineTo(right, y);
      g.stroke();
      g.fillText(text, left - 8, y);
    }
    g.textAlign = "center";
    g.textBaseline = "top";
    for (const { value, text } of this.marks("x", (right - left) / 90)) g.fillText(text, to.x(value), bottom + 7);
    g.fillText(this.title(), (left + right) / 2, bottom + 23);
    this.drawLegend(g, left, page);
    g.save();
    g.beginPath();
    g.rect(left - 4, TOP - 5, right - left + 10, bottom - TOP + 6);
    g.clip();
    for (const line of this.frame.lines) if (line.band) this.drawBand(g, line, to);
    for (const line of this.frame.lines) this.drawLine(g, line, to);
    if (this.at !== null) this.drawReading(g, to, bottom, page);
    if (this.drag?.moved) this.drawDrag(g, left, right, bottom, page);
    g.restore();
  }

  drawLine(g, line, to) {
    const xs = this.frame.columns[line.x], ys = this.frame.columns[line.y], log = this.frame.y.log;
    const drawn = (i) => Number.isFinite(ys[i]) && (!log || ys[i] > 0);
    g.strokeStyle = g.fillStyle = line.colour;
    g.globalAlpha = line.faint ? 0.25 : 1;
    g.lineWidth = line.width;
    g.lineJoin = "round";
    if (!line.bare) {
      g.setLineDash(line.dash);
      g.beginPath();
      let pen = false;
      for (let i = 0; i < xs.length; i++) {
        if (!drawn(i)) { pen = false; continue; }
        if (pen) g.lineTo(to.x(xs[i]), to.y(ys[i])); else g.moveTo(to.x(xs[i]), to.y(ys[i]));
        pen = true;
      }
      g.stroke();
      g.setLineDash([]);
    }
    g.lineWidth = 1.6;
    for (let i = 0; line.symbol && i < xs.length; i++) if (drawn(i)) this.mark(g, line.symbol, to.x(xs[i]), to.y(ys[i]));
    const last = xs.length - 1;
    if (!line.symbol && !line.faint && drawn(last) && (this.frame.growing || last === 0)) this.dot(g, to.x(xs[last]), to.y(ys[last]));
    g.globalAlpha = 1;
  }

  // The area of one error to both sides of a line; what is not finite, or below 0 on a logarithmic axis, is left out.
  drawBand(g, line, to) {
    const { columns, y: { log } } = this.frame, xs = columns[line.x], ys = columns[line.y], es = columns[line.error];
    const least = log ? this.axis("y").from : -Infinity;
    g.fillStyle = line.colour;
    g.globalAlpha = 0.2;
    for (let i = 0; i < xs.length; i++) {
      const first = i;
      while (i < xs.length && Number.isFinite(ys[i] + es[i]) && (!log || ys[i] > 0)) i++;
      if (i === first) continue;
      g.beginPath();
      for (let n = first; n < i; n++) g.lineTo(to.x(xs[n]), to.y(ys[n] + es[n]));
      for (let n = i - 1; n >= first; n--) g.lineTo(to.x(xs[n]), to.y(Math.max(least, ys[n] - es[n])));
      g.fill();
    }
    g.globalAlpha = 1;
  }

  mark(g, symbol, x, y) {
    const r = 3.2;
    g.beginPath();
    if (symbol === "square") g.rect(x - r + 0.2, y - r + 0.2, 2 * r - 0.4, 2 * r - 0.4);
    else if (symbol === "diamond") { g.moveTo(x, y - r - 1); g.lineTo(x + r + 1, y); g.lineTo(x, y + r + 1); g.lineTo(x - r - 1, y); g.closePath(); }
    else if (symbol === "triangle-up") { g.moveTo(x, y - r - 0.6); g.lineTo(x + r + 0.6, y + r - 0.4); g.lineTo(x - r - 0.6, y + r - 0.4); g.closePath(); }
    else if (symbol === "cross") { g.moveTo(x, y - r); g.lineTo(x, y + r); g.moveTo(x - r, y); g.lineTo(x + r, y); }
    else g.arc(x, y, r, 0, 7);
    g.stroke();
  }

  dot(g, x, y) { g.beginPath(); g.arc(x, y, 4, 0, 7); g.fill(); }

  drawLegend(g, left, page) {
    let x = left;
    g.textAlign = "left";
    g.textBaseline = "middle";
    for (const line of this.frame.lines.filter((one) => one.key)) {
      g.strokeStyle = line.colour;
      g.lineWidth = line.width;
      g.setLineDash(line.dash);
      g.beginPath();
      g.moveTo(x, 8);
      g.lineTo(x + 26, 8);
      g.stroke();
      g.setLineDash([]);
      g.lineWidth = 1.6;
      if (line.symbol) this.mark(g, line.symbol, x + 13, 8);
      g.fillStyle = page.text;
      g.fillText(line.key, x + 33, 8.5);
      x += 33 + g.measureText(line.key).width + 20;
    }
  }

  drawReading(g, to, bottom, page) {
    const x = Math.round(to.x(this.at)) + 0.5;
    g.strokeStyle = page.muted;
    g.lineWidth = 1;
    g.setLineDash([3, 3]);
    g.beginPath();
    g.moveTo(x, TOP);
    g.lineTo(x, bottom);
    g.stroke();
    g.setLineDash([]);
    for (const { line, i } of this.under(to)) {
      g.fillStyle = line.colour;
      this.dot(g, to.x(this.frame.columns[line.x][i]), to.y(this.frame.columns[line.y][i]));
    }
  }

  drawDrag(g, left, right, bottom, page) {
    const [x0, x1, y0, y1] = this.dragged(left, right, bottom);
    g.fillStyle = g.strokeStyle = page.text;
    g.globalAlpha = 0.1;
    g.fillRect(x0, y0, x1 - x0, y1 - y0);
    g.globalAlpha = 0.6;
    g.lineWidth = 1;
    g.strokeRect(x0 + 0.5, y0 + 0.5, x1 - x0 - 1, y1 - y0 - 1);
    g.globalAlpha = 1;
  }

  // Where labels stand on an axis: [{value, text}].
  marks(name, count) {
    const { from, to, log } = this.axis(name);
    if (log && to / from > 8) {
      const low = Math.ceil(Math.log10(from) - 1e-9), high = Math.floor(Math.log10(to) + 1e-9);
      const every = Math.max(1, Math.ceil((high - low + 1) / Math.max(count, 1)));
      const at = [];
      for (let power = low; power <= high; power += every) for (const m of high - low < 2 && count > 3 ? [1, 2, 5] : [1]) if (m * 10 ** power <= to * 1.0001) at.push(m * 10 ** power);
      return at.map((value) => ({ value, text: short(value) }));
    }
    return ticks(from, to, count).at.map((value) => ({ value, text: short(value) }));
  }

  // ---- reading

  // The points of all lines at the place where the reader looks: [{line, i}].
  under(to) {
    const found = [], here = to.x(this.at);
    for (const line of this.frame.lines) {
      const xs = this.frame.columns[line.x], ys = this.frame.columns[line.y];
      if (line.faint || !xs.length) continue;
      const i = nearest(xs, this.at);
      if (Number.isFinite(ys[i]) && Math.abs(to.x(xs[i]) - here) <= NEAR) found.push({ line, i });
    }
    return found;
  }

  // Look at the point nearest to pixel x, or at the one so many points further on.
  look(px, further = 0) {
    const to = this.scales(this.surface.width, this.surface.height);
    const x = px === null ? this.at ?? to.valueX(0) : to.valueX(px);
    let best = null;
    for (const line of this.frame.lines) {
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

  // Go on by so many points, and say what is there.
  read(further) {
    if (!this.frame) return;
    this.look(null, further);
    if (this.at !== null) this.heard.textContent = this.words;
  }

  tell(to) {
    const { name, unit } = this.frame.x, { unit: per } = this.frame.y;
    const head = document.createElement("b");
    head.textContent = name === "step" ? `step ${exact(this.at)}` : `${exact(this.at)}${unit ? ` ${unit}` : ""}`;
    if (name.startsWith("samples")) head.textContent += " samples";
    const rows = this.under(to).map(({ line, i }) => {
      const row = document.createElement("div"), swatch = document.createElement("i");
      swatch.style.background = line.colour;
      const x = this.frame.columns[line.x][i], elsewhere = x === this.at ? "" : `, at ${exact(x)}`;
      const error = this.frame.columns[line.error]?.[i];
      const off = error > 0 ? ` ± ${Number(error.toPrecision(2))}` : "";
      row.append(swatch, `${line.name} ${exact(this.frame.columns[line.y][i])}${off}${per ? ` ${per}` : ""}${elsewhere}`);
      return row;
    });
    this.tip.replaceChildren(head, ...rows);
    this.tip.hidden = false;
    const x = to.x(this.at), wide = this.tip.offsetWidth;
    this.tip.style.left = `${x + 12 + wide > this.surface.width ? Math.max(0, x - wide - 12) : x + 12}px`;
    this.tip.style.top = `${TOP + 4}px`;
    this.words = `${head.textContent}: ${rows.map((row) => row.textContent).join(", ")}`;
  }

  leave() { this.at = null; this.tip.hidden = true; this.surface.request(); }

  // ---- zooming

  zoom(window) {
    this.window = window;
    this.whole.hidden = !window;
    if (this.frame) this.leave();
  }

  by(factor) {
    if (!this.frame) return;
    const { from, to } = this.axis("x"), { least, most } = this.frame.x;
    const middle = this.at ?? (from + to) / 2, wide = Math.min((to - from) * factor, most - least);
    if (wide >= (most - least) * 0.999) return this.zoom(null);
    const start = Math.min(Math.max(least, middle - wide * ((middle - from) / (to - from))), most - wide);
    const at = this.at;
    this.zoom({ ...this.window, x: [start, start + wide] });
    if (at !== null) this.look(this.scales(this.surface.width, this.surface.height).x(at));
  }

  // The dragged box, [left, right, top, bottom] in px: a slim one reaches from edge to edge.
  dragged(left, right, bottom) {
    const { x, y, toX, toY } = this.drag;
    const inside = (value, low, high) => Math.min(high, Math.max(low, value));
    const along = [inside(Math.min(x, toX), left, right), inside(Math.max(x, toX), left, right)];
    const up = [inside(Math.min(y, toY), TOP, bottom), inside(Math.max(y, toY), TOP, bottom)];
    if (up[1] - up[0] < SLIM) return [...along, TOP, bottom];
    if (along[1] - along[0] < SLIM) return [left, right, ...up];
    return [...along, ...up];
  }

  drop() {
    const { width, height } = this.surface, { left, right, bottom } = this.edges(width, height);
    const [x0, x1, y0, y1] = this.dragged(left, right, bottom), to = this.scales(width, height);
    const wide = x1 - x0 < right - left - 1, tall = y1 - y0 < bottom - TOP - 1;
    this.drag = null;
    this.zoom({ ...this.window, ...(wide && { x: [to.valueX(x0), to.valueX(x1)] }), ...(tall && { y: [to.valueY(y1), to.valueY(y0)] }) });
  }

  listen() {
    const place = (event) => { const box = this.stage.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    this.stage.addEventListener("pointerdown", (event) => {
      const [x, y] = place(event);
      if (event.pointerType === "touch") return this.frame && this.look(x);
      if (event.button) return;
      this.drag = { x, y, toX: x, toY: y, moved: false };
      this.stage.setPointerCapture(event.pointerId);
    });
    this.stage.addEventListener("pointermove", (event) => {
      if (!this.frame) return;
      const [x, y] = place(event);
      if (!this.drag) return this.look(x);
      Object.assign(this.drag, { toX: x, toY: y });
      this.drag.moved ||= Math.abs(x - this.drag.x) > DRAG || Math.abs(y - this.drag.y) > DRAG;
      if (this.drag.moved) { this.leave(); this.surface.request(); }
    });
    this.stage.addEventListener("pointerup", () => { if (this.drag?.moved) this.drop(); this.drag = null; });
    this.stage.addEventListener("pointercancel", () => { this.drag = null; this.surface.request(); });
    this.stage.addEventListener("pointerleave", (event) => { if (!this.drag && event.pointerType !== "touch") this.leave(); });
    this.stage.addEventListener("dblclick", () => this.zoom(null));
    this.stage.addEventListener("blur", () => this.leave());
    this.whole.addEventListener("click", () => { this.zoom(null); this.stage.focus(); });
    const keys = {
      ArrowLeft: () => this.read(-1), ArrowRight: () => this.read(1),
      "+": () => this.by(1 / 1.6), "=": () => this.by(1 / 1.6), "-": () => this.by(1.6), Home: () => this.zoom(null),
    };
    obey(this.stage, keys);
  }
}

// Index of the value nearest to x among values that ascend.
function nearest(xs, x) {
  let low = 0, high = xs.length - 1;
  while (low < high) { const middle = (low + high) >> 1; if (xs[middle] < x) low = middle + 1; else high = middle; }
  return low > 0 && x - xs[low - 1] < xs[low] - x ? low - 1 : low;
}

// 1234 -> "1,234", 2500000 -> "2.5M", 0.00001 -> "1e-5"
function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 4 });
  if (size && size < 1e-3) return value.toExponential().replace(/(\.\d{3})\d+/, "$1");
  return Number(value.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 9 });
}

function exact(value) {
  return value && Math.abs(value) < 1e-3 ? value.toExponential(3) : Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 9 });
}
