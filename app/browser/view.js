// In the popover of the link: reports once, as it opens, what the page's timeline and curves show.
export default function ({ data, setStateValue }) {
  const now = JSON.stringify(view());
  if (now !== data.view) setStateValue("view", now);
}

// What the first timeline that follows the page's clock shows, and the part of their axis that the first curves are zoomed
// into (experiments/viewer/canvases).
function view() {
  const top = (one) => one.stage.getBoundingClientRect().top;
  const first = (all) => all.filter((one) => one.stage.isConnected).sort((one, other) => top(one) - top(other))[0];
  const lanes = first([...(window.lockstepTimelines ?? [])].filter((one) => one.clock === window.lockstepClock && one.spans));
  const curve = first([...(window.lockstepCurves ?? [])].filter((one) => one.frame));
  return { ...lanes?.view(), zoom: curve?.window?.x ?? null };
}
