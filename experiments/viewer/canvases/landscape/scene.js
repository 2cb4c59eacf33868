// The picture: the surface of the loss, workers and model on it, and the lens for those that are close together.
// Mixed into Landscape (landscape.js), which is `this` here.

const SIDES = 4 / 3;   // width over height of the picture
const GAP = 18;        // px between two pictures
const LENS = 0.08;     // share of the picture's width; workers nearer to the model than this are shown through a lens
const ONE = 1e-5;      // share of the picture's width; workers nearer than this are at the model, up to rounding
const SEEN = 200;      // about how many places of each path the lens tries not to hide

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
    if (frame.pending) return; // the space for the pictures is already reserved
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
    if (this.magnifies) this.lens(g, at, colours, this.corner(at));
    const [across, up] = this.frame.axes;
    this.title(g, at, `→ ${across}   ↑ ${up}`, colours);
  }

  // Draw the part `view` (left, right, bottom, top) of the plane. Only the `whole` has the loss and labelled contours.
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
    if (!whole || !this.magnifies) fan(dots);
    else if (dots.length > 1) dots.length = 0; // the lens shows them
    if (centre) this.diamond(g, clamp(centre, at), colours);
    for (const dot of dots) this.dot(g, dot, workers.length, colours);
    g.restore();
    g.strokeStyle = colours.border;
    g.strokeRect(at.left + 0.5, at.top + 0.5, at.width - 1, at.height - 1);
  }

  get magnifies() { return this.near > ONE && this.near < LENS; }

  // Draw the surroundings of the model, magnified, in `corner`.
  lens(g, at, colours, corner) {
    const model = this.stands(this.frame.ranks);
    if (model === null) return;
    const [left, right, bottom, top] = this.frame.box, [u, v] = this.point(model);
    const times = 2 ** Math.round(Math.log2(0.12 / this.near)); // keeps most dots inside
    const size = corner.width, half = (size / at.width / 2) * ((right - left) / times);
    const tall = half * ((top - bottom) / (right - left)) * (at.width / at.height);
    const [x, y] = this.pixel(at, [u, v]), reach = Math.max(5, size / times / 2);
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
    g.fillText(`× ${times.toLocaleString("en")}`, corner.left + 6, corner.top + size - 6);
  }

  // The pixel of a point of the plane in the whole picture, which is at `at`.
  pixel(at, [u, v]) {
    const [left, right, bottom, top] = this.frame.box;
    return [at.left + ((u - left) / (right - left)) * at.width, at.top + at.height - ((v - bottom) / (top - bottom)) * at.height];
  }

  // The square {left, top, width, height} of the lens, in the corner of the picture where it hides the fewest places of the
  // whole paths.
  corner(at) {
    const size = Math.min(220, at.width * 0.42), on = (point) => this.pixel(at, point);
    const places = [...this.paths.values()].flatMap(({ place }) => {
      const every = Math.ceil(place.length / SEEN);
      return place.filter((_, i) => i % every === 0 || i === place.length - 1).map((one) => on(this.point(one)));
    });
    const corners = [8, at.width - size - 8].flatMap((left) => [at.height - size - 8, left > 8 ? 8 : 36].map((top) => {
      const corner = { left: at.left + left, top: at.top + top, width: size, height: size };
      const inside = ([x, y]) => x > corner.left && x < corner.left + size && y > corner.top && y < corner.top + size;
      return { ...corner, hidden: places.filter(inside).length };
    }));
    return corners.reduce((best, one) => (one.hidden < best.hidden ? one : best));
  }
}

function clamp([x, y], { left, top, width, height }) {
  const rim = 11;
  return [Math.max(left + rim, Math.min(left + width - rim, x)), Math.max(top + rim, Math.min(top + height - rim, y))];
}
