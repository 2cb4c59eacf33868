// Browser history and scrolling that Streamlit lacks. Streamlit pushes a history entry for every changed setting. Here, each
// run has one entry; changes after a run share one further entry until the next run. Parameters in `apart` only say how the
// page shows a run, so they update the current entry and never add one. A page that was drawn in part asks for the rest.
// Relies on Streamlit pushing those entries. Without this script, the Back button would step through every setting.
const NARROW = "(max-width: 767px)"; // screens that show only part of the page
const CARD = '[class*="st-key-card-"] button';
const QUESTION = ".st-key-prediction:has(.st-key-not-now button)"; // the question on a card with all its answers, which may be below the fold
const CHOSEN = '[class*="st-key-option-"] button'; // an answer on a card; its effect is visible in the lanes above
const FINDING = 'body:not(:has([data-testid="stProgress"])) .st-key-finding'; // what comes of it, below the lanes, once the run has ended
const ANSWER = ".st-key-open-question, .st-key-answer, .st-key-finding"; // a question from the menu, or its answer, which may be a card
const drawn = (window.lockstepChrome ??= watched()); // only once, however often this script is loaded

export default function ({ data, setTriggerValue }) {
  drawn.place = location.pathname;
  drawn.apart = data.apart;
  if (data.run && data.run !== drawn.run) {
    drawn.run = data.run;
    history.replaceState({ ...history.state, ran: true }, "", location.href);
  }
  if (data.answer && data.answer !== drawn.answer) requestAnimationFrame(() => document.querySelector(ANSWER)?.scrollIntoView({ block: "start" }));
  drawn.answer = data.answer || drawn.answer;
  drawn.ask = data.inPart ? () => setTriggerValue("opened", true) : null;
  if (drawn.ask && !document.documentElement.classList.contains("opening")) drawn.ask();
}

// Wraps the history functions; returns the state that each redraw fills in: path, run, the names in `apart`, last answer.
function watched() {
  const push = history.pushState.bind(history);
  const replace = history.replaceState.bind(history);
  history.replaceState = (state, title, url) => {
    replace(history.state?.ran && !another(url) ? { ...state, ran: true } : state, title, url);
  };
  history.pushState = (state, title, url) => {
    const follows = [location, new URL(url ?? "", location.href)].every(({ pathname }) => pathname === drawn.place);
    if (!follows || (history.state?.ran && another(url))) push(state, title, url);
    else history.replaceState({ ...state }, title, url);
  };
  addEventListener("opened", () => drawn.ask?.()); // the curtain (opening.js): the reader sees the page
  document.addEventListener("click", (event) => {
    const narrow = matchMedia(NARROW).matches;
    if (narrow && event.target.closest?.(CHOSEN)) {
      document.querySelector(".st-key-timeline")?.scrollIntoView({ block: "start" });
      bring(FINDING, "end"); // with some of the lanes above it
    }
    if (event.target.closest?.(CARD)) bring(QUESTION, narrow ? "center" : "nearest");
  });

  // Scroll to a part once the server has sent it; give up after ten seconds.
  function bring(part, block, times = 100) {
    const there = document.querySelector(part);
    if (there) there.scrollIntoView({ block });
    else if (times) setTimeout(() => bring(part, block, times - 1), 100);
  }

  function another(url) {
    return experiment(new URL(url ?? "", location.href)) !== experiment(location);
  }

  function experiment({ search }) {
    return JSON.stringify([...new URLSearchParams(search)].filter(([name]) => !drawn.apart.includes(name)).sort());
  }

  return { place: null, run: null, apart: [], answer: 0, ask: null };
}
