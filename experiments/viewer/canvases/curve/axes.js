// The two axes: their ranges, the conversion to px, and the positions of labels.
// Mixed into Curve (curve.js), which is `this` here.

const RIGHT = 12;
const ROOM = 0.06;   // share of a fitted axis left free above and below the visible values
const LEAST = 2.5;   // least number of labels to request: a step may be up to 2.5 times as long as requested, which would leave only 0

class Axes {
  axis(name) {
    const { least, most, log } = this.frame[name];
    const [from, to] = (name === "x" ? this.window?.x : this.fitted()) ?? [least, most];
    const f = log ? Math.log10 : (value) => value;
    return { from, to, log, place: (value) => (f(value) - f(from)) / (f(to) - f(from)), value: (share) => log ? 10 ** (f(from) + share * (f(to) - f(from))) : from + share * (to - from) };
  }

  // The range of y inside the window of x; null if there is no window or nothing in it.
  fitted() {
    if (!this.window || this.lines.some((line) => line.bar)) return null;
    const [from, to] = this.window.x, { log, least } = this.frame.y;
    let low = Infinity, high = -Infinity;
    for (const line of this.lines) {
      const xs = this.frame.columns[line.x], ys = this.frame.columns[line.y];
      for (let i = 0; i < xs.length; i++) {
        if (line.faint || xs[i] < from || xs[i] > to || !Number.isFinite(ys[i]) || (log && ys[i] <= 0)) continue;
        low = Math.min(low, ys[i]);
        high = Math.max(high, ys[i]);
      }
    }
    if (low > high) return null;
    if (log) return [low / 1.15, high * 1.15];
    const room = ROOM * (high - low || Math.abs(high) || 1);
    return [low >= least ? Math.max(least, low - room) : low - room, high + room];
  }

  scales(width, height) {
    const x = this.axis("x"), y = this.axis("y");
    const { left, right, top, bottom } = this.edges(width, height);
    return {
      x: (value) => left + x.place(value) * (right - left),
      y: (value) => bottom - y.place(value) * (bottom - top),
      valueX: (px) => x.value(Math.min(1, Math.max(0, (px - left) / (right - left)))),
      valueY: (px) => y.value(Math.min(1, Math.max(0, (bottom - px) / (bottom - top)))),
      log: y.log,
      least: y.from,
      most: y.to,
      left,
      right,
    };
  }

  edges(width, height) {
    return { left: this.left ?? 46, right: width - RIGHT, top: this.top ?? ROW + 2, bottom: height - (this.below ?? 40) };
  }

  // Set the room for legend, labels and titles around the plot. Return the labels that fit.
  arrange(g, width, height) {
    g.font = `12px ${FONT}`;
    this.keys = legend(g, this.lines.filter((one) => one.key), 8, width);
    this.top = Math.max(0, ...this.keys.map(({ row }) => row + 1)) * ROW + (this.keys.length ? 2 : ROW + 2);
    const up = this.marks("y", (height - this.top - 40) / 34);
    this.left = Math.max(30, ...up.map((mark) => g.measureText(mark.text).width + 16)) + (this.frame.y.told ? 18 : 0);
    const { left, right } = this.edges(width, height), to = this.scales(width, height);
    const wide = right - left, count = Math.max(wide / 90, Math.min(5, wide / 50)); // five fit on a phone, too
    const { labels } = this.frame.x, all = this.marks("x", count);
    let along = apart(g, all, (value) => to.x(value), labels ? wide / labels.length : 0);
    const turned = labels && along.length < all.length; // names that do not fit side by side
    if (turned) along = all.map(({ value, text }) => ({ value, words: [text] }));
    const longest = () => Math.max(...along.map(({ words }) => g.measureText(words[0]).width));
    this.below = 26 + (turned ? longest() : Math.max(1, ...along.map(({ words }) => words.length)) * WORDS);
    return { up, along, turned };
  }

  // The labels of an axis: [{value, text}].
  marks(name, count) {
    const { from, to, log } = this.axis(name), { labels, ticks: places } = this.frame[name];
    const there = (value) => value >= from - 1e-9 && value <= to * (1 + 1e-9);
    if (labels) return labels.map((text, value) => ({ value, text })).filter(({ value }) => there(value));
    if (places) return places.filter(there).map((value) => ({ value, text: short(value) }));
    if (log && to / from > 8) {
      const low = Math.floor(Math.log10(from) + 1e-9), high = Math.floor(Math.log10(to) + 1e-9);
      const every = Math.max(1, Math.ceil((high - low + 1) / Math.max(count, 1)));
      const at = [];
      for (let power = low; power <= high; power += every) for (const m of 3 * Math.log10(to / from) <= 1.6 * count ? [1, 2, 5] : [1]) if (m * 10 ** power <= to * 1.0001 && m * 10 ** power >= from * 0.9999) at.push(m * 10 ** power);
      return at.map((value) => ({ value, text: to >= 1e6 ? power(value) : short(value) }));
    }
    return ticks(from, to, Math.max(count, LEAST)).at.map((value) => ({ value, text: short(value) }));
  }
}

// 1e19 -> "10¹⁹", 4.51e19 -> "4.51·10¹⁹"
function power(value) {
  const [digits, exponent] = value.toExponential(2).split("e"), front = Number(digits);
  const raised = [...String(Number(exponent))].map((one) => one === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[one]).join("");
  return front === 1 ? `10${raised}` : `${front}·10${raised}`;
}

// 1234 -> "1,234", 2500000 -> "2.5M", 0.00001 -> "1e-5"
function short(value) {
  const size = Math.abs(value);
  if (size >= 1e12) return power(value);
  if (size >= 1e6) return value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 4 });
  if (size && size < 1e-3) return Number(value.toPrecision(4)).toExponential();
  return Number(value.toPrecision(Number.isInteger(value) ? 6 : 4)).toLocaleString("en", { maximumFractionDigits: 9 });
}

function exact(value) {
  if (Math.abs(value) >= 1e9) return power(value);
  return value && Math.abs(value) < 1e-3 ? value.toExponential(3) : Number(value.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 9 });
}
