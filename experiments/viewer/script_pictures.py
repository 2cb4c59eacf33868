"""A run of a script in pictures: its timeline and its losses."""

from dataclasses import replace

import numpy as np

from cluster.script_summary import counted_spans
from experiments.runs.script_run import ScriptRun
from experiments.viewer import palette, waits
from experiments.viewer.canvases import curve, timeline
from experiments.viewer.canvases.timeline import Window
from experiments.viewer.canvases.topology import machines
from experiments.viewer.lanes import lane_names
from experiments.viewer.pictures import Axis, Picture, Series
from experiments.wording.script_summary import heading
from experiments.wording.sentences import capital
from tracing import KINDS, Trace

READABLE = 40  # spans of a rank up to which a timeline opens at full length
OPENED = 3  # steps at which a longer one opens


def timeline_frame(run: ScriptRun, name: str, window: Window | None = None) -> bytes:
    """Return the timeline of a script's run for the browser; `name` identifies it (see timeline.frame)."""
    trace, why = run.trace, run.causes
    if not run.summary.steps:  # no optimizer takes a step, so no span belongs to one, and no step could be shorter
        trace = Trace(
            trace.ranks, {**trace.spans, "step": np.full_like(trace.spans["step"], -1)}, trace.messages, trace.labels
        )
        why = replace(why, without=np.zeros_like(why.without))
    return timeline.trace_frame(
        trace, lane_names(run), timeline.describe(run), name, window, opening=opening(run.trace),
        saved=labels(run, "timeline"), machines=machines(run), known=why,
        told=waits.totals_of(run.trace, run.causes, lane_names(run), counted_spans(run.trace, run.summary.steps)),
    )  # fmt: skip


def opening(trace: Trace) -> Window | None:
    """Return the window (s) of some steps in the middle of a long trace, or None for a short one."""
    steps, start, end = (trace.spans[name] for name in ("step", "start", "end"))
    last = int(steps.max(initial=-1))
    if len(start) <= READABLE * trace.ranks or last <= OPENED:
        return None
    first = (last - OPENED) // 2
    some = (steps >= first) & (steps < first + OPENED)
    return (float(start[some].min()), float(end[some].max())) if some.any() else None


def curves(run: ScriptRun) -> dict[str, Picture]:
    """Return pictures, by name, of the losses that backward() was called on and of what the script logged.

    They are drawn over the steps of the optimizer or, if there are none, one value after the other.
    """
    over = "steps done" if run.summary.steps else "values before"
    named = {}
    if losses := run.summary.losses:
        named["Loss (passed to backward)"] = _picture(losses, "loss", over)
    for name, by_step in run.summary.logged.items():
        named[capital(name)] = _picture(by_step, name, over)
    return named


def curve_frame(run: ScriptRun, name: str, picture: Picture) -> bytes:
    """Return the frame of one of the pictures of `curves`, which is called `name`, for the browser."""
    y = picture.series[0].y
    return curve.frame(picture, f"{name}: from {y[0]:.4g} to {y[-1]:.4g}.", name, labels(run, picture.y.name))


def waits_table(run: ScriptRun) -> dict[str, np.ndarray]:
    """Return a table of all waits: the rank, the rank it waits for, the operation, the line of the script, start and
    end (s).
    """
    names = ("rank", "waits_for", "in", "line", "start", "end")
    return {name: np.array([wait[number] for wait in run.waits], object) for number, name in enumerate(names)}


def spans_table(run: ScriptRun) -> dict[str, np.ndarray]:
    """Return a table of what each rank did and when, with kinds and labels in words."""
    spans, words = run.trace.spans, {"kind": KINDS, "label": run.trace.labels}
    return spans | {name: np.array(known, object)[spans[name]] for name, known in words.items() if len(spans[name])}


def labels(run: ScriptRun, picture: str) -> dict:
    """Return the file name and heading for saving a picture of this run."""
    return {"file": f"{stem(run)}-{picture}", "heading": heading(run.experiment)}


def stem(run: ScriptRun) -> str:
    """Return the beginning of the names of a run's files, such as "train-8-ranks"."""
    e = run.experiment
    return f"{e.name.removesuffix('.py')}-{e.ranks}-ranks"


def _picture(by_step: dict[int, float], name: str, over: str) -> Picture:
    steps, values = np.array([*by_step]), np.array([*by_step.values()])
    colour, dash, symbol = palette.RUNS[0]
    series = Series(steps.astype(float), values, colour, dash, symbol, name=name, bare=len(steps) == 1)
    finite = values[np.isfinite(values)]
    low, high = min(0.0, float(finite.min(initial=0.0))), float(finite.max(initial=0.0))
    x = Axis(over, 0.0, float(steps[-1]) or 1.0)
    return Picture([series], x, Axis(name, low, high * 1.08 if high > low else low + 1.0))
