// In the popover of the link: when it opens, reports once what the page's timeline and curves show.
export default function ({ data, setStateValue }) {
  const now = JSON.stringify(view());
  if (now !== data.view) setStateValue("view", now);
}

// The view of the topmost timeline that follows the page's clock, and the range of x that the topmost curves are zoomed to
// (experiments/viewer/canvases).
function view() {
  const top = (one) => one.stage.getBoundingClientRect().top;
  const first = (all) => all.filter((one) => one.stage.isConnected).sort((one, other) => top(one) - top(other))[0];
  const lanes = first([...(window.lockstepTimelines ?? [])].filter((one) => one.clock === window.lockstepClock && one.spans));
  const curve = first([...(window.lockstepCurves ?? [])].filter((one) => one.frame));
  return { ...lanes?.view(), zoom: curve?.window?.x ?? null };
}
