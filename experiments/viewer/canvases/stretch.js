// Stretching a wire between two machines makes every message take longer: the further it is pulled, the longer.

const TENFOLD = 60;  // px to pull a wire for ten times the latency
const LEAST = 1e-5;  // s; the starting latency of a network without any
const MOST = 1;      // s; the highest latency
const ROUND = [1, 1.5, 2, 3, 5, 7, 10];

class Stretch {
  constructor(topology) {
    this.topology = topology;
    this.wire = null; // the wire under the pointer, or being pulled: [machine, machine]
    this.from = null;
    const { canvas } = this, at = (event) => within(canvas, event), trouble = () => topology.timeline.trouble;
    canvas.addEventListener("pointerdown", (event) => {
      this.wire = this.near(...at(event), event.pointerType === "mouse" ? 8 : 22);
      if (!this.wire) return;
      if (trouble().sent) trouble().leave();
      this.from = this.to = at(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.from) {
        const wire = this.near(...at(event), 8);
        canvas.style.cursor = wire ? "grab" : "";
        if (String(wire) !== String(this.wire)) { this.wire = wire; topology.request(); }
        return;
      }
      this.to = at(event);
      trouble().later(() => trouble().foresee({ kind: "latency", value: this.value() }));
      topology.request();
    });
    canvas.addEventListener("pointerup", () => {
      if (!this.from) return;
      trouble().soon?.();
      const far = Math.hypot(this.to[0] - this.from[0], this.to[1] - this.from[1]);
      this.from = this.wire = null;
      if (far > STIRRED && trouble().now) trouble().commit(); else trouble().leave();
      topology.request();
    });
    for (const name of ["pointercancel", "pointerleave"]) {
      canvas.addEventListener(name, () => { if (this.from && name === "pointercancel") trouble().leave(); if (name === "pointercancel" || !this.from) { this.from = this.wire = null; topology.request(); } });
    }
  }

  get canvas() { return this.topology.box.querySelector("canvas"); }

  // The latency for the current pull, rounded to a number that is easy to say.
  value() {
    const { latency } = this.topology.timeline.trouble.foreseen, base = Math.max(latency, LEAST);
    const far = Math.hypot(this.to[0] - this.from[0], this.to[1] - this.from[1]), value = Math.min(MOST, base * 10 ** (far / TENFOLD));
    const power = 10 ** Math.floor(Math.log10(value)), step = ROUND.reduce((best, one) => (Math.abs(one * power - value) < Math.abs(best * power - value) ? one : best));
    return Math.max(latency, Number((step * power).toPrecision(2)));
  }

  // The wire within `reach` px of (x, y); null if there is none, or if wires cannot be stretched.
  near(x, y, reach) {
    const { machines, stands, timeline } = this.topology, { trouble } = timeline;
    if (!trouble.offered || trouble.frame.trouble.latency === null || !machines || !stands) return null;
    if (stands.some((one) => Math.hypot(one.x - x, one.y - y) < one.r + 3)) return null;
    let best = null, least = reach;
    for (const [a, b] of machines.wires) {
      const [p, q] = [stands[a], stands[b]], long = (q.x - p.x) ** 2 + (q.y - p.y) ** 2 || 1;
      const share = Math.max(0, Math.min(1, ((x - p.x) * (q.x - p.x) + (y - p.y) * (q.y - p.y)) / long));
      const far = Math.hypot(p.x + share * (q.x - p.x) - x, p.y + share * (q.y - p.y) - y);
      if (far < least) [best, least] = [[a, b], far];
    }
    return best;
  }

  // Draw the wire being pulled, bent to the pointer, or the one under the pointer.
  draw(g) {
    if (!this.wire) return;
    const { stands, timeline } = this.topology, [p, q] = this.wire.map((m) => stands[m]);
    const [x, y] = this.from ? this.to : [(p.x + q.x) / 2, (p.y + q.y) / 2];
    g.strokeStyle = timeline.look.communicate.colour;
    g.lineWidth = 4;
    g.beginPath();
    g.moveTo(p.x, p.y);
    g.quadraticCurveTo(2 * x - (p.x + q.x) / 2, 2 * y - (p.y + q.y) / 2, q.x, q.y);
    g.stroke();
  }
}
