// Why a rank waited, and for whom. Sentences are composed from the words and columns of experiments/viewer/waits.py. The cause
// of a pinned wait is outlined, and the reader can walk back to the cause of that, and so on.
// It comes before timeline.js, which calls `lines` for the pointer, `draw` after its spans, and `told` at its cursor.

const REACH = 400;   // spans of a lane to search for the previous wait
const CLOSE = 4;     // px within which the pointer is on an arrow
const MARK = 2.5;    // px; line width of a cause's outline
const VISIBLE = 1e-3; // least share of the window for a wait to be visible

class Why {
  constructor(timeline, root) {
    this.timeline = timeline;
    this.box = root.querySelector(".why");
    this.headline = root.querySelector(".headline");
    this.button = root.querySelector('[data-do="critical"]');
    this.trail = []; // the pinned spans, each the cause of the previous one
  }

  // Take over a frame: its totals in words, and the causes of its spans.
  show(frame, again) {
    const bytes = frame.columns.why;
    const { words = {}, how = [], nearly = 1, columns = {} } = bytes ? decode(bytes) : {};
    Object.assign(this, { words, how, nearly, columns, said: frame.told ?? "", slowed: frame.slowed ?? {} });
    this.rows = new Map(Array.from(columns.row ?? [], (row, n) => [row, n]));
    this.button.hidden = !columns.critical?.some((one) => one);
    this.mark(again && this.marked);
    if (!again || this.trail.length) this.trail = []; // its indices belong to the old frame
    this.headline.hidden = !frame.headline;
    this.headline.textContent = whole(frame.headline ?? "");
    this.tell();
  }

  // Outline the critical path, or not.
  mark(on) {
    this.marked = Boolean(on) && !this.button.hidden;
    this.button.setAttribute("aria-pressed", String(this.marked));
    if (this.columns.critical) this.timeline.spans.columns.marked = this.marked ? this.columns.critical : undefined;
    this.timeline.surface.request();
  }

  // True if span n is a wait or, in a schedule, an idle slot with a known cause.
  waits(n) {
    const kind = this.timeline.kinds[this.timeline.spans.columns.kind[n]];
    return kind === "wait" || (kind === "idle" && this.rows.has(n));
  }

  // The known cause of span n, or null.
  of(n) {
    const at = this.rows.get(n);
    if (at === undefined) return null;
    return Object.fromEntries(Object.entries(this.columns).filter(([name]) => name !== "critical").map(([name, column]) => [name, column[at]]));
  }

  // "waits 517 µs for worker 2, ..."; "" if span n is not a wait.
  sentence(n) {
    const cause = this.of(n);
    if (!cause || !this.waits(n)) return "";
    const { names, inTime, spans } = this.timeline, wait = spans.columns.duration[n];
    const by = names[cause.by] ?? "", how = this.how[cause.how];
    let whom = names[cause.culprit] ?? "";
    const filled = (words, values) => words.replace(/\{(\w+)\}/g, (_, name) => values[name]);
    if (["slow", "work", "busy"].includes(how) && cause.by !== cause.culprit) whom = filled(this.words.through, { by, whom });
    const link = this.linkAfter(n);
    const after = cause.without > 0 ? this.words.without : link >= 0 ? filled(this.words.then, { wait: inTime(spans.columns.duration[link]) }) : "";
    return filled(`${this.words[cause.caused >= this.nearly * wait ? "all" : "part"]} ${this.words[how]}${after}`, {
      whom, who: names[cause.culprit] ?? "", what: spans.labels[cause.what], its: own(spans.labels[cause.what]), factor: Number(cause.factor.toPrecision(2)),
      wait: this.timeline.endless(n) ? "for ever" : inTime(wait), seconds: inTime(cause.caused), without: inTime(cause.without),
    });
  }

  // The idle slot right after span n in which the awaited result is on its link, if the frame tells these apart; otherwise -1.
  linkAfter(n) {
    const { start, duration, lane } = this.timeline.spans.columns, next = n + 1, how = (m) => this.how[this.of(m)?.how];
    if (!this.words.then || how(n) !== "work" || how(next) !== "network" || lane[next] !== lane[n]) return -1;
    return Math.abs(start[next] - start[n] - duration[n]) < this.timeline.total * 1e-6 ? next : -1;
  }

  // The size and sender of the message that span n received, in words; "" if it received none.
  carried(n) {
    const cause = this.of(n);
    if (!cause || cause.src < 0 || !cause.bytes) return "";
    return `${inBytes(cause.bytes)} from ${this.timeline.names[cause.src]}`;
  }

  // The span of lane r at `time`; -1 if it is not loaded.
  at(r, time) {
    const { start, duration } = this.timeline.spans.columns, [i, j] = this.timeline.within(r, time, time);
    for (let n = j - 1; n >= Math.max(i, 0); n--) if (start[n] <= time && start[n] + duration[n] >= time) return n;
    return -1;
  }

  // The span that caused most of wait n, otherwise the last span of the rank that ended it; -1 if neither is loaded.
  culprit(n) {
    const cause = this.of(n), { start, duration } = this.timeline.spans.columns, end = start[n] + duration[n];
    if (!cause || !this.waits(n)) return -1;
    const most = cause.back >= 0 && this.how[cause.how] !== "network" ? this.at(cause.culprit, end - cause.back) : -1;
    return most >= 0 ? most : cause.by >= 0 ? this.at(cause.by, end - this.timeline.instant()) : -1;
  }

  // The cause of span n if it is a wait, otherwise the last wait before it; -1 if there is none.
  before(n) {
    if (this.waits(n)) return this.culprit(n);
    const { lane } = this.timeline.spans.columns;
    for (let m = n - 1; m >= Math.max(0, n - REACH) && lane[m] === lane[n]; m--) if (this.waits(m) && this.rows.has(m)) return m;
    return -1;
  }

  // Span n in words: "in step 2, worker 1 waits 600 µs for ...".
  describe(n) {
    const { names, kinds, work, spans, inTime } = this.timeline, { lane, kind, label, duration, step } = spans.columns;
    const took = inTime(duration[n]), text = spans.labels[label[n]] || kinds[kind[n]], carried = this.carried(n);
    const does = kind[n] < work ? `is at work on ${own(text)} for ${took}` : carried ? `receives ${carried}, which takes ${took}`
      : kinds[kind[n]] === "idle" ? `is ${text}${this.timeline.endless(n) ? "" : ` for ${took}`}` : `communicates (${text}) for ${took}`;
    return `${step[n] >= 0 ? `in step ${step[n] + 1}, ` : ""}${names[lane[n]]} ${this.sentence(n) || does}`;
  }

  // ---- drawing and cards

  // Why the chain of causes ends at span n: the experiment slows this rank down, or nothing is known.
  beginning(n) {
    const { lane, kind } = this.timeline.spans.columns, factor = this.slowed[lane[n]], works = kind[n] < this.timeline.work;
    if (!(factor > 1) || !works) return "The trail ends here: nothing is known to have held it up.";
    return `This is the root cause: ${this.timeline.names[lane[n]]} is set to compute ${Number(factor.toPrecision(3))} times slower (Trouble).`;
  }

  // The lines of the card under the pointer. In a schedule, the idle slot's label already says why.
  lines(n) {
    const texts = [this.timeline.timed ? this.sentence(n) : "", this.carried(n)].filter(Boolean);
    return texts.map((text, place) => make("div", { textContent: text + (place || !this.waits(n) ? "" : ".") }));
  }

  // The message whose arrow is at (x, y); -1 if there is none.
  arrow(x, y) {
    const t = this.timeline;
    if (!t.arrows || !t.near()) return -1;
    const { src, dst, sent, arrived } = t.messages.columns, middle = t.pitch / 2 - 1, visible = t.travelling(t.from, t.to);
    if (visible.length > ARROWS) return -1;
    return visible.find((n) => {
      const [x0, y0, x1, y1] = [t.x(sent[n]), t.y(src[n]) + middle, t.x(arrived[n]), t.y(dst[n]) + middle];
      const share = ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / ((x1 - x0) ** 2 + (y1 - y0) ** 2 || 1);
      return share > 0.1 && share < 0.95 && Math.hypot(x0 + share * (x1 - x0) - x, y0 + share * (y1 - y0) - y) < CLOSE;
    }) ?? -1;
  }

  // The card of a message: sender, receiver, size, duration, and whether the receiver waited for it.
  ofMessage(n) {
    const { names, messages, inTime } = this.timeline, { src, dst, bytes, sent, arrived } = messages.columns;
    const waiting = this.at(dst[n], Math.max(0, sent[n] - this.timeline.instant()));
    return [
      make("b", {}, `${names[src[n]]} → ${names[dst[n]]}${bytes[n] ? ` · ${inBytes(bytes[n])}` : ""}`),
      make("div", {}, `sent at ${inTime(sent[n])} · arrives after ${inTime(arrived[n] - sent[n])}`),
      make("div", {}, waiting >= 0 && this.waits(waiting) ? `${names[dst[n]]} waits for it` : ""),
    ];
  }

  // Outline the cause of the pinned span or of the wait under the pointer, and connect the two.
  draw(g, page) {
    const pinned = this.trail.at(-1) ?? -1, n = pinned >= 0 ? pinned : this.timeline.over;
    if (!(n >= 0)) return;
    const cause = this.before(n);
    if (pinned >= 0) this.timeline.outline(g, n, page);
    if (cause < 0 || (pinned < 0 && !this.waits(n))) return;
    const { start, duration, lane } = this.timeline.spans.columns, t = this.timeline, high = t.pitch - (t.pitch > 12 ? 3 : 0);
    const left = t.x(start[cause]), right = t.x(start[cause] + duration[cause]);
    g.strokeStyle = COLOURS.flag;
    g.lineWidth = MARK;
    g.strokeRect(left, t.y(lane[cause]) + 0.5, Math.max(right - left, 3), high);
    const forth = this.waits(n) ? start[n] + duration[n] : start[n];
    const x0 = Math.min(Math.max(t.x(forth), left), right), below = lane[cause] < lane[n];
    g.setLineDash([4, 3]);
    g.lineWidth = 1.5;
    strokeLine(g, [x0, t.y(lane[cause]) + (below ? high : 0)], [t.x(forth), t.y(lane[n]) + t.pitch / 2 - 1]);
    g.setLineDash([]);
  }

  // The reason of wait n, for the text below the lanes.
  told(n) { return this.sentence(n).replace(/^waits /, ""); }

  // ---- the pinned wait

  // Pin span n; by default, the longest wait in the window.
  pin(n = this.longest()) {
    if (n < 0) return this.tell("Nobody waits in this window.");
    this.trail = [n];
    this.follow();
  }

  // The longest visible wait in the window; -1 if there is none.
  longest() {
    const { timeline: t } = this, { duration } = t.spans.columns, least = (t.to - t.from) * VISIBLE;
    let most = -1;
    t.names.forEach((_, r) => {
      const [i, j] = t.near() ? t.within(r, t.from, t.to) : [0, 0];
      for (let n = i; n < j; n++) if (duration[n] > least && this.waits(n) && this.rows.has(n) && (most < 0 || duration[n] > duration[most])) most = n;
    });
    return most;
  }

  // The pinned wait, for a link: [lane, a moment of the wait, number of steps walked back]; null if nothing is pinned.
  unfolded() {
    const [n] = this.trail, { lane, start, duration } = this.timeline.spans?.columns ?? {};
    return n === undefined ? null : [lane[n], start[n] + duration[n] / 2, this.trail.length - 1];
  }

  // Pin the wait of a lane at a moment, and walk back `walked` steps, without moving the window.
  unfold(lane, at, walked) {
    const t = this.timeline, [i, j] = t.near() ? t.within(lane, at, at) : [0, 0], { start, duration } = t.spans.columns;
    for (let n = i; n < j; n++) if (start[n] + duration[n] >= at && this.waits(n) && this.rows.has(n)) this.trail = [n];
    for (let n = 0; this.trail.length && n < walked; n++) {
      const next = this.before(this.trail.at(-1));
      if (next < 0 || this.trail.includes(next)) break;
      this.trail.push(next);
    }
    this.tell();
  }

  // Go to the cause of the pinned span, or with -1 back to what it caused.
  walk(way = 1) {
    if (!this.trail.length) return this.pin();
    if (way < 0) { if (this.trail.length > 1) this.trail.pop(); }
    else {
      const next = this.before(this.trail.at(-1));
      if (next < 0 || this.trail.includes(next)) return;
      this.trail.push(next);
    }
    this.follow();
  }

  close() {
    if (!this.trail.length) return false;
    this.trail = [];
    this.follow();
    return true;
  }

  // Bring the pinned span and its cause into the window, and describe them.
  follow() {
    const { timeline: t } = this, n = this.trail.at(-1);
    if (n !== undefined) {
      const { start, duration, lane } = t.spans.columns, shown = [n, this.before(n)].filter((one) => one >= 0);
      const from = Math.min(...shown.map((one) => start[one])), to = Math.max(...shown.map((one) => start[one] + duration[one]));
      if (from < t.from || to > t.to) {
        const span = Math.max(t.to - t.from, (to - from) * 1.2);
        t.window((from + to - span) / 2, (from + to + span) / 2);
      }
      const y = t.y(lane[n]);
      if (y < TOP || y + t.pitch > t.surface.height - AXIS) t.scroll = lane[n] * t.pitch - TALLEST / 2;
    }
    this.tell();
    t.surface.request();
  }

  tell(otherwise = "") {
    const n = this.trail.at(-1);
    if (n === undefined) {
      const way = matchMedia("(pointer: coarse)").matches ? ["Tap", ""] : ["Click", ", or press w with the timeline in focus"]; // a phone has no keys
      const hint = `${way[0]} ${this.timeline.timed ? "a wait" : "an idle slot"} to see why${way[1]}.`;
      const words = otherwise || (this.said || !this.timeline.timed ? `${this.said} ${hint}`.trim() : this.headline.hidden ? `No ${this.timeline.role} waits long for another to be ready.` : "");
      this.box.hidden = !this.rows.size || !words;
      return this.box.replaceChildren(make("span", { className: "hint" }, whole(words)));
    }
    this.box.hidden = false;
    const next = this.before(n), back = next >= 0 && !this.trail.includes(next);
    const why = this.trail.length > 1 ? `Because ${this.describe(n)}` : this.describe(n);
    const words = whole(`${why[0].toUpperCase()}${why.slice(1)}.${back ? "" : ` ${this.beginning(n)}`}`);
    const act = (textContent, title, onclick) => make("button", { type: "button", textContent, title, onclick });
    const buttons = [act("Close", "Close this (Escape)", () => this.close())];
    if (this.trail.length > 1) buttons.unshift(act("Back", "Back to what this caused (Shift+W)", () => this.walk(-1)));
    if (back) buttons.unshift(act("Why is that?", "Go to the cause (w)", () => this.walk()));
    this.box.replaceChildren(make("span", {}, words), ...buttons);
  }
}

// What a rank works on, for a sentence: "its gradient", or the name of a schedule's op, "2F13".
function own(label) { return /\d/.test(label) ? label : `its ${label}`; }

// The sentence with non-breaking spaces between numbers and units.
function whole(text) { return text.replace(/(\d) (?=(?:[mµ]?s|[kMG]?B)\b|%)/g, "$1\u00a0"); }

// 104384 -> "104 kB"
function inBytes(value) {
  const [unit, name] = value >= 999.5e6 ? [1e9, "GB"] : value >= 999.5e3 ? [1e6, "MB"] : value >= 999.5 ? [1e3, "kB"] : [1, "B"];
  return `${Number((value / unit).toPrecision(3))} ${name}`;
}
