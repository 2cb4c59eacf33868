// *Compute it here*, below the answer to a question: the reader's own browser computes the answer, with one seed.
(() => {
  const LONGEST = 300; // s that it may take
  const { element } = trials;

  function words(item, answer, recorded) {
    const says = item.choices[answer]?.says ?? `${Number(answer.toPrecision(3))} ${answer === 1 ? item.one : item.unit}`;
    const off = typeof answer === "number" ? Math.round(100 * (answer / recorded - 1)) : 0;
    const next = off ? `${Math.abs(off)} % ${off > 0 ? "above" : "below"} the recorded answer` : answer === recorded || typeof answer === "number" ? "as recorded" : "unlike what was recorded";
    return `Computed here with one seed: <b>${says.trim()}</b>, ${next}.`.replace(".</b>", "</b>");
  }

  function offer(box, item) {
    const { chapter } = box.dataset;
    const button = element("button", { type: "button", className: "button", textContent: `Compute it here (${lockstep.live.megabytes} MB)` });
    const outcome = element("p", { className: "outcome" });
    outcome.setAttribute("role", "status");
    const { answer: recorded, parameters } = box.drawn;
    button.onclick = async () => {
      button.disabled = true;
      const heard = (doing) => { outcome.textContent = `${doing} …`; };
      try {
        const [found] = await lockstep.live.ask({ do: "predict", chapter, question: item.computes, parameters }, { heard, seconds: LONGEST });
        if (found.refused) outcome.textContent = found.refused;
        else {
          outcome.innerHTML = words(item, found.answer, recorded);
          typeset(outcome);
        }
        box.dispatchEvent(new CustomEvent("computed", { detail: found }));
      } catch (error) {
        outcome.textContent = error.message === "ended" ? "Stopped." : `This browser could not compute it: ${error.message}`;
      }
      button.disabled = false;
    };
    box.querySelector(".told").append(element("div", { className: "try" }, button, outcome));
  }

  if (!lockstep.live.possible) return;
  for (const box of document.querySelectorAll(".question")) {
    const item = reader.data.items[`${box.dataset.chapter}.${box.dataset.item}`];
    if (!item.computes) continue;
    box.addEventListener("told", () => offer(box, item));
    if (box.classList.contains("answered")) offer(box, item);
  }
})();
