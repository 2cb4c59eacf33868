// What this page knows about its reader. progress.js keeps it in the browser's storage; without storage, it is lost
// when the page closes.
const reader = (() => {
  const chapter = document.body.dataset.chapter ?? "";
  const data = JSON.parse(document.getElementById("data")?.textContent ?? "{}");
  let document_ = progress.EMPTY;
  try { document_ = progress.read(); } catch { /* private windows of some browsers have no storage */ }

  function keep(changed) {
    document_ = changed;
    try { document_ = progress.keep(changed); } catch { /* this visit only */ }
    dispatchEvent(new Event("progress"));
  }

  return {
    chapter,
    data,
    get document() { return document_; },
    answers: (of, item) => document_.answers.filter((a) => a.chapter === of && a.item === item),
    answer: (answer) => keep(progress.recorded(document_, answer)),
    pass: (of, item) => keep(progress.merge(document_, { ...progress.EMPTY, passed: [`${of}.${item}`] })),
    passed: (item, of = chapter) => document_.passed.includes(`${of}.${item}`),
    arrive: (anchor) => { try { progress.arrive(chapter, anchor); } catch { /* nowhere to note it */ } },
    take: (document) => keep(progress.merge(document_, document)),
    forget: () => { try { progress.forget(); } catch { /* nothing was kept */ } document_ = progress.EMPTY; dispatchEvent(new Event("progress")); },
  };
})();
