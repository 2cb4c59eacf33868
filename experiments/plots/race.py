"""Races: two runs on one clock, from the start to a held-out loss that is their finish.

A race is drawn as the curves of both against time, with the finish across them, and as their timelines in one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from experiments import units
from experiments.plots import curves, palette, pictures
from experiments.plots.canvases import timeline, topology
from experiments.plots.canvases.timeline import Flag, View, Window
from experiments.plots.lanes import troubled_names
from experiments.plots.pictures import Arrival, Finish, Picture, Shown
from experiments.plots.saved import compared
from experiments.runs.record import Run
from tracing import Trace, ordered

DEAD_HEAT = 0.005  # share of the winner's time within which both arrive together


def finish(runs: Sequence[Run]) -> float | None:
    """Return the loss that all runs reach: the worst of their final held-out losses. None if no run has one.

    A run that diverged sets no finish, and will not arrive.
    """
    ends = [run.summary.get("held_out_loss") for run in runs if run.status != "diverged"]
    known = [end for end in ends if end is not None]
    return max(known, default=None)


def arrivals(shown: Sequence[Shown], target: float) -> list[Arrival]:
    """Return when each run arrives at the held-out loss `target`, those that do first and by time."""
    each = [Arrival(one.name, one.line.colour, curves.reached(one.run, target)) for one in shown]
    return sorted(each, key=lambda one: math.inf if math.isnan(one.seconds) else one.seconds)


def verdict(shown: Sequence[Shown], target: float) -> str:
    """Return who wins and by how much, in a sentence."""
    first, second = arrivals(shown, target)
    goal = f"a held-out loss of {units.number(target)}"
    if math.isnan(first.seconds):
        lowest = min(one.run.summary.get("best_held_out_loss") or math.inf for one in shown)
        return f"Neither reaches {goal}: the lowest of both is {units.number(lowest)}."
    there = f"{goal} after {units.seconds(first.seconds)}{_clock(shown)}"
    if math.isnan(second.seconds):
        return f"{first.name} wins: it reaches {there}. {second.name} never does."
    late = second.seconds - first.seconds
    if late <= DEAD_HEAT * first.seconds:
        return f"A dead heat: both reach {there}."
    return (
        f"{first.name} wins: it reaches {there}. {second.name} gets there {units.seconds(late)} later"
        f"{_longer(first, second)}."
    )


def _clock(shown: Sequence[Shown]) -> str:
    """Return on which clock both are timed, behind a time."""
    simulated = [one.run.experiment.cluster == "simulated" for one in shown]
    if all(simulated):
        return " of virtual time"
    return ", one in virtual time and one measured" if any(simulated) else " as measured"


def _longer(first: Arrival, second: Arrival) -> str:
    """Return how much longer the second takes from the start, "" if the first is there at once."""
    ratio = second.seconds / first.seconds if first.seconds else math.inf
    if ratio == math.inf:
        return ""
    much = f"{100 * (ratio - 1):.2g} %" if ratio < 1.095 else f"{units.number(ratio, 2)} times"
    return f": it takes {much} {'longer' if ratio < 1.095 else 'as long'}"


def picture(shown: Sequence[Shown], target: float) -> Picture:
    """Return the losses of both runs against time, with the finish across them; decades, since it lies low."""
    most = max(one.run.summary["seconds"] for one in shown)
    drawn = pictures.loss(list(shown), "seconds", True, most)
    unit = most / drawn.x.most
    lines = [replace(one, bare=False) for one in drawn.series]  # what is judged is the held-out loss
    order = arrivals(shown, target)
    until = most if math.isnan(order[-1].seconds) else order[-1].seconds
    goal = Finish(target, order, verdict(shown, target), until, unit)
    return replace(drawn, series=lines, finish=goal)


def lanes(
    shown: Sequence[Shown], name: str, target: float, window: Window | None = None, view: View | None = None
) -> bytes:
    """Return the timelines of both runs, one below the other on one axis, packed for the browser."""
    view = view or View()
    names = [f"{palette.MARKS[one.line.symbol]} {lane}" for one in shown for lane in troubled_names(one.run)]
    colours = [one.line.colour for one in shown for _ in range(one.run.trace.ranks)]
    first = np.cumsum([0, *(one.run.trace.ranks for one in shown)])
    flags = [
        Flag(at, int(lane), "finish")
        for one, lane in zip(shown, first, strict=False)
        if not math.isnan(at := curves.reached(one.run, target))
    ]
    whole = stacked([one.run.trace for one in shown])
    told = f"The timelines of {' and, below it, of '.join(one.name for one in shown)}. {verdict(shown, target)}"
    return timeline.framed(
        whole, names, told, name, window or view.window, opening=view.window or (0.0, whole.seconds()), flags=flags,
        clock=True, colours=colours, saved=compared(shown, "race"), wait=view.wait,
        machines=topology.together(*zip(*((one.run, one.name, one.line.colour) for one in shown), strict=True)),
    )  # fmt: skip


def stacked(traces: Sequence[Trace]) -> Trace:
    """Return all traces in one: the ranks of each are the lanes below those of the one before."""
    labels = tuple(dict.fromkeys(label for trace in traces for label in trace.labels))
    sides, below = [], 0
    for trace in traces:
        place = np.array([labels.index(label) for label in trace.labels] or [0], np.int32)
        spans, messages = trace.spans, trace.messages
        sides.append(
            (
                {**spans, "rank": spans["rank"] + below, "label": place[spans["label"]]},
                {**messages, "src": messages["src"] + below, "dst": messages["dst"] + below},
            )
        )
        below += trace.ranks
    spans, messages = (
        {name: np.concatenate([side[table][name] for side in sides]) for name in sides[0][table]} for table in (0, 1)
    )
    return Trace(below, ordered(spans, "start", "rank"), ordered(messages, "sent", "src"), labels)
