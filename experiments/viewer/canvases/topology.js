// The machines of a run, at the moment of the timeline's cursor: a machine fills up while it computes, and messages are beads
// on the wires. Without a cursor, or when a time-lapse is too fast to follow single messages, machines show how a stretch of
// time was divided, and wires that were in use light up. A line below says which of the two is shown.
//
// It is drawn next to a timeline, whose spans and messages it shows.

const QUEUE = [0.12, 0.8]; // how far along its wire a message waits for the sender's port, and for the receiver's
const LATELY = 0.1;        // s of real time that one frame of a time-lapse covers
const LINE = 16;           // px; height of a line of explanation

class Topology {
  constructor(root, timeline) {
    this.timeline = timeline;
    this.box = root.querySelector(".machines");
    this.surface = fit(this.box.querySelector("canvas"), this.box, 240, (g, width, height) => this.draw(g, width, height));
    this.machines = null;
    this.stretch = new Stretch(this);
  }

  stop() { this.surface.stop(); }

  request() { if (this.machines && !this.box.hidden) this.surface.request(); }

  // `beside` is the height of the timeline next to it.
  show(machines, held, beside) {
    Object.assign(this, { machines, held });
    if (!machines) return;
    const rows = machines.shape === "line" ? new Set(machines.y).size : Infinity, several = machines.parts.length > 1;
    this.surface.height = several ? Math.max(232, Math.min(520, beside)) : Math.min(Math.max(232, Math.min(340, beside)), rows * 90 + 40);
    this.box.setAttribute("role", "img");
    this.box.setAttribute("aria-label", machines.description);
    this.ranks = machines.names.map((_, m) => machines.of.flatMap((one, rank) => (one === m ? [rank] : [])));
    this.wait();
  }

  // Compute when each message finds both ports free, and which one it waits for: a port handles one message at a time.
  wait() {
    const { src, dst, sent, arrived } = this.timeline.messages.columns;
    this.free = Float32Array.from(sent);
    this.queue = new Uint8Array(sent.length); // index into QUEUE
    if (!this.machines.ports) return;
    const before = [new Map(), new Map()];
    for (const n of Array.from(sent.keys()).filter((one) => arrived[one] >= 0).sort((a, b) => arrived[a] - arrived[b])) {
      const ends = [src[n], dst[n]];
      ends.forEach((rank, side) => {
        const other = before[side].get(rank), until = other === undefined ? -1 : arrived[other];
        if (until > this.free[n] && until < arrived[n]) { this.free[n] = until; this.queue[n] = side; }
      });
      ends.forEach((rank, side) => before[side].set(rank, n));
    }
  }

  // The time to show, {from, to}; both are equal if it is a moment.
  time() {
    const { cursor, clock, from, to, total, count, names } = this.timeline;
    if (cursor === null) return { from, to };
    const lately = clock.rate * LATELY, typical = (total * names.length) / Math.max(count, 1);
    return clock.playing && lately > typical / 4 ? { from: Math.max(0, cursor - lately), to: cursor } : { from: cursor, to: cursor };
  }

  // The position of message n along its wire, from 0 to 1.
  come(n, time) {
    const { sent, arrived } = this.timeline.messages.columns, free = this.free[n];
    if (free <= sent[n]) return (time - sent[n]) / Math.max(arrived[n] - sent[n], 1e-12);
    const alone = Math.max(arrived[n] - free, 1e-12), stop = QUEUE[this.queue[n]];
    if (time < free) return stop * Math.min(1, (time - sent[n]) / alone);
    return stop + ((1 - stop) * (time - free)) / alone;
  }

  // The messages in flight at a moment: [{n, share, waits}]. `waits` is true until the port is free.
  beads(time) {
    if (!this.timeline.near()) return [];
    const { src, dst } = this.timeline.messages.columns, { of } = this.machines;
    return this.timeline.travelling(time, time).filter((n) => of[src[n]] !== of[dst[n]])
      .map((n) => ({ n, share: Math.max(0, Math.min(1, this.come(n, time))), waits: time < this.free[n] }));
  }

  // How many messages wait for each machine's port: Map of machine -> number.
  waiting(beads) {
    const { src, dst } = this.timeline.messages.columns, count = new Map();
    for (const { n, waits } of beads) {
      if (!waits) continue;
      const machine = this.machines.of[(this.queue[n] ? dst : src)[n]];
      count.set(machine, (count.get(machine) ?? 0) + 1);
    }
    return count;
  }

  // The longest queue in words; "" if no two messages wait for the same port.
  told(time) {
    if (!this.machines) return "";
    const [machine, many] = [...this.waiting(this.beads(time))].sort((a, b) => b[1] - a[1])[0] ?? [0, 0];
    return many > 1 ? `${many} messages wait at the port of ${this.machines.names[machine]}` : "";
  }

  // What is drawn, for tests.
  shows() {
    const { from, to } = this.time(), { src, dst } = this.timeline.messages.columns;
    const beads = from === to ? this.beads(to) : [];
    const doing = from === to ? this.ranks.map((_, m) => this.timeline.kinds[this.filled(m, { from, to }).kind] ?? "nothing") : [];
    return { canvas: "topology", meaning: this.meaning(), seconds: to, shape: this.machines.shape, doing, beads: beads.map(({ n, share }) => ({ src: src[n], dst: dst[n], share })) };
  }

  // ---- drawing

  draw(g, width, whole) {
    const { machines, timeline } = this;
    if (!machines || !timeline.spans) return;
    const page = pageColours(this.box), high = (whole - LINE * (this.held ? 2 : 1)) / machines.parts.length;
    const stands = machines.parts.flatMap((part, n) => this.places(part, width, high, n * high)), at = stands.map(({ x, y }) => [x, y]);
    this.stands = stands;
    const time = this.time(), moment = time.from === time.to, beads = moment ? this.beads(time.to) : [];
    this.drawWires(g, at, moment ? null : time, page);
    this.stretch.draw(g);
    stands.forEach((one, m) => {
      this.drawMachine(g, m, one.x, one.y, one.r, time, page);
      this.drawName(g, m, one, page);
    });
    this.drawBeads(g, at, beads, stands, page);
    for (const [m, waiting] of this.waiting(beads)) if (waiting > 1) this.drawQueue(g, waiting, ...at[m], stands[m].r, page);
    machines.parts.forEach(({ name, colour }, n) => { if (name) this.drawPart(g, name, colour, n * high, page); });
    this.drawMeaning(g, whole, page);
  }

  // The positions and sizes of a run's machines, in the strip of the picture that begins at `top`.
  places({ shape, first, count, servers }, width, height, top) {
    const xs = this.machines.x.slice(first, first + count), ys = this.machines.y.slice(first, first + count), line = shape === "line";
    const room = Math.min(width, height) / 2, rows = new Set(ys).size, across = new Set(xs).size, [cx, cy] = [width / 2, top + height / 2];
    const r = line ? Math.max(5, Math.min(17, width / across / 2 - 8, height / rows / 2 - 13)) : count <= 8 ? 17 : count <= 16 ? 13 : 9;
    const reach = line ? [width / 2 - 4, height / 2 - 6] : [Math.min(width / 2 - r - 34, room * 1.35), room - r - 22];
    return xs.map((x, m) => ({ x: cx + x * reach[0], y: cy + ys[m] * reach[1], r, cx, cy, line, count, server: m < servers, number: m }));
  }

  // Name the run that these machines belong to, if there are several runs.
  drawPart(g, name, colour, top, page) {
    g.fillStyle = colour;
    g.fillRect(4, top + 4, 3, 13);
    lettering(g, 11.5);
    g.fillStyle = page.text;
    g.fillText(name, 12, top + 11, this.surface.width - 16);
  }

  // Draw the wires; given a stretch of time, light up those that carried a message in it.
  drawWires(g, at, time, page) {
    const { wires, of } = this.machines, key = (a, b) => (a < b ? `${a} ${b}` : `${b} ${a}`), used = new Set();
    if (time && this.timeline.near()) {
      const { src, dst } = this.timeline.messages.columns;
      for (const n of this.timeline.travelling(time.from, time.to)) used.add(key(of[src[n]], of[dst[n]]));
    }
    for (const [a, b] of wires) {
      const lit = used.has(key(a, b));
      g.strokeStyle = lit ? this.timeline.look.communicate.colour : page.muted;
      g.globalAlpha = lit ? 0.9 : wires.length > 60 ? 0.25 : 0.5;
      g.lineWidth = lit ? 3 : 1.2;
      strokeLine(g, at[a], at[b]);
    }
    g.globalAlpha = 1;
  }

  outline(g, m, x, y, r) {
    g.beginPath();
    if (this.machines.parts.some(({ first, servers }) => m >= first && m < first + servers)) g.rect(x - r, y - r, 2 * r, 2 * r);
    else g.arc(x, y, r, 0, 7);
  }

  drawMachine(g, m, x, y, r, time, page) {
    const { kinds, look } = this.timeline, level = this.filled(m, time);
    g.fillStyle = page.panel;
    this.outline(g, m, x, y, r);
    g.fill();
    g.save();
    this.outline(g, m, x, y, r);
    g.clip();
    let base = y + r;
    level.shares.forEach((share, k) => {
      if (!(share > 0)) return;
      const high = 2 * r * Math.min(1, share);
      g.fillStyle = look[kinds[k]].colour;
      g.fillRect(x - r, base - high, 2 * r, high);
      base -= high;
    });
    g.restore();
    g.strokeStyle = level.kind < 0 ? page.muted : look[kinds[level.kind]].colour;
    g.lineWidth = level.kind < 0 ? 1.5 : 3;
    this.outline(g, m, x, y, r);
    g.stroke();
    if (kinds[level.kind] === "idle") { // stopped
      g.lineWidth = 2;
      strokeCross(g, x, y, 0.6 * r);
    }
    if (!this.held) return;
    const cells = this.held.length / this.machines.names.length, cell = Math.min(cells - 1, Math.floor((time.to / this.timeline.end) * cells));
    const high = 2 * r * (this.held[m * cells + cell] / 255);
    g.fillStyle = page.border;
    g.fillRect(x + r + 4, y - r, 4, 2 * r);
    g.fillStyle = COLOURS.memory;
    g.fillRect(x + r + 4, y + r - high, 4, high);
  }

  // How full a machine is: {shares of each kind, from the bottom, current kind}. The kind is -1 if it does nothing, or if its
  // ranks do different things.
  filled(m, { from, to }) {
    const { timeline } = this, { kinds } = timeline, shares = new Float32Array(kinds.length);
    if (from < to || !timeline.near()) return { shares: this.divided(this.ranks[m], from, to, shares), kind: -1 };
    const now = timeline.now(), { start, duration, kind } = timeline.spans.columns, at = new Set();
    for (const rank of this.ranks[m]) {
      const n = timeline.doing(rank, now);
      at.add(n < 0 ? -1 : kind[n]);
      if (n >= 0 && kind[n] < timeline.work) shares[kind[n]] += Math.min(1, (to - start[n]) / Math.max(duration[n], 1e-12)) / this.ranks[m].length;
    }
    return { shares, kind: at.size === 1 ? [...at][0] : -1 };
  }

  // The share of each kind in a stretch of time, averaged over these ranks.
  divided(ranks, from, to, shares) {
    const { timeline } = this, kinds = timeline.kinds.length;
    if (timeline.near() && to > from) {
      for (const rank of ranks) timeline.shares(...timeline.within(rank, from, to), from, to, 1, shares);
      return shares.map((share) => share / ranks.length);
    }
    if (!timeline.coarse) return shares;
    const cells = timeline.coarse.length / (kinds * timeline.names.length), cell = (time) => Math.min(cells - 1, Math.floor((time / timeline.total) * cells));
    const first = cell(from), last = Math.max(first, cell(to));
    for (const rank of ranks) {
      for (let c = first; c <= last; c++) for (let k = 0; k < kinds; k++) shares[k] += timeline.coarse[(rank * cells + c) * kinds + k] / 255 / (last - first + 1) / ranks.length;
    }
    return shares;
  }

  drawName(g, m, { x, y, r, cx, cy, line, count, server, number }, page) {
    const { names } = this.machines, centre = server || line;
    if (count > 16 && number % 2) return;
    const text = server ? names[m] : names[m].split(" ").slice(1).join(" ");
    g.fillStyle = page.text;
    const out = Math.hypot(x - cx, y - cy) || 1, far = r + 11;
    const dx = centre ? 0 : ((x - cx) / out) * far, dy = centre ? far - 1 : ((y - cy) / out) * far;
    lettering(g, count > 16 ? 10 : 11.5, Math.abs(dx) < r ? "center" : dx > 0 ? "left" : "right");
    const beside = this.held && dx > r ? 4 : 0; // leaves room for the bar of memory
    g.fillText(text, x + (Math.abs(dx) < r ? dx : Math.sign(dx) * (r + 6) + beside), y + dy);
  }

  drawBeads(g, at, beads, stands, page) {
    const { src, dst, bytes } = this.timeline.messages.columns, { of } = this.machines;
    this.largest ??= bytes.reduce((most, one) => Math.max(most, one), 1);
    g.fillStyle = this.timeline.look.communicate.colour;
    g.strokeStyle = page.text;
    g.lineWidth = 1;
    for (const { n, share } of beads) {
      const [x0, y0] = at[of[src[n]]], [x1, y1] = at[of[dst[n]]], long = Math.hypot(x1 - x0, y1 - y0) || 1;
      const along = Math.min(long, stands[of[src[n]]].r) / long, s = along + share * (1 - 2 * along); // from rim to rim
      // slightly to the right of the wire, so that both directions are visible
      const x = x0 + s * (x1 - x0) - ((y1 - y0) / long) * 4, y = y0 + s * (y1 - y0) + ((x1 - x0) / long) * 4;
      g.beginPath();
      g.arc(x, y, 2.5 + 3 * Math.sqrt(bytes[n] / this.largest), 0, 7);
      g.fill();
      g.stroke();
    }
  }

  // Say what fills the machines and what the bars next to them mean.
  drawMeaning(g, height, page) {
    lettering(g, 11);
    g.fillStyle = page.quiet;
    g.fillText(this.meaning(), 4, height - (this.held ? LINE : 0) - 7.5);
    if (!this.held) return;
    g.fillText(this.machines.memory, 13, height - 7.5);
    g.fillStyle = COLOURS.memory;
    g.fillRect(4, height - 14, 4, 12);
  }

  meaning() {
    const { from, to } = this.time(), { cursor } = this.timeline;
    if (from === to) return `filled: how much of its present work a ${this.timeline.role} has done`;
    return `colours: shares of the ${cursor === null ? "time in view" : `last ${this.timeline.inTime(to - from)}`}`;
  }

  drawQueue(g, waiting, x, y, r, page) {
    const text = `${waiting} wait`;
    lettering(g, "600 11", "center");
    const wide = g.measureText(text).width + 8;
    plate(g, page, 0.85, x - wide / 2, y + r + 17, wide, 14);
    g.fillText(text, x, y + r + 24); // below the machine's name
  }
}
