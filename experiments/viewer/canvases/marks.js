// The marks of a plot: lines, bands, bars with whiskers, and the legend. A line has columns x, y and possibly the uncertainty
// of y: `error` on both sides, or `low` to `high`. `to` converts values to pixels.

// True if the value y can be drawn on this axis.
function drawable(y, to) { return Number.isFinite(y) && (!to.log || y > 0); }

// The lower and upper end of point i's band or whisker.
function ends(line, columns, i) {
  if (line.low) return [columns[line.low][i], columns[line.high][i]];
  const y = columns[line.y][i], error = columns[line.error][i];
  return [y - error, y + error];
}

// The same in words.
function range(line, columns, i) {
  const error = columns[line.error]?.[i];
  if (error > 0) return ` ± ${Number(error.toPrecision(2))}`;
  if (!line.low) return "";
  const [low, high] = ends(line, columns, i);
  return low < high ? ` (${exact(low)} to ${exact(high)})` : "";
}

function drawLine(g, line, columns, to, growing) {
  const xs = columns[line.x], ys = columns[line.y];
  g.strokeStyle = g.fillStyle = line.colour;
  g.globalAlpha = line.faint ? 0.25 : 1;
  g.lineWidth = line.width;
  g.lineJoin = "round";
  if (!line.bare) {
    g.setLineDash(line.dash);
    g.beginPath();
    let pen = false;
    for (let i = 0; i < xs.length; i++) {
      if (!drawable(ys[i], to)) { pen = false; continue; }
      if (pen) g.lineTo(to.x(xs[i]), to.y(ys[i])); else g.moveTo(to.x(xs[i]), to.y(ys[i]));
      pen = true;
    }
    g.stroke();
    g.setLineDash([]);
  }
  g.lineWidth = 1.6;
  const last = xs.length - 1, every = line.every ?? 1;
  for (let i = last % every; line.symbol && i <= last; i += every) if (drawable(ys[i], to)) drawMark(g, line, to.x(xs[i]), to.y(ys[i]));
  if (!line.symbol && !line.faint && drawable(ys[last], to) && (growing || last === 0)) dot(g, to.x(xs[last]), to.y(ys[last]));
  g.globalAlpha = 1;
}

// Where a line leaves the plot at the top, draw an arrow, and label the first one with the highest value. Where a run ended,
// draw a labelled cross. Place labels so that they cover no cross, arrow or label of any line.
function drawLimits(g, lines, columns, to, top, page) {
  const taken = [], said = [];
  lettering(g, 11);
  for (const line of lines) limits(g, line, columns, to, top, taken, said);
  const free = (box) => taken.every(([x0, y0, x1, y1]) => box[0] >= x1 || box[2] <= x0 || box[1] >= y1 || box[3] <= y0);
  for (const { text, x, y } of said) {
    const wide = g.measureText(text).width, right = x + 14 + wide < to.right, left = right ? x + 9 : x - 13 - wide;
    const box = (row) => [left, y + row * WORDS - 7, left + wide + 4, y + row * WORDS + 7];
    const row = [0, 1, 2, 3, 4, 5].find((one) => free(box(one))) ?? 0;
    taken.push(box(row));
    plate(g, page, 0.8, left, y + row * WORDS - 7, wide + 4, 14);
    g.fillText(text, left + 2, y + row * WORDS);
  }
}

// Draw the arrows and the cross of one line. Add their boxes to `taken` and their labels to `said`.
function limits(g, line, columns, to, top, taken, said) {
  const xs = columns[line.x], ys = columns[line.y], last = xs.length - 1;
  const inside = (x) => x >= to.left - 1 && x <= to.right + 1, beyond = (y) => y > to.most || (line.ended && !Number.isFinite(y));
  if (last < 0 || line.faint || line.bare) return;
  g.strokeStyle = g.fillStyle = line.colour;
  const arrows = [];
  let highest = 0;
  for (let i = 1; i <= last; i++) {
    const x = to.x(xs[i]);
    if (!inside(x)) continue;
    if (ys[i] < Infinity) highest = Math.max(highest, ys[i]);
    if (beyond(ys[i]) && !beyond(ys[i - 1]) && !(x - arrows.at(-1) < 14)) arrows.push(x);
  }
  if (arrows.length && highest > to.most && !line.symbol) said.push({ text: `off the chart, up to ${exact(highest)}`, x: arrows[0], y: top + 4 });
  for (const x of arrows) {
    fillShape(g, [x - 5, top + 7], [x, top - 2], [x + 5, top + 7]);
    taken.push([x - 6, top - 3, x + 6, top + 8]);
  }
  const x = to.x(xs[last]);
  if (!line.ended || !inside(x)) return;
  const y = ys[last] <= to.most && drawable(ys[last], to) ? to.y(ys[last]) : top + 6;
  said.push({ text: line.ended, x, y: Math.max(y, top + 6) });
  taken.push([x - 7, y - 7, x + 7, y + 7]);
  g.lineWidth = 2.4;
  strokeCross(g, x, y, 5);
}

// Shade the range of x that the timeline shows, if it has too few points to zoom into.
function drawShade(g, [from, until], to, top, bottom, page) {
  const left = to.x(from), wide = Math.max(to.x(until) - left, 3), text = "the timeline's window";
  g.fillStyle = page.text;
  g.globalAlpha = 0.13;
  g.fillRect(left, top - 5, wide, bottom - top + 6);
  lettering(g, 11);
  const long = g.measureText(text).width + 4, at = left + wide + 4 + long < to.right ? left + wide + 4 : left - 4 - long;
  plate(g, page, 0.85, at, bottom - 18, long, 15);
  g.fillText(text, at + 2, bottom - 10);
}

// Draw the finish of a race: a chequered line, and a flag for each run that has arrived by `now`.
function drawFinish(g, { target, arrivals, unit }, now, to, page) {
  const y = Math.round(to.y(target));
  g.fillStyle = page.text;
  g.globalAlpha = 0.75;
  for (let x = to.left, n = 0; x < to.right; x += 3, n++) g.fillRect(x, y - 3 + 3 * (n % 2), Math.min(3, to.right - x), 3);
  g.globalAlpha = 1;
  for (const { seconds, colour } of arrivals) {
    if (seconds === null || (now !== null && now < seconds)) continue;
    const x = to.x(seconds / unit), tip = x + 14 > to.right ? x - 14 : x + 14; // at the edge the flag points inwards
    g.fillStyle = g.strokeStyle = colour;
    g.lineWidth = 2;
    strokeLine(g, [x, y + 3], [x, y - 26]);
    fillShape(g, [x, y - 27], [tip, y - 21], [x, y - 15]);
  }
}

// Fade what has not happened yet with a veil in the page's colour.
function drawVeil(g, x, to, top, bottom, page) {
  if (x >= to.right) return;
  plate(g, page, 0.7, x, top - 5, to.right + 6 - x, bottom - top + 6);
  g.strokeStyle = page.text;
  g.lineWidth = 1.5;
  strokeLine(g, [x, top], [x, bottom]);
}

// Fill the area between the two ends of a line's points. Leave out points that are not finite or, on a logarithmic axis, not
// positive.
function drawBand(g, line, columns, to) {
  const xs = columns[line.x], ys = columns[line.y], least = to.log ? to.least : -Infinity;
  g.fillStyle = line.colour;
  g.globalAlpha = 0.2;
  const there = (i) => Number.isFinite(ends(line, columns, i)[1]) && drawable(ys[i], to);
  for (let i = 0; i < xs.length; i++) {
    const first = i;
    while (i < xs.length && there(i)) i++;
    if (i === first) continue;
    g.beginPath();
    for (let n = first; n < i; n++) g.lineTo(to.x(xs[n]), to.y(ends(line, columns, n)[1]));
    for (let n = i - 1; n >= first; n--) g.lineTo(to.x(xs[n]), to.y(Math.max(least, ends(line, columns, n)[0])));
    g.fill();
  }
  g.globalAlpha = 1;
}

// Draw the bars of a line whose `line.bar` = [index in the group, size of the group]. They start at 0 or, on a logarithmic
// axis, at the bottom.
function drawBars(g, line, columns, to, page) {
  const xs = columns[line.x], ys = columns[line.y], [which, of] = line.bar, share = 0.75 / of;
  for (let i = 0; i < xs.length; i++) {
    if (!drawable(ys[i], to)) continue;
    const from = xs[i] - 0.375 + which * share;
    const x0 = to.x(from), x1 = to.x(from + share), base = to.y(to.log ? to.least : 0), y = to.y(ys[i]);
    const box = [x0 + 0.5, Math.min(base, y), Math.max(1, x1 - x0 - 1), Math.abs(base - y)];
    g.fillStyle = line.colour;
    g.fillRect(...box);
    drawHatch(g, line.hatch, ...box);
    if (!line.low) continue;
    const [low, high] = ends(line, columns, i), middle = (x0 + x1) / 2, wide = Math.min(5, (x1 - x0) / 4);
    if (!(low < high) || !drawable(high, to)) continue;
    g.strokeStyle = page.text;
    g.lineWidth = 1.3;
    for (const end of [low, high]) if (drawable(end, to)) strokeLine(g, [middle - wide, to.y(end)], [middle + wide, to.y(end)]);
    strokeLine(g, [middle, to.y(drawable(low, to) ? low : to.least)], [middle, to.y(high)]);
  }
}

function drawHatch(g, hatch, x, y, wide, high) {
  if (!hatch) return;
  clipTo(g, x, y, wide, high);
  g.strokeStyle = g.fillStyle = "rgba(255,255,255,0.6)";
  g.lineWidth = 1;
  if (hatch === "-") for (let s = y + high; s > y; s -= 6) strokeLine(g, [x, s], [x + wide, s]);
  else if (hatch === ".") for (let s = x + 3; s < x + wide; s += 6) for (let r = y + high - 3; r > y; r -= 6) g.fillRect(s - 0.5, r - 0.5, 2.6, 2.6);
  else strokeDiagonals(g, x, y, wide, high, 6, hatch === "x");
  g.restore();
}

function drawMark(g, { symbol, solid }, x, y) {
  const r = solid ? 3.6 : 3.2;
  g.beginPath();
  if (symbol === "square") g.rect(x - r + 0.2, y - r + 0.2, 2 * r - 0.4, 2 * r - 0.4);
  else if (symbol === "diamond") { g.moveTo(x, y - r - 1); g.lineTo(x + r + 1, y); g.lineTo(x, y + r + 1); g.lineTo(x - r - 1, y); g.closePath(); }
  else if (symbol === "triangle-up") { g.moveTo(x, y - r - 0.6); g.lineTo(x + r + 0.6, y + r - 0.4); g.lineTo(x - r - 0.6, y + r - 0.4); g.closePath(); }
  else if (symbol === "cross") { g.moveTo(x, y - r); g.lineTo(x, y + r); g.moveTo(x - r, y); g.lineTo(x + r, y); }
  else g.arc(x, y, r, 0, 7);
  if (solid) g.fill();
  g.stroke();
}

function dot(g, x, y) { g.beginPath(); g.arc(x, y, 4, 0, 7); g.fill(); }

// Mark where a line is at the clock's moment: a dot with a ring in the page's colour, so that it stands out from the line.
function drawDot(g, line, columns, i, to, page) {
  const x = columns[line.x][i], y = columns[line.y][i];
  if (!drawable(y, to)) return;
  g.fillStyle = line.colour;
  g.strokeStyle = page.page;
  g.lineWidth = 2;
  g.beginPath();
  g.arc(to.x(x), to.y(y), 5.5, 0, 7);
  g.fill();
  g.stroke();
}

// ---- text around the plot

// The positions of a legend's entries, [{line, x, row}], in as many rows as the width requires.
function legend(g, lines, from, width) {
  let x = from, row = 0;
  return lines.map((line) => {
    const wide = 33 + g.measureText(line.key).width + 20;
    if (x > from && x + wide - 20 > width) { x = from; row += 1; }
    x += wide;
    return { line, x: x - wide, row };
  });
}

function drawLegend(g, entries, page) {
  lettering(g, 12);
  for (const { line, x, row } of entries) {
    const y = 8 + row * ROW;
    g.strokeStyle = g.fillStyle = line.colour;
    if (line.bar) {
      g.fillRect(x + 6, y - 6, 20, 12);
      drawHatch(g, line.hatch, x + 6, y - 6, 20, 12);
    } else {
      g.lineWidth = line.width;
      g.setLineDash(line.dash);
      strokeLine(g, [x, y], [x + 26, y]);
      g.setLineDash([]);
      g.lineWidth = 1.6;
      if (line.symbol) drawMark(g, line, x + 13, y);
    }
    g.fillStyle = page.text;
    g.fillText(line.key, x + 33, y + 0.5);
  }
}

// The axis labels that fit side by side: [{value, words}]. If `room` is given, `words` are broken into lines of that many px.
function apart(g, marks, place, room) {
  const kept = [];
  let end = -Infinity;
  for (const { value, text } of marks) {
    const words = room ? broken(g, text, room - 6) : [text];
    const half = Math.max(...words.map((one) => g.measureText(one).width)) / 2;
    if (place(value) - half < end) continue;
    end = place(value) + half + 6;
    kept.push({ value, words });
  }
  return kept;
}

function broken(g, text, room) {
  const lines = [];
  for (const word of text.split(" ")) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && g.measureText(longer).width <= room) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

function upright(g, text, x, y, align = "center") {
  g.save();
  g.translate(x, y);
  g.rotate(-Math.PI / 2);
  g.textAlign = align;
  g.textBaseline = "middle";
  g.fillText(text, 0, 0);
  g.restore();
}
