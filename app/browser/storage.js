// Keeps the session's document in the browser's storage and tells the session what it lacks; follows the reader's place.
// Relies on the test id of what scrolls in Streamlit's page, and on `inert` in a fold that is shut. Without them a chapter
// opens where the one before was left, and a link into a fold leads to an empty one.
const HEADINGS = ".st-key-reader :is(h1, h2, h3)[id]";
const TOP = 140; // px below which a heading has not been reached yet
const PATIENCE = 20_000; // ms in which the text up to the reader's place may appear
const STILL = 15; // looks after which the place is taken to stay: a page that is still drawn moves it
const stores = new WeakMap();
let returned = 0; // how many times the reader was led back to a figure
let opened; // what is read: a part of a chapter, or the contents

export default function ({ data, parentElement, setTriggerValue }) {
  let store = stores.get(parentElement);
  if (!store) stores.set(parentElement, (store = new Store()));
  store.tell = (news) => setTriggerValue("news", news);
  store.update(data);
  return () => { store.stop(); stores.delete(parentElement); };
}

class Store {
  constructor() {
    this.told = null;
    this.onScroll = () => { clearTimeout(this.waiting); this.waiting = setTimeout(() => this.follow(), 200); };
    this.onStorage = (event) => {
      if (event.key !== progress.KEY) return;
      if (event.newValue === null) {
        this.stale = this.data.resets; // until the session has forgotten, too, it would bring everything back
        this.tell({ forgotten: true });
      }
      else this.update(this.data);
    };
    this.onTouch = () => { this.returning = null; }; // a reader who moves is not moved
    this.onToggle = ({ target }) => { // a fold that the browser opened, for a link into it, is still shut to Streamlit
      if (target.open && target.querySelector("[inert]")) target.querySelector("summary").click();
    };
    document.addEventListener("toggle", this.onToggle, true);
    document.addEventListener("scroll", this.onScroll, { capture: true, passive: true });
    window.addEventListener("storage", this.onStorage);
    for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) window.addEventListener(kind, this.onTouch);
  }

  stop() {
    clearTimeout(this.waiting);
    clearInterval(this.looking);
    document.removeEventListener("toggle", this.onToggle, true);
    document.removeEventListener("scroll", this.onScroll, { capture: true });
    window.removeEventListener("storage", this.onStorage);
    for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) window.removeEventListener(kind, this.onTouch);
  }

  update(data) {
    this.data = data;
    if (data.resets === this.stale) return;
    const mine = JSON.parse(data.document);
    let kept;
    try {
      if (data.forget) {
        progress.forget();
        this.told = null;
        this.tell({ forgotten: true });
        return;
      }
      const renamed = this.reader !== undefined && this.reader !== mine.reader;
      this.reader = mine.reader;
      kept = progress.keep(mine, renamed);
    } catch (error) {
      if (this.told !== "nothing") this.tell({ lasting: false, why: String(error.message) });
      this.told = "nothing";
      this.open();
      return;
    }
    const first = this.chapter === undefined;
    const reading = data.chapter && !first;
    const now = digest(reading ? { ...kept, places: mine.places } : kept);
    if (now !== digest(mine) && now !== this.told) {
      this.told = now; // once: a session that cannot read it would be told for ever
      this.tell({ kept: JSON.stringify(kept) });
    }
    this.open(kept.places[data.chapter]);
    if (data.returning && data.returning.number !== returned) {
      returned = data.returning.number;
      this.arrive(data.returning.anchor);
    }
  }

  /** Begin at the top of what was opened; on a page that was just loaded, where its address says, or at the place. */
  open(anchor) {
    this.chapter = this.data.chapter;
    if (this.data.opened === opened) return;
    this.arrive(opened ? null : location.hash.slice(1) || anchor);
    if (opened) document.querySelector('[data-testid="stMain"]').scrollTo(0, 0);
    opened = this.data.opened;
  }

  /** Go to where the reader was, an id or a key of Streamlit's, once the text is there that far, until it stands still. */
  arrive(anchor) {
    clearInterval(this.looking);
    this.returning = anchor;
    if (!this.returning) return;
    const until = Date.now() + PATIENCE;
    let still = 0;
    this.looking = setInterval(() => {
      const there = this.returning && place(this.returning);
      there?.closest("details:not([open])")?.querySelector("summary").click();
      const top = there?.getBoundingClientRect().top;
      there?.scrollIntoView();
      still = there && Math.abs(there.getBoundingClientRect().top - top) < 1 ? still + 1 : 0;
      if (this.returning && still < STILL && Date.now() < until) return;
      this.returning = null;
      clearInterval(this.looking);
    }, 100);
  }

  /** Store the heading under which the reader is. */
  follow() {
    if (!this.chapter || this.returning) return;
    const passed = [...document.querySelectorAll(HEADINGS)].filter((head) => head.getBoundingClientRect().top < TOP);
    if (!passed.length) return;
    try { progress.arrive(this.chapter, passed.at(-1).id); } catch { /* it was said that nothing is kept */ }
  }
}

function place(anchor) {
  return document.getElementById(anchor) ?? document.querySelector(`.st-key-${CSS.escape(anchor)}`);
}

function digest(one) {
  const scores = Object.entries(one.scores).map(([chapter, { score, at }]) => [chapter, score, at]).sort();
  const answers = one.answers.map((a) => [a.at, a.chapter, a.item, a.place]);
  return JSON.stringify([one.reader, answers, one.passed, Object.entries(one.places), scores]);
}
