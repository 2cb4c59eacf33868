// The timeline in words: the text below the lanes and on a span's card.
// Mixed into Timeline (timeline.js), which is `this` here.

const MANY = 30000; // request a window's single spans if it has fewer than this
const LEGIBLE = 0.2; // s; words that change sooner cannot be read
const NAMED = 8;    // with at most this many lanes, say in detail what each is doing

class Words {
  say() {
    const all = this.to - this.from > this.total * 0.999;
    const expected = (this.count * (this.to - this.from)) / this.total;
    const thinned = this.near() ? "" : ` as shares of the time (${this.count.toLocaleString("en")} spans; zoom in for single ones)`;
    if (!this.near() && expected < MANY && !this.clock.playing) this.events.ask?.("window", { run: this.run, from: this.from, to: this.to });
    this.status.classList.toggle("at", this.looking());
    if (this.trouble.words) return this.tell(`${this.trouble.words[0].toUpperCase()}${this.trouble.words.slice(1)}.`);
    const chosen = this.rank.told();
    if (this.looking()) return this.tell(chosen + this.told());
    const where = all ? `the ${this.whole}, ${this.inTime(this.end)}` : this.from >= this.end ? `nothing: this run ends at ${this.inTime(this.end)}` : `${this.inTime(this.from)} to ${this.inTime(Math.min(this.to, this.end))} of ${this.inTime(this.end)}`;
    const how = matchMedia("(pointer: coarse)").matches
      ? "Drag to move, two fingers to zoom; tap the axis to look at a moment."
      : "Drag to move, + and − or Ctrl+wheel to zoom, double-click to zoom in, Home for all; space to play, a click on the axis to look at a moment.";
    const unit = this.timed ? "" : this.inTime(this.end) === "1" ? " unit of time" : " units of time";
    this.tell(`${chosen}Showing ${where}${unit}${thinned}. ${how}`);
  }

  tell(words) { if (this.status.textContent !== words) this.status.textContent = words; }

  // True while it plays so fast that a typical span is over before its name can be read.
  hurries() { return this.clock.playing && this.clock.rate * LEGIBLE > (this.total * this.names.length) / Math.max(this.count, 1); }

  // What each lane is doing at the cursor, in words. Lanes that are doing the same share a phrase.
  told() {
    const time = this.now();
    const when = this.clock.playing ? [] : [`At ${this.moment()}`]; // while playing, only the cursor shows the time, because it is drawn more often
    if (this.hurries()) return `Pause, or zoom in and play, to see what each ${this.role} is doing.`;
    if (!this.near()) return [...when, `Zoom in to see what each ${this.role} is doing.`].join(". ");
    const { kind, label } = this.spans.columns, few = this.names.length <= NAMED, together = new Map();
    this.names.forEach((name, r) => {
      const n = this.doing(r, time), does = n < 0 ? "nothing" : this.kinds[kind[n]];
      const why = this.clock.playing ? "" : this.why.told(n); // too long to read while playing, and it would shift what is below
      const detail = n < 0 || !few ? "" : why || (this.spans.labels[label[n]] ?? "");
      const words = detail && detail !== does ? `${does} (${detail})` : does;
      together.set(words, [...(together.get(words) ?? []), name]);
    });
    const all = this.names.length > 1 && together.size === 1, whose = (names) => (names.length > 4 ? `${names.length} ${this.role}s` : names.join(", "));
    const parts = [...together].map(([words, names]) => `${all ? `all ${names.length} ${this.role}s` : whose(names)}: ${words}`);
    const { src, dst } = this.messages.columns, flying = this.travelling(time, time);
    const ways = flying.slice(0, 3).map((n) => `${this.names[src[n]]} → ${this.names[dst[n]]}`);
    if (flying.length) parts.push(`on its way: ${flying.length > 3 ? `${flying.length > ARROWS ? `more than ${ARROWS}` : flying.length} messages` : ways.join(", ")}`);
    const queue = this.topology.told(time);
    if (queue) parts.push(queue);
    return `${[...when, ...parts].join(" · ")}.`;
  }

  // Span n in words: [whose it is and what, when and how long].
  titled(n) {
    const { start, kind, label, lane, step, marked } = this.spans.columns;
    const name = this.kinds[kind[n]], text = this.spans.labels[label[n]];
    return [
      `${this.names[lane[n]]} · ${name}${text && text !== name ? ` · ${text}` : ""}`,
      `${step[n] >= 0 ? `step ${step[n] + 1} · ` : ""}at ${this.inTime(start[n])} · ${this.lasts(n)}${marked?.[n] ? " · on the critical path" : ""}`,
    ];
  }

  lasts(n) { return this.endless(n) ? "does not end" : `takes ${this.inTime(this.spans.columns.duration[n])}`; }
}
