// Curves and bars: drag to zoom, hover or arrow keys to read, double click or Home for the whole. All of it in the
// browser. Frames with `stops` have a slider: a line belongs to one stop, or to all of them, and the axes are the same.

const ROW = 20;      // px of a row of the legend
const WORDS = 14;    // px of a line of words below the plot
const PACE = 900;    // ms at each stop while it is played
const RIGHT = 12;
const NEAR = 8;      // px within which a point belongs to the line under the pointer
const DRAG = 6;      // px from which a press is a drag
const ROOM = 0.06;   // of a fitted axis, above and below what is seen
const FEW = 8;       // points of a line, of which a window has to have more to show how it goes

// The curves of the page: those that are drawn together are zoomed into together.
globalThis.lockstepCurves ??= new Set();

class Curve {
  constructor(root) {
    this.stage = root.querySelector(".stage");
    this.tip = root.querySelector(".tip");
    this.whole = root.querySelector(".whole");
    this.heard = root.querySelector(".heard");
    this.verdict = root.querySelector(".verdict");
    this.slider = root.querySelector(".slider");
    this.range = root.querySelector("input");
    this.said = root.querySelector("output");
    this.player = root.querySelector(".slider button");
    this.stopAt = 0;     // which stop of the slider
    this.window = null;  // what the reader zoomed to: {x: [from, to]}
    this.shade = null;   // what the timeline shows where this shows the whole: [from, to] of x
    this.at = null;      // x where the reader looks
    this.surface = fit(root.querySelector("canvas"), this.stage, 260, (...args) => this.draw(...args));
    const follow = () => this.follow();
    follow.shows = () => ({ canvas: "curve", dots: this.dots.map(({ line, i }) => ({ name: line.name, i, seconds: this.frame.columns[line.seconds][i] })) });
    this.deaf = lockstepClock.listen(follow);
    this.dots = [];
    lockstepCurves.add(this);
    this.listen();
  }

  stop() {
    lockstepCurves.delete(this);
    this.surface.stop();
    this.deaf();
    this.unclosed();
    clearInterval(this.playing);
  }

  redraw() { this.surface.request(); }

  get moves() {
    const ends = (this.frame?.lines ?? []).map(({ seconds }) => this.frame.columns[seconds]?.at(-1) ?? 0);
    return Math.max(0, ...ends);
  }

  // In a file: which line is which run, where the page says it above several pictures.
  head(g, width, page) {
    g.font = `12px ${FONT}`;
    const entries = legend(g, this.saved?.legend ?? [], 8, width);
    drawLegend(g, entries, page);
    return entries.length ? (entries.at(-1).row + 1) * ROW + 2 : 0;
  }

  show(bytes) {
    const frame = decode(bytes);
    if (this.frame?.of !== frame.of) this.see(frame.zoom ? { x: frame.zoom } : null);
    this.saved = frame.saved;
    this.frame = frame;
    this.surface.height = frame.height;
    this.offer();
    this.dots = this.reached();
    this.judge();
    this.stage.setAttribute("aria-label", `${frame.description} The horizontal axis is ${this.title()}. Arrow keys read it, plus and minus zoom.`);
    this.surface.request();
  }

  // The slider, if there is one, and what it says.
  offer() {
    const { stops } = this.frame;
    this.slider.hidden = !stops;
    if (!stops) return;
    this.stopAt = Math.min(this.stopAt, stops.values.length - 1);
    this.range.max = stops.values.length - 1;
    this.range.value = this.stopAt;
    const words = `${stops.name} ${stops.values[this.stopAt]}`;
    this.range.setAttribute("aria-label", stops.name);
    this.range.setAttribute("aria-valuetext", words);
    this.said.textContent = words;
    this.player.textContent = this.playing ? "❚❚" : "▶\uFE0E";
    this.player.setAttribute("aria-label", this.playing ? "Pause" : "Play");
  }

  // Show this stop of the slider.
  slide(stop) {
    this.stopAt = stop;
    this.offer();
    if (this.at !== null) this.leave();
    this.surface.request();
  }

  play() {
    const last = this.frame.stops.values.length - 1;
    if (this.playing) return this.pause();
    if (this.stopAt === last) this.slide(0);
    this.playing = setInterval(() => {
      this.slide(this.stopAt + 1);
      if (this.stopAt >= last) this.pause();
    }, PACE);
    this.offer();
  }

  pause() {
    clearInterval(this.playing);
    this.playing = null;
    this.offer();
  }

  // The lines of this stop.
  get lines() { return this.frame.lines.filter(({ stop = this.stopAt }) => stop === this.stopAt); }

  title() { const { name, unit, title } = this.frame.x; return title || (unit ? `${name}, ${unit}` : name); }

  // ---- where things are

  axis(name) {
    const { least, most, log } = this.frame[name];
    const [from, to] = (name === "x" ? this.window?.x : this.fitted()) ?? [least, most];
    const f = log ? Math.log10 : (value) => value;
    return { from, to, log, place: (value) => (f(value) - f(from)) / (f(to) - f(from)), value: (share) => log ? 10 ** (f(from) + share * (f(to) - f(from))) : from + share * (to - from) };
  }

  // The range of y over the window of x, null without a window or without anything in it.
  fitted() {
    if (!this.window || this.lines.some((line) => line.bar)) return null;
    const [from, to] = this.window.x, { log, least } = this.frame.y;
    let low = Infinity, high = -Infinity;
    for (const line of this.lines) {
      const xs = this.frame.columns[line.x], ys = this.frame.columns[line.y];
      for (let i = 0; i < xs.length; i++) {
        if (line.faint || xs[i] < from || xs[i] > to || !Number.isFinite(ys[i]) || (log && ys[i] <= 0)) continue;
        low = Math.min(low, ys[i]);
        high = Math.max(high, ys[i]);
      }
    }
    if (low > high) return null;
    if (log) return [low / 1.15, high * 1.15];
    const room = ROOM * (high - low || Math.abs(high) || 1);
    return [low >= least ? Math.max(least, low - room) : low - room, high + room];
  }

  scales(width, height) {
    const x = this.axis("x"), y = this.axis("y");
    const { left, right, top, bottom } = this.edges(width, height);
    return {
      x: (value) => left + x.place(value) * (right - left),
      y: (value) => bottom - y.place(value) * (bottom - top),
      valueX: (px) => x.value(Math.min(1, Math.max(0, (px - left) / (right - left)))),
      valueY: (px) => y.value(Math.min(1, Math.max(0, (bottom - px) / (bottom - top)))),
      log: y.log,
      least: y.from,
      most: y.to,
      left,
      right,
    };
  }

  edges(width, height) {
    return { left: this.left ?? 46, right: width - RIGHT, top: this.top ?? ROW + 2, bottom: height - (this.below ?? 40) };
  }

  // How much room legend, labels and titles take around the plot, and the labels that have room.
  arrange(g, width, height) {
    g.font = `12px ${FONT}`;
    this.keys = legend(g, this.lines.filter((one) => one.key), 8, width);
    this.top = Math.max(0, ...this.keys.map(({ row }) => row + 1)) * ROW + (this.keys.length ? 2 : ROW + 2);
    const up = this.marks("y", (height - this.top - 40) / 34);
    this.left = Math.max(30, ...up.map((mark) => g.measureText(mark.text).width + 16)) + (this.frame.y.told ? 18 : 0);
    const { left, right } = this.edges(width, height), to = this.scales(width, height);
    const { labels } = this.frame.x, all = this.marks("x", (right - left) / 90);
    let along = apart(g, all, (value) => to.x(value), labels ? (right - left) / labels.length : 0);
    const turned = labels && along.length < all.length; // names that have no room beside each other
    if (turned) along = all.map(({ value, text }) => ({ value, words: [text] }));
    const wide = ({ words }) => g.measureText(words[0]).width;
    this.below = 26 + (turned ? Math.max(...along.map(wide)) : Math.max(1, ...along.map(({ words }) => words.length)) * WORDS);
    return { up, along, turned };
  }

  // ---- drawing

  draw(g, width, height) {
    if (!this.frame) return;
    const page = pageColours(this.stage);
    const { up, along, turned } = this.arrange(g, width, height);
    const { left, right, top, bottom } = this.edges(width, height), to = this.scales(width, height);
    g.lineWidth = 1;
    g.strokeStyle = page.border;
    g.fillStyle = page.muted;
    g.textAlign = "right";
    g.textBaseline = "middle";
    for (const { value, text } of up) {
      const y = Math.round(to.y(value)) + 0.5;
      g.beginPath();
      g.moveTo(left, y);
      g.lineTo(right, y);
      g.stroke();
      g.fillText(text, left - 8, y);
    }
    g.textAlign = "center";
    g.textBaseline = "top";
    for (const { value, words } of along) {
      if (turned) upright(g, words[0], to.x(value), bottom + 7, "right");
      else words.forEach((text, n) => {
        const half = g.measureText(text).width / 2;
        g.fillText(text, Math.min(to.x(value), width - half - 1), bottom + 7 + n * WORDS);
      });
    }
    g.textAlign = "center";
    g.textBaseline = "top";
    g.fillText(this.title(), (left + right) / 2, bottom + this.below - 17);
    if (this.frame.y.told) upright(g, this.frame.y.name, 9, (top + bottom) / 2);
    drawLegend(g, this.keys, page);
    g.save();
    g.beginPath();
    g.rect(left - 4, top - 5, right - left + 10, bottom - top + 6);
    g.clip();
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
    g.beginPath();
    g.moveTo(x, top);
    g.lineTo(x, bottom);
    g.stroke();
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

  // Where labels stand on an axis: [{value, text}].
  marks(name, count) {
    const { from, to, log } = this.axis(name), { labels, ticks: places } = this.frame[name];
    const there = (value) => value >= from - 1e-9 && value <= to * (1 + 1e-9);
    if (labels) return labels.map((text, value) => ({ value, text })).filter(({ value }) => there(value));
    if (places) return places.filter(there).map((value) => ({ value, text: short(value) }));
    if (log && to / from > 8) {
      const low = Math.floor(Math.log10(from) + 1e-9), high = Math.floor(Math.log10(to) + 1e-9);
      const every = Math.max(1, Math.ceil((high - low + 1) / Math.max(count, 1)));
      const at = [];
      for (let power = low; power <= high; power += every) for (const m of 3 * Math.log10(to / from) <= 1.6 * count ? [1, 2, 5] : [1]) if (m * 10 ** power <= to * 1.0001 && m * 10 ** power >= from * 0.9999) at.push(m * 10 ** power);
      return at.map((value) => ({ value, text: to >= 1e6 ? power(value) : short(value) }));
    }
    return ticks(from, to, count).at.map((value) => ({ value, text: short(value) }));
  }

  // ---- the page's clock

  // The last point of each line that was reached by now: [{line, i}].
  reached() {
    const now = lockstepClock.seconds;
    if (now === null || !this.frame) return [];
    return this.lines.filter((line) => line.seconds).flatMap((line) => {
      const i = lastUntil(this.frame.columns[line.seconds], now);
      return i < 0 ? [] : [{ line, i }];
    });
  }

  // Say who has arrived at the finish by now.
  judge() {
    const { finish } = this.frame, now = lockstepClock.seconds;
    this.verdict.hidden = !finish;
    if (!finish) return;
    const [first, second] = finish.arrivals, there = first.seconds !== null && now >= first.seconds;
    const words = now === null || now >= finish.until ? finish.verdict
      : there ? `${first.name} is there after ${inSeconds(first.seconds)}. ${second.name} is still on its way.` : "Nobody is there yet.";
    if (this.verdict.textContent !== words) this.verdict.textContent = words;
  }

  // Draw again if a dot is elsewhere now.
  follow() {
    if (this.frame?.finish) { this.judge(); this.surface.request(); }
    const places = (dots) => dots.map(({ i }) => i).join();
    const dots = this.reached();
    if (places(dots) === places(this.dots)) return;
    this.dots = dots;
    this.surface.request();
  }

  // Set the clock to when the point nearest to pixel x was reached.
  seek(px) {
    const to = this.scales(this.surface.width, this.surface.height), line = this.lines.find((one) => one.seconds && this.frame.columns[one.x].length);
    if (line) lockstepClock.set(this.frame.columns[line.seconds][nearest(this.frame.columns[line.x], to.valueX(px))], this);
  }

  // ---- reading

  // The points of all lines at the place where the reader looks: [{line, i}].
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

  // Look at the point nearest to pixel x, or at the one so many points further on.
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

  // Go on by so many points, and say what is there.
  read(further) {
    if (!this.frame) return;
    this.look(null, further);
    if (this.at !== null) this.heard.textContent = this.words;
  }

  tell(to) {
    const { name, unit } = this.frame.x, { unit: per } = this.frame.y;
    const head = document.createElement("b");
    const { told, labels } = this.frame.x, here = labels ? labels[Math.round(this.at)] : `${exact(this.at)}${unit ? ` ${unit}` : ""}`;
    head.textContent = name === "step" || told ? `${name} ${here}` : here;
    if (name.startsWith("samples")) head.textContent += " samples";
    const rows = this.under(to).map(({ line, i }) => {
      const row = document.createElement("div"), swatch = document.createElement("i");
      swatch.style.background = line.colour;
      const x = this.frame.columns[line.x][i], elsewhere = x === this.at ? "" : `, at ${exact(x)}`;
      const off = range(line, this.frame.columns, i);
      row.append(swatch, `${line.name} ${exact(this.frame.columns[line.y][i])}${off}${per ? ` ${per}` : ""}${elsewhere}`);
      return row;
    });
    this.tip.replaceChildren(head, ...rows);
    this.tip.hidden = false;
    const x = to.x(this.at), wide = this.tip.offsetWidth;
    this.tip.style.left = `${x + 12 + wide > this.surface.width ? Math.max(0, x - wide - 12) : x + 12}px`;
    this.tip.style.top = `${this.top + 4}px`;
    this.words = `${head.textContent}: ${rows.map((row) => row.textContent).join(", ")}`;
  }

  leave() { this.at = null; this.tip.hidden = true; this.surface.request(); }

  // ---- zooming

  // Zoom to this window, and the pictures that belong together with this one.
  zoom(window) {
    const { together, x } = this.frame ?? {};
    for (const curve of lockstepCurves) if (curve === this || (together && curve.frame?.together === together)) curve.see(window);
    if (!x?.second) return;
    for (const one of globalThis.lockstepTimelines ?? []) {
      if (one.clock === lockstepClock) one.see(...(window ? window.x.map((value) => value * x.second) : [0, one.total]));
    }
  }

  // The timeline shows these seconds, null for the whole run: so does a picture against time, once it is zoomed into.
  led(seconds, zooms) {
    const { second, least, most } = this.frame?.x ?? {};
    if (!second || !(zooms || this.window || this.shade)) return;
    const inside = (value) => Math.min(most, Math.max(least, value / second)), x = seconds && seconds.map(inside);
    const seen = x && this.goes(x);
    this.see(seen ? { x } : null);
    this.shade = seen ? null : x;
    this.surface.request();
  }

  // Whether a line has points enough in this part of x to be seen how it goes: two of them are a slanted line.
  goes([from, to]) {
    return this.lines.some((line) => !line.faint && !line.bare && this.frame.columns[line.x].filter((x) => x >= from && x <= to).length > FEW);
  }

  see(window) {
    this.window = window;
    this.shade = null;
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
    this.zoom({ x: [start, start + wide] });
    if (at !== null) this.look(this.scales(this.surface.width, this.surface.height).x(at));
  }

  // The dragged box, [left, right, top, bottom] in px, from edge to edge: a drag zooms along x, and y fits itself.
  dragged({ left, right, top, bottom }) {
    const inside = (value) => Math.min(right, Math.max(left, value)), { x, toX } = this.drag;
    return [inside(Math.min(x, toX)), inside(Math.max(x, toX)), top, bottom];
  }

  drop() {
    const { width, height } = this.surface, to = this.scales(width, height);
    const [x0, x1] = this.dragged(this.edges(width, height));
    this.drag = null;
    if (x1 - x0 > DRAG) this.zoom({ x: [to.valueX(x0), to.valueX(x1)] });
    else this.surface.request();
  }

  listen() {
    const place = (event) => within(this.stage, event);
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
      this.drag.moved ||= Math.abs(x - this.drag.x) > DRAG;
      if (this.drag.moved) { this.leave(); this.surface.request(); }
    });
    this.stage.addEventListener("pointerup", () => {
      if (this.drag?.moved) this.drop();
      else if (this.drag) this.seek(this.drag.x);
      this.drag = null;
    });
    this.stage.addEventListener("pointercancel", () => { this.drag = null; this.surface.request(); });
    this.stage.addEventListener("pointerleave", (event) => { if (!this.drag && event.pointerType !== "touch") this.leave(); });
    this.stage.addEventListener("dblclick", () => this.zoom(null));
    this.stage.addEventListener("blur", () => this.leave());
    this.range.addEventListener("input", () => {
      const stop = Number(this.range.value); // before anything sets it back to where it was
      this.pause();
      this.slide(stop);
    });
    this.player.addEventListener("click", () => this.play());
    this.whole.addEventListener("click", () => { this.zoom(null); this.stage.focus(); });
    const keys = {
      ArrowLeft: () => this.read(-1), ArrowRight: () => this.read(1),
      "+": () => this.by(1 / 1.6), "=": () => this.by(1 / 1.6), "-": () => this.by(1.6), Home: () => this.zoom(null),
    };
    obey(this.stage, keys);
    this.unclosed = closing(this.tip, () => this.leave());
  }
}

const mount = mounting(Curve);

// Index of the last value of at most x, -1 if there is none; the values ascend.
function lastUntil(xs, x) {
  let low = 0, high = xs.length;
  while (low < high) { const middle = (low + high) >> 1; if (xs[middle] <= x) low = middle + 1; else high = middle; }
  return low - 1;
}

// Index of the value nearest to x; of many values, which ascend, by halving.
function nearest(xs, x) {
  let low = 0, high = xs.length - 1;
  if (high < 300) {
    for (let i = 1; i <= high; i++) if (Math.abs(xs[i] - x) < Math.abs(xs[low] - x)) low = i;
    return low;
  }
  while (low < high) { const middle = (low + high) >> 1; if (xs[middle] < x) low = middle + 1; else high = middle; }
  return low > 0 && x - xs[low - 1] < xs[low] - x ? low - 1 : low;
}

// 1e19 -> "10¹⁹", 4.51e19 -> "4.51·10¹⁹"
function power(value) {
  const [digits, exponent] = value.toExponential(2).split("e"), front = Number(digits);
  const raised = [...String(Number(exponent))].map((one) => one === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[one]).join("");
  return front === 1 ? `10${raised}` : `${front}·10${raised}`;
}

// 1234 -> "1,234", 2500000 -> "2.5M", 0.00001 -> "1e-5"
function short(value) {
  const size = Math.abs(value);
  if (size >= 1e12) return power(value);
  if (size >= 1e6) return value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 4 });
  if (size && size < 1e-3) return value.toExponential().replace(/(\.\d{3})\d+/, "$1");
  return Number(value.toPrecision(Number.isInteger(value) ? 6 : 4)).toLocaleString("en", { maximumFractionDigits: 9 });
}

function exact(value) {
  if (Math.abs(value) >= 1e9) return power(value);
  return value && Math.abs(value) < 1e-3 ? value.toExponential(3) : Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 9 });
}
