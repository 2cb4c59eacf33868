"""Mount the canvases of experiments/viewer/canvases/ on a Streamlit page, and read what they report back.

A canvas reports by setting a value of its component's state: the window of a timeline for which it requests single
spans, or the rank that was clicked. Everything that comes from a browser is validated here.
"""

import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import streamlit as st

from experiments.runs.record import Run
from experiments.specification.experiment import LONGEST
from experiments.viewer import canvases, palette
from experiments.viewer.canvases.timeline import Unfolded, View, Window

MOUNT = """
export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  const canvas = mount(parentElement, asBytes(data), { ask: setStateValue, tell: setTriggerValue });
  return () => canvas.stop();
}
"""


def _component(name: str):
    parts = canvases.parts(name)
    return st.components.v2.component(f"lockstep_{name}", **{**parts, "js": parts["js"] + MOUNT})


_curve, _timeline, _landscape = map(_component, canvases.NAMES)

_map = st.components.v2.component(
    "lockstep_map",
    html='<div class="map"></div>',
    css=f"""
.map {{ overflow-x: auto; font: 14px var(--st-font); color: var(--st-text-color); font-variant-numeric: tabular-nums }}
table {{ border-collapse: separate; border-spacing: 2px; width: 100%; min-width: max-content }}
th {{ font-weight: 400; opacity: 0.75; padding: 4px 8px; white-space: nowrap }}
th[scope="row"], th:first-child {{ text-align: right }}
td {{ text-align: center; height: 42px; min-width: 62px; padding: 0 }}
button {{ width: 100%; height: 42px; border: 1px solid transparent; border-radius: 3px; cursor: pointer; font: inherit;
  color: {palette.DARK}; background: {palette.HEAT[0][1]} }}
@media (forced-colors: active) {{ button {{ forced-color-adjust: none }} }}
button:hover, button:focus-visible {{ outline: 2px solid var(--st-primary-color); outline-offset: 1px }}
""",
    js="""
export default function ({ data, parentElement, setTriggerValue }) {
  const box = parentElement.querySelector(".map");
  box.innerHTML = data;
  box.onclick = (event) => {
    const cell = event.target.closest("[data-cell]");
    if (cell) setTriggerValue("cell", cell.dataset.cell.split(" ").map(Number));
  };
}
""",
)


def heat_map(table: str, on_cell: Callable[[], None], key: str):
    """Draw the table from charts.heat; on_cell() is called when a cell is clicked (see `cell`)."""
    return _map(data=table, key=key, on_cell_change=on_cell)


def cell(state: Any) -> tuple[int, int] | None:
    """Return the validated (column, row) of a click on a map, or None."""
    said = state.get("cell") if isinstance(state, dict) else None
    if not isinstance(said, list | tuple) or len(said) != 2 or not all(type(one) is int for one in said):
        return None
    return said[0], said[1]


def curve(frame: bytes, key: str):
    """Draw the curves in `frame`, which canvases.curve.frame has packed."""
    return _curve(data=frame, key=key)


def _ignore() -> None:
    """Do nothing: the page reads the component's state when it is drawn."""


def timeline(frame: bytes, key: str = "timeline", on_trouble: Callable[[], None] = _ignore):
    """Draw the timeline in `frame`, packed by canvases.timeline.frame or canvases.schedule.frame.

    on_trouble() is called when the reader injects a fault in it (see `trouble`).
    """
    return _timeline(
        data=frame, key=key, on_window_change=_ignore, on_rank_change=_ignore, on_trouble_change=on_trouble
    )


def landscape(frame: bytes):
    """Draw the landscape in `frame`, packed by canvases.landscape.frame or canvases.landscape.pending."""
    return _landscape(data=frame, key="landscape", on_seen_change=lambda: None)


def requested_window(state: Any, name: str) -> Window | None:
    """Return the validated time window that the browser requests for run `name`, or None."""
    asked = state.get("window") if isinstance(state, dict) else None
    if not isinstance(asked, dict) or asked.get("run") != name:
        return None
    edges = (asked.get("from"), asked.get("to"))
    if not all(isinstance(edge, int | float) and math.isfinite(edge) for edge in edges) or edges[0] >= edges[1]:
        return None
    return float(edges[0]), float(edges[1])


def clicked_rank(state: Any, run: Run, name: str) -> tuple[int, float] | None:
    """Return the validated (rank, time in s) of a click on a rank of run `name`, or None."""
    said = state.get("rank") if isinstance(state, dict) else None
    if not isinstance(said, dict) or said.get("run") != name:
        return None
    rank, at = said.get("rank"), said.get("at")
    if type(rank) is not int or not 0 <= rank < run.trace.ranks or not isinstance(at, int | float):
        return None
    return (rank, float(at)) if 0 <= at < math.inf else None


class Trouble(NamedTuple):
    """A fault that the reader injects in a timeline: `rank` computes `value` times slower than the others ("slow"), is
    lost at `value` s ("lost"), or messages have a latency of `value` s ("latency").
    """

    kind: str
    rank: int
    value: float


def trouble(state: Any, run: Run, name: str) -> Trouble | None:
    """Return the validated fault that the reader injected in the timeline of run `name`, or None."""
    said = state.get("trouble") if isinstance(state, dict) else None
    if not isinstance(said, dict) or said.get("run") != name:
        return None
    kind, rank, value = said.get("kind"), said.get("rank", 0), said.get("value")
    if type(rank) is not int or not 0 <= rank < run.trace.ranks or not isinstance(value, int | float):
        return None
    within = {"slow": (0.01, 1000), "lost": (0, LONGEST), "latency": (0, 10)}.get(kind, (1, 0))
    return Trouble(kind, rank, float(value)) if within[0] <= value <= within[1] else None


def parse_view(text: Any) -> View:
    """Parse the browser's JSON report of what timeline and curves show; drop invalid parts."""
    try:
        said = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        said = None
    said = said if isinstance(said, dict) else {}
    return view([said.get("from"), said.get("to")], said.get("why"), said.get("zoom"), said.get("critical") is True)


def view(window: Any, wait: Any, zoom: Any, critical: bool = False) -> View:
    """Return a View with the valid ones of these parts; the others are None.

    `window` and `zoom` are (from, to), and `wait` is (rank, moment, times walked back).
    """

    def numbers(values: Any, count: int) -> bool:
        known = isinstance(values, list | tuple) and len(values) == count
        return known and all(isinstance(one, int | float) and 0 <= one < math.inf for one in values)

    def edges(values: Any) -> Window | None:
        return (float(values[0]), float(values[1])) if numbers(values, 2) and values[0] < values[1] else None

    known = numbers(wait, 3) and max(wait[0], wait[2]) < 1e6
    return View(
        edges(window), Unfolded(int(wait[0]), float(wait[1]), int(wait[2])) if known else None, edges(zoom), critical
    )


def is_in_view(state: Any, name: str) -> bool:
    """Return True if the browser reports that the pictures of run `name` have scrolled into view."""
    return isinstance(state, dict) and state.get("seen") == name
