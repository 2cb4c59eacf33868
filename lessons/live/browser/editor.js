// The exercise on its page: an editor, and *Check*, which grades the solution in the reader's own browser.
(() => {
  const LONGEST = 120; // s of a check; then there is an endless loop
  const box = document.querySelector("[data-exercise]");
  const { chapter, source, refusal } = reader.data.exercise, KEY = `lockstep-draft-${chapter}`, LABEL = "Your solution";
  const { element } = trials;
  const draft = () => { try { return localStorage.getItem(KEY); } catch { return null; } };
  const keep = (text) => store(KEY, text);

  // CodeMirror, or a plain text area if its script cannot be loaded: {value, focus()}.
  async function edit(place) {
    try {
      await lockstep.live.script("assets/codemirror/codemirror.js");
      return window.codemirror.open(place, draft() ?? source, LABEL, keep);
    } catch {
      return plain(place);
    }
  }

  function plain(place) {
    const area = element("textarea", { spellcheck: false, autocapitalize: "off", rows: Math.min(40, source.split("\n").length + 6), value: draft() ?? source });
    area.setAttribute("aria-label", LABEL);
    area.addEventListener("input", () => keep(area.value));
    let leaves = false; // after Escape, Tab leaves the text
    area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") leaves = true;
      else if (event.key !== "Tab" || leaves || event.shiftKey) leaves = false;
      else {
        event.preventDefault();
        area.setRangeText("    ", area.selectionStart, area.selectionEnd, "end");
        keep(area.value);
      }
    });
    place.append(area);
    return area;
  }

  const check = element("button", { type: "button", className: "button", textContent: "Check", onclick: grade });
  const stop = element("button", { type: "button", className: "button", textContent: "Stop", hidden: true, onclick: () => lockstep.live.end() });
  const again = element("button", { type: "button", className: "button quiet", textContent: "Start again", onclick: () => { box.editor.value = source; keep(source); } });
  const outcome = element("p", { className: "outcome" }), marks = element("ol", { className: "marks" });
  const printed = element("pre", { className: "printed", hidden: true });
  outcome.setAttribute("role", "status");

  async function grade() {
    check.disabled = true;
    stop.hidden = false;
    marks.replaceChildren();
    printed.hidden = true;
    const heard = (words) => { outcome.textContent = `${words} …`; }, began = performance.now();
    try {
      const [report] = await lockstep.live.ask({ do: "check", chapter, source: box.editor.value }, { heard, seconds: LONGEST });
      if (report.refused) outcome.textContent = report.refused;
      else show(report);
      box.dispatchEvent(new CustomEvent("computed", { detail: report }));
    } catch (error) {
      if (error.message !== "ended") outcome.textContent = `This browser could not check it: ${error.message}`;
      else outcome.textContent = performance.now() - began < 1000 * LONGEST ? "Stopped." : `It did not end within ${LONGEST} s; is there an endless loop?`;
    }
    check.disabled = false;
    stop.hidden = true;
  }

  function show(report) {
    outcome.textContent = [`${report.score} of 100.`, report.error].filter(Boolean).join(" ");
    marks.replaceChildren(...report.marks.map((mark) => element("li", {}, element("b", { className: "points", textContent: `${mark.earned} of ${mark.points}` }), ` ${mark.name}: ${mark.observed}`)));
    printed.textContent = report.printed;
    printed.hidden = !report.printed;
    reader.take({ ...progress.EMPTY, scores: { [chapter]: { score: report.score, at: new Date().toISOString() } } });
  }

  async function open() {
    const place = element("div", { className: "place" });
    box.replaceChildren(
      place,
      element("p", { className: "note", textContent: "Tab indents; after Escape it leaves the text. The check runs your program in this page, for practice: memory is not measured here." }),
      element("div", { className: "send" }, check, stop, again), outcome, marks, printed);
    lockstep.live.start().catch(() => {}); // while the reader writes; a check tries again, and says what is wrong
    box.editor = await edit(place);
    box.editor.focus({ preventScroll: true });
  }

  if (!lockstep.live.possible) {
    if (!document.querySelector("[data-try]")) box.append(element("p", { className: "outcome", textContent: trials.SENTENCE }));
  } else if (refusal) box.append(element("p", { className: "outcome", textContent: refusal }));
  else box.append(element("button", { type: "button", className: "button", textContent: `Write it here (${lockstep.live.megabytes} MB)`, onclick: open }));
})();
