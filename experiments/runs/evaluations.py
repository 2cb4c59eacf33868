"""Evaluate the reported models on held-out data, outside the run's clock.

Ranks report the model they would ship, or their part of it. Reports with the same index form one model: parts are
joined, and several reports of one part (replicas, gossip) are averaged; their spread is the mean square of their
distance from that average. A rank that ended early is left out of later models if the others still have every part.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cluster.event_log import EventLog
from kernels import meter_kernels, to_numpy
from workloads.workload import Evaluation, Workload

COLUMNS = ("seconds", "step", "samples", "bytes", "loss", "accuracy", "spread")


class Model(NamedTuple):
    """A reported model, complete `seconds` after the start of the run; number 0 is the initial model."""

    number: int
    seconds: float
    w: np.ndarray  # (d,)
    spread: float = 0.0  # of the replicas that w is the mean of


def complete(event_logs: Sequence[EventLog], over: bool) -> list[int]:
    """Return the complete report indices: those for which every reporting rank has a report, unless it ended before
    that report.

    Unless the run is `over`, no rank is assumed to have ended.
    """
    kept = [{row[0] for row in j.reports} for j in event_logs if j.reports]
    if not kept:
        return []
    last = [max(indices) for indices in kept]
    until = max(last) if over else min(last)
    candidates = sorted({i for indices in kept for i in indices if i <= until})
    return [i for i in candidates if all(i in mine or i > end for mine, end in zip(kept, last, strict=True))]


def evenly(indices: Sequence[int], count: int) -> list[int]:
    """Return at most `count` of the sorted `indices`, as evenly spread as possible, including the last."""
    if len(indices) <= count:
        return list(indices)
    wanted = np.linspace(indices[-1] / count, indices[-1], count)
    array = np.asarray(indices)
    right = np.clip(np.searchsorted(array, wanted), 1, len(array) - 1)
    nearer = np.where(wanted - array[right - 1] < array[right] - wanted, right - 1, right)
    return array[np.unique(nearer)].tolist()


def assemble(event_logs: Sequence[EventLog], index: int, parameters: int) -> Model | None:
    """Return the model of the reports with this index, or None if they do not cover all of it."""
    parts, seconds = [], 0.0
    for event_log in event_logs:
        for number, reported, start, stop, part in event_log.reports:
            if number == index:
                parts.append(_part(event_log, start, stop, part))
                seconds = max(seconds, reported)
    w = _joined(parts, parameters)
    return None if w is None else Model(index, seconds, w, _spread(parts, w))


def final(event_logs: Sequence[EventLog], results: Sequence, parameters: int) -> np.ndarray | None:
    """Return the final model, or None if none was reported. It consists of what the reporting ranks returned, or
    reported last.

    A rank returns its parts one after the other, followed by any parts that another rank reports for it. Ranks that
    returned nothing, because they were lost, are left out if the others have every part.
    """
    returned, reported = [], []
    for event_log, result in zip(event_logs, results, strict=True):
        latest = {(start, stop): part for _, _, start, stop, part in event_log.reports}
        ends = np.cumsum([stop - start for start, stop in sorted(latest)], dtype=int)
        whole = len(ends) > 0 and len(getattr(result, "shape", ())) == 1 and result.shape[0] >= ends[-1]
        own = to_numpy(result)[: ends[-1]] if whole else None
        parts = [latest[place] for place in sorted(latest)] if own is None else np.split(own, ends[:-1])
        for (start, stop), part in zip(sorted(latest), parts, strict=True):
            reported.append(_part(event_log, start, stop, part))
            if result is not None:
                returned.append(reported[-1])
    whole = _joined(returned, parameters)
    return _joined(reported, parameters) if whole is None else whole


class ModelPart(NamedTuple):
    """The part of a model that one rank reports."""

    key: tuple[int, int]  # the same for replicas of a part
    where: slice | np.ndarray  # in the whole model
    w: np.ndarray


def _part(event_log: EventLog, start: int, stop: int, w: np.ndarray) -> ModelPart:
    return ModelPart((start, stop), event_log.places.get((start, stop), slice(start, stop)), w)


def _joined(parts: list[ModelPart], parameters: int) -> np.ndarray | None:
    if not parts:
        return None
    total, count = np.zeros(parameters, parts[0].w.dtype), np.zeros(parameters, np.int32)
    with np.errstate(all="ignore"):
        for _, where, part in parts:
            total[where] = total[where] + part if count[where].any() else part
            count[where] += 1
        if not count.all():
            return None
        return total if count.max() == 1 else total / count.astype(total.dtype)


def _spread(parts: list[ModelPart], w: np.ndarray) -> float:
    """Return the mean of |x - w|^2 over replicas, or 0 if there is one replica of each part."""
    replicas = len(parts) / len({part.key for part in parts})
    if replicas == 1:
        return 0.0
    with np.errstate(all="ignore"):
        return sum(float(np.square(part - w[where], dtype=float).sum()) for _, where, part in parts) / replicas


class Axes:
    """A converter from a time of the run to steps, samples and bytes."""

    def __init__(self, losses: dict[str, np.ndarray], messages: dict[str, np.ndarray]):
        """`losses` must be sorted by their column `seconds`, and `messages` by their column `sent`."""
        self.seconds, self.sent = losses["seconds"], messages["sent"]
        self.ranks = max(1, len(np.unique(losses["rank"])))
        per_rank = np.lexsort([losses["samples"], losses["rank"]])
        before = np.diff(losses["samples"][per_rank], prepend=0)
        first = np.diff(losses["rank"][per_rank], prepend=-1) != 0
        new = np.empty(len(per_rank), np.int64)  # samples of each single row
        new[per_rank] = np.where(first, losses["samples"][per_rank], before)
        self.samples = np.concatenate([[0], np.cumsum(new)])
        self.bytes = np.concatenate([[0], np.cumsum(messages["bytes"])])

    def at(self, seconds: float) -> tuple[float, int, int]:
        """Return (mini-batches per training rank, on average; samples of all ranks; bytes sent) up to this time."""
        done = int(np.searchsorted(self.seconds, seconds, side="right"))
        sent = int(np.searchsorted(self.sent, seconds, side="right"))
        return done / self.ranks, int(self.samples[done]), int(self.bytes[sent])


def evaluate(workload: Workload, w: np.ndarray) -> Evaluation:
    """Return held-out loss and accuracy at w. This takes no time on any rank's clock."""
    with meter_kernels(None), np.errstate(all="ignore"):
        return Evaluation(*map(float, workload.evaluate(w)))


def table(models: Sequence[Model], measure: Callable[[np.ndarray], Evaluation], axes: Axes) -> dict[str, np.ndarray]:
    """Return the columns of Run.evaluations, one row per model, in order of time."""
    rows = [(m.seconds, *axes.at(m.seconds), *measure(m.w), m.spread) for m in sorted(models, key=lambda m: m.seconds)]
    cells = zip(*rows, strict=True) if rows else ([] for _ in COLUMNS)
    types = ("f8", "f8", "i8", "i8", "f8", "f8", "f8")
    return {name: np.array(cell, dtype) for name, cell, dtype in zip(COLUMNS, cells, types, strict=True)}
