// The canvas from the names on the left to the axis at the bottom. bars.js or shares.js fills the lanes.
// Mixed into Timeline (timeline.js), which is `this` here.

const FEW = 3000;       // at most this many spans are drawn one by one
const NOTED = 24;       // px; lanes at least this high have room for two lines of text
const DONE = "done";

class Lanes {
  draw(g, width, height, ratio) {
    if (!this.spans) return;
    const page = (this.page = pageColours(this.box));
    const plot = width - GUTTER - 4;
    this.scaleX = plot / (this.to - this.from);
    const lanesHeight = height - TOP - AXIS;
    this.scroll = Math.max(0, Math.min(this.scroll, this.names.length * this.pitch - lanesHeight));
    const begin = Math.floor(this.scroll / this.pitch);
    const end = Math.min(this.names.length, Math.ceil((this.scroll + lanesHeight) / this.pitch));
    const ranges = [], near = this.near();
    let count = 0;
    for (let r = begin; r < end; r++) {
      const range = near ? this.within(r, this.from, this.to) : [0, 0];
      ranges.push(range);
      count += range[1] - range[0];
    }
    this.drawStrip(g, plot, ratio, page);
    this.drawAxis(g, plot, height, page);
    clipTo(g, 0, TOP - 5, width, lanesHeight + 8);
    this.drawNames(g, begin, end, page, width);
    this.rank.draw(g, page);
    g.beginPath();
    g.rect(GUTTER, TOP, plot, lanesHeight);
    g.clip();
    const dense = !near || count > FEW || count > (plot / 2.5) * (end - begin);
    ranges.forEach(([i, j], n) => (dense ? this.drawShares : this.drawSpans).call(this, g, begin + n, i, j, plot, ratio, page));
    if (!dense && this.spans.columns.marked) ranges.forEach(([i, j], n) => this.drawMarked(g, begin + n, i, j, page));
    this.drawEnded(g, begin, end, plot, page);
    if (!dense && this.arrows) this.drawMessages(g, page);
    this.drawFlags(g, plot);
    if (this.over >= 0) this.outline(g, this.over, page);
    if (!dense) this.why.draw(g, page);
    this.trouble.draw(g, page);
    g.restore();
  }

  // The ticks of the axis: at least two if there is room, since one alone shows no scale.
  marks(plot) {
    let count = plot / 110, found = ticks(this.from, this.to, count);
    while (found.at.length < 2 && count < plot / 45) found = ticks(this.from, this.to, (count *= 1.2));
    return found;
  }

  // If ranks wait forever after the end of the run, label times only up to that end.
  drawAxis(g, plot, height, page) {
    const { step, at } = this.marks(plot);
    const written = this.timed ? timeLabels(step, this.to) : inUnits;
    lettering(g, 11, "center", "top");
    this.ticked = []; // [from, to] of the labels, in px
    let said = at.map((time) => [time, written(time)]);
    if (this.goesOn && this.from < this.end && this.end < this.to) {
      const last = `end, ${written(this.end)}`, clear = this.x(this.end) - g.measureText(last).width - 12;
      said = [...said.filter(([time]) => this.x(time) < clear), [this.end, last]];
    }
    for (const [time, text] of said) {
      const x = Math.round(this.x(time)) + 0.5;
      g.strokeStyle = page.border;
      g.lineWidth = 1;
      strokeLine(g, [x, TOP - 4], [x, height - AXIS + 3]);
      g.fillStyle = page.quiet;
      const half = g.measureText(text).width / 2;
      const middle = Math.min(Math.max(x, GUTTER + half - 6), GUTTER + plot - half + 3);
      g.fillText(text, middle, height - AXIS + 6);
      this.ticked.push([middle - half, middle + half]);
    }
  }

  drawNames(g, begin, end, page, width) {
    const every = Math.max(1, Math.ceil(13 / this.pitch));
    g.textAlign = "left";
    g.textBaseline = "middle";
    for (let r = begin; r < end; r++) {
      const y = this.y(r) + this.pitch / 2 - 1;
      if (r % every === 0) {
        g.fillStyle = page.text;
        this.drawName(g, this.names[r], this.notes[r], y);
      }
      if (this.colours?.[r]) {
        g.fillStyle = this.colours[r];
        g.fillRect(0, this.y(r), 2.5, this.pitch);
      }
      if (this.pitch > 12) {
        g.strokeStyle = page.border;
        g.globalAlpha = 0.6;
        g.lineWidth = 1;
        const edge = Math.round(y + this.pitch / 2) + 0.5;
        strokeLine(g, [GUTTER, edge], [width, edge]);
        g.globalAlpha = 1;
      }
    }
  }

  // Draw a rank's name with its note below, such as how much it was slowed; in a low lane, its number and the note.
  drawName(g, name, note, y) {
    const below = note && this.pitch >= NOTED;
    g.font = `${this.pitch < 14 ? 10.5 : 12}px ${FONT}`;
    g.fillText(note && !below ? `${name.split(" ").at(-1)}: ${note}` : name, 4, below ? y - 6 : y, GUTTER - 10);
    if (!below) return;
    g.font = `10.5px ${FONT}`;
    g.fillText(note, 4, y + 7, GUTTER - 10);
  }

  // Write "done" after the last span of a lane that has ended, if it fits.
  drawEnded(g, begin, end, plot, page) {
    if (this.pitch < 12) return;
    lettering(g, 11);
    g.fillStyle = page.quiet;
    const wide = g.measureText(DONE).width;
    for (let r = begin; r < end; r++) {
      if (this.ended[r] == null) continue;
      const left = Math.max(this.x(this.ended[r]), GUTTER) + 8;
      if (left + wide < this.x(Math.min(this.total, this.to))) g.fillText(DONE, left, this.y(r) + this.pitch / 2 - 1);
    }
  }

  // Mark what happened at a moment, to one lane or, with lane -1, to all: a line with text next to it.
  drawFlags(g, plot) {
    lettering(g, "600 11");
    for (const { at, lane, text } of this.flags) {
      if (at < this.from || at > this.to) continue;
      const x = this.x(at), all = lane < 0;
      const top = all ? TOP : this.y(lane), bottom = all ? TOP + this.names.length * this.pitch : top + this.pitch;
      g.strokeStyle = g.fillStyle = COLOURS.flag;
      g.lineWidth = 2;
      strokeLine(g, [x, top], [x, bottom]);
      const wide = g.measureText(text).width + 10, left = x + wide < GUTTER + plot ? x : x - wide;
      const y = all ? TOP + 1 : top + (this.pitch - 15) / 2;
      g.fillRect(left, y, wide, 14);
      g.fillStyle = COLOURS.light;
      g.fillText(text, left + 5, y + 7.5);
    }
  }
}
