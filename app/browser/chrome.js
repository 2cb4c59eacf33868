// What Streamlit's page lacks. It pushes an entry into the browser's history for every setting that is changed; here an
// entry is that of a run: what is changed after it makes one more, which follows all changes until the next run.
// Parameters that are `apart` say how the page shows a run; they change its entry and make none.
// Relies on Streamlit pushing those entries. Without them the browser's way back leads through every setting.
const NARROW = "(max-width: 767px)"; // where a screen shows a part of the page
const CARD = '[class*="st-key-card-"] button';
const QUESTION = ".st-key-prediction"; // of a card, with its answers, which a phone has below the fold
const CHOSEN = '[class*="st-key-option-"] button'; // of a card: what comes of it is seen in the lanes above
const ANSWER = ".st-key-open-question, .st-key-answer, .st-key-finding"; // a question of the menu, or what answers it, also as a card
const drawn = (window.lockstepChrome ??= watched()); // once, however often this script is loaded

export default function ({ data }) {
  drawn.place = location.pathname;
  drawn.apart = data.apart;
  if (data.run && data.run !== drawn.run) {
    drawn.run = data.run;
    history.replaceState({ ...history.state, ran: true }, "", location.href);
  }
  if (data.answer && data.answer !== drawn.answer) requestAnimationFrame(() => document.querySelector(ANSWER)?.scrollIntoView({ block: "start" }));
  drawn.answer = data.answer || drawn.answer;
}

// Returns what is filled in when the page is drawn: its place, the run that its address stands for, the names apart.
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
  document.addEventListener("click", (event) => {
    if (!matchMedia(NARROW).matches) return;
    if (event.target.closest?.(CHOSEN)) document.querySelector(".st-key-timeline")?.scrollIntoView({ block: "start" });
    if (event.target.closest?.(CARD)) bring(QUESTION);
  });

  // Scroll to a part as soon as the server has answered with it, within ten seconds.
  function bring(part, times = 100) {
    const there = document.querySelector(part);
    if (there) there.scrollIntoView({ block: "center" });
    else if (times) setTimeout(() => bring(part, times - 1), 100);
  }

  function another(url) {
    return experiment(new URL(url ?? "", location.href)) !== experiment(location);
  }

  function experiment({ search }) {
    return JSON.stringify([...new URLSearchParams(search)].filter(([name]) => !drawn.apart.includes(name)).sort());
  }

  return { place: null, run: null, apart: [], answer: 0 };
}
