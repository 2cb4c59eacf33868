// Keeps the session's verdicts on questions in the browser's storage, and tells a new session what it lacks. If a question
// has two verdicts, the stored one counts. Without storage, verdicts last as long as the session.
const KEY = "lockstep-verdicts"; // also in progress.js, which deletes it
let told = ""; // only once, or a session that cannot read it would be told forever

export default function ({ data, setTriggerValue }) {
  const mine = JSON.parse(data.document);
  let kept;
  try {
    kept = { ...mine, ...JSON.parse(localStorage.getItem(KEY) ?? "{}") };
    if (Object.keys(kept).length) localStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    return; // no storage, or not JSON
  }
  const news = JSON.stringify(kept);
  if (news === told || Object.keys(kept).every((query) => query in mine)) return;
  told = news;
  setTriggerValue("kept", news);
}
