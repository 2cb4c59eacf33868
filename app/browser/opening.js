// The curtain before the page: Streamlit draws a page piece by piece, and each piece pushes those below it. What is not
// seen does not jump, so the page is shown when it is whole: its script has ended, every part has come, nothing moves.
// Relies on the test ids of Streamlit's app, of elements and of those still to come, and on the state of its script that
// it shows to tests. Without them the curtain opens after LONGEST at the latest, over a page that is still moving.
const PATIENCE = 10_000; // ms after the first part came; a run that goes on longer is watched at its work
const LONGEST = 20_000;  // ms, of a page on a busy machine that has nothing yet to be watched
const STILL = 4;         // frames in which nothing moved
const EVERY = 50;        // ms between two looks until all is there; each has the browser style what has come
const SEEN = ":not(.st-key-first-kinds *)"; // the hidden parts of kinds.py are nothing to be watched
const root = document.documentElement, curtain = document.querySelector(".curtain");
root.classList.add("opening");
let began = 0, frames = 0, before = "";

// Where every part stands that is in the window; "" if one is still to come.
function places(app) {
  const parts = [...app.querySelectorAll('[data-testid="stElementContainer"], [data-testid="stSkeleton"], [data-testid="stAppSkeleton"]')];
  const seen = parts.map((part) => [part, part.getBoundingClientRect()]).filter(([, box]) => box.top < innerHeight);
  if (seen.some(([part]) => part.dataset.testid !== "stElementContainer")) return "";
  return seen.map(([, box]) => [box.left, box.top, box.right, box.bottom].map(Math.round)).join(" ");
}

function look() {
  const app = document.querySelector('[data-testid="stApp"]'), now = performance.now();
  if (app && !began) {
    const { backgroundColor, color } = getComputedStyle(app); // the reader's theme
    Object.assign(curtain.style, { background: backgroundColor, color });
  }
  if (app?.querySelector(`[data-testid="stMain"] [data-testid="stElementContainer"]${SEEN}`)) began ||= now;
  const whole = began && app.dataset.testScriptState === "notRunning" && document.fonts.status === "loaded";
  const there = whole ? places(app) : "";
  frames = there && there === before ? frames + 1 : 0;
  before = there;
  const most = app?.querySelector(`[data-testid="stProgress"]${SEEN}`) ? PATIENCE : LONGEST;
  if (frames < STILL && !(began && now - began > most)) return there ? requestAnimationFrame(look) : setTimeout(look, EVERY);
  root.classList.remove("opening");
  curtain.remove();
  dispatchEvent(new Event("opened"));
}
look();
