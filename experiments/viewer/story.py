"""Find what a timeline should point out: events, windows worth visiting, and the initial window.

A timeline opens at the first of these that the run has: a lost rank, a pause, a divergence, a wait far longer than a
step. Otherwise it opens at a typical step, even if there is a long wait after other ranks have ended, such as that of a
server for the slowest worker.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from experiments.runs.ending import workers
from experiments.runs.record import Run
from experiments.viewer import curves
from experiments.wording import units
from tracing import IDLE, LOST, PAUSED, WAIT, Trace, sort_rows

READABLE = 14  # spans per lane whose labels can be read
WORTH, NOTABLE = 0.05, 3.0  # length in steps from which a wait gets a window, and from which a timeline opens at it
TOLD = 3  # most losses and pauses that get a window of their own

Window = tuple[float, float]


class Flag(NamedTuple):
    """An event at a moment (s). It concerns one rank or, if the lane is -1, all ranks."""

    at: float
    lane: int
    text: str


class Chip(NamedTuple):
    """A link to a window (s) of the timeline."""

    text: str
    start: float
    end: float


class Story(NamedTuple):
    """What a timeline points out: the initial window (s), or None for the whole run; flags for events; windows worth
    visiting.
    """

    opening: Window | None = None
    flags: tuple[Flag, ...] = ()
    chips: tuple[Chip, ...] = ()


def story(run: Run, names: list[str]) -> Story:
    trace = run.trace
    events = list(_events(run, names))
    flags = tuple(flag for flag, _ in events)
    starts = np.sort(trace.spans["start"])
    total = aftermath(run, names).seconds()
    if len(starts) <= READABLE * trace.ranks:
        return Story(flags=flags)
    steps, together = _step_starts(trace), _together(trace)
    wide = min(_width(trace, starts, steps), total)

    def around(at: float, ahead: float = 0.5) -> Window:
        start = max(0.0, min(at - ahead * wide, total - wide))
        return start, start + wide

    typical = around(_typical(steps, together), 0.02)
    places = [Chip(said, *around(flag.at)) for flag, said in events if said][:TOLD]
    start, end = _longest_wait(trace)
    waited, among_all = (end - start) / _median_step(run, steps), start < together
    if waited > WORTH:
        whole = min(total, max(wide, 1.4 * (end - start)))
        start = max(0.0, min((start + end - whole) / 2, total - whole))
        places.append(Chip("longest wait", start, start + whole))
    chips = (Chip("start", 0.0, wide), Chip("typical step", *typical), *places, Chip("end", total - wide, total))
    told = places[0] if (events and places) or (waited > NOTABLE and among_all) else None
    return Story(told[1:] if told else typical, flags, chips)


def end_times(run: Run) -> list[float | None]:
    """Return the time (s) at which each rank of a finished run ended, or None for a rank that did nothing or was
    lost.
    """
    ends = run.trace.ends()
    if run.status != "finished":
        return [None] * len(ends)
    lost = run.trace.lost_ranks()
    return [float(end) if end and rank not in lost else None for rank, end in enumerate(ends)]


def aftermath(run: Run, names: list[str]) -> Trace:
    """Return the trace of a run with what follows its end: the spans of ranks that wait forever for a lost rank.

    Each of them, and the lost rank, gets one more span, which lasts a typical step beyond the end of the run.
    """
    trace, spans, lost = run.trace, run.trace.spans, run.trace.lost_ranks()
    if run.status != "failed" or not lost or workers(run.experiment) <= lost.keys():  # no rank is left to wait
        return trace
    last = trace.ends()
    newest = max(lost, key=lambda rank: lost[rank])
    until = trace.seconds() + _median_step(run, _step_starts(trace))
    label = f"waits for {names[newest]}, lost"
    ranks = [rank for rank in range(trace.ranks) if last[rank] > 0]
    more = {
        "rank": ranks,
        "kind": [IDLE if rank in lost else WAIT for rank in ranks],
        "start": [last[rank] for rank in ranks],
        "end": [until] * len(ranks),
        "step": [-1] * len(ranks),
        "label": [trace.labels.index(LOST) if rank in lost else len(trace.labels) for rank in ranks],
    }
    joined = {name: np.concatenate([column, np.array(more[name], column.dtype)]) for name, column in spans.items()}
    return Trace(trace.ranks, sort_rows(joined, "start", "rank"), trace.messages, (*trace.labels, label))


def _events(run: Run, names: list[str]) -> Iterator[tuple[Flag, str]]:
    """Yield (flag, label in the list of windows or ""), most important first.

    Labels have the planned times, like the headline, although a rank stops only between two operations.
    """
    spans, total = run.trace.spans, run.trace.seconds()
    crash, pause = run.experiment.crash.by_rank, run.experiment.pause.by_rank
    for n in _idle(run.trace, LOST):
        rank, start, end = int(spans["rank"][n]), float(spans["start"][n]), float(spans["end"][n])
        yield Flag(start, rank, LOST), f"{names[rank]} lost at {units.seconds(crash.get(rank, (start,))[0])}"
        if end < total * (1 - 1e-9) and spans["end"][spans["rank"] == rank].max() > end:
            yield Flag(end, rank, "back"), f"{names[rank]} back at {units.seconds(end)}"
    for n in _idle(run.trace, PAUSED):
        rank, start, end = int(spans["rank"][n]), float(spans["start"][n]), float(spans["end"][n])
        begin, until = next((one for one in pause.get(rank, ()) if one[0] <= start < one[1]), (start, end))
        said = f"{names[rank]} pauses at {units.seconds(begin)} for {units.seconds(until - begin)}"
        yield Flag(start, rank, PAUSED), said
    if run.status == "diverged":
        broken = ~np.isfinite(run.losses["loss"])
        at = float(run.losses["seconds"][broken].min()) if broken.any() else total
        yield Flag(at, -1, "diverged"), f"diverges at {units.seconds(at)}"


def _idle(trace: Trace, label: str) -> np.ndarray:
    """Return the indices of the idle spans with this label, by start."""
    if label not in trace.labels:
        return np.zeros(0, int)
    spans = trace.spans
    return np.flatnonzero((spans["kind"] == IDLE) & (spans["label"] == trace.labels.index(label)))


def _step_starts(trace: Trace) -> np.ndarray:
    """Return the start of each step of the last rank, which trains in every algorithm."""
    mine = trace.spans["rank"] == trace.ranks - 1
    step, start = trace.spans["step"][mine], trace.spans["start"][mine]
    return start[np.flatnonzero((np.diff(step, prepend=-1) != 0) & (step >= 0))]


def _median_step(run: Run, steps: np.ndarray) -> float:
    """Return the median time of a step, in s."""
    step = curves.step_time(run)
    if np.isfinite(step) and step > 0:
        return step
    return float(np.median(np.diff(steps))) if len(steps) > 1 else run.trace.seconds() / 20


def _width(trace: Trace, starts: np.ndarray, steps: np.ndarray) -> float:
    """Return the width, in s, of a window of READABLE spans per lane, or of two steps if that is wider."""
    n = READABLE * trace.ranks
    readable = float(np.median(starts[n:] - starts[:-n]))
    both = 2 * float(np.median(np.diff(steps))) if len(steps) > 1 else 0.0
    return max(readable, both, 1e-12)


def _together(trace: Trace) -> float:
    """Return the time at which the first rank ends (s). A slow rank may train long after the others have ended."""
    ends = trace.ends()
    return float(ends[ends > 0].min())


def _typical(steps: np.ndarray, until: float) -> float:
    """Return the start of a step of about median length, as near as possible to the middle of the time to `until`."""
    if len(steps) < 3:
        return until / 2
    took = np.diff(steps)
    off = np.abs(took - np.median(took))
    usual = np.flatnonzero(off <= np.quantile(off, 0.25))
    return float(steps[usual[np.abs(steps[usual] - until / 2).argmin()]])


def _longest_wait(trace: Trace) -> Window:
    """Return (start, end) of the longest wait of any rank, or (0, 0) if there is none."""
    waits = trace.spans["kind"] == WAIT
    start, end = trace.spans["start"][waits], trace.spans["end"][waits]
    n = int((end - start).argmax()) if len(start) else 0
    return (float(start[n]), float(end[n])) if len(start) else (0.0, 0.0)
