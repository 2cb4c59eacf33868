// Acknowledges a click in the next frame. The round trip to the server is long enough for a reader to wonder whether the
// click was noticed, so a line appears at the top of the page until the page has been redrawn.
// Relies on the class and test id of Streamlit's app, and on the script state that it exposes to tests. Without them, no
// line appears.
const PRESSED = ".stApp :is(button, a[href], label, [role=option]), [data-st-overlay-root] :is(button, [role=option])";
const UNHEARD = 400; // ms; if no script has started by then, the click asked nothing of the server
const LONGEST = 10_000; // ms; a script that runs longer shows its own progress
let asked = 0;

document.addEventListener("click", (event) => {
  if (!event.target.closest?.(PRESSED)) return;
  const idle = !asked;
  asked = performance.now();
  document.documentElement.classList.add("asked");
  if (idle) requestAnimationFrame(wait);
}, true);

let running = false;
function wait(now) {
  const state = document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState;
  running ||= state === "running";
  const since = now - asked;
  if ((running ? state !== "running" : since > UNHEARD) || since > LONGEST) {
    asked = 0;
    running = false;
    document.documentElement.classList.remove("asked");
  } else requestAnimationFrame(wait);
}
