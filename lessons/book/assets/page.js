// The page around the text: light or dark, contents, what is open yet, and where the reader is.
const root = document.documentElement;
const store = (name, value) => { try { localStorage.setItem(name, value); } catch { /* for this visit */ } };

// ---- light or dark

document.querySelector(".theme").addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  store("lockstep-theme", root.dataset.theme);
  dispatchEvent(new Event("theme"));
});

// ---- contents on a phone

const menu = document.querySelector(".menu");
const unfold = (open) => { root.classList.toggle("menu-open", open); menu.setAttribute("aria-expanded", open); };
menu.addEventListener("click", () => unfold(!root.classList.contains("menu-open")));
document.querySelector("#contents").addEventListener("click", (event) => { if (event.target.closest("a")) unfold(false); });
addEventListener("keydown", (event) => { if (event.key === "Escape") unfold(false); });

// ---- what is open: the text after a prediction is shown once the reader has answered it or passed

const parts = [...document.querySelectorAll(".part")];
const gate = document.querySelector(".everything input");

// The question after which the text is still hidden; null if all text is shown.
function barrier() {
  if (!gate || gate.checked) return null;
  const behind = parts.at(-1)?.dataset.behind?.split(" ") ?? [];
  const item = behind.find((name) => !reader.passed(name));
  return item ? document.getElementById(`item-${reader.chapter}-${item}`) : null;
}

function open() {
  for (const part of parts) part.classList.toggle("open", (part.dataset.behind?.split(" ") ?? []).every((name) => reader.passed(name)));
  root.classList.toggle("closed", barrier() !== null);
  for (const button of document.querySelectorAll(".pass")) button.hidden = reader.passed(button.closest(".question").dataset.item);
  for (const link of document.querySelectorAll("#contents .sections a")) {
    const closed = visible(document.getElementById(decodeURIComponent(link.hash.slice(1)))) === false;
    link.classList.toggle("closed", closed);
    link.title = closed ? "Comes after a prediction" : "";
  }
}

// Whether an element is shown: it is in an open part, or in no part and not closed; undefined if there is no element.
function visible(element) {
  if (!element) return undefined;
  const part = element.closest(".part");
  return part ? gate.checked || part.classList.contains("open") : !(root.classList.contains("closed") && element.closest(".quiz, .exercise"));
}

// A link to hidden text leads to the question that opens it; a link into a fold opens the fold.
function arrive() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (visible(target) === false) return barrier()?.scrollIntoView();
  const fold = target?.closest(".fold:not([open])");
  if (!fold) return;
  fold.open = true;
  target.scrollIntoView();
}

if (gate) {
  gate.checked = root.classList.contains("all-open");
  gate.addEventListener("change", () => {
    root.classList.toggle("all-open", gate.checked);
    store("lockstep-everything", gate.checked);
    open();
  });
}
document.addEventListener("click", (event) => { if (event.target.closest('a[href^="#"]')) setTimeout(arrive); });
addEventListener("hashchange", arrive);
addEventListener("progress", open);
open();
if (location.hash) requestAnimationFrame(arrive);

// ---- where the reader is

const heads = [...document.querySelectorAll(":is(.part, .quiz, .exercise) :is(h2, h3)[id]")];
const links = new Map([...document.querySelectorAll("#contents .sections a")].map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
let noted = null, waiting = 0;

function look() {
  waiting = 0;
  const end = scrollY + innerHeight > root.scrollHeight - 2; // where the last sections, too short to rise further, are read
  const passed = heads.filter((head) => visible(head) && head.offsetParent && (end || head.getBoundingClientRect().top < innerHeight / 3));
  const here = passed.at(-1), section = passed.filter((head) => head.tagName === "H2").at(-1);
  for (const [anchor, link] of links) link.parentElement.classList.toggle("reading", anchor === section?.id);
  if (here && here.id !== noted) reader.arrive((noted = here.id));
}

const place = reader.document.places[reader.chapter], line = document.querySelector(".again-here");
const head = place && heads.find((one) => one.id === place);
if (line && head && !location.hash) {
  line.hidden = false;
  line.firstElementChild.href = `#${place}`;
  line.firstElementChild.textContent = `You were at “${head.textContent}”`;
}
if (heads.length) addEventListener("scroll", () => { waiting ||= setTimeout(look, 200); }, { passive: true });

// ---- printing: as wide as a sheet, dark on white; canvases are drawn again for it, before the browser copies them

// Let canvases draw at once, at three times the dots: they usually draw in the next frame, too late for printing.
function atOnce(act) {
  const later = window.requestAnimationFrame;
  window.requestAnimationFrame = (draw) => { draw(performance.now()); return 0; };
  Object.defineProperty(window, "devicePixelRatio", { value: 3, configurable: true });
  try { act(); } finally {
    window.requestAnimationFrame = later;
    delete window.devicePixelRatio;
  }
}

let folded = []; // what is open on paper alone
addEventListener("beforeprint", () => {
  root.classList.add("paper");
  folded = [...document.querySelectorAll(".fold:not([open])")];
  for (const fold of folded) fold.open = true;
  atOnce(() => window.lockstep?.redraw());
});
addEventListener("afterprint", () => {
  root.classList.remove("paper");
  for (const fold of folded) fold.open = false;
  window.lockstep?.redraw();
});
