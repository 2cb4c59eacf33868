// Saving a picture: a small menu in the bar of each canvas saves the current view as SVG or PNG or, if the canvas plays, as
// a film. A canvas has a `surface`. It may also have
// - an `overlay` (see fit), and `saved` from its frame: {file, heading, legend};
// - head(g, width, page), which draws at the top what the page has as HTML, and returns its height;
// - `beside`, another surface to its right;
// - film(), which returns {seconds, at(share)}, and `moves`, the seconds of a run during which it follows the page's clock.

const MARGIN = 10;       // px around a picture
const BETWEEN = 24;      // px between a picture and the one to its right
const RACE = 12;         // s; length of a film of everything that moves on the page
const ROW_APART = 80;    // px; pictures whose tops differ by less are in one row
const SHARPNESS = 2;     // pixels per px in a PNG or film
const FRAMES = 30;       // frames per second of a film
const NAME_LENGTH = 120; // characters of a file's name, whose last word says which picture it is
const FILMS = ["video/webm;codecs=vp9", "video/webm", "video/mp4"];

globalThis.lockstepCanvases ??= new Set(); // all canvases of the page

// Draw a whole canvas on context g. Return its size and the page's colours.
function compose(canvas, g, ratio) {
  const { surface, overlay, saved, beside } = canvas, page = pageColours(canvas.stage);
  const width = surface.width + (beside ? BETWEEN + beside.width : 0) + 2 * MARGIN;
  g.save();
  g.translate(MARGIN, MARGIN);
  let top = 0;
  if (saved?.heading) {
    lettering(g, "600 14", "left", "top");
    g.fillStyle = page.text;
    g.fillText(saved.heading, 4, 0, surface.width - 8);
    top += 24;
  }
  g.translate(0, top);
  const head = canvas.head?.(g, surface.width, page) ?? 0;
  g.translate(0, head);
  top += head;
  for (const one of [surface, overlay]) if (one) { g.save(); one.draw(g, one.width, one.height, ratio); g.restore(); }
  if (beside) { g.translate(surface.width + BETWEEN, 0); beside.draw(g, beside.width, beside.height, ratio); }
  g.restore();
  for (const one of [surface, overlay, beside]) one?.request(); // drawing at another ratio may have changed what they cached
  return { width, height: top + Math.max(surface.height, beside?.height ?? 0) + 2 * MARGIN, page };
}

// The picture as the text of an SVG file.
function svgOf(canvas) {
  const g = new SvgContext(), words = canvas.stage.getAttribute("aria-label") ?? "";
  const { width, height, page } = compose(canvas, g, 2);
  return g.file(width, height, page.page, canvas.saved?.heading || words, words);
}

// A bitmap of these canvases, one below the other. board.paint() repaints it.
function boardOf(...canvases) {
  const board = document.createElement("canvas"), g = board.getContext("2d");
  const sizes = canvases.map((canvas) => compose(canvas, new SvgContext(), 2));
  board.width = Math.round(Math.max(...sizes.map(({ width }) => width)) * SHARPNESS);
  board.height = 2 * Math.round((sizes.reduce((sum, { height }) => sum + height, 0) * SHARPNESS) / 2); // films need an even height
  board.paint = () => {
    g.setTransform(SHARPNESS, 0, 0, SHARPNESS, 0, 0);
    g.fillStyle = sizes[0].page.page;
    g.fillRect(0, 0, board.width, board.height);
    for (const canvas of canvases) g.translate(0, compose(canvas, g, SHARPNESS).height);
  };
  board.paint();
  return board;
}

// The canvases that follow the page's clock, from top to bottom and, within a row, from left to right.
function moving() {
  const there = [...lockstepCanvases].filter((canvas) => canvas.moves > 0 && canvas.stage.isConnected && canvas.surface.width);
  const places = new Map(there.map((canvas) => [canvas, canvas.stage.getBoundingClientRect()]));
  const order = (one, other) => (Math.abs(one.top - other.top) < ROW_APART ? one.left - other.left : one.top - other.top);
  return there.sort((one, other) => order(places.get(one), places.get(other)));
}

// A film of all of them, from the beginning until the last one ends. Its name is that of the first, "and 2 more".
function race() {
  const canvases = moving(), seconds = Math.max(...canvases.map(({ moves }) => moves));
  return { canvases, file: `${fileName(canvases[0])}-and-${canvases.length - 1}-more`, seconds: RACE, at: (share) => lockstepClock.set(share * seconds) };
}

// Record canvases while they play once. tell(seconds done, seconds in all) returns true to stop the recording.
async function filmOf({ canvases, seconds, at }, tell) {
  const board = boardOf(...canvases), stream = board.captureStream(FRAMES), parts = [];
  const recorder = new MediaRecorder(stream, { mimeType: FILMS.find((kind) => MediaRecorder.isTypeSupported(kind)), videoBitsPerSecond: 6e6 });
  recorder.ondataavailable = ({ data }) => parts.push(data);
  const ended = new Promise((done) => { recorder.onstop = done; });
  let begin = Infinity; // a busy machine needs seconds to start recording, and would miss what has played by then
  recorder.onstart = () => { begin = performance.now(); };
  recorder.start(500);
  for (let share = 0; share < 1 && recorder.state === "recording"; ) {
    share = Math.min(1, Math.max(0, performance.now() - begin) / 1000 / seconds);
    at(share);
    board.paint();
    if (tell(share * seconds, seconds)) break;
    await new Promise((done) => setTimeout(done, 1000 / FRAMES));
  }
  if (recorder.state === "recording") recorder.stop();
  await ended;
  return new Blob(parts, { type: recorder.mimeType });
}

function handOut(blob, file) {
  const link = make("a", { download: file, href: URL.createObjectURL(blob) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// What the frame says or, without that, the first sentence of the description: "Curve of the loss, 4 workers." ->
// "curve-of-the-loss-4-workers"
function fileName(canvas) {
  const words = canvas.saved?.file || (canvas.stage.getAttribute("aria-label") ?? "").split(/[.?!](?:\s|$)/)[0] || "picture";
  return words.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, NAME_LENGTH).replace(/^-|-$/g, "");
}

// Add the menu to a canvas: in its bar or, without a bar, in the picture's upper corner.
function offerSaving(canvas, root) {
  const bar = root.querySelector(".tools"), menu = make("div");
  const button = make("button", { type: "button", textContent: "Save", title: "Save this picture as a file" });
  const box = make("div", { className: bar ? "save" : "save corner" }, button, menu);
  canvas.stage ??= root.querySelector(".stage");
  button.setAttribute("aria-haspopup", "menu");
  menu.setAttribute("role", "menu");
  const open = (yes) => {
    menu.hidden = !yes;
    button.setAttribute("aria-expanded", String(yes));
  };
  const entry = (name, title, act) => {
    const one = make("button", { type: "button", textContent: name, title, tabIndex: -1, onclick: () => { open(false); button.focus(); act(); } });
    one.setAttribute("role", "menuitem");
    menu.append(one);
    return one;
  };
  let recording = false, enough = false;
  const record = async (what) => {
    recording = true;
    enough = false;
    const blob = await filmOf(what, (now, all) => {
      button.textContent = `■ ${Math.floor(now)} of ${Math.round(all)} s`;
      return enough;
    });
    recording = false;
    button.textContent = "Save";
    if (blob.size) handOut(blob, `${what.file ?? fileName(canvas)}.${blob.type.includes("mp4") ? "mp4" : "webm"}`);
  };
  entry("SVG", "For papers and slides: sharp at any size", () => handOut(new Blob([svgOf(canvas)], { type: "image/svg+xml" }), `${fileName(canvas)}.svg`));
  entry("PNG", "Pixels, two for each of the screen", () => boardOf(canvas).toBlob((blob) => handOut(blob, `${fileName(canvas)}.png`), "image/png"));
  if (canvas.film && globalThis.MediaRecorder) entry("Film", "The window played once, as WebM", () => record({ canvases: [canvas], ...canvas.film() }));
  const all = globalThis.MediaRecorder ? entry("Film of all", "All that moves on this page, played once, as WebM", () => record(race())) : null;
  button.addEventListener("click", () => {
    if (recording) { enough = true; return; }
    if (all) all.hidden = !(canvas.moves > 0) || moving().length < 2;
    open(menu.hidden);
    if (!menu.hidden) menu.firstChild.focus();
  });
  box.addEventListener("focusout", (event) => { if (!box.contains(event.relatedTarget)) open(false); });
  const go = (way) => { const shown = [...menu.children].filter((one) => !one.hidden); shown[(shown.indexOf(box.getRootNode().activeElement) + way + shown.length) % shown.length].focus(); };
  obey(box, { Escape: () => { open(false); button.focus(); }, ArrowDown: () => { open(true); go(1); }, ArrowUp: () => { open(true); go(-1); } });
  open(false);
  if (bar) bar.append(box); else canvas.stage.after(box);
  lockstepCanvases.add(canvas);
  return () => { box.remove(); lockstepCanvases.delete(canvas); };
}
