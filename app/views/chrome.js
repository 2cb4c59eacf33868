// What Streamlit's page lacks. It pushes an entry into the browser's history for every setting that is changed; here an
// entry is that of a run: what is changed after it makes one more, which follows all changes until the next run.
// A click on Share first tells the server what the timeline shows, which is then in the link.
const NARROW = "(max-width: 767px)"; // where Streamlit's side bar is a drawer over the page
const STARTS = ".st-key-run button, .st-key-reset button, .st-key-mend button";
const CHOSEN = '[class*="st-key-option-"] button'; // of a card: what comes of it is seen in the lanes above
const SHARE = ".st-key-share button";
let stands = null; // the run that the address stood for when it was drawn last
let report = null; // tells the server what the timeline shows

export default function ({ data, setStateValue }) {
  report = () => setStateValue("view", view());
  watch();
  if (data.run !== stands) {
    stands = data.run;
    history.replaceState({ ...history.state, ran: true }, "", location.href);
  }
}

function watch() {
  if (window.lockstepChrome) return;
  window.lockstepChrome = true;
  const push = history.pushState.bind(history);
  history.pushState = (state, title, url) => {
    const there = new URL(url ?? "", location.href);
    const fresh = there.pathname !== location.pathname || history.state?.ran;
    if (fresh) push(state, title, url);
    else history.replaceState({ ...state }, title, url);
  };
  document.addEventListener("click", (event) => { if (event.target.closest?.(SHARE)) report(); }, true); // before Streamlit hears it
  document.addEventListener("click", (event) => {
    if (matchMedia(NARROW).matches && event.target.closest?.(CHOSEN)) document.querySelector(".st-key-timeline")?.scrollIntoView({ block: "start" });
    if (!matchMedia(NARROW).matches || !event.target.closest?.(STARTS)) return;
    setTimeout(() => document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click(), 50); // after Streamlit has heard it
  });
}

// What the first timeline that follows the page's clock shows, and the part of their axis that the first curves are zoomed
// into (experiments/plots/canvases).
function view() {
  const top = (one) => one.stage.getBoundingClientRect().top;
  const first = (all) => all.filter((one) => one.stage.isConnected).sort((one, other) => top(one) - top(other))[0];
  const lanes = first([...(window.lockstepTimelines ?? [])].filter((one) => one.clock === window.lockstepClock && one.spans));
  const curve = first([...(window.lockstepCurves ?? [])].filter((one) => one.frame));
  return { ...lanes?.view(), zoom: curve?.window?.x ?? null };
}
