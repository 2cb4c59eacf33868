// Curves and bars. Drag to zoom, hover or use the arrow keys to read values, double-click or press Home to see everything;
// none of it needs the server. Frames with `stops` have a slider. A line belongs to one stop or to all; all share the axes.

const ROW = 20;      // px per row of the legend
const WORDS = 14;    // px per line of text below the plot
const PACE = 900;    // ms at each stop while playing

// All curves of the page. Curves with the same `together` zoom together.
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
    this.stopAt = 0;     // the slider's stop
    this.window = null;  // the range that the reader zoomed to: {x: [from, to]}
    this.shade = null;   // the timeline's range [from, to] of x, shaded while this curve is not zoomed
    this.at = null;      // the x that the reader points at
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

  // Draw the legend of runs in a saved file; on the page it stands above several pictures.
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

  // Update the slider, if there is one, and its labels.
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

  // The lines that belong to the current stop.
  get lines() { return this.frame.lines.filter(({ stop = this.stopAt }) => stop === this.stopAt); }

  title() { const { name, unit, title } = this.frame.x; return title || (unit ? `${name}, ${unit}` : name); }
}

mixin(Curve, Axes, Plot, Moments, Reading, Zooming);

const mount = mounting(Curve);
