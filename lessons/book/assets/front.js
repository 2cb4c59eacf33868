// The first page: where the reader was, how far each chapter is, and progress as a file.
function draw() {
  const { places, passed, answers } = reader.document;
  for (const line of document.querySelectorAll("[data-chapter]:not(body)")) {
    const bar = line.querySelector("progress"), { chapter } = line.dataset;
    const done = new Set([...passed.filter((one) => one.startsWith(`${chapter}.`)), ...answers.filter((a) => a.chapter === chapter).map((a) => `${chapter}.${a.item}`)]).size;
    bar.hidden = !done;
    bar.value = done;
    bar.title = `${done} of ${bar.max} questions`;
    bar.setAttribute("aria-label", bar.title);
  }
  const last = Object.keys(places).at(-1), there = last && document.querySelector(`[data-chapter="${last}"] a`);
  const line = document.querySelector(".continue");
  line.hidden = !there;
  if (there) {
    line.firstElementChild.href = `${last}.html#${places[last]}`;
    line.firstElementChild.textContent = `Continue reading: ${there.querySelector(".title").textContent}`;
  }
}

const said = document.querySelector(".yours .complaint");
document.querySelector(".export").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(reader.document)], { type: "application/json" }));
  link.download = "lockstep-progress.json";
  link.click();
  URL.revokeObjectURL(link.href);
});
document.querySelector(".import").addEventListener("change", async (event) => {
  const [file] = event.target.files;
  event.target.value = "";
  try {
    const document = JSON.parse(await file.text());
    if (document.lockstep !== 1) throw new Error();
    reader.take({ ...progress.EMPTY, ...document });
    said.textContent = `${document.answers?.length ?? 0} answers read.`;
  } catch {
    said.textContent = "That file is not progress of a reader; choose one that was saved here or in the workbench.";
  }
});
document.querySelector(".forget").addEventListener("click", () => {
  if (!confirm("Forget all answers and places that this browser keeps?")) return;
  reader.forget();
  said.textContent = "Forgotten.";
});
addEventListener("progress", draw);
draw();
