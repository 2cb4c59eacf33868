// The spans of a lane, drawn one by one: a bar each, with a label if it fits, and outlines of the critical path.
// Mixed into Timeline (timeline.js), which is `this` here.

const NARROWEST = 0.8; // labels may be compressed to this share of their width

class Bars {
  drawSpans(g, lane, i, j, plot, ratio, page) {
    const { start, duration, kind, label, part, parts } = this.spans.columns;
    const lane0 = this.y(lane), whole = this.pitch - (this.pitch > 12 ? 4 : 1);
    const labels = this.pitch >= 16;
    lettering(g, 11, "center");
    // draw waiting and communication below work, since messages may travel while a rank computes
    for (const pass of [(k) => k >= this.work, (k) => k < this.work]) {
      for (let n = i; n < j; n++) {
        if (!pass(kind[n])) continue;
        const { colour, height, hatch, ink } = this.look[this.kinds[kind[n]]];
        const left = Math.max(this.x(start[n]), GUTTER - 2);
        const right = Math.min(this.x(start[n] + duration[n]), GUTTER + plot + 2);
        const wide = Math.max(right - left, 0.6);
        const tall = whole / (parts?.[n] ?? 1), top = lane0 + tall * (part?.[n] ?? 0);
        const high = Math.max(2, tall * height);
        const y = top + (tall - high) / 2 + 1;
        g.fillStyle = colour;
        if (hatch === "x") this.hatched(g, left, y, wide, high, colour);
        else g.fillRect(left, y, wide > 3 ? wide - 0.7 : wide, high);
        if (wide > 4 && hatch !== "x") {
          g.strokeStyle = edgeOf(colour, page);
          g.lineWidth = 1;
          g.strokeRect(left + 0.5, y + 0.5, wide - 1.7, high - 1);
        }
        if (hatch === "\\" && wide > 6) this.stripes(g, left, y, wide - 0.7, high);
        if (labels && this.endless(n)) this.beyond(g, n, Math.max(left, GUTTER), y + high / 2, right, page);
        else if (labels && ink && wide > (this.brief ? 7 : 22)) {
          const text = this.spans.labels[label[n]] ?? "", room = wide - (this.brief ? 2 : 6);
          const words = this.brief ? this.short(g, text, room) : g.measureText(text).width < room ? text : "";
          if (words) {
            g.fillStyle = ink;
            g.fillText(words, left + wide / 2, y + high / 2 + 0.5, room);
          }
        }
      }
    }
  }

  // A short label for an op, "2F13": kind and number, or only the number, or nothing, whichever fits. The schedule's longest
  // number decides, so that equally wide bars have the same kind of label.
  short(g, text, room) {
    const [, kind, number] = text.match(/^\d+(\D)(\d+)$/) ?? [], longest = "0".repeat(this.digits);
    const fits = (words) => g.measureText(words).width * NARROWEST < room;
    return !kind ? "" : fits(kind + longest) ? kind + number : fits(longest) ? number : "";
  }

  // Label a span that never ends, on a plate in the page's colour, because its bar is too low for text. Skip the label if a
  // flag already says the same.
  beyond(g, n, left, y, right, page) {
    const { kind, label, lane } = this.spans.columns;
    const text = this.spans.labels[label[n]] ?? "", wide = g.measureText(text).width + 8;
    const flagged = this.flags.some((flag) => flag.text === text && flag.lane === lane[n] && flag.at >= this.from);
    if (text === this.kinds[kind[n]] || flagged || wide > right - left - 24) return;
    plate(g, page, 1, left + 8, y - 7, wide, 14);
    g.fillText(text, left + 8 + wide / 2, y + 0.5);
  }

  // Outline the marked spans, i.e. the critical path.
  drawMarked(g, lane, i, j, page) {
    const { start, duration, marked, part, parts } = this.spans.columns;
    const whole = this.pitch - (this.pitch > 12 ? 4 : 1);
    g.strokeStyle = page.text;
    for (let n = i; n < j; n++) {
      if (!marked[n]) continue;
      const left = this.x(start[n]), right = this.x(start[n] + duration[n]);
      g.lineWidth = this.pitch > 12 && right - left > 10 ? 2 : 1;
      const tall = whole / (parts?.[n] ?? 1), top = this.y(lane) + tall * (part?.[n] ?? 0);
      g.strokeRect(left + 0.5, top + 1.5, Math.max(right - left - 1.7, 1), tall - 1);
    }
  }

  hatched(g, x, y, wide, high, colour) {
    clipTo(g, x, y, wide, high);
    g.strokeStyle = colour;
    g.lineWidth = 1.3;
    strokeDiagonals(g, x, y, wide, high, 5);
    g.strokeRect(x, y, wide, high);
    g.restore();
  }

  stripes(g, x, y, wide, high) {
    clipTo(g, x, y, wide, high);
    g.strokeStyle = "rgba(255,255,255,0.35)";
    g.lineWidth = 1;
    g.beginPath();
    for (let s = x - high; s < x + wide; s += 6) { g.moveTo(s, y); g.lineTo(s + high, y + high); }
    g.stroke();
    g.restore();
  }

  outline(g, n, page) {
    const { start, duration, lane } = this.spans.columns;
    const left = this.x(start[n]), right = this.x(start[n] + duration[n]);
    g.strokeStyle = page.text;
    g.lineWidth = 1.5;
    g.strokeRect(left - 0.5, this.y(lane[n]) + 0.5, Math.max(right - left, 2), this.pitch - (this.pitch > 12 ? 3 : 0));
  }
}
