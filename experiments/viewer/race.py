"""A race: two runs on one clock, from the start to a held-out loss that is their finish.

A race is drawn as the curves of both runs over time, with the finish across them, and as one timeline of both.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from experiments.runs.record import Run
from experiments.runs.seeds import pair_by_seed
from experiments.viewer import curves, palette, pictures, waits
from experiments.viewer.canvases import timeline, topology
from experiments.viewer.canvases.timeline import Flag, View, Window
from experiments.viewer.lanes import lane_names, slowed_lanes, troubles
from experiments.viewer.pictures import Arrival, Finish, Picture, Shown
from experiments.viewer.saved import labels_of_several
from experiments.viewer.story import end_times
from experiments.wording import units

DEAD_HEAT = 0.005  # largest difference of a dead heat, as a share of the winner's time


def finish(runs: Sequence[Run]) -> float | None:
    """Return the target loss, which is the highest of the runs' final held-out losses, or None if no run has one.

    A run that diverged does not count, and does not arrive.
    """
    ends = [run.summary.get("held_out_loss") for run in runs if run.status != "diverged"]
    known = [end for end in ends if end is not None]
    return max(known, default=None)


def heats(shown: Sequence[Shown]) -> list[tuple[Run, Run]]:
    """Return the pairs of runs that race each other: one pair for each seed."""
    one, other = shown
    return pair_by_seed(one.runs, other.runs)


def arrivals(shown: Sequence[Shown], target: float) -> list[Arrival]:
    """Return when each method reaches the held-out loss `target`, earliest first.

    With several seeds, this is the mean of their arrivals, and NaN unless all of them arrive.
    """
    times = _times(shown, target)
    behind = f" (mean of {len(times)} seeds)" if len(times) > 1 else ""
    each = [
        Arrival(f"{_method(one)}{behind}" if behind else one.name, one.line.colour, float(own.mean()))
        for one, own in zip(shown, times.T, strict=True)
    ]
    return sorted(each, key=lambda one: math.inf if math.isnan(one.seconds) else one.seconds)


def verdict(shown: Sequence[Shown], target: float) -> str:
    """Return a sentence on who wins and by how much. With several seeds, a win requires that all of them agree."""
    goal, times = f"a held-out loss of {units.loss(target)}", _times(shown, target)
    if np.isnan(times).all():
        tried = f" with any of {len(times)} seeds" if len(times) > 1 else ""
        lowest = min(run.summary.get("best_held_out_loss") or math.inf for heat in heats(shown) for run in heat)
        return f"Neither reaches {goal}{tried}: the lowest loss of the two is {units.loss(lowest)}."
    if not times.any():
        return f"No race: both start at or below {goal}. Set a lower finish."
    return _of_many(shown, goal, times) if len(times) > 1 else _of_one(shown, target, goal)


def _of_one(shown: Sequence[Shown], target: float, goal: str) -> str:
    """Return the verdict on one run of each method."""
    first, second = arrivals(shown, target)
    seeds = {one.run.experiment.seed for one in shown}
    given = f"With seed {seeds.pop()}" if len(seeds) == 1 else "In one run of each"
    there = f"{goal} after {units.seconds(first.seconds)}{_clock(shown)}"
    late = second.seconds - first.seconds
    if late <= DEAD_HEAT * first.seconds:
        return f"{given} it is a dead heat: both reach {there}."
    behind = "never does" if math.isnan(late) else f"gets there {units.seconds(late)} later{_longer(first, second)}"
    return (
        f"{given} {first.name} is first: it reaches {there}. {second.name} {behind}. With one seed, this may be chance."
    )


def _of_many(shown: Sequence[Shown], goal: str, times: np.ndarray) -> str:
    """Return the verdict on several seeds with the arrivals `times`, (seeds, 2), in s."""
    known, names = np.where(np.isnan(times), np.inf, times), [_method(one) for one in shown]
    ahead = known * (1 + DEAD_HEAT) < known[:, ::-1]
    wins, seeds = ahead.sum(axis=0), len(times)
    first = int(wins.argmax())
    second = 1 - first
    took = f" To {goal} {names[first]} {_took(times[:, first])}{_clock(shown)}"
    took += f", {names[second]} {_took(times[:, second])}"
    if wins[first] == seeds:
        ratios = times[:, second] / times[:, first]
        ends = dict.fromkeys(units.number(one, 2) for one in (ratios.min(), ratios.max()))
        many = f", {' to '.join(ends)} times as long, seed by seed" if np.isfinite(ratios).all() else ""
        return f"{names[first]} wins in all {seeds} seeds.{took}{many}."
    if not wins.any():
        return f"A dead heat in all {seeds} seeds.{took}."
    level = f", and {seeds - wins.sum()} end in a dead heat" if wins.sum() < seeds else ""
    score = f"{names[first]} is first in {wins[first]} of {seeds} seeds, {names[second]} in {wins[second]}{level}"
    return f"No winner: {score}.{took}."


def _took(times: np.ndarray) -> str:
    """Return a phrase for the times that a method takes over its seeds: their mean and standard deviation if all seeds
    arrived.
    """
    there = times[~np.isnan(times)]
    if len(there) == len(times):
        return f"takes {units.seconds(float(times.mean()), float(times.std(ddof=1)))}"
    return f"gets there in only {len(there)} of {len(times)} seeds" if len(there) else "never gets there"


def _times(shown: Sequence[Shown], target: float) -> np.ndarray:
    """Return the times in s at which both runs of each heat reach the loss `target`: (seeds, 2), with NaN for a run
    that never does.
    """
    return np.array([[curves.time_to_loss(run, target) for run in heat] for heat in heats(shown)])


def _method(one: Shown) -> str:
    """Return the name of a run without its number of seeds."""
    return one.name.removesuffix(f", {len(one.runs)} seeds")


def _clock(shown: Sequence[Shown]) -> str:
    """Return the words that follow a time and name the clock of both runs."""
    simulated = [one.run.experiment.cluster == "simulated" for one in shown]
    if all(simulated):
        return " of virtual time"
    return ", one in virtual time and one measured" if any(simulated) else " as measured"


def _longer(first: Arrival, second: Arrival) -> str:
    """Return a phrase for how much longer the second run takes from the start, or "" if the first arrives at time 0."""
    ratio = second.seconds / first.seconds if first.seconds else math.inf
    if ratio == math.inf:
        return ""
    much = f"{100 * (ratio - 1):.2g} %" if ratio < 1.095 else f"{units.number(ratio, 2)} times"
    return f": it takes {much} {'longer' if ratio < 1.095 else 'as long'}"


def picture(shown: Sequence[Shown], target: float) -> Picture:
    """Return a picture of both runs' losses over time, with a line at the finish and a logarithmic loss axis."""
    most = max(run.summary["seconds"] for heat in heats(shown) for run in heat)
    drawn = pictures.loss(list(shown), "seconds", True, most)
    unit = most / drawn.x.most
    lines = [replace(one, bare=False) for one in drawn.series]  # the held-out loss decides, so it gets a line
    order = arrivals(shown, target)
    until = most if math.isnan(order[-1].seconds) else order[-1].seconds
    goal = Finish(target, order, verdict(shown, target), until, unit)
    return replace(drawn, series=lines, finish=goal)


def lanes(
    shown: Sequence[Shown], name: str, target: float, window: Window | None = None, view: View | None = None
) -> bytes:
    """Return the packed timelines of both runs, one below the other on one axis."""
    view = view or View()
    names = [f"{palette.MARKS[one.line.symbol]} {lane}" for one in shown for lane in lane_names(one.run)]
    colours = [one.line.colour for one in shown for _ in range(one.run.trace.ranks)]
    first = np.cumsum([0, *(one.run.trace.ranks for one in shown)])
    flags = [
        Flag(at, int(lane), "finish")
        for one, lane in zip(shown, first, strict=False)
        if not math.isnan(at := curves.time_to_loss(one.run, target))
    ]
    whole = timeline.stack_traces([one.run.trace for one in shown])
    told = f"The timelines of {' and, below it, of '.join(one.name for one in shown)}. {verdict(shown, target)}"
    waited = [f"{_method(one)}: {said[0].lower()}{said[1:]}" for one in shown if (said := waits.totals(one.run))]
    return timeline.trace_frame(
        whole, names, told, name, window or view.window, opening=view.window or (0.0, whole.seconds()), flags=flags,
        clock=True, colours=colours, saved=labels_of_several(shown, "race"), wait=view.wait, critical=view.critical,
        told=" ".join(waited), notes=[note for one in shown for note in troubles(one.run)],
        ended=[at for one in shown for at in end_times(one.run)],
        slowed={
            int(below) + lane: factor
            for one, below in zip(shown, first, strict=False)
            for lane, factor in slowed_lanes(one.run).items()
        },
        machines=topology.together(*zip(*((one.run, _method(one), one.line.colour) for one in shown), strict=True)),
    )  # fmt: skip
