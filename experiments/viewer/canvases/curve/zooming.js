// The visible range of x, and the actions of pointer and keys.
// Mixed into Curve (curve.js), which is `this` here.

const DRAG = 6;      // px after which a press counts as a drag
const FEW = 8;       // a window needs more points of a line than this to show its shape

class Zooming {
  // Zoom this picture, and those that share its `together`, to this window.
  zoom(window) {
    const { together, x } = this.frame ?? {};
    for (const curve of lockstepCurves) if (curve === this || (together && curve.frame?.together === together)) curve.see(window);
    if (!x?.second) return;
    for (const one of globalThis.lockstepTimelines ?? []) {
      if (one.clock === lockstepClock) one.see(...(window ? window.x.map((value) => value * x.second) : [0, one.total]));
    }
  }

  // Follow the timeline's window (null: the whole run) if the axis is time and this picture is zoomed or shaded, or the
  // timeline `zooms`.
  led(seconds, zooms) {
    const { second, least, most } = this.frame?.x ?? {};
    if (!second || !(zooms || this.window || this.shade)) return;
    const inside = (value) => Math.min(most, Math.max(least, value / second)), x = seconds && seconds.map(inside);
    const seen = x && this.goes(x);
    this.see(seen ? { x } : null);
    this.shade = seen ? null : x;
    this.surface.request();
  }

  // True if some line has enough points in this range of x to show its shape; two would only make a slanted line.
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

  // The dragged box, [left, right, top, bottom] in px. It has the full height: a drag zooms x, and y adapts.
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
      const stop = Number(this.range.value); // read it before pause() resets the slider
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
