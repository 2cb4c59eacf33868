// The playground: a form for one run with any settings. The address has those of the last run, so it can be shared.
(() => {
  const box = document.querySelector("[data-playground]"), share = document.querySelector(".share");
  if (!lockstep.live.possible) {
    box.textContent = trials.SENTENCE;
    return;
  }
  const data = reader.data.playground, linked = location.hash.slice(1);
  if (linked) {
    const given = new URLSearchParams(linked);
    data.query = linked;
    for (const field of data.fields) field.value = given.get(field.name) ?? field.default;
  }
  new trials.Trial(box, data);
  const start = () => lockstep.live.start().catch(() => {}); // a run tries again, and says what is wrong
  box.addEventListener("focusin", start, { once: true });
  box.addEventListener("computed", ({ detail }) => {
    history.replaceState(null, "", `#${detail.query}`);
    share.hidden = false;
  });
  share.addEventListener("click", async () => {
    await navigator.clipboard.writeText(location.href);
    share.textContent = "Copied";
    setTimeout(() => { share.textContent = "Copy the link"; }, 2000);
  });
})();
