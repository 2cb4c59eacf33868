// Too many spans for bars, in one lane or, in the overview strip, in all lanes: each pixel column is a stack of the shares
// of time that each kind takes.
// Mixed into Timeline (timeline.js), which is `this` here.

const BLUR = 4; // px on each side over which shares are averaged

class Shares {
  // The share of each kind per pixel column. paint() stacks them in the order of kinds, work at the bottom.
  shares(i, j, from, to, columns, into) {
    const { start, duration, kind } = this.spans.columns;
    const kinds = this.kinds.length, scale = columns / (to - from);
    for (let n = i; n < j; n++) {
      const a = Math.max((start[n] - from) * scale, 0), b = Math.min((start[n] + duration[n] - from) * scale, columns);
      if (b <= a) continue;
      const last = Math.min(Math.floor(b), columns - 1);
      for (let c = Math.floor(a); c <= last; c++) {
        into[c * kinds + kind[n]] += Math.min(b, c + 1) - Math.max(a, c);
      }
    }
    return into;
  }

  // The same from the table of a long run, summed over lanes [i, j).
  resampled(i, j, from, to, columns, into) {
    const kinds = this.kinds.length, cells = this.coarse.length / (kinds * this.names.length);
    for (let c = 0; c < columns; c++) {
      const cell = Math.min(cells - 1, Math.floor(((from + ((c + 0.5) / columns) * (to - from)) / this.total) * cells));
      for (let r = i; r < j; r++) {
        for (let k = 0; k < kinds; k++) into[c * kinds + k] += this.coarse[(r * cells + cell) * kinds + k] / 255;
      }
    }
    return into;
  }

  // Average each share over a few neighbouring columns: narrower steps would only flicker.
  blur(shares, columns, reach) {
    const kinds = this.kinds.length, smooth = new Float32Array(shares.length);
    for (let k = 0; k < kinds; k++) {
      let sum = 0;
      for (let c = -reach; c < columns; c++) {
        if (c + reach < columns) sum += shares[(c + reach) * kinds + k];
        if (c - reach - 1 >= 0) sum -= shares[(c - reach - 1) * kinds + k];
        if (c >= 0) smooth[c * kinds + k] = Math.max(0, sum) / (Math.min(c, reach) + Math.min(columns - 1 - c, reach) + 1);
      }
    }
    return smooth;
  }

  paint(shares, columns, rows, lanes) {
    const kinds = this.kinds.length;
    const inks = this.kinds.map((kind) => {
      const [r, g, b] = rgb(this.look[kind].colour);
      return (255 << 24) | (b << 16) | (g << 8) | r;
    });
    const image = new ImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let c = 0; c < columns; c++) {
      let whole = 0;
      for (let k = 0; k < kinds; k++) whole += shares[c * kinds + k];
      const scale = rows / Math.max(whole, lanes);
      let level = 0, row = rows;
      for (let k = 0; k < kinds; k++) {
        level += shares[c * kinds + k] * scale;
        const until = rows - Math.round(level);
        while (row > until) pixels[--row * columns + c] = inks[k];
      }
    }
    return image;
  }

  drawShares(g, lane, i, j, plot, ratio) {
    const columns = Math.round(plot * ratio), rows = Math.max(1, Math.round((this.pitch - (this.pitch > 12 ? 4 : 1)) * ratio));
    const into = new Float32Array(columns * this.kinds.length);
    const shares = this.near() ? this.shares(i, j, this.from, this.to, columns, into) : this.resampled(lane, lane + 1, this.from, this.to, columns, into);
    const image = this.paint(this.blur(shares, columns, Math.round(BLUR * ratio)), columns, rows, 1);
    this.blit(g, image, GUTTER, this.y(lane) + 1, plot, rows / ratio);
  }

  blit(g, image, x, y, wide, high) {
    this.board = Object.assign(this.board ?? make("canvas"), { width: image.width, height: image.height });
    this.board.getContext("2d").putImageData(image, 0, 0);
    g.drawImage(this.board, x, y, wide, high);
  }

  drawStrip(g, plot, ratio, page) {
    const columns = Math.round(plot * ratio), rows = Math.round(STRIP * ratio);
    if (!this.strip || this.strip.width !== columns) {
      const sums = new Float32Array(columns * this.kinds.length);
      if (this.coarse) this.resampled(0, this.names.length, 0, this.total, columns, sums);
      else this.shares(0, this.spans.columns.start.length, 0, this.total, columns, sums);
      this.strip = this.paint(this.blur(sums, columns, Math.round(BLUR * ratio)), columns, rows, this.names.length);
    }
    this.blit(g, this.strip, GUTTER, 2, plot, STRIP);
    const a = GUTTER + (this.from / this.total) * plot;
    const b = Math.max(GUTTER + (this.to / this.total) * plot, a + 3);
    g.globalAlpha = 0.72;
    g.fillStyle = page.page;
    g.fillRect(GUTTER, 2, a - GUTTER, STRIP);
    g.fillRect(b, 2, GUTTER + plot - b, STRIP);
    g.globalAlpha = 1;
    g.strokeStyle = page.text;
    g.lineWidth = 1.5;
    g.strokeRect(a, 1.5, b - a, STRIP + 1);
    g.fillStyle = page.quiet;
    lettering(g, 11);
    g.fillText(this.whole, 4, 2 + STRIP / 2, GUTTER - 8);
  }
}
