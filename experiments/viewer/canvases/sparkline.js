// Held-out loss and accuracy of the whole run, as two small lines below its lanes, with the clock's moment. It is also a
// slider: dragging it sets the clock, and the arrow keys move from evaluation to evaluation.
//
// Drawn in the box of learned.js, which gives the values at that moment in words.

const SPARK = 58; // px; height of the lines and the times below them
const TIMES = 16; // px of that for the times

class Sparkline {
  constructor(learned, box) {
    this.learned = learned;
    this.box = box;
    this.surface = fit(box.querySelector("canvas"), box, SPARK, (g, width, height) => this.draw(g, width, height));
    const seek = ({ clientX, clientY }) => this.seek(this.time(within(box, { clientX, clientY })[0]));
    box.addEventListener("pointerdown", (event) => { box.setPointerCapture(event.pointerId); seek(event); });
    box.addEventListener("pointermove", (event) => { if (box.hasPointerCapture(event.pointerId)) seek(event); });
    const go = (way) => () => this.seek(this.next(way)), last = () => this.seek(this.timeline.end);
    obey(box, {
      ArrowRight: go(1), ArrowUp: go(1), ArrowLeft: go(-1), ArrowDown: go(-1), Home: () => this.seek(0), End: last,
      " ": () => this.timeline.play(), Escape: () => this.timeline.leave(),
    });
  }

  get timeline() { return this.learned.timeline; }
  get plot() { return this.surface.width - GUTTER - 4; }

  stop() { this.surface.stop(); }

  // The line stops at the end of the run; what the timeline draws after that, ranks waiting forever, is not part of it.
  x(time) { return GUTTER + Math.min(1, time / this.timeline.end) * this.plot; }
  time(x) { return ((x - GUTTER) / this.plot) * this.timeline.end; }

  seek(time) { this.timeline.clock.set(Math.max(0, Math.min(time, this.timeline.end)), this); }

  // The time of the evaluation after the clock's moment, or with -1 before it; the first or last one if there is no moment.
  next(way) {
    const { at } = this.learned.frame, { cursor, end } = this.timeline, slack = end * 1e-6;
    const now = cursor ?? (way > 0 ? -1 : end + 1);
    return (way > 0 ? at.find((one) => one > now + slack) : at.findLast((one) => one < now - slack)) ?? now;
  }

  draw(g, width, height) {
    const { frame } = this.learned;
    if (!frame) return;
    const { from, to, total, end, cursor } = this.timeline, page = pageColours(this.box), { plot } = this, bottom = height - TIMES;
    g.fillStyle = page.panel;
    g.fillRect(GUTTER, 0, plot, bottom);
    if (to - from < total * 0.999) {
      g.fillStyle = page.border;
      g.fillRect(this.x(from), 0, Math.max(2, this.x(to) - this.x(from)), bottom);
    }
    lettering(g, 11, "left", "top");
    g.fillStyle = page.quiet;
    g.fillText("0 s", GUTTER, bottom + 4);
    g.textAlign = "right";
    g.fillText(inSeconds(end), GUTTER + plot, bottom + 4);
    const now = this.learned.now(), shown = cursor ?? end;
    this.lines().forEach(({ name, values, least, most, dash, words }, n, all) => {
      const y = (value) => 4 + (bottom - 8) * (1 - (Math.max(least, Math.min(value, most)) - least) / (most - least || 1));
      const colour = edgeOf(COLOURS.learned[name], page), middle = (bottom / all.length) * (n + 0.5);
      g.strokeStyle = g.fillStyle = colour;
      g.lineWidth = 1.75;
      g.setLineDash(dash);
      const known = frame.at.flatMap((at, row) => (values[row] === null ? [] : [[this.x(at), y(values[row])]]));
      strokeLine(g, ...known);
      strokeLine(g, [0, middle], [12, middle]);
      g.setLineDash([]);
      lettering(g, 11);
      g.fillStyle = page.text;
      g.fillText(words(values[now]), 17, middle, GUTTER - 23);
      if (values[now] === null) return;
      g.fillStyle = colour;
      g.beginPath();
      g.arc(this.x(shown), y(values[now]), 3.5, 0, 2 * Math.PI);
      g.fill();
    });
    if (cursor === null) return;
    const x = this.x(cursor);
    g.strokeStyle = page.text;
    g.lineWidth = 1.5;
    strokeLine(g, [x, 0], [x, bottom]);
  }

  // The lines to draw: {name, values, least, most, dash, words}.
  lines() {
    const { loss, accuracy } = this.learned.frame, known = loss.filter((one) => one !== null);
    const most = Math.min(Math.max(...known), 2 * known[0]); // a loss that blows up is cut off at the top
    const lines = [{ name: "loss", values: loss, least: Math.min(0, ...known), most, dash: [4, 3], words: (value) => `loss ${inDigits(value)}` }];
    if (accuracy.length) lines.unshift({ name: "right", values: accuracy, least: 0, most: 1, dash: [], words: (value) => `right ${inPercent(value)}` });
    return lines;
  }

  // Set the slider's ARIA values.
  tell(words) {
    const { end, cursor } = this.timeline;
    const said = { valuemin: 0, valuemax: end, valuenow: Math.min(cursor ?? end, end), valuetext: words };
    for (const [name, value] of Object.entries(said)) this.box.setAttribute(`aria-${name}`, value);
  }
}

// 0.9143 -> "91.4 %"
function inPercent(value) { return value === null ? "unknown" : `${(100 * value).toFixed(1)}\u00a0%`; }

// 0.12893 -> "0.129"
function inDigits(value) { return value === null ? "diverged" : Math.abs(value) >= 1e4 ? value.toExponential(1) : String(Number(value.toPrecision(3))); }
