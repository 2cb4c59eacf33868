// The legend of the picture, and the boundaries of classes next to it.
// Mixed into Landscape (landscape.js), which is `this` here.

class Legend {
  legend(g, at, colours) {
    const { workers } = this;
    lettering(g, 12);
    const words = [[this.frame.model, "diamond"]];
    if (workers.length) words.push([workers.length > 1 ? "workers" : "worker", "dot"]);
    if (this.frame.columns.applied.length) words.push(["stale update", "arrow"]);
    const wide = words.reduce((sum, [word]) => sum + g.measureText(word).width + 34, 2);
    plate(g, colours, 0.82, at.left + 6, at.top + 6, wide, 22);
    let x = at.left + 18;
    for (const [word, shape] of words) {
      const y = at.top + 17;
      if (shape === "diamond") this.diamond(g, [x, y], colours);
      else if (shape === "dot") this.dot(g, { who: workers[0], x, y, outside: null }, workers.length, colours);
      else {
        g.strokeStyle = g.fillStyle = colours.text;
        strokeLine(g, [x - 8, y], [x + 4, y]);
        fillShape(g, [x + 9, y], [x + 2, y - 4], [x + 2, y + 4]);
      }
      lettering(g, 12);
      g.fillStyle = colours.text;
      g.fillText(word, x + 13, y + 0.5);
      x += g.measureText(word).width + 34;
    }
  }

  drawBoundary(g, at, colours) {
    const { box, dots, classes, steps } = this.frame.boundary;
    const { snapshots, seen, seenAccuracy, dots: where, target, right } = this.frame.columns;
    const n = Math.max(0, first(seen, this.time + this.total * 1e-6) - 1);
    const side = Math.round(Math.sqrt(snapshots.length / seen.length));
    const palette = this.frame.colours.classes;
    this.images ??= {};
    if (this.images.at !== n) {
      this.images.at = n;
      this.images.classes = areas(snapshots.subarray(n * side * side, (n + 1) * side * side), side, steps, palette, rgb(colours.page));
    }
    clipTo(g, at.left, at.top, at.width, at.height);
    const half = at.width / (side - 1) / 2;
    g.imageSmoothingEnabled = true;
    g.drawImage(this.images.classes, at.left - half, at.top - half, at.width + 2 * half, at.height + 2 * half);
    const [left, rightmost, bottom, top] = box;
    for (let i = 0; i < dots; i++) {
      const x = at.left + ((where[2 * i] - left) / (rightmost - left)) * at.width;
      const y = at.top + at.height - ((where[2 * i + 1] - bottom) / (top - bottom)) * at.height;
      const good = right[n * dots + i];
      g.beginPath();
      outline(g, SHAPES[target[i] % SHAPES.length], x, y, good ? 2.6 : 3.6);
      g.fillStyle = palette[target[i] % palette.length];
      g.strokeStyle = good ? colours.page : colours.text;
      g.lineWidth = good ? 0.8 : 1.6;
      g.fill();
      g.stroke();
    }
    g.lineWidth = 1;
    g.restore();
    g.strokeStyle = colours.border;
    g.strokeRect(at.left + 0.5, at.top + 0.5, at.width - 1, at.height - 1);
    const known = Number.isFinite(seenAccuracy[n]) ? `accuracy ${(100 * seenAccuracy[n]).toFixed(1)} % · ` : "";
    this.title(g, at, `${known}${classes} classes · outlined: taken for another class`, colours);
  }
}
