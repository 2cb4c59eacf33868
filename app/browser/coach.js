// The coach: a bubble below the lanes, and a ring around the part of the page that it describes. It does not shift the
// layout. It covers neither the lanes nor the machines nor a button, and what the run has learned only if the window has no
// other room. It comes first in tab order. Escape ends the tour from anywhere, and so does using the page.
// Relies on the test ids of Streamlit's app and sliders. Without them, the bubble is inserted at the start of the body, and
// moving a slider does not end the tour.
const SEEN = "lockstep-coach"; // key in the browser's storage, set once the tour has been shown
const PATIENCE = 30_000;       // ms to wait for the first part to appear
const ACTS = ["pointerdown", "keydown"];
const MOVES = ["scroll", "resize"];
const LOOK = 200;              // ms between checks of the part's position; each check forces a layout
const GAP = 12;                // px between a part and the bubble
const PHONE = 768;             // px; on narrower windows the bubble sits at the bottom
const GOES_ON = "button, a[href], [data-baseweb=select], [data-testid=stSlider], label, input, [role=option], .st-key-timeline";
const HEADER = 60;             // px of the page's header, which hides what is behind it
const NAMES = 84, TOP = 34, AXIS = 22; // px: width of the timeline's names, height above its lanes, height below them
const STYLE = `
  .coach-ring { position: fixed; z-index: 999992; pointer-events: none; border: 2px solid #0072B2; border-radius: 8px;
    box-shadow: 0 0 0 4px rgba(0, 114, 178, 0.22), inset 0 0 0 2px light-dark(#fff, #1b232c); } /* a gap, because the Run button has the same blue */
  .coach { position: fixed; z-index: 999993; box-sizing: border-box; width: min(640px, calc(100vw - 24px)); padding: 12px 16px;
    display: flex; flex-wrap: wrap; align-items: end; gap: 8px 20px;
    border-radius: 10px; border: 1px solid light-dark(#dde3e9, #4a5763); background: light-dark(#fff, #1b232c);
    color: light-dark(#1b2733, #e4e9ee); font-size: 15px; line-height: 1.45; box-shadow: 0 6px 28px rgba(0, 0, 0, 0.22); }
  .coach[hidden] { display: none; }
  .coach > [role=status] { flex: 1 1 300px; }
  .coach b { display: block; margin-bottom: 3px; }
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
      const asks = path.some((one) => one === this.bubble || one.matches?.(".st-key-tour"));
      if (this.bubble && !asks && path.some((one) => one.matches?.(GOES_ON))) this.leave();
    };
  }

  update(data) {
    if (this.bubble && data.run !== this.data.run) { // another run has started
      this.acted = true;
      this.leave();
    }
    this.data = data;
    const asked = data.asked > this.asked;
    this.asked = data.asked;
    this.wanted ||= asked;
    if (asked || (data.first && !this.bubble && !this.acted && !kept.get())) this.begin();
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
    if (this.bubble?.contains(document.activeElement)) document.querySelector(".st-key-tour button")?.focus({ preventScroll: true });
    this.bubble?.remove();
    this.ring?.remove();
    this.bubble = this.ring = null;
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
    if (!this.bubble && ((this.acted && !this.wanted) || (!box && performance.now() > this.until))) return this.leave();
    if (box && !this.bubble && this.wanted) this.bring(box);
    const seen = box && box.bottom > HEADER && box.top < innerHeight;
    if (seen && !this.bubble && (this.wanted || this.rests(box))) this.open();
    if (!this.bubble) return;
    this.bubble.hidden = this.ring.hidden = !seen;
    if (seen) this.place(box);
  }

  // True if the part, and what the bubble should not cover, are where the last look found them: on a page that is still
  // being drawn, the bubble would jump with them.
  rests(box) {
    const last = this.lay;
    this.lay = JSON.stringify([box, ...this.neighbours()]);
    return this.lay === last;
  }

  // The rectangles of what the run has learned and of the cards.
  neighbours() {
    const these = [this.timeline()?.querySelector(".learned"), document.querySelector(".st-key-cards")];
    return these.map((one) => one?.getBoundingClientRect()).filter((one) => one?.width);
  }

  open() {
    kept.set();
    this.ring = document.createElement("div");
    this.ring.className = "coach-ring";
    this.bubble = document.createElement("section");
    this.bubble.className = "coach";
    this.bubble.setAttribute("aria-label", "A short tour");
    this.bubble.innerHTML = '<style></style><div role="status"><b></b><p></p></div><div class="steps"><span></span><button type="button" class="leave">Leave</button><button type="button" class="next"></button></div>';
    this.bubble.querySelector("style").textContent = STYLE;
    this.bubble.querySelector(".leave").addEventListener("click", () => this.leave());
    this.bubble.querySelector(".next").addEventListener("click", () => this.next());
    // outside the page's blocks, so that it neither shifts them nor shares their stacking order
    const app = document.querySelector('[data-testid="stApp"]') ?? document.body;
    app.prepend(this.ring, this.bubble); // first, so that Tab reaches it first
    this.tell();
    if (this.wanted) this.bubble.querySelector(".next").focus({ preventScroll: true });
  }

  next() {
    this.step += 1;
    if (this.step === this.data.steps.length) return this.leave();
    this.tell();
    this.onMove();
    this.bring(this.part(this.data.steps[this.step].at));
  }

  // Scroll the part of this step into view.
  bring(box) {
    if (!box || (box.top >= HEADER && box.bottom <= innerHeight - 160) || this.data.steps[this.step].at === "run") return;
    document.querySelector(".st-key-timeline")?.scrollIntoView({ block: "center" });
  }

  tell() {
    const { title, says } = this.data.steps[this.step], last = this.step + 1 === this.data.steps.length;
    this.bubble.querySelector("b").textContent = title;
    this.bubble.querySelector("p").textContent = says;
    this.bubble.querySelector(".steps span").textContent = `${this.step + 1} of ${this.data.steps.length}`;
    this.bubble.querySelector(".next").textContent = last ? "Done" : "Next";
    this.bubble.querySelector(".leave").hidden = last;
  }

  // Put the ring around the part, and the bubble below the lanes or, on a phone, at the bottom. Choose another place if the
  // bubble would hide the part or the lanes.
  place(box) {
    const machines = this.timeline()?.querySelector(".machines")?.getBoundingClientRect();
    const room = machines?.width && machines.left > PHONE ? machines.left - GAP - (this.part("lanes") ?? box).left + NAMES : 0;
    this.bubble.style.maxWidth = room ? `${room}px` : "";
    const { style } = this.ring, wide = this.bubble.offsetWidth, high = this.bubble.offsetHeight;
    Object.assign(style, { left: `${box.left - 6}px`, top: `${box.top - 6}px`, width: `${box.width + 8}px`, height: `${box.height + 8}px` });
    const lanes = this.part("lanes") ?? box, bar = document.querySelector(".st-key-phone-bar")?.getBoundingClientRect().top || innerHeight;
    const foot = bar - GAP - high, below = lanes.bottom + AXIS + GAP, above = lanes.top - TOP - GAP - high;
    const inside = (at, most) => Math.max(12, Math.min(at, most));
    const left = inside(lanes.left - NAMES, innerWidth - wide - 12);
    const tops = (innerWidth < PHONE ? [foot, above] : [below, foot, above]).concat(box.bottom + GAP, box.top - GAP - high).map((top) => inside(top, foot));
    const hides = (top, of) => left < of.right && left + wide > of.left && top < of.bottom && top + high > of.top;
    const others = innerWidth < PHONE ? [] : this.neighbours();
    const top = tops.find((one) => ![box, lanes, ...others].some((of) => hides(one, of))) ?? tops.find((one) => !hides(one, box) && !hides(one, lanes)) ?? tops.find((one) => !hides(one, box)) ?? foot;
    Object.assign(this.bubble.style, { left: `${left}px`, top: `${top}px` });
  }
}
