// Pictures of grids and groups of points, for the landscape: shades and contours of a loss, areas of classes, the hull of a
// cloud, shapes of points. __init__.py puts it before landscape.js.

const SHAPES = ["circle", "square", "up", "diamond", "down", "cross", "plus", "bar"];

// The corners of the convex hull of points.
function around(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const half = (some) => {
    const hull = [];
    for (const p of some) {
      while (hull.length > 1) {
        const [a, b] = hull.slice(-2);
        if ((b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0) break;
        hull.pop();
      }
      hull.push(p);
    }
    return hull.slice(0, -1);
  };
  return [...half(sorted), ...half(sorted.reverse())];
}

function painted(columns, rows, pixel) {
  const canvas = make("canvas", { width: columns, height: rows });
  const g = canvas.getContext("2d"), image = g.createImageData(columns, rows);
  for (let y = 0; y < rows; y++) for (let x = 0; x < columns; x++) image.data.set(pixel(x, y), 4 * (y * columns + x));
  g.putImageData(image, 0, 0);
  return canvas;
}

// An image of the loss in `ink`: the more of `levels` lie below the loss, the more opaque. Row 0 of `ground` is the bottom.
function shades(ground, rows, cells, levels, ink) {
  return painted(cells, rows, (x, y) => {
    const loss = ground[(rows - 1 - y) * cells + x];
    const below = Number.isFinite(loss) ? first(levels, loss) : levels.length;
    const from = below ? levels[below - 1] : loss, to = below < levels.length ? levels[below] : loss;
    const share = (below + (to > from ? (loss - from) / (to - from) : 0)) / (levels.length + 1);
    return [...ink, Math.round(255 * 0.3 * Math.min(1, share))];
  });
}

// An image of classes from a grid of bytes, each steps * class + certainty. Less certain points are paler.
function areas(bytes, side, steps, palette, page) {
  return painted(side, side, (x, y) => {
    const byte = bytes[(side - 1 - y) * side + x], sure = 0.12 + (0.5 * (byte % steps)) / (steps - 1);
    const ink = rgb(palette[Math.floor(byte / steps) % palette.length]);
    return [...ink.map((part, i) => Math.round(sure * part + (1 - sure) * page[i])), 255];
  });
}

// The contour of a grid at `level`, as line segments [column, row, column, row].
function contour(ground, rows, cells, level) {
  const pieces = [];
  for (let r = 0; r + 1 < rows; r++) for (let c = 0; c + 1 < cells; c++) {
    const corners = [[c, r], [c + 1, r], [c + 1, r + 1], [c, r + 1]], value = corners.map(([x, y]) => ground[y * cells + x]);
    if (!value.every(Number.isFinite)) continue;
    const cuts = [];
    for (let i = 0; i < 4; i++) {
      const a = value[i], b = value[(i + 1) % 4];
      if ((a < level) === (b < level)) continue;
      const share = (level - a) / (b - a), [from, to] = [corners[i], corners[(i + 1) % 4]];
      cuts.push([from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])]);
    }
    for (let i = 0; i + 1 < cuts.length; i += 2) pieces.push([...cuts[i], ...cuts[i + 1]]);
  }
  return pieces;
}

function outline(g, shape, x, y, r) {
  if (shape === "circle") return g.arc(x, y, r, 0, 2 * Math.PI);
  const corners = {
    square: [[-1, -1], [1, -1], [1, 1], [-1, 1]], up: [[0, -1.3], [1.2, 1], [-1.2, 1]], diamond: [[0, -1.4], [1.4, 0], [0, 1.4], [-1.4, 0]],
    down: [[0, 1.3], [1.2, -1], [-1.2, -1]], cross: [[-1.3, -0.6], [-0.6, -1.3], [1.3, 0.6], [0.6, 1.3]], plus: [[-0.5, -1.4], [0.5, -1.4], [0.5, 1.4], [-0.5, 1.4]],
    bar: [[-1.4, -0.5], [1.4, -0.5], [1.4, 0.5], [-1.4, 0.5]],
  }[shape];
  corners.forEach(([dx, dy], i) => (i ? g.lineTo(x + r * dx, y + r * dy) : g.moveTo(x + r * dx, y + r * dy)));
  g.closePath();
}
