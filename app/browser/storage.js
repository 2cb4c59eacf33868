// Keeps the session's document in the browser's storage, tells the session what it lacks, and tracks the reader's place.
// Relies on the test id of the element that scrolls in Streamlit's page, and on `inert` inside a closed fold. Without them, a
// chapter opens at the scroll position of the previous one, and a link into a fold leads to an empty fold.
const HEADINGS = ".st-key-reader :is(h1, h2, h3)[id]";
const TOP = 140; // px from the top; a heading further down has not been reached yet
const PATIENCE = 20_000; // ms to wait for the text up to the reader's place
const STILL = 15; // checks without movement after which the place counts as final; a page still being drawn shifts it
const stores = new WeakMap();
let returned = 0; // number of the last return to a figure that was carried out
let opened; // what the reader has open: a part of a chapter, or the contents

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
        this.stale = this.data.resets; // ignore updates until the session has forgotten too; it would restore everything
        this.tell({ forgotten: true });
      }
      else this.update(this.data);
    };
    this.onTouch = () => { this.returning = null; }; // never scroll a reader who is scrolling
    this.onToggle = ({ target }) => { // when the browser opens a fold for a link into it, Streamlit still considers it closed
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
      this.told = now; // only once, or a session that cannot read it would be told forever
      this.tell({ kept: JSON.stringify(kept) });
    }
    this.open(kept.places[data.chapter]);
    if (data.returning && data.returning.number !== returned) {
      returned = data.returning.number;
      this.arrive(data.returning.anchor);
    }
  }

  /** Scroll to the top of what was opened or, on a page just loaded, to the anchor in its address or the stored place. */
  open(anchor) {
    this.chapter = this.data.chapter;
    if (this.data.opened === opened) return;
    this.arrive(opened ? null : location.hash.slice(1) || anchor);
    if (opened) document.querySelector('[data-testid="stMain"]').scrollTo(0, 0);
    opened = this.data.opened;
  }

  /** Scroll to an id or a Streamlit key as soon as it exists, and again until the page stops moving. */
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

  /** Store the heading that the reader has reached. */
  follow() {
    if (!this.chapter || this.returning) return;
    const passed = [...document.querySelectorAll(HEADINGS)].filter((head) => head.getBoundingClientRect().top < TOP);
    if (!passed.length) return;
    try { progress.arrive(this.chapter, passed.at(-1).id); } catch { /* the session already knows that nothing is stored */ }
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
