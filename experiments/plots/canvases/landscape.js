// How a run learned, at one moment of it: workers and model on the ground of the loss, and beside it the classes that
// the model gives to every point of a square.
//
// The moment is that of the page's clock, and while the clock shows none the end, or when the run left the picture for
// good: of a run that diverged no more is drawn than the move by which each leaves. Where workers are near each other on
// the whole path, a lens in a corner shows what is around the model.

const TALL = 430;      // px of a picture, at most
const SIDES = 4 / 3;   // of the ground's picture, width over height
const FOOT = 20;       // px below a picture, for its title
const GAP = 18;        // px between two pictures
const RUNNING = 12;    // s that playing a run takes
const TICKS = 1000;    // of the slider
const RECENT = 14;     // moves of a worker that are drawn strongly
const TOGETHER = 7;    // px within which dots are fanned out
const LENS = 0.08;     // of the picture's width: workers that are nearer to the model are shown through a lens
const NUMBERED = 12;   // workers whose dots have room for a number
const SPOKEN_EVERY = 200; // ms between two sentences while it is played

class Landscape {
  constructor(root) {
    this.box = root.querySelector(".landscape");
    this.stage = root.querySelector(".stage");
    this.note = root.querySelector(".note");
    this.slider = root.querySelector("input");
    this.status = root.querySelector(".status");
    this.about = root.querySelector(".about");
    this.player = root.querySelector(".player");
    this.playButton = root.querySelector('[data-do="play"]');
    this.surface = fit(root.querySelector("canvas"), this.stage, TALL + FOOT, (...args) => this.draw(...args));
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.deaf = lockstepClock.listen(() => this.heard());
    this.listen(root);
  }

  stop() {
    this.surface.stop();
    this.watcher?.disconnect();
    this.deaf();
    if (!lockstepClock.listeners.size) lockstepClock.pause();
  }

  redraw() { this.images = null; this.surface.request(); }

  show(bytes) {
    const frame = decode(bytes);
    Object.assign(this, { frame, saved: frame.saved });
    this.watcher?.disconnect();
    this.player.style.visibility = frame.pending ? "hidden" : "";
    this.note.hidden = !frame.pending;
    this.images = null;
    if (frame.pending) {
      this.paths = null;
      this.note.textContent = frame.pending;
      this.status.textContent = this.about.textContent = "";
      if (!frame.asks) return this.surface.request();
      this.watcher = new IntersectionObserver((entries) => {
        if (entries.some((one) => one.isIntersecting)) this.events?.ask?.("seen", frame.run);
      });
      this.watcher.observe(this.stage);
    } else {
      this.paths = paths(frame);
      this.total = frame.seconds;
      this.box.classList.toggle("single", !frame.boundary);
      this.about.textContent = frame.description;
      this.stage.setAttribute("aria-label", `How the model learns. ${frame.description}`);
      this.near = frame.left === null ? this.closeness() : 0; // workers that part for good are in no lens
      this.lines = frame.levels.map((level) => contour(frame.columns.ground, frame.rows, frame.cells, level));
      this.say();
    }
    this.surface.request();
  }

  // ---- time

  get time() { return Math.max(0, Math.min(this.total, lockstepClock.seconds ?? this.frame.left ?? this.total)); }

  // Whether the run has left the picture for good.
  get gone() { return this.frame.left !== null && this.time > this.frame.left + this.total * 1e-6; }

  heard() {
    if (!this.paths) return;
    this.say(lockstepClock.playing);
    this.surface.request();
  }

  seek(time) { lockstepClock.set(Math.max(0, Math.min(this.total, time)), this); }

  // Go to the moment of the next move, or of the one before.
  step(way) {
    const { at, tried } = this.frame.columns, moments = at.length > 4 * TICKS ? tried : at; // few enough to be stepped through
    const slack = this.total * 1e-6;
    const next = way > 0 ? first(moments, this.time + slack) : first(moments, this.time - slack) - 1;
    this.seek(next < 0 ? 0 : next >= moments.length ? this.total : moments[next]);
  }

  play() {
    if (this.calm.matches) return this.step(1);
    if (lockstepClock.playing) return lockstepClock.pause(this);
    if (this.time >= this.total) this.seek(0);
    lockstepClock.play(() => this.total / RUNNING, this.total, this);
  }

  get moves() { return this.paths ? this.total : 0; }

  film() { return { seconds: RUNNING, at: (share) => this.seek(share * this.total) }; }

  // ---- words

  say(soon = false) {
    if (!this.paths) return;
    const now = performance.now();
    this.slider.value = String(Math.round((this.time / (this.total || 1)) * TICKS));
    this.slider.setAttribute("aria-valuetext", inSeconds(this.time));
    const calm = this.calm.matches, { playing } = lockstepClock;
    this.playButton.textContent = calm ? "Step" : playing ? "❚❚ Pause" : "▶\uFE0E Play";
    this.playButton.setAttribute("aria-label", calm ? "Step" : playing ? "Pause" : "Play how it learns");
    this.status.setAttribute("aria-live", playing ? "off" : "polite");
    if (soon && now - (this.said ?? 0) < SPOKEN_EVERY) return;
    this.said = now;
    this.status.textContent = this.moment();
  }

  // What is seen at this moment, in a sentence.
  moment() {
    const { tried, loss, accuracy } = this.frame.columns;
    const n = Math.max(0, first(tried, this.time + this.total * 1e-6) - 1);
    const parts = [`At ${inSeconds(this.time)}`];
    if (tried.length) {
      const large = loss[n] >= 1e6, digits = large ? loss[n].toExponential(2) : Number(loss[n].toPrecision(3));
      parts.push(`held-out loss ${Number.isFinite(loss[n]) ? digits : "diverged"}`);
      if (Number.isFinite(accuracy[n])) parts.push(`accuracy ${(100 * accuracy[n]).toFixed(1)} %`);
    }
    if (this.gone) return `${parts.join(" · ")} · left this picture after ${inSeconds(this.frame.left)}.`;
    const apart = this.apart();
    if (apart !== null && this.workers.length > 1) parts.push(`distance of the ${this.frame.model} to the worker farthest from it: ${Number(apart.toPrecision(2))}, on this plane`);
    return `${parts.join(" · ")}.`;
  }

  // ---- where things are

  point(place) { const { points } = this.frame.columns; return [points[2 * place], points[2 * place + 1]]; }

  // How many moves `who` has made by now.
  made(who) {
    const path = this.paths.get(who);
    return path ? first(path.at, this.time + this.total * 1e-6) : 0;
  }

  // The place where `who` is now, null if it is nowhere yet.
  stands(who) { const n = this.made(who); return n ? this.paths.get(who).place[n - 1] : null; }

  get workers() { return [...this.paths.keys()].filter((who) => who !== this.frame.ranks); }

  // How far the worker that is farthest from the model is from it, on the plane; null without workers.
  apart() {
    const model = this.stands(this.frame.ranks);
    if (model === null) return null;
    const [u, v] = this.point(model);
    const far = this.workers.map((who) => this.stands(who)).filter((place) => place !== null).map((place) => {
      const [x, y] = this.point(place);
      return Math.hypot(x - u, y - v);
    });
    return far.length ? Math.max(...far) : null;
  }

  // How far workers are from the model for most of the run, as a part of the picture's width; 0 if never apart.
  closeness() {
    const { frame } = this, [left, right] = frame.box, found = [];
    for (const who of this.workers) {
      const path = this.paths.get(who), model = this.paths.get(frame.ranks);
      if (!model) return 0;
      for (let i = 0; i < path.at.length; i += 1 + (path.at.length >> 7)) {
        const n = first(model.at, path.at[i + 1] ?? this.total); // as it leaves, when the model is farthest
        if (!n) continue;
        const [u, v] = this.point(model.place[n - 1]), [x, y] = this.point(path.place[i]);
        found.push(Math.hypot(x - u, y - v) / (right - left));
      }
    }
    return found.length ? found.sort((a, b) => a - b)[Math.floor(0.6 * (found.length - 1))] : 0;
  }

  // ---- drawing

  draw(g, width) {
    const { frame } = this;
    if (!frame) return;
    const colours = pageColours(this.stage);
    const both = Boolean(frame.boundary) || frame.pending;
    const beside = both && width >= 640;
    const ground = beside ? (width - GAP) * (SIDES / (SIDES + 1)) : width;
    const tall = Math.round(Math.min(TALL, ground / SIDES));
    const square = beside ? Math.min(tall, width - GAP - ground) : Math.min(TALL, width);
    const height = frame.pending ? this.surface.height : beside || !both ? tall + FOOT : tall + square + 2 * FOOT + GAP;
    if (height !== this.surface.height) { this.surface.height = height; return this.surface.request(); }
    if (frame.pending) {
      g.strokeStyle = colours.border;
      g.strokeRect(0.5, 0.5, width - 1, height - FOOT);
      return;
    }
    this.drawGround(g, { left: 0, top: 0, width: ground, height: tall }, colours);
    if (!both) return;
    const place = beside ? { left: ground + GAP, top: 0 } : { left: 0, top: tall + FOOT + GAP };
    this.drawBoundary(g, { ...place, width: square, height: square }, colours);
  }

  title(g, at, text, colours) {
    g.font = `12px ${FONT}`;
    g.fillStyle = colours.text;
    g.globalAlpha = 0.8;
    g.textBaseline = "alphabetic";
    g.textAlign = "left";
    g.fillText(text, at.left, at.top + at.height + 14, at.width);
    g.globalAlpha = 1;
  }

  drawGround(g, at, colours) {
    this.scene(g, at, this.frame.box, colours, true);
    this.legend(g, at, colours);
    if (this.near > 0 && this.near < LENS) this.lens(g, at, colours);
    const [across, up] = this.frame.axes;
    this.title(g, at, `→ ${across}   ↑ ${up}`, colours);
  }

  // The part `view` (left, right, bottom, top) of the plane; the whole of it has the ground, and names of contours.
  scene(g, at, view, colours, whole) {
    const [left, right, bottom, top] = view;
    const px = (u) => at.left + ((u - left) / (right - left)) * at.width;
    const py = (v) => at.top + at.height - ((v - bottom) / (top - bottom)) * at.height;
    const on = (place) => { const [u, v] = this.point(place); return [px(u), py(v)]; };
    const { workers } = this;
    g.save();
    g.beginPath();
    g.rect(at.left, at.top, at.width, at.height);
    g.clip();
    if (whole) this.bands(g, at, px, py, colours);
    for (const who of workers) this.trail(g, who, on, this.colour(who), 1);
    this.trail(g, this.frame.ranks, on, colours.text, 1.4);
    this.stale(g, on, colours);
    const model = this.stands(this.frame.ranks), centre = model === null ? null : on(model);
    const dots = this.dots(workers, on, at);
    if (this.frame.tie === "cloud") this.cloud(g, dots, colours);
    if (centre) for (const dot of dots) this.tie(g, centre, dot.true, this.colour(dot.who));
    if (!whole || !this.near || this.near >= LENS) fan(dots);
    else if (dots.length > 1) dots.length = 0; // the lens shows them
    if (centre) this.diamond(g, clamp(centre, at), colours);
    for (const dot of dots) this.dot(g, dot, workers.length, colours);
    g.restore();
    g.strokeStyle = colours.border;
    g.strokeRect(at.left + 0.5, at.top + 0.5, at.width - 1, at.height - 1);
  }

  // What is around the model, in the corner that is farthest from it.
  lens(g, at, colours) {
    const model = this.stands(this.frame.ranks);
    if (model === null) return;
    const [left, right, bottom, top] = this.frame.box, [u, v] = this.point(model);
    const times = 2 ** Math.round(Math.log2(0.12 / this.near)); // which keeps most dots inside
    const size = Math.min(220, at.width * 0.42), half = (size / at.width / 2) * ((right - left) / times);
    const tall = half * ((top - bottom) / (right - left)) * (at.width / at.height);
    const x = at.left + ((u - left) / (right - left)) * at.width, y = at.top + at.height - ((v - bottom) / (top - bottom)) * at.height;
    const corner = {
      left: x < at.left + at.width / 2 ? at.left + at.width - size - 8 : at.left + 8,
      top: y < at.top + at.height / 2 ? at.top + at.height - size - 8 : at.top + 8 + (x < at.left + at.width / 2 ? 0 : 28),
      width: size, height: size,
    };
    const reach = Math.max(5, size / times / 2);
    g.strokeStyle = colours.text;
    g.globalAlpha = 0.6;
    g.strokeRect(x - reach, y - reach, 2 * reach, 2 * reach);
    g.beginPath();
    g.moveTo(x, y);
    g.lineTo(corner.left + size / 2, corner.top + size / 2);
    g.stroke();
    g.globalAlpha = 1;
    g.fillStyle = colours.page;
    g.fillRect(corner.left, corner.top, size, size);
    this.scene(g, corner, [u - half, u + half, v - tall, v + tall], colours, false);
    g.strokeStyle = colours.text;
    g.strokeRect(corner.left + 0.5, corner.top + 0.5, size - 1, size - 1);
    g.font = `11px ${FONT}`;
    g.textAlign = "left";
    g.textBaseline = "alphabetic";
    g.fillStyle = colours.text;
    g.fillText(`× ${times}`, corner.left + 6, corner.top + size - 6);
  }

  colour(who) {
    return this.frame.colours.workers[(who - this.frame.servers) % this.frame.colours.workers.length];
  }

  // The loss: the higher the darker (on a dark page, the lighter), with contours and what they stand for.
  bands(g, at, px, py, colours) {
    const { rows, cells, levels, box } = this.frame, { ground } = this.frame.columns;
    if (!levels.length) return;
    this.images ??= {};
    this.images.ground ??= shades(ground, rows, cells, levels, rgb256(colours.text));
    const [left, right, bottom, top] = box;
    const half = [(right - left) / (cells - 1) / 2, (top - bottom) / (rows - 1) / 2];
    const x = px(left - half[0]), y = py(top + half[1]);
    g.imageSmoothingEnabled = true;
    g.drawImage(this.images.ground, x, y, px(right + half[0]) - x, py(bottom - half[1]) - y);
    g.strokeStyle = colours.text;
    g.lineWidth = 0.8;
    g.font = `10.5px ${FONT}`;
    g.textAlign = "center";
    g.textBaseline = "middle";
    levels.forEach((level, i) => {
      const pieces = this.lines[i];
      g.globalAlpha = 0.28;
      g.beginPath();
      for (const [c0, r0, c1, r1] of pieces) {
        g.moveTo(px(left + (c0 * (right - left)) / (cells - 1)), py(bottom + (r0 * (top - bottom)) / (rows - 1)));
        g.lineTo(px(left + (c1 * (right - left)) / (cells - 1)), py(bottom + (r1 * (top - bottom)) / (rows - 1)));
      }
      g.stroke();
      if (i % 2 || !pieces.length) return;
      const inside = pieces.map(([c, r]) => [px(left + (c * (right - left)) / (cells - 1)), py(bottom + (r * (top - bottom)) / (rows - 1))])
        .filter(([x, y]) => x > at.left + 24 && x < at.left + at.width - 24 && y > at.top + 34 && y < at.top + at.height - 12);
      if (!inside.length) return;
      const [x2, y2] = inside[Math.floor(inside.length * (0.2 + 0.6 * ((i * 0.37) % 1)))];
      const text = String(Number(level.toPrecision(2))), wide = g.measureText(text).width + 6;
      g.globalAlpha = 0.75;
      g.fillStyle = colours.page;
      g.fillRect(x2 - wide / 2, y2 - 7, wide, 14);
      g.fillStyle = colours.text;
      g.fillText(text, x2, y2 + 0.5);
    });
    g.globalAlpha = 1;
  }

  // The way of a worker or of the model up to now: pale where it is long ago, dashed where it joined another's model.
  trail(g, who, on, colour, weight) {
    const path = this.paths.get(who), n = this.made(who);
    if (!path || n < 2) return;
    const piece = (from, to, alpha, width) => {
      g.globalAlpha = alpha;
      g.lineWidth = width;
      g.beginPath();
      for (let i = from; i < to; i++) i === from ? g.moveTo(...on(path.place[i])) : g.lineTo(...on(path.place[i]));
      g.stroke();
    };
    g.strokeStyle = colour;
    g.lineJoin = "round";
    piece(0, n, 0.35, 0.9 * weight);
    for (let i = Math.max(1, n - RECENT); i < n; i++) {
      g.setLineDash(path.joined[i] ? [3, 3] : []);
      piece(i - 1, i + 1, 0.35 + (0.6 * (i - n + RECENT + 1)) / (RECENT + 1), 1.7 * weight);
    }
    g.setLineDash([]);
    g.globalAlpha = 1;
    g.lineWidth = 1;
    const [x, y] = on(path.place[0]);
    g.fillStyle = colour;
    g.beginPath();
    g.arc(x, y, 2.5, 0, 2 * Math.PI);
    g.fill();
  }

  // The last stale updates, from the model that a gradient was computed from to the one that it was applied to.
  stale(g, on, colours) {
    const { arrows, applied } = this.frame.columns;
    const n = first(applied, this.time + this.total * 1e-6), kept = Math.max(6, this.paths.size);
    for (let i = Math.max(0, n - kept); i < n; i++) {
      const from = on(arrows[2 * i]), to = on(arrows[2 * i + 1]);
      const long = Math.hypot(to[0] - from[0], to[1] - from[1]);
      if (long < 4) continue;
      g.globalAlpha = 0.15 + (0.75 * (i - n + kept + 1)) / kept;
      g.strokeStyle = g.fillStyle = colours.text;
      g.lineWidth = 1.3;
      g.beginPath();
      const bow = [(from[0] + to[0]) / 2 - (to[1] - from[1]) * 0.18, (from[1] + to[1]) / 2 + (to[0] - from[0]) * 0.18];
      g.moveTo(...from);
      for (let s = 1; s <= 10; s++) g.lineTo(...[0, 1].map((k) => between(from[k], bow[k], to[k], s / 10)));
      g.stroke();
      const angle = Math.atan2(to[1] - bow[1], to[0] - bow[0]), head = Math.min(8, long / 2);
      g.beginPath();
      g.moveTo(...to);
      for (const side of [2.7, -2.7]) g.lineTo(to[0] + head * Math.cos(angle + side), to[1] + head * Math.sin(angle + side));
      g.closePath();
      g.fill();
    }
    g.globalAlpha = 1;
    g.lineWidth = 1;
  }

  // Where the workers' dots are drawn: at the edge where they are outside.
  dots(workers, on, at) {
    const found = [];
    for (const who of workers) {
      const place = this.stands(who);
      if (place === null) continue;
      const [x, y] = on(place), [cx, cy] = clamp([x, y], at);
      found.push({ who, x: cx, y: cy, true: [x, y], outside: Math.hypot(x - cx, y - cy) > 1 ? Math.atan2(y - cy, x - cx) : null });
    }
    return found;
  }

  dot(g, { who, x, y, outside }, count, colours) {
    const numbered = count <= NUMBERED, radius = numbered ? 8 : 4.5;
    g.fillStyle = this.colour(who);
    g.strokeStyle = colours.page;
    g.lineWidth = 1.5;
    g.beginPath();
    if (outside === null) g.arc(x, y, radius, 0, 2 * Math.PI);
    else for (const turn of [0, 2.3, -2.3]) g.lineTo(x + radius * 1.3 * Math.cos(outside + turn), y + radius * 1.3 * Math.sin(outside + turn));
    g.closePath();
    g.fill();
    g.stroke();
    g.lineWidth = 1;
    if (!numbered) return;
    g.fillStyle = "#FFFFFF";
    g.font = `bold 10px ${FONT}`;
    g.textAlign = "center";
    g.textBaseline = "middle";
    g.fillText(String(who), x, y + 0.5);
  }

  diamond(g, [x, y], colours) {
    g.fillStyle = colours.page;
    g.strokeStyle = colours.text;
    g.lineWidth = 2.2;
    g.beginPath();
    g.moveTo(x, y - 8);
    g.lineTo(x + 8, y);
    g.lineTo(x, y + 8);
    g.lineTo(x - 8, y);
    g.closePath();
    g.fill();
    g.stroke();
    g.lineWidth = 1;
  }

  // What joins a worker to the model: a spring, whose turns are drawn out as it gets longer, or a line.
  tie(g, from, to, colour) {
    const dx = to[0] - from[0], dy = to[1] - from[1], long = Math.hypot(dx, dy);
    if (long < 6) return;
    g.strokeStyle = colour;
    g.beginPath();
    g.moveTo(...from);
    if (this.frame.tie === "spring") {
      const turns = 16, wide = Math.min(6, 2 + 60 / long + 1.5), across = [(-dy / long) * wide, (dx / long) * wide];
      for (let i = 1; i < turns; i++) {
        const share = 0.08 + (0.84 * i) / turns, side = i % 2 ? 1 : -1;
        g.lineTo(from[0] + dx * share + across[0] * side, from[1] + dy * share + across[1] * side);
      }
      g.globalAlpha = 0.85;
      g.lineWidth = 1.4;
    } else {
      g.setLineDash([2, 3]);
      g.globalAlpha = 0.7;
    }
    g.lineTo(...to);
    g.stroke();
    g.setLineDash([]);
    g.globalAlpha = 1;
    g.lineWidth = 1;
  }

  cloud(g, dots, colours) {
    const hull = around(dots.map((dot) => dot.true));
    if (hull.length < 3) return;
    g.beginPath();
    hull.forEach((corner, i) => (i ? g.lineTo(...corner) : g.moveTo(...corner)));
    g.closePath();
    g.fillStyle = g.strokeStyle = colours.text;
    g.globalAlpha = 0.12;
    g.fill();
    g.globalAlpha = 0.5;
    g.stroke();
    g.globalAlpha = 1;
  }

  legend(g, at, colours) {
    const { workers } = this;
    g.font = `12px ${FONT}`;
    g.textBaseline = "middle";
    g.textAlign = "left";
    const words = [[this.frame.model, "diamond"]];
    if (workers.length) words.push([workers.length > 1 ? "workers" : "worker", "dot"]);
    if (this.frame.columns.applied.length) words.push(["stale update", "arrow"]);
    const wide = words.reduce((sum, [word]) => sum + g.measureText(word).width + 34, 2);
    g.globalAlpha = 0.82;
    g.fillStyle = colours.page;
    g.fillRect(at.left + 6, at.top + 6, wide, 22);
    g.globalAlpha = 1;
    let x = at.left + 18;
    for (const [word, shape] of words) {
      const y = at.top + 17;
      if (shape === "diamond") { g.save(); g.translate(x, y); g.beginPath(); this.diamond(g, [0, 0], colours); g.restore(); }
      else if (shape === "dot") this.dot(g, { who: workers[0], x, y, outside: null }, workers.length, colours);
      else {
        g.strokeStyle = g.fillStyle = colours.text;
        g.beginPath(); g.moveTo(x - 8, y); g.lineTo(x + 4, y); g.stroke();
        g.beginPath(); g.moveTo(x + 9, y); g.lineTo(x + 2, y - 4); g.lineTo(x + 2, y + 4); g.closePath(); g.fill();
      }
      g.font = `12px ${FONT}`;
      g.textAlign = "left";
      g.fillStyle = colours.text;
      g.fillText(word, x + 13, y + 0.5);
      x += g.measureText(word).width + 34;
    }
  }

  drawBoundary(g, at, colours) {
    const { box, dots, classes, steps } = this.frame.boundary;
    const { snapshots, seen, seenAccuracy, dots: where, target, right } = this.frame.columns;
    const n = Math.max(0, first(seen, this.time + this.total * 1e-6) - 1);
    const side = Math.round(Math.sqrt(snapshots.length / seen.length));
    const palette = this.frame.colours.classes;
    this.images ??= {};
    if (this.images.at !== n) {
      this.images.at = n;
      this.images.classes = areas(snapshots.subarray(n * side * side, (n + 1) * side * side), side, steps, palette, rgb256(colours.page));
    }
    g.save();
    g.beginPath();
    g.rect(at.left, at.top, at.width, at.height);
    g.clip();
    const half = at.width / (side - 1) / 2;
    g.imageSmoothingEnabled = true;
    g.drawImage(this.images.classes, at.left - half, at.top - half, at.width + 2 * half, at.height + 2 * half);
    const [left, rightmost, bottom, top] = box;
    for (let i = 0; i < dots; i++) {
      const x = at.left + ((where[2 * i] - left) / (rightmost - left)) * at.width;
      const y = at.top + at.height - ((where[2 * i + 1] - bottom) / (top - bottom)) * at.height;
      const good = right[n * dots + i];
      g.beginPath();
      outline(g, SHAPES[target[i] % SHAPES.length], x, y, good ? 2.6 : 3.6);
      g.fillStyle = palette[target[i] % palette.length];
      g.strokeStyle = good ? colours.page : colours.text;
      g.lineWidth = good ? 0.8 : 1.6;
      g.fill();
      g.stroke();
    }
    g.lineWidth = 1;
    g.restore();
    g.strokeStyle = colours.border;
    g.strokeRect(at.left + 0.5, at.top + 0.5, at.width - 1, at.height - 1);
    const known = Number.isFinite(seenAccuracy[n]) ? `accuracy ${(100 * seenAccuracy[n]).toFixed(1)} % · ` : "";
    this.title(g, at, `${known}${classes} classes · outlined: taken for another class`, colours);
  }

  // ---- what a reader does

  listen(root) {
    const tools = { play: () => this.play(), back: () => this.step(-1), forth: () => this.step(1), };
    root.querySelectorAll("button").forEach((button) => button.addEventListener("click", () => tools[button.dataset.do]()));
    this.slider.addEventListener("input", () => this.seek((Number(this.slider.value) / TICKS) * this.total));
    obey(this.stage, {
      " ": () => this.play(), ".": () => this.step(1), ",": () => this.step(-1), Home: () => this.seek(0), End: () => this.seek(this.total),
      ArrowRight: () => this.seek(this.time + this.total / 40), ArrowLeft: () => this.seek(this.time - this.total / 40),
    });
  }
}

// The index of the first of the sorted `values` above `limit`.
function first(values, limit) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > limit) high = middle; else low = middle + 1;
  }
  return low;
}

// Each one's moves, {at, place, joined}: joined where workers that had parted come to one model, having averaged theirs.
// Of a run that leaves the picture for good they end with the first move after that.
function paths(frame) {
  const { who, at, place } = frame.columns, found = new Map(), met = new Map(), left = frame.left ?? Infinity;
  for (let i = 0; i < who.length; i++) {
    if (!found.has(who[i])) found.set(who[i], { at: [], place: [], joined: [] });
    const path = found.get(who[i]);
    if (path.at.at(-1) > left) continue;
    path.at.push(at[i]);
    path.place.push(place[i]);
    if (who[i] === frame.ranks) continue;
    if (!met.has(place[i])) met.set(place[i], new Set());
    met.get(place[i]).add(who[i]);
  }
  const shared = (where) => (met.get(where)?.size ?? 0) > 1;
  for (const [one, path] of found) {
    const worker = one !== frame.ranks && frame.averages;
    path.joined = path.place.map((where, i) => worker && i > 0 && shared(where) && !shared(path.place[i - 1]));
  }
  return found;
}

// Spread dots that lie on each other around their place.
function fan(dots) {
  const groups = [];
  for (const dot of dots) {
    const group = groups.find((one) => Math.hypot(one[0].x - dot.x, one[0].y - dot.y) < TOGETHER);
    group ? group.push(dot) : groups.push([dot]);
  }
  for (const group of groups.filter((one) => one.length > 1)) {
    const radius = Math.max(11, (group.length * 17) / (2 * Math.PI)), { x, y } = group[0];
    group.forEach((dot, i) => {
      const angle = (2 * Math.PI * i) / group.length - Math.PI / 2;
      dot.x = x + radius * Math.cos(angle);
      dot.y = y + radius * Math.sin(angle);
    });
  }
}

function between(a, b, c, s) { return (1 - s) ** 2 * a + 2 * s * (1 - s) * b + s * s * c; }

function clamp([x, y], { left, top, width, height }) {
  const rim = 11;
  return [Math.max(left + rim, Math.min(left + width - rim, x)), Math.max(top + rim, Math.min(top + height - rim, y))];
}

const mount = mounting(Landscape);
