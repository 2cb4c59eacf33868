// Keeps the session's verdicts on the ten questions in the browser's storage, and tells a new session what it lacks.
// What was stored first counts. Without storage the verdicts last as long as the session.
const KEY = "lockstep-verdicts"; // also in progress.js, which forgets it
let told = ""; // once: a session that cannot read it would be told for ever

export default function ({ data, setTriggerValue }) {
  const mine = JSON.parse(data.document);
  let kept;
  try {
    kept = { ...mine, ...JSON.parse(localStorage.getItem(KEY) ?? "{}") };
    if (Object.keys(kept).length) localStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    return; // no storage, or no JSON in it
  }
  const news = JSON.stringify(kept);
  if (news === told || Object.keys(kept).every((query) => query in mine)) return;
  told = news;
  setTriggerValue("kept", news);
}
