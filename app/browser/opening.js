// The curtain in front of the page. Streamlit draws a page piece by piece, and each piece shifts those below it. To hide
// these jumps, show the page only when its script has ended, every part has arrived and nothing moves any more.
// Relies on the test ids of Streamlit's app, elements and placeholders, and on the script state that it exposes to tests.
// Without that state, the curtain opens LONGEST after the first part; without the test ids of app and elements, never.
const PATIENCE = 10_000; // ms after the first part, if a progress bar is visible: the reader can watch a long run
const LONGEST = 20_000;  // ms after the first part, if there is no progress bar to watch yet, as on a busy machine
const STILL = 4;         // frames without movement after which the page counts as complete
const EVERY = 50;        // ms between checks until all parts have arrived; each check forces the browser to compute styles
const SEEN = ":not(.st-key-first-kinds *)"; // excludes the hidden elements that kinds.py draws
const root = document.documentElement, curtain = document.querySelector(".curtain");
root.classList.add("opening");
let began = 0, frames = 0, before = "";

// The positions of all parts inside the window; "" if one has not arrived yet.
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
