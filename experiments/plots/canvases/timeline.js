// The timeline of a run or of a schedule: one lane per rank, one bar per span, 50,000 of them and more.
//
// Few spans in view are drawn one by one, with labels and arrows of messages; many become, per pixel column, a stack
// of the shares that each kind has of that time. The strip above shows the whole run and where the window is.
//
// A cursor sweeps over the window when it is played, or is dragged along the axis. It has a canvas of its own above the
// other, so that a frame of it costs the same however many spans lie below.

const GUTTER = 84;   // px for the names of lanes
const STRIP = 16;    // px of the overview
const TOP = 34;      // px where the first lane begins
const AXIS = 22;     // px of the time axis
const TALLEST = 450; // px of all lanes; more are scrolled
const FEW = 3000;    // spans that are drawn one by one
const MANY = 30000;  // spans of a window that are worth asking for
const BLUR = 4;      // px to each side over which shares are averaged
const ARROWS = 300;  // messages that are drawn at once
const READABLE = 14; // spans per lane with which a run opens as a whole
const SWEEP = 10;    // s that playing a run takes
const CLOSELY = 0.4; // of them for the window that the reader looks at, if that is not the whole
const WIDEST = 0.1;  // of the run is in the window elsewhere, or more
const SPEEDS = [1, 2, 0.5];
const SPOKEN = 200;  // ms between two sentences while it is played
const FLAG = "#C4441C"; // what happened at a moment
const NAMED = 8;     // lanes of which each is told by name and by what it does in detail

// The timelines of the page: those that are shown together have one window.
globalThis.lockstepTimelines ??= new Set();

class Timeline {
  constructor(root) {
    this.box = root.querySelector(".timeline");
    this.stage = root.querySelector(".stage");
    this.canvas = root.querySelector("canvas");
    this.playButton = root.querySelector('[data-do="play"]');
    this.speedButton = root.querySelector('[data-do="speed"]');
    this.tip = root.querySelector(".tip");
    this.status = root.querySelector(".status");
    this.legend = root.querySelector(".legend");
    this.keysButton = root.querySelector('[data-do="keys"]');
    this.keys = root.querySelector(".keys");
    this.messagesButton = root.querySelector('[data-do="messages"]');
    this.scroll = 0;
    this.arrows = true;
    this.pointers = new Map();
    this.surface = fit(this.canvas, this.stage, 200, (...args) => this.draw(...args));
    this.overlay = fit(root.querySelector(".overlay"), this.stage, 200, (...args) => this.drawCursor(...args));
    this.topology = new Topology(root, this);
    this.machinesButton = root.querySelector('[data-do="machines"]');
    if (matchMedia("(max-width: 640px)").matches) this.machinesButton.setAttribute("aria-pressed", "false"); // a screen of their own there
    this.clock = new Clock();
    this.chipped = root.querySelector(".chips");
    this.speed = 0;
    this.hear();
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.calm.onchange = () => { this.clock.pause(this); this.offer(); };
    this.why = new Why(this, root);
    this.rank = new ChosenRank(this);
    this.offer();
    this.listen(root);
    lockstepTimelines.add(this);
  }

  stop() {
    lockstepTimelines.delete(this);
    this.surface.stop();
    this.overlay.stop();
    this.topology.stop();
    this.calm.onchange = null;
    this.deaf();
    this.unclosed();
    if (!this.clock.listeners.size) this.clock.stopped();
    clearTimeout(this.later);
  }

  redraw() {
    this.surface.request();
    this.overlay.request();
    this.topology.request();
  }

  // ---- what is shown

  show(bytes) {
    const frame = decode(bytes);
    const spans = decode(frame.columns.timeline);
    const messages = decode(frame.columns.messages);
    const again = this.run === frame.run;
    const { run, lanes: names, kinds, look, exact, spans: count } = frame;
    Object.assign(this, { run, names, kinds, look, exact, count, spans, messages, coarse: frame.columns.shares });
    const { whole = "whole run", readable = READABLE, brief = false, work = 2, unit = "s", opening = 0, flags = [], chips = [], colours } = frame;
    this.clickable = frame.clickable ?? false;
    this.together = frame.together;
    this.saved = frame.saved;
    this.openAt = frame.open ?? (opening ? [0, opening] : null); // frames that were recorded say `opening`
    const clock = frame.clock ? lockstepClock : this.clock === lockstepClock ? new Clock() : this.clock;
    if (clock !== this.clock) { this.clock = clock; this.hear(); }
    Object.assign(this, { whole, readable, brief, work, flags, colours, inTime: unit === "s" ? inSeconds : inUnits, timed: unit === "s" });
    this.total = Math.max(frame.seconds, 1e-9);
    this.end = frame.end ?? this.total;
    this.index();
    if (!again) { [this.from, this.to] = this.opening(); this.scroll = 0; this.leave(); }
    this.offerPlaces(chips);
    this.pitch = Math.max(7, Math.min(30, Math.floor(300 / this.names.length)));
    this.surface.height = this.overlay.height = TOP + Math.min(this.names.length * this.pitch, TALLEST) + AXIS;
    this.topology.show(frame.machines, frame.columns.held, this.surface.height + (frame.columns.why ? 84 : 52));
    this.machinesButton.hidden = !frame.machines;
    this.topology.box.hidden = !frame.machines || this.machinesButton.getAttribute("aria-pressed") === "false";
    this.messagesButton.hidden = !messages.columns.sent.length;
    this.stage.setAttribute("aria-label", frame.description);
    this.legend.replaceChildren(...this.kinds.filter((kind) => this.look[kind].meaning).map((kind) => {
      const entry = document.createElement("span");
      entry.title = this.look[kind].meaning;
      const swatch = document.createElement("i");
      const { colour, height, hatch } = this.look[kind];
      swatch.style.background = hatch === "x" ? `repeating-linear-gradient(45deg, ${colour} 0 2px, transparent 2px 4px)` : colour;
      swatch.style.height = `${Math.max(4, 12 * height)}px`;
      entry.append(swatch, kind);
      return entry;
    }));
    if (spans.columns.marked?.some((one) => one)) {
      const entry = document.createElement("span"), swatch = document.createElement("i");
      entry.title = "Longer or later, any of these would make the whole later.";
      swatch.className = "marked";
      entry.append(swatch, "critical path");
      this.legend.append(entry);
    }
    this.strip = null;
    this.why.show(frame, again);
    if (!again && frame.why) this.why.unfold(...frame.why);
    this.redraw();
    this.say();
    if (!again && frame.play && !this.calm.matches) this.play();
  }

  // Places to go to, as buttons: [{text, from, to}].
  offerPlaces(chips) {
    this.chipped.hidden = !chips.length;
    this.chipped.replaceChildren(...chips.map(({ text, from, to }) => {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.textContent = text;
      chip.addEventListener("click", () => { this.leave(); this.window(from, to); });
      return chip;
    }));
  }

  // Where each lane's spans begin, and how far they reach: spans of a lane may overlap.
  index() {
    const { start, duration, lane, step } = this.spans.columns;
    const lanes = this.names.length;
    this.first = new Int32Array(lanes + 1);
    for (let i = 0; i < lane.length; i++) this.first[lane[i] + 1]++;
    for (let r = 0; r < lanes; r++) this.first[r + 1] += this.first[r];
    this.reach = new Float32Array(start.length);
    for (let r = 0; r < lanes; r++) {
      let far = -Infinity;
      for (let i = this.first[r]; i < this.first[r + 1]; i++) this.reach[i] = far = Math.max(far, start[i] + duration[i]);
    }
    const { sent, arrived } = this.messages.columns;
    this.landed = new Float32Array(sent.length);
    let far = -Infinity;
    for (let i = 0; i < sent.length; i++) this.landed[i] = far = Math.max(far, arrived[i] < 0 ? sent[i] : arrived[i]);
    this.steps = step;
  }

  // The first window: everything if that can be read, otherwise the first steps of the run.
  opening() {
    if (this.openAt) return [Math.max(0, this.openAt[0]), Math.min(this.total, this.openAt[1])];
    const { start, duration, step } = this.spans.columns;
    const readable = this.readable * this.names.length;
    if (start.length <= readable) return [0, this.total];
    const order = Array.from(start).sort((a, b) => a - b);
    let until = order[Math.min(readable, order.length - 1)];
    for (let i = 0; i < start.length; i++) if (step[i] === 1) until = Math.max(until, Math.min(start[i] + duration[i], this.total * 0.5));
    return [0, Math.min(this.total, until * 1.02)];
  }

  // Whether the single spans of the window are here; of a long run only those of one window are.
  near() {
    const slack = (this.to - this.from) * 1e-6;
    return !this.coarse || (this.from >= this.exact[0] - slack && this.to <= this.exact[1] + slack);
  }

  // Spans of lane r that touch [from, to): a slice of indices.
  within(r, from, to) {
    const { start } = this.spans.columns;
    let low = this.first[r], high = this.first[r + 1];
    const end = high;
    while (low < high) { const m = (low + high) >> 1; if (this.reach[m] > from) high = m; else low = m + 1; }
    const begin = low;
    high = end;
    while (low < high) { const m = (low + high) >> 1; if (start[m] < to) low = m + 1; else high = m; }
    return [begin, low];
  }

  // ---- drawing

  draw(g, width, height, ratio) {
    if (!this.spans) return;
    const page = (this.page = pageColours(this.box));
    const plot = width - GUTTER - 4;
    this.scaleX = plot / (this.to - this.from);
    const lanesHeight = height - TOP - AXIS;
    this.scroll = Math.max(0, Math.min(this.scroll, this.names.length * this.pitch - lanesHeight));
    const begin = Math.floor(this.scroll / this.pitch);
    const end = Math.min(this.names.length, Math.ceil((this.scroll + lanesHeight) / this.pitch));
    const ranges = [], near = this.near();
    let count = 0;
    for (let r = begin; r < end; r++) {
      const range = near ? this.within(r, this.from, this.to) : [0, 0];
      ranges.push(range);
      count += range[1] - range[0];
    }
    this.drawStrip(g, plot, ratio, page);
    this.drawAxis(g, plot, height, page);
    g.save();
    g.beginPath();
    g.rect(0, TOP - 5, width, lanesHeight + 8);
    g.clip();
    this.drawNames(g, begin, end, page, width);
    this.rank.draw(g, page);
    g.beginPath();
    g.rect(GUTTER, TOP, plot, lanesHeight);
    g.clip();
    const dense = !near || count > FEW || count > (plot / 2.5) * (end - begin);
    ranges.forEach(([i, j], n) => (dense ? this.drawShares : this.drawSpans).call(this, g, begin + n, i, j, plot, ratio, page));
    if (!dense && this.spans.columns.marked) ranges.forEach(([i, j], n) => this.drawMarked(g, begin + n, i, j, page));
    if (!dense && this.arrows) this.drawMessages(g, page);
    this.drawFlags(g, plot, page);
    if (this.over >= 0) this.outline(g, this.over, page);
    if (!dense) this.why.draw(g, page);
    g.restore();
  }

  x(time) { return GUTTER + (time - this.from) * this.scaleX; }
  y(lane) { return TOP + lane * this.pitch - this.scroll; }

  drawSpans(g, lane, i, j, plot, ratio, page) {
    const { start, duration, kind, label, part, parts } = this.spans.columns;
    const lane0 = this.y(lane), whole = this.pitch - (this.pitch > 12 ? 4 : 1);
    const labels = this.pitch >= 16;
    g.font = `11px ${FONT}`;
    g.textBaseline = "middle";
    // what is waited for lies under what is done: messages may travel while a rank computes
    for (const pass of [(k) => k >= this.work, (k) => k < this.work]) {
      for (let n = i; n < j; n++) {
        if (!pass(kind[n])) continue;
        const { colour, height, hatch, ink } = this.look[this.kinds[kind[n]]];
        const left = Math.max(this.x(start[n]), GUTTER - 2);
        const right = Math.min(this.x(start[n] + duration[n]), GUTTER + plot + 2);
        const wide = Math.max(right - left, 0.6);
        const tall = whole / (parts?.[n] ?? 1), top = lane0 + tall * (part?.[n] ?? 0);
        const high = Math.max(2, tall * height);
        const y = top + (tall - high) / 2 + 1;
        g.fillStyle = colour;
        if (hatch === "x") this.hatched(g, left, y, wide, high, colour);
        else g.fillRect(left, y, wide > 3 ? wide - 0.7 : wide, high);
        if (wide > 4 && hatch !== "x") {
          g.strokeStyle = edgeOf(colour, page);
          g.lineWidth = 1;
          g.strokeRect(left + 0.5, y + 0.5, wide - 1.7, high - 1);
        }
        if (hatch === "\\" && wide > 6) this.stripes(g, left, y, wide - 0.7, high);
        if (labels && this.endless(n)) this.beyond(g, n, Math.max(left, GUTTER), y + high / 2, right, page);
        else if (labels && ink && wide > (this.brief ? 7 : 22)) {
          const text = this.spans.labels[label[n]] ?? "";
          const fits = (words) => words && g.measureText(words).width < wide - (this.brief ? 2 : 6);
          // of an op, "2F13", the kind and the number; where there is no room for both, the number
          const words = (this.brief ? [text.replace(/^\d+/, ""), text.replace(/^.*\D/, "")] : [text]).find(fits);
          if (words) {
            g.fillStyle = ink;
            g.textAlign = "center";
            g.fillText(words, left + wide / 2, y + high / 2 + 0.5);
          }
        }
      }
    }
  }

  // The words of a span that never ends, on the colour of the page: its bar is too low for them.
  beyond(g, n, left, y, right, page) {
    const text = this.spans.labels[this.spans.columns.label[n]] ?? "", wide = g.measureText(text).width + 8;
    if (text === this.kinds[this.spans.columns.kind[n]] || wide > right - left - 24) return;
    g.fillStyle = page.page;
    g.fillRect(left + 8, y - 7, wide, 14);
    g.fillStyle = page.text;
    g.textAlign = "left";
    g.fillText(text, left + 12, y + 0.5);
  }

  // Spans that matter most, one by one.
  drawMarked(g, lane, i, j, page) {
    const { start, duration, marked, part, parts } = this.spans.columns;
    const whole = this.pitch - (this.pitch > 12 ? 4 : 1);
    g.strokeStyle = page.text;
    for (let n = i; n < j; n++) {
      if (!marked[n]) continue;
      const left = this.x(start[n]), right = this.x(start[n] + duration[n]);
      g.lineWidth = this.pitch > 12 && right - left > 10 ? 2 : 1;
      const tall = whole / (parts?.[n] ?? 1), top = this.y(lane) + tall * (part?.[n] ?? 0);
      g.strokeRect(left + 0.5, top + 1.5, Math.max(right - left - 1.7, 1), tall - 1);
    }
  }

  hatched(g, x, y, wide, high, colour) {
    g.save();
    g.beginPath();
    g.rect(x, y, wide, high);
    g.clip();
    g.strokeStyle = colour;
    g.lineWidth = 1.3;
    g.beginPath();
    for (let s = x - high; s < x + wide; s += 5) { g.moveTo(s, y + high); g.lineTo(s + high, y); }
    g.stroke();
    g.strokeRect(x, y, wide, high);
    g.restore();
  }

  stripes(g, x, y, wide, high) {
    g.save();
    g.beginPath();
    g.rect(x, y, wide, high);
    g.clip();
    g.strokeStyle = "rgba(255,255,255,0.35)";
    g.lineWidth = 1;
    g.beginPath();
    for (let s = x - high; s < x + wide; s += 6) { g.moveTo(s, y); g.lineTo(s + high, y + high); }
    g.stroke();
    g.restore();
  }

  // The share of each kind per pixel column, stacked: compute below, waiting above.
  shares(i, j, from, to, columns, into) {
    const { start, duration, kind } = this.spans.columns;
    const kinds = this.kinds.length, scale = columns / (to - from);
    for (let n = i; n < j; n++) {
      const a = Math.max((start[n] - from) * scale, 0), b = Math.min((start[n] + duration[n] - from) * scale, columns);
      if (b <= a) continue;
      const last = Math.min(Math.floor(b), columns - 1);
      for (let c = Math.floor(a); c <= last; c++) {
        into[c * kinds + kind[n]] += Math.min(b, c + 1) - Math.max(a, c);
      }
    }
    return into;
  }

  // The same from the table of a long run: the shares of lanes [i, j) added up.
  resampled(i, j, from, to, columns, into) {
    const kinds = this.kinds.length, cells = this.coarse.length / (kinds * this.names.length);
    for (let c = 0; c < columns; c++) {
      const cell = Math.min(cells - 1, Math.floor(((from + ((c + 0.5) / columns) * (to - from)) / this.total) * cells));
      for (let r = i; r < j; r++) {
        for (let k = 0; k < kinds; k++) into[c * kinds + k] += this.coarse[(r * cells + cell) * kinds + k] / 255;
      }
    }
    return into;
  }

  // The mean of each share over a few neighbouring columns: steps narrower than that would only flicker.
  blur(shares, columns, reach) {
    const kinds = this.kinds.length, smooth = new Float32Array(shares.length);
    for (let k = 0; k < kinds; k++) {
      let sum = 0;
      for (let c = -reach; c < columns; c++) {
        if (c + reach < columns) sum += shares[(c + reach) * kinds + k];
        if (c - reach - 1 >= 0) sum -= shares[(c - reach - 1) * kinds + k];
        if (c >= 0) smooth[c * kinds + k] = Math.max(0, sum) / (Math.min(c, reach) + Math.min(columns - 1 - c, reach) + 1);
      }
    }
    return smooth;
  }

  paint(shares, columns, rows, lanes) {
    const kinds = this.kinds.length;
    const inks = this.kinds.map((kind) => {
      const [r, g, b] = rgb(this.look[kind].colour);
      return (255 << 24) | (b << 16) | (g << 8) | r;
    });
    const image = new ImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let c = 0; c < columns; c++) {
      let whole = 0;
      for (let k = 0; k < kinds; k++) whole += shares[c * kinds + k];
      const scale = rows / Math.max(whole, lanes);
      let level = 0, row = rows;
      for (let k = 0; k < kinds; k++) {
        level += shares[c * kinds + k] * scale;
        const until = rows - Math.round(level);
        while (row > until) pixels[--row * columns + c] = inks[k];
      }
    }
    return image;
  }

  drawShares(g, lane, i, j, plot, ratio) {
    const columns = Math.round(plot * ratio), rows = Math.max(1, Math.round((this.pitch - (this.pitch > 12 ? 4 : 1)) * ratio));
    const into = new Float32Array(columns * this.kinds.length);
    const shares = this.near() ? this.shares(i, j, this.from, this.to, columns, into) : this.resampled(lane, lane + 1, this.from, this.to, columns, into);
    const image = this.paint(this.blur(shares, columns, Math.round(BLUR * ratio)), columns, rows, 1);
    this.blit(g, image, GUTTER, this.y(lane) + 1, plot, rows / ratio);
  }

  blit(g, image, x, y, wide, high) {
    if (!this.board) this.board = document.createElement("canvas");
    this.board.width = image.width;
    this.board.height = image.height;
    this.board.getContext("2d").putImageData(image, 0, 0);
    g.drawImage(this.board, x, y, wide, high);
  }

  drawStrip(g, plot, ratio, page) {
    const columns = Math.round(plot * ratio), rows = Math.round(STRIP * ratio);
    if (!this.strip || this.strip.width !== columns) {
      const sums = new Float32Array(columns * this.kinds.length);
      if (this.coarse) this.resampled(0, this.names.length, 0, this.total, columns, sums);
      else this.shares(0, this.spans.columns.start.length, 0, this.total, columns, sums);
      this.strip = this.paint(this.blur(sums, columns, Math.round(BLUR * ratio)), columns, rows, this.names.length);
    }
    this.blit(g, this.strip, GUTTER, 2, plot, STRIP);
    const a = GUTTER + (this.from / this.total) * plot;
    const b = Math.max(GUTTER + (this.to / this.total) * plot, a + 3);
    g.globalAlpha = 0.72;
    g.fillStyle = page.page;
    g.fillRect(GUTTER, 2, a - GUTTER, STRIP);
    g.fillRect(b, 2, GUTTER + plot - b, STRIP);
    g.globalAlpha = 1;
    g.strokeStyle = page.text;
    g.lineWidth = 1.5;
    g.strokeRect(a, 1.5, b - a, STRIP + 1);
    g.fillStyle = page.muted;
    g.font = `11px ${FONT}`;
    g.textAlign = "left";
    g.textBaseline = "middle";
    g.fillText(this.whole, 4, 2 + STRIP / 2, GUTTER - 8);
  }

  drawAxis(g, plot, height, page) {
    const { step, at } = ticks(this.from, this.to, plot / 110);
    const label = this.timed ? timeLabels(step, this.to) : inUnits;
    g.font = `11px ${FONT}`;
    g.textBaseline = "top";
    g.textAlign = "center";
    this.ticked = []; // [from, to] of their words, in px
    for (const time of at) {
      const x = Math.round(this.x(time)) + 0.5;
      g.strokeStyle = page.border;
      g.lineWidth = 1;
      g.beginPath();
      g.moveTo(x, TOP - 4);
      g.lineTo(x, height - AXIS + 3);
      g.stroke();
      g.fillStyle = page.muted;
      const text = label(time);
      const half = g.measureText(text).width / 2;
      const middle = Math.min(Math.max(x, GUTTER + half - 6), GUTTER + plot - half + 3);
      g.fillText(text, middle, height - AXIS + 6);
      this.ticked.push([middle - half, middle + half]);
    }
  }

  drawNames(g, begin, end, page, width) {
    const every = Math.max(1, Math.ceil(13 / this.pitch));
    g.textAlign = "left";
    g.textBaseline = "middle";
    for (let r = begin; r < end; r++) {
      const y = this.y(r) + this.pitch / 2 - 1;
      if (r % every === 0) {
        g.font = `${this.pitch < 14 ? 10.5 : 12}px ${FONT}`;
        g.fillStyle = page.text;
        g.fillText(this.names[r], 4, y, GUTTER - 10);
      }
      if (this.colours?.[r]) {
        g.fillStyle = this.colours[r];
        g.fillRect(0, this.y(r), 2.5, this.pitch);
      }
      if (this.pitch > 12) {
        g.strokeStyle = page.border;
        g.globalAlpha = 0.6;
        g.lineWidth = 1;
        g.beginPath();
        g.moveTo(GUTTER, Math.round(y + this.pitch / 2) + 0.5);
        g.lineTo(width, Math.round(y + this.pitch / 2) + 0.5);
        g.stroke();
        g.globalAlpha = 1;
      }
    }
  }

  drawMessages(g, page) {
    const visible = this.travelling(this.from, this.to);
    if (visible.length > ARROWS) return;
    g.strokeStyle = g.fillStyle = page.text;
    g.globalAlpha = visible.length > 60 ? 0.3 : 0.6;
    g.lineWidth = 1;
    for (const n of visible) this.arrow(g, n);
    g.globalAlpha = 1;
  }

  // Messages between two lanes that are on their way at some time in [from, to); no more than are drawn, and one.
  travelling(from, to) {
    const { src, dst, sent, arrived } = this.messages.columns;
    let low = 0, high = sent.length;
    while (low < high) { const m = (low + high) >> 1; if (this.landed[m] > from) high = m; else low = m + 1; }
    const found = [];
    for (let n = low; n < sent.length && sent[n] < to && found.length <= ARROWS; n++) {
      if (arrived[n] >= from && src[n] !== dst[n]) found.push(n);
    }
    return found;
  }

  // Message n, as far as it has come at `time`.
  arrow(g, n, time = Infinity) {
    const { src, dst, sent, arrived } = this.messages.columns;
    const come = Math.min(1, (time - sent[n]) / Math.max(arrived[n] - sent[n], 1e-12));
    const middle = this.pitch / 2 - 1;
    const x0 = this.x(sent[n]), y0 = this.y(src[n]) + middle;
    const x1 = x0 + come * (this.x(arrived[n]) - x0), y1 = y0 + come * (this.y(dst[n]) + middle - y0);
    const angle = Math.atan2(y1 - y0, x1 - x0);
    g.beginPath();
    g.moveTo(x0, y0);
    g.lineTo(x1, y1);
    g.stroke();
    g.beginPath();
    g.moveTo(x1, y1);
    g.lineTo(x1 - 6 * Math.cos(angle - 0.35), y1 - 6 * Math.sin(angle - 0.35));
    g.lineTo(x1 - 6 * Math.cos(angle + 0.35), y1 - 6 * Math.sin(angle + 0.35));
    g.fill();
  }

  // What happened at a moment, to one lane or, with lane -1, to all: a line, and its words beside it.
  drawFlags(g, plot, page) {
    g.font = `600 11px ${FONT}`;
    g.textBaseline = "middle";
    for (const { at, lane, text } of this.flags) {
      if (at < this.from || at > this.to) continue;
      const x = this.x(at), all = lane < 0;
      const top = all ? TOP : this.y(lane), bottom = all ? TOP + this.names.length * this.pitch : top + this.pitch;
      g.strokeStyle = g.fillStyle = FLAG;
      g.lineWidth = 2;
      g.beginPath();
      g.moveTo(x, top);
      g.lineTo(x, bottom);
      g.stroke();
      const wide = g.measureText(text).width + 10, left = x + wide < GUTTER + plot ? x : x - wide;
      const y = all ? TOP + 1 : top + (this.pitch - 15) / 2;
      g.fillRect(left, y, wide, 14);
      g.fillStyle = "#FFFFFF";
      g.textAlign = "left";
      g.fillText(text, left + 5, y + 7.5);
    }
  }

  outline(g, n, page) {
    const { start, duration, lane } = this.spans.columns;
    const left = this.x(start[n]), right = this.x(start[n] + duration[n]);
    g.strokeStyle = page.text;
    g.lineWidth = 1.5;
    g.strokeRect(left - 0.5, this.y(lane[n]) + 0.5, Math.max(right - left, 2), this.pitch - (this.pitch > 12 ? 3 : 0));
  }

  // ---- as a file

  // The legend, which is HTML on the page.
  head(g, width, page) {
    g.font = `12px ${FONT}`;
    g.textAlign = "left";
    g.textBaseline = "middle";
    let x = 4, y = 8;
    for (const kind of this.kinds.filter((one) => this.look[one].meaning)) {
      const { colour, height, hatch } = this.look[kind], wide = 24 + g.measureText(kind).width;
      if (x > 4 && x + wide > width) { x = 4; y += 20; }
      const high = Math.max(4, 12 * height);
      g.fillStyle = colour;
      if (hatch === "x") this.hatched(g, x, y - high / 2, 18, high, colour); else g.fillRect(x, y - high / 2, 18, high);
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

  get moves() { return this.clock === lockstepClock ? this.total ?? 0 : 0; }

  get beside() { return this.topology.machines && !this.topology.box.hidden ? this.topology.surface : null; }

  // The window once from its beginning to its end.
  film() {
    return { seconds: SWEEP / SPEEDS[this.speed], at: (share) => this.clock.set(this.from + share * (this.to - this.from), this) };
  }

  // ---- the cursor

  // The moment that is looked at, in s; null if none is.
  get cursor() { return this.clock.seconds === null ? null : Math.max(0, Math.min(this.clock.seconds, this.total ?? 0)); }

  // Follow this clock, and no longer the one before.
  hear() {
    this.deaf?.();
    const heard = (clock, source) => this.heard(source);
    heard.shows = () => ({
      canvas: "timeline", run: this.run, cursor: this.cursor, from: this.from, to: this.to,
      ...(this.topology.machines && { topology: this.topology.shows() }),
    });
    this.deaf = this.clock.listen(heard);
  }

  // The clock was set, or goes on.
  heard(source) {
    if (!this.spans) return;
    this.overlay.request();
    this.topology.request();
    if (this.clock.playing) {
      if (!this.played && source !== this) this.close = [this.from, this.to];
      this.follow();
      const now = performance.now();
      if (this.played && now - this.spoke < SPOKEN) return;
      this.spoke = now;
    } else if (this.played && this.cursor >= this.total) this.see(this.total - (this.to - this.from), this.total);
    else if (source !== this && this.cursor !== null && !this.looking()) this.bring();
    if (this.played !== this.clock.playing) { this.played = this.clock.playing; this.offer(); }
    this.say();
  }

  // Whether the moment that is looked at lies in the window.
  looking() { return this.cursor !== null && this.cursor >= this.from && this.cursor <= this.to; }

  // Move the window so that the cursor is in its middle.
  bring() {
    const half = (this.to - this.from) / 2;
    this.window(this.cursor - half, this.cursor + half);
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
    g.globalAlpha = 0.66;
    g.fillStyle = page.page; // what is still to come
    g.fillRect(x, TOP - 1, GUTTER + plot + 2 - x, bottom - TOP + 2);
    g.globalAlpha = 1;
    g.fillStyle = page.text;
    g.save();
    g.beginPath();
    g.rect(GUTTER, TOP, plot, bottom - TOP);
    g.clip();
    const flying = this.arrows && this.near() ? this.travelling(this.cursor, this.cursor) : [];
    g.lineWidth = flying.length > 60 ? 0.7 : 1.5;
    if (flying.length <= ARROWS) flying.forEach((n) => this.arrow(g, n, this.cursor));
    g.restore();
    g.beginPath();
    g.moveTo(x, TOP - 5);
    g.lineTo(x, bottom + 4);
    g.stroke();
    g.beginPath();
    g.moveTo(x - 6, TOP - 13);
    g.lineTo(x + 6, TOP - 13);
    g.lineTo(x, TOP - 3);
    g.fill();
    const said = this.moment();
    g.font = `11px ${FONT}`;
    g.textAlign = "center";
    g.textBaseline = "middle";
    const wide = g.measureText(said).width + 10, left = Math.max(GUTTER - 6, Math.min(x - wide / 2, width - wide));
    g.fillStyle = page.page; // over the words of a tick of which some would be covered
    for (const [from, to] of this.ticked ?? []) if (from < left + wide && to > left) g.fillRect(from - 2, bottom + 4, to - from + 4, AXIS - 5);
    g.fillStyle = page.text;
    g.fillRect(left, bottom + 4, wide, AXIS - 5);
    g.fillStyle = page.page;
    g.fillText(said, left + wide / 2, bottom + 4 + (AXIS - 5) / 2 + 0.5);
  }

  // Play the whole run from the cursor on, or from the start: in a time-lapse that takes its time where the reader looks.
  play() {
    if (this.calm.matches) return this.step(1);
    if (this.clock.playing) return this.clock.pause(this);
    if (this.cursor === null || this.cursor >= this.total) this.clock.set(0, this);
    this.close = [this.from, this.to];
    const [from, to] = this.close, outside = this.total - (to - from);
    const slow = outside > this.total * 1e-3 ? (to - from) / (SWEEP * CLOSELY) : this.total / SWEEP;
    const fast = outside / (SWEEP * (1 - CLOSELY));
    this.clock.play((now) => SPEEDS[this.speed] * (now >= from && now < to ? slow : fast), this.total, this);
  }

  // Let the window go with what is played: the reader's own where he looked, else one that the cursor takes a while to cross.
  follow() {
    const now = performance.now(), passed = Math.min(now - (this.followed ?? now), 100) / 1000;
    this.followed = now;
    const [from, to] = this.close ?? [this.from, this.to], time = this.cursor;
    const wide = Math.max(to - from, this.total * WIDEST);
    const lapse = time < from || time > to;
    const target = lapse ? [Math.max(0, Math.min(time - wide / 2, this.total - wide)), 0] : [from, to];
    if (lapse) target[1] = Math.min(this.total, target[0] + wide);
    const share = 1 - Math.exp(-passed * 8);
    let a = this.from + (target[0] - this.from) * share, b = this.to + (target[1] - this.to) * share;
    if (time < a) [a, b] = [time, Math.max(b, time)];
    if (time > b) b = time;
    if (Math.abs(a - this.from) + Math.abs(b - this.to) < (b - a) * 1e-4) return;
    [this.from, this.to] = [a, b];
    this.hide();
    this.surface.request();
  }

  // Look at this moment.
  seek(time) { this.clock.set(Math.max(this.from, Math.min(this.to, time)), this); }

  // Look at the next moment at which something begins or ends, or with -1 at the one before.
  step(way) {
    if (!this.near()) return this.seek((this.looking() ? this.cursor : this.from) + (way * (this.to - this.from)) / 20);
    const at = this.looking() ? this.cursor : way > 0 ? this.from : this.to;
    const least = way * this.instant() * 2;
    let next = way > 0 ? this.to : this.from;
    const consider = (time) => { if ((time - at - least) * way > 0 && (time - next) * way < 0) next = time; };
    for (let r = 0; r < this.names.length; r++) {
      const { start, duration } = this.spans.columns;
      const [i, j] = this.within(r, this.from, this.to);
      for (let n = i; n < j; n++) { consider(start[n]); consider(start[n] + duration[n]); }
    }
    const edge = way > 0 ? this.to : this.from;
    if (Math.abs(at - edge) > Math.abs(least)) return this.seek(next);
    this.pan((way * (this.to - this.from)) / 2); // at the edge of the window the next event lies beyond it
    if (edge !== (way > 0 ? this.to : this.from)) this.step(way);
  }

  leave() { this.clock.set(null, this); }

  // What the buttons do now, and whether the words below are read aloud: not while they change all the time.
  offer() {
    const { playing } = this.clock;
    this.playButton.textContent = playing ? "❚❚ Pause" : "▶\uFE0E Play";
    this.playButton.setAttribute("aria-label", playing ? "Pause" : "Play");
    this.playButton.hidden = this.speedButton.hidden = this.calm.matches;
    this.speedButton.textContent = { 0.5: "½×", 1: "1×", 2: "2×" }[SPEEDS[this.speed]];
    this.speedButton.setAttribute("aria-label", `Speed ${this.speedButton.textContent}`);
    this.status.setAttribute("aria-live", playing ? "off" : "polite");
  }

  faster() {
    this.speed = (this.speed + 1) % SPEEDS.length;
    this.offer();
  }

  // The cursor's time as the axis writes times, as finely as it can be set.
  moment() {
    const finest = (this.to - this.from) / 500;
    if (this.timed) return timeLabels(finest, this.to)(this.cursor);
    return inUnits(Number(this.cursor.toFixed(Math.max(0, Math.ceil(-Math.log10(finest))))));
  }

  // s that nobody sees
  instant() { return (this.to - this.from) * 1e-5; }

  // The span of lane r at that time, -1 if there is none: work before waiting.
  doing(r, time) {
    const { start, duration, kind } = this.spans.columns;
    const [i, j] = this.within(r, time, time + this.instant());
    let found = -1;
    for (let n = i; n < j; n++) {
      if (start[n] + duration[n] > time && (found < 0 || kind[n] < kind[found])) found = n;
    }
    return found;
  }

  // What each lane does at the cursor, in words; lanes that do the same are told together.
  told() {
    const time = Math.min(this.cursor + this.instant(), this.to - this.instant());
    const when = this.clock.playing ? [] : [`At ${this.moment()}`]; // played, only the cursor says when: it is drawn more often
    if (!this.near()) return [...when, "Zoom in to see what each rank is doing."].join(". ");
    const { kind, label } = this.spans.columns, few = this.names.length <= NAMED, together = new Map();
    this.names.forEach((name, r) => {
      const n = this.doing(r, time), does = n < 0 ? "nothing" : this.kinds[kind[n]];
      const detail = n < 0 || !few ? "" : this.why.told(n) || (this.spans.labels[label[n]] ?? "");
      const words = detail && detail !== does ? `${does} (${detail})` : does;
      together.set(words, [...(together.get(words) ?? []), name]);
    });
    const parts = [...together].map(([words, names]) => `${names.length > 4 ? `${names.length} ranks` : names.join(", ")}: ${words}`);
    const { src, dst } = this.messages.columns, flying = this.travelling(time, time);
    const ways = flying.slice(0, 3).map((n) => `${this.names[src[n]]} → ${this.names[dst[n]]}`);
    if (flying.length) parts.push(`on its way: ${flying.length > 3 ? `${flying.length > ARROWS ? `more than ${ARROWS}` : flying.length} messages` : ways.join(", ")}`);
    const queue = this.topology.told(time);
    if (queue) parts.push(queue);
    return `${[...when, ...parts].join(" · ")}.`;
  }

  // ---- moving about

  zoom(factor, at = (this.from + this.to) / 2) {
    const least = Math.max(this.total * 1e-6, 1e-8);
    const span = Math.min(this.total, Math.max(least, (this.to - this.from) * factor));
    const part = (at - this.from) / (this.to - this.from);
    this.window(at - part * span, at - part * span + span, true);
  }

  // Show what lies between two times, here and in the timelines that are shown together with this one; and in curves
  // against time, if the reader has zoomed into them, or does so now.
  window(from, to, zooms = false) {
    const span = Math.min(to - from, this.total);
    from = Math.max(0, Math.min(from, this.total - span));
    for (const one of lockstepTimelines) {
      if (one === this || (this.together && one.together === this.together)) one.see(from, from + span);
    }
    if (this.clock !== lockstepClock) return;
    for (const curve of globalThis.lockstepCurves ?? []) curve.led(span > this.total * 0.999 ? null : [from, from + span], zooms);
  }

  // Show what lies between two times, as far as this run goes, and tell nobody.
  see(from, to) {
    const span = Math.min(to - from, this.total);
    this.from = Math.max(0, Math.min(from, this.total - span));
    this.to = this.from + span;
    this.moved();
  }

  // What is looked at, for a link: {run, from, to} unless that is what the run opens with, and {why} that is unfolded.
  view() {
    const [from, to] = this.opening(), same = (one, other) => Math.abs(one - other) < (to - from) * 1e-3;
    const window = same(from, this.from) && same(to, this.to) ? {} : { from: this.from, to: this.to };
    return { run: this.run, ...window, why: this.why.unfolded() };
  }

  pan(seconds) { this.window(this.from + seconds, this.to + seconds); }

  moved() {
    this.hide();
    this.surface.request();
    this.topology.request();
    if (this.cursor !== null) this.overlay.request();
    clearTimeout(this.later);
    this.later = setTimeout(() => this.say(), 300);
  }

  say() {
    const all = this.to - this.from > this.total * 0.999;
    const expected = (this.count * (this.to - this.from)) / this.total;
    const thinned = this.near() ? "" : ` as shares of the time (${this.count.toLocaleString("en")} spans; zoom in for single ones)`;
    if (!this.near() && expected < MANY && !this.clock.playing) this.events.ask?.("window", { run: this.run, from: this.from, to: this.to });
    this.status.classList.toggle("at", this.looking());
    const chosen = this.rank.told();
    if (this.looking()) { this.status.textContent = chosen + this.told(); return; }
    const where = all ? `the ${this.whole}, ${this.inTime(this.end)}` : `${this.inTime(this.from)} to ${this.inTime(Math.min(this.to, this.end))} of ${this.inTime(this.end)}`;
    const how = matchMedia("(pointer: coarse)").matches
      ? "Drag to move, two fingers to zoom; tap the axis to look at a moment."
      : "Drag to move, + and − or Ctrl+wheel to zoom, double-click to zoom in, Home for all; space to play, a click on the axis to look at a moment.";
    this.status.textContent = `${chosen}Showing ${where}${this.timed ? "" : " units of time"}${thinned}. ${how}`;
  }

  time(x) { return this.from + (x - GUTTER) / this.scaleX; }

  listen(root) {
    const at = (event) => within(this.canvas, event);
    const jump = (x) => {
      const plot = this.surface.width - GUTTER - 4, span = this.to - this.from;
      const time = ((x - GUTTER) / plot) * this.total;
      this.window(time - span / 2, time + span / 2);
    };
    this.stage.addEventListener("pointerdown", (event) => {
      const [x, y] = at(event);
      this.stage.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, [x, y]);
      this.pressed = [x, y];
      this.onStrip = y < STRIP + 6 && x >= GUTTER;
      this.onAxis = !this.onStrip && this.axis(x, y);
      if (this.onStrip) jump(x);
      else if (this.onAxis) this.seek(this.time(x));
    });
    this.stage.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      const before = this.pointers.get(event.pointerId);
      if (!before) return this.hover(x, y);
      if (this.onStrip) jump(x);
      else if (this.onAxis) this.seek(this.time(x));
      else if (this.pointers.size === 2) {
        const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
        const was = Math.abs(before[0] - other[0]), is = Math.abs(x - other[0]);
        if (was > 10 && is > 10) this.zoom(was / is, this.time((x + other[0]) / 2));
      } else {
        this.scroll -= y - before[1];
        this.pan((before[0] - x) / this.scaleX);
      }
      this.pointers.set(event.pointerId, [x, y]);
    });
    this.stage.addEventListener("pointerup", (event) => {
      const [x, y] = at(event), lane = this.named(x, y);
      if (!this.pressed || Math.hypot(x - this.pressed[0], y - this.pressed[1]) > 4) return;
      if (event.pointerType !== "mouse") this.hover(x, y); // a finger comes without moving there
      if (this.over >= 0 && this.why.waits(this.over)) this.why.pin(this.over);
      if (lane < 0) return;
      this.events.tell?.("rank", { run: this.run, rank: lane, at: (this.from + this.to) / 2 });
    });
    for (const name of ["pointerup", "pointercancel"]) this.stage.addEventListener(name, (event) => this.pointers.delete(event.pointerId));
    this.stage.addEventListener("pointerleave", () => { this.hide(); this.surface.request(); });
    this.stage.addEventListener("dblclick", (event) => this.zoom(1 / 3, this.time(at(event)[0])));
    this.stage.addEventListener("wheel", (event) => {
      if (!(event.ctrlKey || event.metaKey || event.shiftKey || root.activeElement === this.stage)) return;
      event.preventDefault();
      const turn = event.deltaY || event.deltaX;
      this.zoom(Math.exp(Math.max(-60, Math.min(60, turn)) * 0.006), this.time(at(event)[0]));
    }, { passive: false });
    const keys = {
      ArrowLeft: () => this.pan(-(this.to - this.from) / 5), ArrowRight: () => this.pan((this.to - this.from) / 5),
      ArrowUp: () => { this.scroll -= this.pitch * 3; this.moved(); }, ArrowDown: () => { this.scroll += this.pitch * 3; this.moved(); },
      "+": () => this.zoom(1 / 1.6), "=": () => this.zoom(1 / 1.6), "-": () => this.zoom(1.6),
      Home: () => this.window(0, this.total, true), m: () => this.toggle(),
      " ": () => this.play(), ".": () => this.step(1), ",": () => this.step(-1),
      r: () => this.rank.next(1), R: () => this.rank.next(-1), Enter: () => this.rank.enter(),
      w: () => this.why.walk(), W: () => this.why.walk(-1), c: () => this.why.mark(!this.why.marked),
      "?": () => this.explain(), Escape: () => (!this.keys.hidden ? this.explain() : this.why.close() || this.rank.leave() || this.leave()),
    };
    obey(this.stage, keys);
    this.unclosed = closing(this.tip, () => { this.hide(); this.surface.request(); });
    const heard = root.querySelector("[data-keep]"), kept = () => { try { return localStorage; } catch { return {}; } };
    heard.checked = kept()[heard.dataset.keep] !== "off";
    heard.addEventListener("change", () => { try { localStorage.setItem(heard.dataset.keep, heard.checked ? "on" : "off"); } catch { /* nothing is kept: as before */ } });
    obey(this.keys, { Escape: () => this.explain() });
    const tools = { play: () => this.play(), back: () => this.step(-1), step: () => this.step(1), keys: () => this.explain(), shut: () => this.explain(), machines: () => this.toggleMachines(), speed: () => this.faster(), in: () => this.zoom(1 / 2), out: () => this.zoom(2), all: () => this.window(0, this.total, true), messages: () => this.toggle(), critical: () => this.why.mark(!this.why.marked) };
    root.querySelectorAll(".tools button, .keys button").forEach((button) => button.addEventListener("click", () => tools[button.dataset.do]()));
  }

  // Whether the axis is there, or the handle of the cursor above the lanes.
  axis(x, y) { return x >= GUTTER - 6 && (y >= this.surface.height - AXIS || (y >= STRIP + 6 && y < TOP - 2)); }

  // The lane whose name lies there, where names may be clicked; otherwise -1.
  named(x, y) {
    const lane = Math.floor((y - TOP + this.scroll) / this.pitch);
    const inside = x < GUTTER && y >= TOP && y < this.surface.height - AXIS && lane >= 0 && lane < this.names.length;
    return this.clickable && inside ? lane : -1;
  }

  // Show which keys do what, or hide it.
  explain() {
    this.keys.hidden = !this.keys.hidden;
    this.keysButton.setAttribute("aria-expanded", String(!this.keys.hidden));
    if (this.keys.hidden && this.keys.contains(this.keys.getRootNode().activeElement)) this.keysButton.focus();
  }

  toggleMachines() {
    const { box } = this.topology;
    box.hidden = !box.hidden;
    this.machinesButton.setAttribute("aria-pressed", String(!box.hidden));
    this.topology.request();
  }

  toggle() {
    this.arrows = !this.arrows;
    this.messagesButton.setAttribute("aria-pressed", String(this.arrows));
    this.surface.request();
  }

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

  // Span n in words: whose it is and what; when, and how long.
  titled(n) {
    const { start, kind, label, lane, step, marked } = this.spans.columns;
    const name = this.kinds[kind[n]], text = this.spans.labels[label[n]];
    return [
      `${this.names[lane[n]]} · ${name}${text && text !== name ? ` · ${text}` : ""}`,
      `${step[n] >= 0 ? `step ${step[n] + 1} · ` : ""}at ${this.inTime(start[n])} · ${this.lasts(n)}${marked?.[n] ? " · on the critical path" : ""}`,
    ];
  }

  // How long span n takes, in words.
  lasts(n) { return this.endless(n) ? "does not end" : `takes ${this.inTime(this.spans.columns.duration[n])}`; }

  // Whether it goes on after the end of the run: that is drawn a little way, and never ends.
  endless(n) { return this.spans.columns.start[n] + this.spans.columns.duration[n] > this.end * (1 + 1e-5); }

  hide() { this.over = -1; this.tip.hidden = true; }
}

const mount = mounting(Timeline);
