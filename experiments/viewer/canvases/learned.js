// What the run has learned by the clock's moment, below its lanes: loss and accuracy (sparkline.js), and the guesses of the
// latest evaluated model for a few held-out samples, or "?" before the first one.
//
// Samples are elements of the page; experiments/runs/guesses.py lists their kinds. Each guess has a sign in addition to its
// colour, and the sentence above spells out all guesses for screen readers.

const SIGNS = { right: "✓", wrong: "✗", none: "" };
const SQUARE = 120; // px; side of a picture of points

class Learned {
  constructor(timeline, root) {
    this.timeline = timeline;
    this.box = root.querySelector(".learned");
    this.said = this.box.querySelector(".said");
    this.guesses = this.box.querySelector(".guesses");
    this.line = new Sparkline(this, this.box.querySelector(".sparkline"));
    this.frame = null;
  }

  stop() { this.line.stop(); }

  request() { if (this.frame) this.line.surface.request(); }

  // The page's colours have changed.
  redraw() {
    this.request();
    if (this.frame) this.paint();
  }

  show(frame, columns) {
    this.frame = frame ?? null;
    this.box.hidden = !frame;
    if (!frame) return;
    this.columns = columns;
    this.guesses.className = `guesses ${frame.guesses?.kind ?? ""}`;
    this.guesses.replaceChildren(...(frame.guesses ? this.build() : []));
    this.shown = this.told = null;
    this.paint();
    this.follow();
  }

  // The latest evaluation at the clock's moment, or the last one if the clock has no moment.
  now() {
    const { at } = this.frame, { cursor, total } = this.timeline;
    return Math.max(0, firstWhere(0, at.length, (row) => at[row] > (cursor ?? Infinity) + total * 1e-6) - 1);
  }

  // The index of the latest model with guesses; -1 before the first.
  model() {
    const { model } = this.frame.guesses, now = this.now();
    return firstWhere(0, model.length, (n) => model[n] > now) - 1;
  }

  follow() {
    if (!this.frame) return;
    this.request();
    const { playing } = this.timeline.clock, model = this.frame.guesses ? this.model() : -1, said = playing ? this.now() : null;
    if (this.shown !== model) this.put(model);
    else if (playing && said === this.told) return; // while playing, change the text only with an evaluation, however slow the machine is
    this.told = said;
    this.say(model, playing);
  }

  // ---- samples

  build() {
    const { kind, answer, columns, rows } = this.frame.guesses;
    if (kind === "images") return this.pictures();
    if (kind === "points") return [make("canvas", { width: 2 * SQUARE, height: 2 * SQUARE })];
    if (kind === "text") return [make("p", {}, make("span", {}, visible(answer[0])), make("b"))];
    const cells = (tag, texts) => texts.map((text) => make(tag, {}, text));
    const head = make("tr", {}, ...cells("th", [...columns, "label", "guess"]));
    return [make("table", {}, head, ...rows.map((row, n) => make("tr", {}, ...cells("td", [...row, answer[n]]), make("td", { className: "guess" }))))];
  }

  pictures() {
    const { answer, size: [height, width] } = this.frame.guesses;
    return answer.map(() => make("div", {}, make("canvas", { width, height }), make("span", { className: "guess" })));
  }

  // Draw what depends on the page's colours: pictures in its text colour, points on the current model's classes.
  paint() {
    const { kind, size } = this.frame.guesses ?? {}, page = pageColours(this.box);
    if (kind === "points") this.points(page);
    if (kind !== "images") return;
    const [height, width] = size, ink = rgb(page.text), { pictures } = this.columns;
    this.guesses.querySelectorAll("canvas").forEach((canvas, n) => {
      const image = new ImageData(width, height);
      for (let i = 0; i < height * width; i++) image.data.set([...ink, pictures[n * height * width + i]], 4 * i);
      canvas.getContext("2d").putImageData(image, 0, 0);
    });
  }

  points(page) {
    const { x, box: [left, right, bottom, top], cells: count, colours, answer } = this.frame.guesses, model = this.shown ?? -1;
    const g = this.guesses.querySelector("canvas").getContext("2d"), side = SQUARE / count;
    g.setTransform(2, 0, 0, 2, 0, 0);
    g.fillStyle = page.panel;
    g.fillRect(0, 0, SQUARE, SQUARE);
    g.globalAlpha = 0.55;
    if (model >= 0) for (let i = 0; i < count * count; i++) {
      g.fillStyle = colours[this.columns.cells[model * count * count + i] % colours.length];
      g.fillRect((i % count) * side, SQUARE - (Math.floor(i / count) + 1) * side, side, side);
    }
    g.globalAlpha = 1;
    x.forEach(([u, v], n) => {
      const px = ((u - left) / (right - left)) * SQUARE, py = SQUARE - ((v - bottom) / (top - bottom)) * SQUARE;
      g.strokeStyle = page.text;
      g.lineWidth = 1;
      if (this.verdict(model, n) === "wrong") return strokeCross(g, px, py, 3);
      g.fillStyle = colours[Number(answer[n]) % colours.length];
      g.beginPath();
      g.arc(px, py, 2.6, 0, 2 * Math.PI);
      g.fill();
      g.stroke();
    });
  }

  // "right" or "wrong" for guess n of a model; "none" if there is no guess, or if guesses are not marked, as for estimates.
  verdict(model, n) {
    const { marked, guess, answer } = this.frame.guesses;
    return model < 0 || !marked ? "none" : guess[model][n] === answer[n] ? "right" : "wrong";
  }

  // Show the guesses of a model next to their samples.
  put(model) {
    this.shown = model;
    const { kind, guess } = this.frame.guesses ?? {};
    if (kind === "points") return this.points(pageColours(this.box));
    if (kind === "text") { this.guesses.querySelector("b").textContent = model < 0 ? "?" : visible(guess[model][0]); return; }
    this.guesses.querySelectorAll(".guess").forEach((cell, n) => {
      const verdict = this.verdict(model, n);
      cell.className = `guess ${verdict}`;
      cell.textContent = `${SIGNS[verdict]} ${model < 0 ? "?" : guess[model][n] || "–"}`.trim();
    });
  }

  // ---- words

  say(model, playing) {
    const { frame, timeline } = this, now = this.now(), { cursor } = timeline;
    // while playing, say the time of the evaluation: the cursor moves on faster than anyone can read
    const when = cursor === null ? "At the end of the run" : playing ? `Evaluated at ${inSeconds(frame.at[now])}` : `At ${inSeconds(cursor)}`;
    const found = [this.count(model), frame.accuracy.length && `${inPercent(frame.accuracy[now])} of all ${frame.samples.toLocaleString("en")} held-out ${frame.noun}`].filter(Boolean);
    const right = found.length ? `${found.join(" and ")} right, ` : "";
    const words = `${when}: ${right}held-out loss ${inDigits(frame.loss[now])}.`;
    this.said.setAttribute("aria-live", playing ? "off" : "polite");
    const more = frame.guesses?.kind === "text" ? " The model continues a held-out text:" : "";
    this.said.replaceChildren(whole(words + more), make("span", { className: "spoken" }, ` ${this.spell(model)}`));
    if (!playing || !this.line.box.ariaValueNow) this.line.tell(words);
  }

  // "7 of these 9", or "" if guesses are not marked right or wrong.
  count(model) {
    const { guesses } = this.frame;
    if (!guesses?.marked || model < 0) return "";
    return `${guesses.answer.filter((_, n) => this.verdict(model, n) === "right").length} of these ${guesses.answer.length}`;
  }

  // The guesses in words, for screen readers.
  spell(model) {
    const { guesses } = this.frame;
    if (!guesses) return "";
    const { kind, answer, guess } = guesses;
    if (model < 0) return "It has guessed nothing yet.";
    if (kind === "text") return `After “${answer[0]}” the model writes “${guess[model][0]}”.`;
    if (kind === "points") return "";
    return `${answer.map((is, n) => (is === guess[model][n] ? `${is} is guessed` : `${is} is taken for ${guess[model][n] || "nothing"}`)).join(", ")}.`;
  }
}

// The text with visible line ends.
function visible(text) { return text.replaceAll("\n", "↵"); }
