// Review: asks questions of all chapters once more, first those that the reader was sure of and got wrong.
const boxes = new Map([...document.querySelectorAll(".question")].map((box) => [`${box.dataset.chapter}.${box.dataset.item}`, box]));
const coming = progress.returns(reader.document.answers, reader.data.chapters).filter((one) => boxes.has(`${one.chapter}.${one.item}`));
const due = progress.due(coming);
const told = document.querySelector(".count");
const worst = due.filter((one) => one.urgency === 0).length;
const which = worst < due.length ? `${worst} of them` : worst > 1 ? `all ${worst}` : "it";

if (!coming.length) told.textContent = "Nothing yet: questions that you answer in a text or a quiz come back here.";
else if (!due.length) told.textContent = `Nothing is due. The next question comes back on ${new Date(coming.map((one) => one.at).sort()[0]).toLocaleDateString("en", { day: "numeric", month: "long" })}.`;
else told.textContent = `${due.length} ${due.length === 1 ? "question is" : "questions are"} due${worst ? `; you were sure of ${which}, and wrong` : ""}.`;

function show(number) {
  for (const box of boxes.values()) box.hidden = true;
  if (number === due.length) return;
  const box = boxes.get(`${due[number].chapter}.${due[number].item}`);
  box.hidden = false;
  box.addEventListener("answered", () => {
    const left = due.length - number - 1, next = document.createElement("button");
    next.type = "button";
    next.className = "button";
    next.textContent = left ? `Next, ${left} left` : "That was the last";
    next.onclick = () => { show(number + 1); document.querySelector(".question:not([hidden]) input")?.focus(); };
    box.querySelector(".told").append(next);
  }, { once: true });
}
show(0);
