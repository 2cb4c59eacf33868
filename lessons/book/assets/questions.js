// Questions: asked with one of their cases at random, answered, explained and asked again. An earlier answer is shown.
for (const box of document.querySelectorAll(".question")) {
  const { chapter, item: name, place } = box.dataset, item = reader.data.items[`${chapter}.${name}`];
  const form = box.querySelector("form"), told = box.querySelector(".told"), complaint = box.querySelector(".complaint");
  const paper = document.querySelector(`[data-answer="${box.id}"]`);
  let drawn;

  const same = (one, other) => Object.keys(one).length === Object.keys(other).length && Object.keys(one).every((key) => one[key] === other[key]);
  const fill = (element, html) => { element.innerHTML = html; typeset(element); };

  function ask(which) {
    drawn = box.drawn = which;
    fill(box.querySelector(".ask"), drawn.ask);
    if (paper) {
      fill(paper.querySelector(".shown"), drawn.told ? "" : `${drawn.shown}.`.replace(/\.\.$/, "."));
      fill(paper.querySelector(".why"), drawn.why);
    }
    form.reset();
    form.hidden = false;
    told.hidden = true;
    told.replaceChildren();
    box.classList.remove("answered");
    paper?.classList.remove("answered");
  }

  // Ask another case than the last one, if there is one. A prediction begins with a `first` case: its answer surprises.
  function redraw(before) {
    const others = item.cases.filter((one) => one !== before && (before || place !== "predict" || one.first));
    ask(others.length ? others[Math.floor(Math.random() * others.length)] : item.cases[0]);
  }

  function tell({ guess, sure, right }) {
    const badge = `<b class="badge ${right ? "right" : "wrong"}">${right ? "Right" : "Not quite"}</b>`;
    const choice = item.choices[guess];
    const said = choice ? `You said: ${choice.says}` : `You said ${guess} ${guess === 1 ? item.one : item.unit}.`.replace(" .", ".");
    const meaning = reader.data.meaning[right ? "right" : "wrong"][sure];
    const truth = choice ? (right ? "" : `<div class="but">${choice.but}</div><p>The right answer: <b>${drawn.shown}</b></p>`) : drawn.told ? "" : `<p>The simulator says <b>${drawn.shown}</b>.</p>`;
    fill(told, `<p>${badge} ${said}</p>${truth}${drawn.why}<p class="meaning">${meaning}</p>`);
    if (place !== "again") {
      const more = document.createElement("button");
      more.type = "button";
      more.className = "quiet";
      more.textContent = item.cases.length > 1 ? "Ask again, another case" : "Ask again";
      more.onclick = () => { redraw(drawn); form.querySelector("input").focus(); };
      told.append(more);
    }
    form.hidden = true;
    told.hidden = false;
    box.classList.add("answered");
    paper?.classList.add("answered");
    box.dispatchEvent(new Event("told"));
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = new FormData(form), words = (given.get("guess") ?? "").trim();
    const numeric = !Object.keys(item.choices).length, guess = numeric ? Number(words) : words;
    if (!words || (numeric && !Number.isFinite(guess))) {
      complaint.textContent = numeric ? "A number, please, such as 12.5." : "Choose one, please.";
      return;
    }
    complaint.textContent = "";
    const right = numeric ? Math.abs(guess - drawn.answer) <= item.within * Math.abs(drawn.answer) : guess === drawn.answer;
    const answer = { chapter, item: name, parameters: drawn.parameters, guess, sure: Number(given.get("sure")), right, place };
    tell(answer);
    reader.answer(answer);
    box.dispatchEvent(new Event("answered"));
  });
  box.querySelector(".pass")?.addEventListener("click", () => reader.pass(chapter, name));

  const last = reader.answers(chapter, name).filter((one) => place === "again" || one.place === place).at(-1);
  const known = last && item.cases.find((one) => same(one.parameters, last.parameters));
  if (known && place !== "again") { ask(known); tell(last); } else redraw(known);
}
