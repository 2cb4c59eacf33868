// What Streamlit's page lacks. It pushes an entry into the browser's history for every setting that is changed; here an
// entry is that of a run: what is changed after it makes one more, which follows all changes until the next run.
const NARROW = "(max-width: 767px)"; // where Streamlit's side bar is a drawer over the page
const STARTS = ".st-key-run button, .st-key-reset button, .st-key-mend button";
const CHOSEN = '[class*="st-key-option-"] button'; // of a card: what comes of it is seen in the lanes above
let stands = null; // the run that the address stood for when it was drawn last

export default function ({ data }) {
  watch();
  if (data.run && data.run !== stands) {
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
  document.addEventListener("click", (event) => {
    if (matchMedia(NARROW).matches && event.target.closest?.(CHOSEN)) document.querySelector(".st-key-timeline")?.scrollIntoView({ block: "start" });
    if (!matchMedia(NARROW).matches || !event.target.closest?.(STARTS)) return;
    setTimeout(() => document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click(), 50); // after Streamlit has heard it
  });
}
