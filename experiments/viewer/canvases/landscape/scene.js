// The picture: its ground, what stands on it, and the lens over what is near together.
// Mixed into Landscape (landscape.js), which is `this` here.

const SIDES = 4 / 3;   // of the ground's picture, width over height
const GAP = 18;        // px between two pictures
const LENS = 0.08;     // of the picture's width: workers that are nearer to the model are shown through a lens

class Scene {
  draw(g, width) {
    const { frame } = this;
    if (!frame) return;
    const colours = pageColours(this.stage);
    const both = Boolean(frame.boundary);
    const beside = both && width >= 640;
    const ground = beside ? (width - GAP) * (SIDES / (SIDES + 1)) : width;
    const tall = Math.round(Math.min(TALL, ground / SIDES));
    const square = beside ? Math.min(tall, width - GAP - ground) : Math.min(TALL, width);
    const height = beside || !both ? tall + FOOT : tall + square + 2 * FOOT + GAP;
    if (height !== this.surface.height) { this.surface.height = height; return this.surface.request(); }
    if (frame.pending) return; // in as much room as the pictures will have
    this.drawGround(g, { left: 0, top: 0, width: ground, height: tall }, colours);
    if (!both) return;
    const place = beside ? { left: ground + GAP, top: 0 } : { left: 0, top: tall + FOOT + GAP };
    this.drawBoundary(g, { ...place, width: square, height: square }, colours);
  }

  title(g, at, text, colours) {
    lettering(g, 12, "left", "alphabetic");
    g.fillStyle = colours.text;
    g.globalAlpha = 0.8;
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
    clipTo(g, at.left, at.top, at.width, at.height);
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
    strokeLine(g, [x, y], [corner.left + size / 2, corner.top + size / 2]);
    g.globalAlpha = 1;
    g.fillStyle = colours.page;
    g.fillRect(corner.left, corner.top, size, size);
    this.scene(g, corner, [u - half, u + half, v - tall, v + tall], colours, false);
    g.strokeStyle = colours.text;
    g.strokeRect(corner.left + 0.5, corner.top + 0.5, size - 1, size - 1);
    lettering(g, 11, "left", "alphabetic");
    g.fillStyle = colours.text;
    g.fillText(`× ${times}`, corner.left + 6, corner.top + size - 6);
  }
}

function clamp([x, y], { left, top, width, height }) {
  const rim = 11;
  return [Math.max(left + rim, Math.min(left + width - rim, x)), Math.max(top + rim, Math.min(top + height - rim, y))];
}
