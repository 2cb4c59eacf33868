// Keyboard equivalents of the pointer on a timeline: choose a rank, read out its spans one by one, "click" its name.
// It comes before timeline.js, which calls `draw` after its names and `told` at its cursor.

class ChosenRank {
  constructor(timeline) {
    this.timeline = timeline;
    this.lane = -1; // none
  }

  // Choose the next rank, or with -1 the previous one, and scroll its lane into view.
  next(way) {
    const t = this.timeline, count = t.names.length;
    this.lane = this.lane < 0 ? (way > 0 ? 0 : count - 1) : (this.lane + way + count) % count;
    const top = this.lane * t.pitch, room = Math.min(count * t.pitch, TALLEST);
    t.scroll = Math.max(top + t.pitch - room, Math.min(t.scroll, top));
    t.surface.request();
    t.say();
  }

  // Do what a click on the rank's name does.
  enter() {
    const t = this.timeline;
    if (this.lane >= 0 && this.asks) t.trouble.menu.open(this.lane);
  }

  // Clear the choice. Return true if a rank was chosen.
  leave() {
    if (this.lane < 0) return false;
    this.lane = -1;
    this.timeline.surface.request();
    this.timeline.say();
    return true;
  }

  // True if clicking a name does something on this page.
  get asks() { return this.timeline.trouble.offered; }

  draw(g, page) {
    const t = this.timeline;
    if (this.lane < 0 || this.lane >= t.names.length) return;
    g.strokeStyle = page.text;
    g.lineWidth = 2;
    g.strokeRect(1, t.y(this.lane), GUTTER - 4, Math.max(t.pitch - 2, 5));
  }

  // The chosen rank in words: the text of its span's card at the cursor, or what the reader can do with it; "" if none.
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
