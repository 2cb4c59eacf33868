// What the pointer does on a timeline, by keys: a rank is chosen, its spans are told one by one, its name is "clicked".
// Put before timeline.js, which calls `draw` after its names and `told` at its cursor.

class ChosenRank {
  constructor(timeline) {
    this.timeline = timeline;
    this.lane = -1; // none
  }

  // Choose the next rank, or with -1 the one before; its lane comes into view.
  next(way) {
    const t = this.timeline, count = t.names.length;
    this.lane = this.lane < 0 ? (way > 0 ? 0 : count - 1) : (this.lane + way + count) % count;
    const top = this.lane * t.pitch, room = Math.min(count * t.pitch, TALLEST);
    t.scroll = Math.max(top + t.pitch - room, Math.min(t.scroll, top));
    t.surface.request();
    t.say();
  }

  // Do what a click on its name does.
  enter() {
    const t = this.timeline;
    if (this.lane >= 0 && this.asks) t.trouble.menu.open(this.lane);
  }

  // Whether there was one to leave.
  leave() {
    if (this.lane < 0) return false;
    this.lane = -1;
    this.timeline.surface.request();
    this.timeline.say();
    return true;
  }

  // Whether the page does something where a name is clicked.
  get asks() { return this.timeline.trouble.offered; }

  draw(g, page) {
    const t = this.timeline;
    if (this.lane < 0 || this.lane >= t.names.length) return;
    g.strokeStyle = page.text;
    g.lineWidth = 2;
    g.strokeRect(1, t.y(this.lane), GUTTER - 4, Math.max(t.pitch - 2, 5));
  }

  // The chosen rank in words: what the card of its span at the cursor says, or what can be done with it; "" if none is.
  told() {
    const t = this.timeline, name = t.names[this.lane];
    if (name === undefined) return "";
    const found = t.looking() && t.near() ? t.doing(this.lane, t.now()) : -1;
    if (found >= 0) {
      const [head, body] = t.titled(found), why = [t.why.sentence(found), t.why.carried(found)].filter(Boolean);
      return `${[head, ...why, body].join(" · ")}. `;
    }
    const note = t.notes[this.lane];
    return `${name}${note ? `, ${note},` : ""} is chosen: full stop and comma go through what it does${this.asks ? ", Enter offers to slow it down, lose it or lengthen the latency" : ""}. `;
  }
}
