// A reader's progress in the browser's storage: the rules of lessons/progress.py and lessons/returning.py.
// A plain script, not a module: it defines `progress` in any page or component that includes it.
const progress = (() => {
  const KEY = "lockstep-progress";
  const INTERVALS = [1, 3, 7, 21, 60];
  const DAY = 86_400_000;
  const EMPTY = { lockstep: 1, reader: "", answers: [], passed: [], places: {}, scores: {} };

  const identity = (a) => [a.at, a.chapter, a.item, a.place].join("\n");
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const question = (a) => `${a.chapter}.${a.item}`;

  /** Return both documents as one: no answer is lost, the best score counts, and places of `other` take precedence. */
  function merge(one, other) {
    const answers = new Map([...other.answers, ...one.answers].map((a) => [identity(a), a]));
    const scores = { ...one.scores };
    for (const [chapter, score] of Object.entries(other.scores)) {
      const mine = scores[chapter] ?? score;
      const better = score.score - mine.score || compare(score.at, mine.at);
      scores[chapter] = better > 0 ? score : mine;
    }
    const before = Object.entries(one.places).filter(([chapter]) => !Object.hasOwn(other.places, chapter));
    return {
      lockstep: 1,
      reader: other.reader || one.reader,
      answers: [...answers.keys()].sort(compare).map((key) => answers.get(key)),
      passed: [...new Set([...one.passed, ...other.passed])].sort(compare),
      places: { ...Object.fromEntries(before), ...other.places },
      scores,
    };
  }

  /** Return what is stored. Throw if there is no storage, or if it has another version of the document. */
  function read() {
    let stored = null;
    const text = localStorage.getItem(KEY);
    try { stored = JSON.parse(text); } catch { /* text that is not JSON contains no progress */ }
    if (stored && stored.lockstep !== 1) throw new Error("progress of another version is stored");
    return merge(EMPTY, { ...EMPTY, ...stored });
  }

  /** Merge a document into what is stored, and return that. Stored places stay, and the name too unless `renamed`. */
  function keep(document, renamed = false) {
    const merged = merge(document, read());
    if (renamed) merged.reader = document.reader;
    localStorage.setItem(KEY, JSON.stringify(merged));
    return merged;
  }

  /** Store where the reader is, as the last place in the document. */
  function arrive(chapter, anchor) {
    const stored = read();
    if (stored.places[chapter] === anchor && Object.keys(stored.places).at(-1) === chapter) return;
    localStorage.setItem(KEY, JSON.stringify(merge(stored, { ...EMPTY, places: { [chapter]: anchor } })));
  }

  /** Delete what is stored here, and the verdicts on the workbench's questions. */
  const forget = () => [KEY, "lockstep-verdicts"].forEach((key) => localStorage.removeItem(key));

  /** Return the document with one more answer; a prediction that is answered is passed. */
  function recorded(document, answer) {
    const passed = answer.place === "predict" ? [question(answer)] : [];
    const at = answer.at ?? new Date().toISOString();
    return merge(document, { ...EMPTY, answers: [{ ...answer, at }], passed });
  }

  /** Return all questions that were answered, the most urgent first: {chapter, item, urgency, at}. */
  function returns(answers, chapters) {
    const histories = new Map(), latest = {};
    for (const a of answers) {
      if (!histories.has(question(a))) histories.set(question(a), []);
      histories.get(question(a)).push(a);
      latest[a.chapter] = a.at;
    }
    const found = [...histories.values()].map((history) => {
      const last = history.at(-1), { chapter, item } = last;
      if (!last.right) return { chapter, item, urgency: last.sure === 2 ? 0 : 1, at: last.at, last: last.at };
      const trailing = history.slice(history.findLastIndex((a) => !a.right) + 1);
      const days = new Set(trailing.map((a) => a.at.slice(0, 10))).size;
      const wait = last.sure ? INTERVALS[Math.min(days, INTERVALS.length) - 1] : 1;
      let at = new Date(Date.parse(last.at) + wait * DAY).toISOString();
      if (last.sure && days === 1 && chapters.includes(chapter)) {
        const begun = chapters.slice(chapters.indexOf(chapter) + 1).map((c) => latest[c] ?? "");
        at = [at, ...begun.filter((time) => time > last.at)].sort(compare)[0];
      }
      return { chapter, item, urgency: last.sure ? 3 : 2, at, last: last.at };
    });
    const order = (a, b) =>
      a.urgency - b.urgency || compare(a.last, b.last) || compare(a.chapter, b.chapter) || compare(a.item, b.item);
    return found.sort(order).map(({ last, ...one }) => one);
  }

  const due = (returning, when = new Date().toISOString()) => returning.filter((one) => one.at <= when);

  return { KEY, EMPTY, merge, read, keep, arrive, forget, recorded, returns, due };
})();
