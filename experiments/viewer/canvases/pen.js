// How canvases draw what all of them have: lines and areas through points, words and the plate behind them, elements of
// the page. Put before a canvas's own file by __init__.py.

function trace(g, points) {
  g.beginPath();
  for (const point of points) g.lineTo(...point); // the first one begins the path
}

// A line through points [x, y].
function strokeLine(g, ...points) { trace(g, points); g.stroke(); }

// The area between points [x, y].
function fillShape(g, ...points) { trace(g, points); g.fill(); }

// A cross in a square of 2r around (x, y).
function strokeCross(g, x, y, r) {
  g.beginPath();
  for (const way of [-1, 1]) { g.moveTo(x - r, y - way * r); g.lineTo(x + r, y + way * r); }
  g.stroke();
}

// From here to g.restore() only what lies in this box is drawn.
function clipTo(g, x, y, wide, high) {
  g.save();
  g.beginPath();
  g.rect(x, y, wide, high);
  g.clip();
}

// Lines across a box that rise, and with `both` also fall, `apart` px from each other.
function strokeDiagonals(g, x, y, wide, high, apart, both = false) {
  g.beginPath();
  for (let s = x - high; s < x + wide; s += apart) {
    g.moveTo(s, y + high);
    g.lineTo(s + high, y);
    if (both) { g.moveTo(s, y); g.lineTo(s + high, y + high); }
  }
  g.stroke();
}

// How words are written: `size` in px, behind a weight if they are bold.
function lettering(g, size, align = "left", baseline = "middle") {
  g.font = `${size}px ${FONT}`;
  g.textAlign = align;
  g.textBaseline = baseline;
}

// A plate of the page's colour behind words, which are written next, in the colour of text.
function plate(g, page, opacity, x, y, wide, high) {
  g.fillStyle = page.page;
  g.globalAlpha = opacity;
  g.fillRect(x, y, wide, high);
  g.globalAlpha = 1;
  g.fillStyle = page.text;
}

// An element of the page with these properties, and what is in it.
function make(tag, properties = {}, ...children) {
  const one = Object.assign(document.createElement(tag), properties);
  one.append(...children);
  return one;
}

// The first index from `low` below `high` at which `holds` is true, as it is from there on; `high` if it never is.
function firstWhere(low, high, holds) {
  while (low < high) { const middle = (low + high) >> 1; if (holds(middle)) high = middle; else low = middle + 1; }
  return low;
}
