// A picture as SVG: a drawing context that records what a canvas draws as SVG elements. It implements those calls of
// CanvasRenderingContext2D that our canvases use. Paths are stored with their transform applied.

const KEPT = ["fillStyle", "strokeStyle", "globalAlpha", "lineWidth", "lineJoin", "lineCap", "font", "textAlign", "textBaseline", "dash", "matrix", "within"];
const ANCHOR = { left: "start", start: "start", center: "middle", right: "end", end: "end" };
const BELOW = { top: 0.78, hanging: 0.78, middle: 0.33, alphabetic: 0, ideographic: -0.2, bottom: -0.2 }; // em from y down to the baseline

class SvgContext {
  constructor() {
    Object.assign(this, {
      fillStyle: "#000", strokeStyle: "#000", globalAlpha: 1, lineWidth: 1, lineJoin: "miter", lineCap: "butt",
      font: `10px ${FONT}`, textAlign: "start", textBaseline: "alphabetic", dash: [], matrix: [1, 0, 0, 1, 0, 0], within: null,
    });
    this.stack = [];
    this.parts = [];         // [clip, element]
    this.clips = new Map();  // clipping path -> id
    this.ruler = document.createElement("canvas").getContext("2d");
    this.beginPath();
  }

  // The text of the SVG file. `title` and `words` describe the picture to screen readers.
  file(width, height, page, title, words) {
    const clips = [...this.clips].map(([d, id]) => `<clipPath id="${id}"><path d="${d}"/></clipPath>`);
    const body = [];
    let open = null;
    for (const [clip, element] of this.parts) {
      if (clip !== open) body.push(open ? "</g>" : "", clip ? `<g clip-path="url(#${clip})">` : "");
      open = clip;
      body.push(element);
    }
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${tidy(width)}" height="${tidy(height)}" viewBox="0 0 ${tidy(width)} ${tidy(height)}" font-family="${escaped(FONT.replaceAll('"', "'"))}" role="img">`,
      `<title>${escaped(title)}</title>`, `<desc>${escaped(words)}</desc>`, clips.length ? `<defs>${clips.join("")}</defs>` : "",
      `<rect width="100%" height="100%" fill="${escaped(page)}"/>`, ...body, open ? "</g>" : "", "</svg>", "",
    ].filter((line, n, all) => line || n === all.length - 1).join("\n");
  }

  add(name, looks, inside = "") {
    const attributes = Object.entries(looks).filter(([, value]) => value !== null).map(([key, value]) => ` ${key}="${typeof value === "number" ? tidy(value) : escaped(String(value))}"`);
    const element = `<${name}${attributes.join("")}${inside ? `>${inside}</${name}>` : "/>"}`;
    this.parts.push([this.within?.id ?? null, element]);
  }

  // ---- state

  save() { this.stack.push(Object.fromEntries(KEPT.map((name) => [name, this[name]]))); }
  restore() { if (this.stack.length) Object.assign(this, this.stack.pop()); }
  setLineDash(dash) { this.dash = [...dash]; }
  getLineDash() { return [...this.dash]; }
  transform(a, b, c, d, e, f) {
    const [p, q, r, s, t, u] = this.matrix;
    this.matrix = [p * a + r * b, q * a + s * b, p * c + r * d, q * c + s * d, p * e + r * f + t, q * e + s * f + u];
  }
  translate(x, y) { this.transform(1, 0, 0, 1, x, y); }
  scale(x, y) { this.transform(x, 0, 0, y, 0, 0); }
  rotate(angle) { this.transform(Math.cos(angle), Math.sin(angle), -Math.sin(angle), Math.cos(angle), 0, 0); }
  at(x, y) { const [a, b, c, d, e, f] = this.matrix; return [a * x + c * y + e, b * x + d * y + f]; }
  get zoomed() { return Math.hypot(this.matrix[0], this.matrix[1]); }
  get moved() { return this.matrix.every((one, n) => Math.abs(one - [1, 0, 0, 1, 0, 0][n]) < 1e-9) ? null : `matrix(${this.matrix.map(tidy).join(" ")})`; }
  get faded() { return this.globalAlpha === 1 ? null : this.globalAlpha; }

  // ---- paths

  beginPath() { this.path = []; this.pen = null; this.box = null; }
  point(letter, x, y) { const [px, py] = this.at(x, y); this.path.push(`${letter}${tidy(px)} ${tidy(py)}`); this.pen = [px, py]; }
  moveTo(x, y) { this.point("M", x, y); }
  lineTo(x, y) { this.point(this.path.length ? "L" : "M", x, y); }
  closePath() { if (this.path.length) this.path.push("Z"); }
  rect(x, y, wide, high) {
    this.box = this.path.length || this.moved ? null : [x, y, x + wide, y + high];
    this.moveTo(x, y);
    this.lineTo(x + wide, y);
    this.lineTo(x + wide, y + high);
    this.lineTo(x, y + high);
    this.closePath();
  }
  roundRect(x, y, wide, high, round = 0) {
    const r = Math.min(Array.isArray(round) ? round[0] : round, wide / 2, high / 2), right = x + wide, low = y + high;
    this.moveTo(x + r, y);
    for (const [toX, toY, cornerX, cornerY, onX, onY] of [
      [right - r, y, right, y, right, y + r], [right, low - r, right, low, right - r, low],
      [x + r, low, x, low, x, low - r], [x, y + r, x, y, x + r, y],
    ]) { this.lineTo(toX, toY); this.quadraticCurveTo(cornerX, cornerY, onX, onY); }
    this.closePath();
  }
  quadraticCurveTo(cx, cy, x, y) { this.curve("Q", [cx, cy], [x, y]); }
  bezierCurveTo(ax, ay, bx, by, x, y) { this.curve("C", [ax, ay], [bx, by], [x, y]); }
  curve(letter, ...points) {
    const there = points.map((point) => this.at(...point));
    this.path.push(letter + there.map(([x, y]) => `${tidy(x)} ${tidy(y)}`).join(" "));
    this.pen = there.at(-1);
  }
  arc(x, y, radius, from, to, back = false) { this.ellipse(x, y, radius, radius, 0, from, to, back); }
  ellipse(x, y, wide, high, turn, from, to, back = false) {
    const spot = (angle) => { const a = wide * Math.cos(angle), b = high * Math.sin(angle); return [x + a * Math.cos(turn) - b * Math.sin(turn), y + a * Math.sin(turn) + b * Math.cos(turn)]; };
    const whole = Math.abs(to - from) >= 2 * Math.PI - 1e-9;
    const sweep = whole ? 2 * Math.PI : (((back ? from - to : to - from) % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI);
    const way = back ? -1 : 1, k = this.zoomed;
    this.lineTo(...spot(from));
    const pieces = sweep > Math.PI ? 2 : 1;
    for (let n = 1; n <= pieces; n++) {
      const [px, py] = this.at(...spot(from + (way * sweep * n) / pieces));
      this.path.push(`A${tidy(wide * k)} ${tidy(high * k)} ${tidy(((turn + Math.atan2(this.matrix[1], this.matrix[0])) * 180) / Math.PI)} 0 ${back ? 0 : 1} ${tidy(px)} ${tidy(py)}`);
      this.pen = [px, py];
    }
    if (whole) this.path.push("Z");
  }
  fill() { if (this.path.length) this.add("path", { d: this.path.join(""), fill: this.fillStyle, opacity: this.faded }); }
  stroke() { if (this.path.length) this.add("path", { d: this.path.join(""), fill: "none", ...this.line(), opacity: this.faded }); }
  line() {
    return {
      stroke: this.strokeStyle, "stroke-width": this.lineWidth * this.zoomed,
      "stroke-dasharray": this.dash.length ? this.dash.map(tidy).join(" ") : null,
      "stroke-linejoin": this.lineJoin === "miter" ? null : this.lineJoin, "stroke-linecap": this.lineCap === "butt" ? null : this.lineCap,
    };
  }
  // Two nested boxes clip to their intersection. Any other shape replaces the clip around it.
  clip() {
    const around = this.within?.box;
    const box = this.box && around ? [Math.max(this.box[0], around[0]), Math.max(this.box[1], around[1]), Math.min(this.box[2], around[2]), Math.min(this.box[3], around[3])] : this.box;
    const d = box ? `M${tidy(box[0])} ${tidy(box[1])}H${tidy(Math.max(box[0], box[2]))}V${tidy(Math.max(box[1], box[3]))}H${tidy(box[0])}Z` : this.path.join("");
    if (!this.clips.has(d)) this.clips.set(d, `clip-${this.clips.size + 1}`);
    this.within = { id: this.clips.get(d), box };
  }

  // ---- shapes, text and images

  clearRect() {} // a file starts empty
  fillRect(x, y, wide, high) { if (wide > 0 && high > 0) this.add("rect", { x, y, width: wide, height: high, fill: this.fillStyle, opacity: this.faded, transform: this.moved }); }
  strokeRect(x, y, wide, high) { this.add("rect", { x, y, width: Math.max(wide, 0), height: Math.max(high, 0), fill: "none", ...this.line(), opacity: this.faded, transform: this.moved }); }
  measureText(text) { this.ruler.font = this.font; return this.ruler.measureText(text); }
  fillText(text, x, y, room = Infinity) {
    const [, style, size] = this.font.match(/^(.*?)([\d.]+)px/) ?? [null, "", "10"];
    this.add("text", {
      x, y: y + BELOW[this.textBaseline] * Number(size), "font-size": Number(size), "font-weight": /bold|[5-9]00/.test(style) ? style.trim() : null,
      "font-style": /italic/.test(style) ? "italic" : null, "text-anchor": ANCHOR[this.textAlign] === "start" ? null : ANCHOR[this.textAlign],
      textLength: this.measureText(text).width > room ? room : null, lengthAdjust: this.measureText(text).width > room ? "spacingAndGlyphs" : null,
      fill: this.fillStyle, opacity: this.faded, transform: this.moved,
    }, escaped(String(text)));
  }
  drawImage(source, x, y, wide = source.width, high = source.height) {
    this.add("image", { x, y, width: wide, height: high, preserveAspectRatio: "none", opacity: this.faded, transform: this.moved, href: source.toDataURL("image/png") });
  }
  putImageData(image, x, y) {
    const board = make("canvas", { width: image.width, height: image.height });
    board.getContext("2d").putImageData(image, 0, 0);
    this.drawImage(board, x, y);
  }
}

function tidy(value) { return String(Math.round(value * 100) / 100); }

// Escape text for XML, and drop the characters that XML does not allow.
function escaped(text) {
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "").replace(/[&<>"]/g, (one) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[one]);
}
