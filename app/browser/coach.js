// The coach: a bar at the foot of the page, and a ring around the part of the page that it describes. While the bar is there,
// the page scrolls above it, so the bar covers nothing and shifts nothing. It comes first in tab order. Escape ends the tour
// from anywhere, and so does using the page.
// Relies on the test ids of Streamlit's app, main block and sliders, and on the main block being as high as the window.
// Without them, the bar is inserted at the start of the body and covers the foot of the window, and moving a slider does not
// end the tour.
const SEEN = "lockstep-coach"; // key in the browser's storage, set once the tour has been shown
const PATIENCE = 30_000;       // ms to wait for the first part to appear
const ACTS = ["pointerdown", "keydown"];
const MOVES = ["scroll", "resize"];
const LOOK = 200;              // ms between checks of the part's position; each check forces a layout
const GAP = 12;                // px between a part and the edge that it is scrolled away from
const MAIN = '[data-testid="stMain"]';
const GOES_ON = "button, a[href], [data-baseweb=select], [data-testid=stSlider], label, input, [role=option], .st-key-timeline";
const HEADER = 60;             // px of the page's header, which hides what is behind it
const NAMES = 84, TOP = 34, AXIS = 22; // px: width of the timeline's names, height above its lanes, height below them
const STYLE = `
  .coach-ring { position: fixed; z-index: 999992; pointer-events: none; border: 2px solid #0072B2; border-radius: 8px;
    box-shadow: 0 0 0 4px rgba(0, 114, 178, 0.22), inset 0 0 0 2px light-dark(#fff, #1b232c); } /* a gap, because the Run button has the same blue */
  ${MAIN} { height: calc(100% - var(--coach-room, 0px)); }
  .coach { position: fixed; z-index: 999993; box-sizing: border-box; padding: 12px 24px;
    display: flex; flex-wrap: wrap; align-items: center; gap: 8px 20px;
    border-top: 1px solid light-dark(#dde3e9, #4a5763); background: light-dark(#fff, #1b232c);
    color: light-dark(#1b2733, #e4e9ee); font-size: 15px; line-height: 1.45; box-shadow: 0 -6px 28px rgba(0, 0, 0, 0.16); }
  .coach[hidden] { display: none; }
  .coach > [role=status] { flex: 1 1 300px; }
  .coach b { display: block; margin-bottom: 3px; }
  @media (max-width: 767px) { .coach { padding: 10px 16px; } }
  .coach p { margin: 0; }
  .coach .steps { flex: none; display: flex; align-items: center; gap: 8px; margin-left: auto; }
  .coach .steps span { opacity: 0.85; font-size: 13px; }
  .coach button { font: inherit; padding: 4px 12px; border-radius: 6px; cursor: pointer; color: inherit; background: none; border: 1px solid light-dark(#ccd3da, #4a5763); }
  .coach button.next { background: #0072B2; border-color: #0072B2; color: #fff; }
  .coach button:focus-visible { outline: 2px solid #0072B2; outline-offset: 2px; }`;

const coaches = new WeakMap();

export default function ({ data, parentElement }) {
  let coach = coaches.get(parentElement);
  if (!coach) coaches.set(parentElement, (coach = new Coach(parentElement)));
  coach.update(data);
  return () => { coach.leave(); ACTS.forEach((act) => document.removeEventListener(act, coach.onAct, true)); coaches.delete(parentElement); };
}

const kept = { get() { try { return localStorage.getItem(SEEN); } catch { return null; } }, set() { try { localStorage.setItem(SEEN, "1"); } catch { /* the tour will show again */ } } };

class Coach {
  constructor(root) {
    this.root = root;
    this.asked = 0;
    this.acted = false; // a reader who has already started needs no tour
    this.onAct = () => { this.acted = true; };
    ACTS.forEach((act) => document.addEventListener(act, this.onAct, true));
    this.onMove = () => { this.frame ||= requestAnimationFrame(() => this.follow()); };
    this.onKey = (event) => { if (event.key === "Escape") this.leave(); };
    this.onUse = (event) => { // using the page ends the tour
      const path = event.composedPath();
      const asks = path.some((one) => one === this.bar || one.matches?.(".st-key-tour"));
      if (this.bar && !asks && path.some((one) => one.matches?.(GOES_ON))) this.leave();
    };
  }

  update(data) {
    if (this.bar && data.run !== this.data.run) { // another run has started
      this.acted = true;
      this.leave();
    }
    this.data = data;
    const asked = data.asked > this.asked;
    this.asked = data.asked;
    this.wanted ||= asked;
    if (asked || (data.first && !this.bar && !this.acted && !kept.get())) this.begin();
  }

  begin() {
    const wanted = this.wanted;
    this.leave();
    this.wanted = wanted;
    this.step = 0;
    this.lay = "";
    this.until = performance.now() + PATIENCE;
    this.onMove();
    this.looks = setInterval(this.onMove, LOOK);
    document.addEventListener("keydown", this.onKey, true);
    document.addEventListener("click", this.onUse, true);
    MOVES.forEach((move) => addEventListener(move, this.onMove, true));
  }

  leave() {
    this.wanted = false;
    cancelAnimationFrame(this.frame);
    clearInterval(this.looks);
    this.frame = 0;
    document.removeEventListener("keydown", this.onKey, true);
    document.removeEventListener("click", this.onUse, true);
    MOVES.forEach((move) => removeEventListener(move, this.onMove, true));
    if (this.bar?.contains(document.activeElement)) document.querySelector(".st-key-tour button")?.focus({ preventScroll: true });
    this.bar?.remove();
    this.ring?.remove();
    document.documentElement.style.removeProperty("--coach-room");
    this.bar = this.ring = null;
  }

  // The root that contains the timeline: its shadow root, or an element of the page.
  timeline() {
    const host = [...document.querySelectorAll(".st-key-timeline *")].find((one) => one.shadowRoot);
    return host?.shadowRoot ?? document.querySelector(".st-key-timeline");
  }

  // The rectangle of the part that a step describes; null while it is not on the page.
  part(at) {
    if (at === "run") {
      const runs = [...document.querySelectorAll(".st-key-run button, .st-key-run-phone button")];
      return runs.map((one) => one.getBoundingClientRect()).find((box) => box.width && box.right > 0 && box.left < innerWidth) ?? null;
    }
    const root = this.timeline();
    const stage = root?.querySelector(".stage")?.getBoundingClientRect();
    if (!stage?.width) return null;
    if (at === "wait") {
      const entry = [...root.querySelectorAll(".legend span")].find((one) => one.textContent.trim() === "wait");
      if (entry) return entry.getBoundingClientRect();
      at = "lanes"; // nobody waits
    }
    const pitch = (stage.height - TOP - AXIS) / this.data.lanes, lane = at === "name" ? this.data.lanes - 1 : 0;
    if (at === "lanes") return new DOMRect(stage.left + NAMES, stage.top + TOP, stage.width - NAMES, stage.height - TOP - AXIS);
    return new DOMRect(stage.left, stage.top + TOP + lane * pitch, at === "name" ? NAMES : stage.width, pitch);
  }

  follow() {
    this.frame = 0;
    const box = this.part(this.data.steps[this.step].at);
    if (document.querySelector('[role="dialog"]')) { // such as "page not found"
      this.acted = true;
      return this.leave();
    }
    if (!this.bar && ((this.acted && !this.wanted) || (!box && performance.now() > this.until))) return this.leave();
    if (box && !this.bar && this.wanted && !this.isInWindow(box)) this.main().scrollBy(0, box.top - innerHeight / 2);
    if (!this.bar && this.isInWindow(box) && (this.wanted || this.rests(box))) this.open();
    if (!this.bar) return;
    this.place(box);
  }

  // True if the part is not scrolled out of the window.
  isInWindow(box) {
    return box && box.bottom > HEADER && box.top < innerHeight;
  }

  // True if the part is where the last look found it: on a page that is still being drawn, the ring would jump with it.
  rests(box) {
    const last = this.lay;
    this.lay = JSON.stringify(box);
    return this.lay === last;
  }

  open() {
    kept.set();
    this.ring = document.createElement("div");
    this.ring.className = "coach-ring";
    this.bar = document.createElement("section");
    this.bar.className = "coach";
    this.bar.setAttribute("aria-label", "A short tour");
    this.bar.innerHTML = '<style></style><div role="status"><b></b><p></p></div><div class="steps"><span></span><button type="button" class="leave">Leave</button><button type="button" class="next"></button></div>';
    this.bar.querySelector("style").textContent = STYLE;
    this.bar.querySelector(".leave").addEventListener("click", () => this.leave());
    this.bar.querySelector(".next").addEventListener("click", () => this.next());
    // outside the page's blocks, so that it neither shifts them nor shares their stacking order
    const app = document.querySelector('[data-testid="stApp"]') ?? document.body;
    app.prepend(this.ring, this.bar); // first, so that Tab reaches it first
    this.tell();
    this.bring();
    if (this.wanted) this.bar.querySelector(".next").focus({ preventScroll: true });
  }

  next() {
    this.step += 1;
    if (this.step === this.data.steps.length) return this.leave();
    this.tell();
    this.bring();
    this.onMove();
  }

  // Scroll the part of this step into the room above the bar, only as far as necessary.
  bring() {
    const { at } = this.data.steps[this.step], box = this.part(at);
    if (!box || at === "run") return; // a button at the edge of the window
    this.place(box);
    const below = box.bottom + GAP - this.bar.getBoundingClientRect().top, above = box.top - GAP - HEADER;
    this.main().scrollBy(0, Math.min(above, Math.max(below, Math.min(above, 0))));
  }

  tell() {
    const { title, says } = this.data.steps[this.step], last = this.step + 1 === this.data.steps.length;
    this.bar.querySelector("b").textContent = title;
    this.bar.querySelector("p").textContent = says;
    this.bar.querySelector(".steps span").textContent = `${this.step + 1} of ${this.data.steps.length}`;
    this.bar.querySelector(".next").textContent = last ? "Done" : "Next";
    this.bar.querySelector(".leave").hidden = last;
  }

  // The block that scrolls.
  main() {
    return document.querySelector(MAIN) ?? document.scrollingElement;
  }

  // Put the ring around the part, and the bar below the page: at the foot of the window or, on a phone, above the buttons
  // there. Hide both while the part is scrolled out of view.
  place(box) {
    const { left, right } = this.main().getBoundingClientRect(), { style } = this.ring;
    const foot = document.querySelector(".st-key-phone-bar")?.getBoundingClientRect().top || innerHeight;
    Object.assign(this.bar.style, { left: `${left}px`, width: `${right - left}px`, bottom: `${innerHeight - foot}px` });
    this.bar.hidden = false; // or it would have no height
    const high = Math.ceil(this.bar.getBoundingClientRect().height), end = this.data.steps[this.step].at === "run" ? innerHeight : foot - high;
    const seen = this.isInWindow(box) && box.top < end;
    this.bar.hidden = this.ring.hidden = !seen;
    document.documentElement.style.setProperty("--coach-room", seen ? `${innerHeight - foot + high}px` : "0px");
    if (seen) Object.assign(style, { left: `${box.left - 6}px`, top: `${box.top - 6}px`, width: `${box.width + 8}px`, height: `${box.height + 8}px` });
  }
}
