// Drawing functions that all canvases share: lines and areas through points, text and the plate behind it, page elements.
// __init__.py puts it before a canvas's own file.

function trace(g, points) {
  g.beginPath();
  for (const point of points) g.lineTo(...point); // the first lineTo starts the path
}

// Draw a line through points [x, y].
function strokeLine(g, ...points) { trace(g, points); g.stroke(); }

// Fill the polygon with corners [x, y].
function fillShape(g, ...points) { trace(g, points); g.fill(); }

// Draw a cross in a square with side 2r around (x, y).
function strokeCross(g, x, y, r) {
  g.beginPath();
  for (const way of [-1, 1]) { g.moveTo(x - r, y - way * r); g.lineTo(x + r, y + way * r); }
  g.stroke();
}

// Clip drawing to this box until g.restore().
function clipTo(g, x, y, wide, high) {
  g.save();
  g.beginPath();
  g.rect(x, y, wide, high);
  g.clip();
}

// Draw rising diagonals across a box, `apart` px from each other; with `both`, also falling ones.
function strokeDiagonals(g, x, y, wide, high, apart, both = false) {
  g.beginPath();
  for (let s = x - high; s < x + wide; s += apart) {
    g.moveTo(s, y + high);
    g.lineTo(s + high, y);
    if (both) { g.moveTo(s, y); g.lineTo(s + high, y + high); }
  }
  g.stroke();
}

// Set the font. `size` is in px, preceded by a weight if the text is bold: "600 11".
function lettering(g, size, align = "left", baseline = "middle") {
  g.font = `${size}px ${FONT}`;
  g.textAlign = align;
  g.textBaseline = baseline;
}

// Draw a plate in the page's colour, and set the text colour for the words that follow.
function plate(g, page, opacity, x, y, wide, high) {
  g.fillStyle = page.page;
  g.globalAlpha = opacity;
  g.fillRect(x, y, wide, high);
  g.globalAlpha = 1;
  g.fillStyle = page.text;
}

// Make an element with these properties and children.
function make(tag, properties = {}, ...children) {
  const one = Object.assign(document.createElement(tag), properties);
  one.append(...children);
  return one;
}

// Bisect [low, high): the first index from which `holds` is true, or `high`. `holds` must stay true once it is.
function firstWhere(low, high, holds) {
  while (low < high) { const middle = (low + high) >> 1; if (holds(middle)) high = middle; else low = middle + 1; }
  return low;
}
