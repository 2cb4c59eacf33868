// An answer in the next frame: what is pressed goes to the server and back, which takes longer than a reader waits
// without a sign. A line at the top of the page says that it was heard, until the page has been drawn again.
// Relies on the class and test id of Streamlit's app, and on the state of its script that it shows to tests. Without them
// no line appears.
const PRESSED = ".stApp :is(button, a[href], label, [role=option]), [data-st-overlay-root] :is(button, [role=option])";
const UNHEARD = 400; // ms after which nothing was asked of the server
const LONGEST = 10_000; // ms; a script that goes on says itself how far it is
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
