// Figures, schedules and timelines on their canvases (experiments/viewer/canvases).
const { frames } = JSON.parse(document.getElementById("data").textContent);
for (const box of document.querySelectorAll("[data-figure]")) {
  const { canvas, frame } = frames[box.dataset.figure];
  lockstep[canvas](box.querySelector(".plot"), lockstep.bytes(frame));
}
addEventListener("theme", () => lockstep.redraw());
