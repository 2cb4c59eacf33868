// A curve while it grows: no zoom, no hover, nothing that the next frame would take away.

const MARGIN = { left: 46, right: 12, top: 10, bottom: 40 };
const curves = new WeakMap();

export default function ({ data, parentElement }) {
  let curve = curves.get(parentElement);
  if (!curve) curves.set(parentElement, (curve = new Curve(parentElement)));
  const bytes = asBytes(data);
  if (bytes) curve.show(decode(bytes));
  return () => { curve.surface.stop(); curves.delete(parentElement); };
}

class Curve {
  constructor(root) {
    this.box = root.querySelector(".curve");
    this.surface = fit(root.querySelector("canvas"), this.box, 320, (...args) => this.draw(...args));
  }

  show(frame) {
    this.frame = frame;
    this.surface.height = frame.height;
    this.box.setAttribute("aria-label", frame.description);
    this.surface.request();
  }

  draw(g, width, height) {
    const frame = this.frame;
    if (!frame) return;
    const page = pageColours(this.box);
    const right = width - MARGIN.right, bottom = height - MARGIN.bottom;
    const x = (value) => MARGIN.left + (value / frame.x.most) * (right - MARGIN.left);
    const y = (value) => bottom - ((value - frame.y.least) / (frame.y.most - frame.y.least)) * (bottom - MARGIN.top);
    g.font = `12px ${FONT}`;
    g.lineWidth = 1;
    g.strokeStyle = page.border;
    g.fillStyle = page.muted;
    g.textAlign = "right";
    g.textBaseline = "middle";
    for (const value of ticks(frame.y.least, frame.y.most, 5).at) {
      g.beginPath();
      g.moveTo(MARGIN.left, Math.round(y(value)) + 0.5);
      g.lineTo(right, Math.round(y(value)) + 0.5);
      g.stroke();
      g.fillText(Number(value.toPrecision(6)).toLocaleString("en"), MARGIN.left - 8, y(value));
    }
    g.textAlign = "center";
    g.textBaseline = "top";
    for (const value of ticks(0, frame.x.most, (right - MARGIN.left) / 90).at) {
      g.fillText(Number(value.toPrecision(6)).toLocaleString("en"), x(value), bottom + 7);
    }
    g.fillText(frame.x.title, (MARGIN.left + right) / 2, bottom + 23);
    g.save();
    g.beginPath();
    g.rect(MARGIN.left, 0, right - MARGIN.left + 6, bottom + 1);
    g.clip();
    for (const line of frame.lines) {
      const xs = frame.columns[line.x], ys = frame.columns[line.y];
      g.strokeStyle = line.colour;
      g.globalAlpha = line.faint ? 0.45 : 1;
      g.lineWidth = line.points ? 1 : 2.2;
      g.lineJoin = "round";
      g.setLineDash(line.dash);
      g.beginPath();
      let pen = false;
      for (let i = 0; i < xs.length; i++) {
        if (!Number.isFinite(ys[i])) { pen = false; continue; }
        if (pen) g.lineTo(x(xs[i]), y(ys[i])); else g.moveTo(x(xs[i]), y(ys[i]));
        pen = true;
      }
      g.stroke();
      g.setLineDash([]);
      const last = xs.length - 1;
      for (let i = line.points ? 0 : last; i >= 0 && i <= last; i++) {
        if (line.faint || !Number.isFinite(ys[i])) continue;
        g.beginPath();
        g.arc(x(xs[i]), y(ys[i]), line.points ? 3 : 4, 0, 7);
        if (line.points) { g.lineWidth = 1.6; g.stroke(); } else { g.fillStyle = line.colour; g.fill(); }
      }
      g.globalAlpha = 1;
    }
    g.restore();
  }
}
