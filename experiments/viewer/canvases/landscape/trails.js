// Workers and model on the surface of the loss: their paths, their positions, and the ties between them.
// Mixed into Landscape (landscape.js), which is `this` here.

const RECENT = 14;     // number of recent moves that are drawn boldly
const TOGETHER = 7;    // px; dots closer than this are fanned out
const NUMBERED = 12;   // with at most this many workers, dots are large enough for a number

class Trails {
  colour(who) {
    return this.frame.colours.workers[(who - this.frame.servers) % this.frame.colours.workers.length];
  }

  // Draw the loss with labelled contours. A higher loss is darker or, on a dark page, lighter.
  bands(g, at, px, py, colours) {
    const { rows, cells, levels, box } = this.frame, { ground } = this.frame.columns;
    if (!levels.length) return;
    this.images ??= {};
    this.images.ground ??= shades(ground, rows, cells, levels, rgb(colours.text));
    const [left, right, bottom, top] = box;
    const half = [(right - left) / (cells - 1) / 2, (top - bottom) / (rows - 1) / 2];
    const x = px(left - half[0]), y = py(top + half[1]);
    g.imageSmoothingEnabled = true;
    g.drawImage(this.images.ground, x, y, px(right + half[0]) - x, py(bottom - half[1]) - y);
    g.strokeStyle = colours.text;
    g.lineWidth = 0.8;
    lettering(g, 10.5, "center");
    const lens = this.magnifies && this.stands(this.frame.ranks) !== null ? this.corner(at) : null; // keep numbers clear of it
    const free = ([x, y]) => !lens || x < lens.left - 24 || x > lens.left + lens.width + 24 || y < lens.top - 10 || y > lens.top + lens.height + 10;
    levels.forEach((level, i) => {
      const pieces = this.lines[i];
      g.globalAlpha = 0.28;
      g.beginPath();
      for (const [c0, r0, c1, r1] of pieces) {
        g.moveTo(px(left + (c0 * (right - left)) / (cells - 1)), py(bottom + (r0 * (top - bottom)) / (rows - 1)));
        g.lineTo(px(left + (c1 * (right - left)) / (cells - 1)), py(bottom + (r1 * (top - bottom)) / (rows - 1)));
      }
      g.stroke();
      if (i % 2 || !pieces.length) return;
      const inside = pieces.map(([c, r]) => [px(left + (c * (right - left)) / (cells - 1)), py(bottom + (r * (top - bottom)) / (rows - 1))])
        .filter(([x, y]) => x > at.left + 24 && x < at.left + at.width - 24 && y > at.top + 34 && y < at.top + at.height - 12)
        .filter(free);
      if (!inside.length) return;
      const [x2, y2] = inside[Math.floor(inside.length * (0.2 + 0.6 * ((i * 0.37) % 1)))];
      const text = String(Number(level.toPrecision(2))), wide = g.measureText(text).width + 6;
      plate(g, colours, 0.75, x2 - wide / 2, y2 - 7, wide, 14);
      g.globalAlpha = 0.75;
      g.fillText(text, x2, y2 + 0.5);
    });
    g.globalAlpha = 1;
  }

  // Draw the path of a worker or of the model so far: older parts are paler, moves to a common model are dashed.
  trail(g, who, on, colour, weight) {
    const path = this.paths.get(who), n = this.made(who);
    if (!path || n < 2) return;
    const piece = (from, to, alpha, width) => {
      g.globalAlpha = alpha;
      g.lineWidth = width;
      trace(g, path.place.slice(from, to).map(on)); // an array, since a call cannot take thousands of arguments
      g.stroke();
    };
    g.strokeStyle = colour;
    g.lineJoin = "round";
    piece(0, n, 0.35, 0.9 * weight);
    for (let i = Math.max(1, n - RECENT); i < n; i++) {
      g.setLineDash(path.joined[i] ? [3, 3] : []);
      piece(i - 1, i + 1, 0.35 + (0.6 * (i - n + RECENT + 1)) / (RECENT + 1), 1.7 * weight);
    }
    g.setLineDash([]);
    g.globalAlpha = 1;
    g.lineWidth = 1;
    const [x, y] = on(path.place[0]);
    g.fillStyle = colour;
    g.beginPath();
    g.arc(x, y, 2.5, 0, 2 * Math.PI);
    g.fill();
  }

  // Draw the latest stale updates: an arrow from the model on which the gradient was computed to the one it was applied to.
  stale(g, on, colours) {
    const { arrows, applied } = this.frame.columns;
    const n = first(applied, this.time + this.total * 1e-6), kept = Math.max(6, this.paths.size);
    for (let i = Math.max(0, n - kept); i < n; i++) {
      const from = on(arrows[2 * i]), to = on(arrows[2 * i + 1]);
      const long = Math.hypot(to[0] - from[0], to[1] - from[1]);
      if (long < 4) continue;
      g.globalAlpha = 0.15 + (0.75 * (i - n + kept + 1)) / kept;
      g.strokeStyle = g.fillStyle = colours.text;
      g.lineWidth = 1.3;
      const bow = [(from[0] + to[0]) / 2 - (to[1] - from[1]) * 0.18, (from[1] + to[1]) / 2 + (to[0] - from[0]) * 0.18];
      strokeLine(g, ...Array.from({ length: 11 }, (_, s) => [0, 1].map((k) => between(from[k], bow[k], to[k], s / 10))));
      const angle = Math.atan2(to[1] - bow[1], to[0] - bow[0]), head = Math.min(8, long / 2);
      fillShape(g, to, ...[2.7, -2.7].map((side) => [to[0] + head * Math.cos(angle + side), to[1] + head * Math.sin(angle + side)]));
    }
    g.globalAlpha = 1;
    g.lineWidth = 1;
  }

  // The positions of the workers' dots. Dots outside the picture are moved to its edge.
  dots(workers, on, at) {
    const found = [];
    for (const who of workers) {
      const place = this.stands(who);
      if (place === null) continue;
      const [x, y] = on(place), [cx, cy] = clamp([x, y], at);
      found.push({ who, x: cx, y: cy, true: [x, y], outside: Math.hypot(x - cx, y - cy) > 1 ? Math.atan2(y - cy, x - cx) : null });
    }
    return found;
  }

  dot(g, { who, x, y, outside }, count, colours) {
    const numbered = count <= NUMBERED, radius = numbered ? 8 : 4.5;
    g.fillStyle = this.colour(who);
    g.strokeStyle = colours.page;
    g.lineWidth = 1.5;
    g.beginPath();
    if (outside === null) g.arc(x, y, radius, 0, 2 * Math.PI);
    else for (const turn of [0, 2.3, -2.3]) g.lineTo(x + radius * 1.3 * Math.cos(outside + turn), y + radius * 1.3 * Math.sin(outside + turn));
    g.closePath();
    g.fill();
    g.stroke();
    g.lineWidth = 1;
    if (!numbered) return;
    g.fillStyle = COLOURS.light;
    lettering(g, "bold 10", "center");
    g.fillText(String(who), x, y + 0.5);
  }

  diamond(g, [x, y], colours) {
    g.fillStyle = colours.page;
    g.strokeStyle = colours.text;
    g.lineWidth = 2.2;
    fillShape(g, [x, y - 8], [x + 8, y], [x, y + 8], [x - 8, y]);
    g.closePath();
    g.stroke();
    g.lineWidth = 1;
  }

  // Connect a worker to the model with a line, or with a spring that stretches.
  tie(g, from, to, colour) {
    const dx = to[0] - from[0], dy = to[1] - from[1], long = Math.hypot(dx, dy);
    if (long < 6) return;
    g.strokeStyle = colour;
    g.beginPath();
    g.moveTo(...from);
    if (this.frame.tie === "spring") {
      const turns = 16, wide = Math.min(6, 2 + 60 / long + 1.5), across = [(-dy / long) * wide, (dx / long) * wide];
      for (let i = 1; i < turns; i++) {
        const share = 0.08 + (0.84 * i) / turns, side = i % 2 ? 1 : -1;
        g.lineTo(from[0] + dx * share + across[0] * side, from[1] + dy * share + across[1] * side);
      }
      g.globalAlpha = 0.85;
      g.lineWidth = 1.4;
    } else {
      g.setLineDash([2, 3]);
      g.globalAlpha = 0.7;
    }
    g.lineTo(...to);
    g.stroke();
    g.setLineDash([]);
    g.globalAlpha = 1;
    g.lineWidth = 1;
  }

  cloud(g, dots, colours) {
    const hull = around(dots.map((dot) => dot.true));
    if (hull.length < 3) return;
    g.fillStyle = g.strokeStyle = colours.text;
    g.globalAlpha = 0.12;
    fillShape(g, ...hull);
    g.closePath();
    g.globalAlpha = 0.5;
    g.stroke();
    g.globalAlpha = 1;
  }
}

// Spread dots that lie on top of each other around their common position.
function fan(dots) {
  const groups = [];
  for (const dot of dots) {
    const group = groups.find((one) => Math.hypot(one[0].x - dot.x, one[0].y - dot.y) < TOGETHER);
    group ? group.push(dot) : groups.push([dot]);
  }
  for (const group of groups.filter((one) => one.length > 1)) {
    const radius = Math.max(11, (group.length * 17) / (2 * Math.PI)), { x, y } = group[0];
    group.forEach((dot, i) => {
      const angle = (2 * Math.PI * i) / group.length - Math.PI / 2;
      dot.x = x + radius * Math.cos(angle);
      dot.y = y + radius * Math.sin(angle);
    });
  }
}

function between(a, b, c, s) { return (1 - s) ** 2 * a + 2 * s * (1 - s) * b + s * s * c; }
