"""Progress of a running experiment: how much of its budget is spent, its curve, and the evaluations so far."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cluster.event_log import EventLog
from experiments.runs import evaluations
from experiments.specification.experiment import Experiment
from workloads.workload import Evaluation, Workload

POINTS = 300  # of a live curve: more than a screen shows
EVALUATING = 0.1  # share of the time that evaluating for the live curve may take


@dataclass(frozen=True)
class Progress:
    """The state of a run. Arrays are thinned; the finished Run has everything.

    curve   seconds, step, samples, loss: means over ranks and neighbouring steps
    tried   seconds, loss, accuracy: the reported model on held-out data so far
    phase   what a real cluster does before its clock starts, "" from then on (see cluster.real.processes.run)
    """

    fraction: float  # of the budget, 0 to 1; 0 while unknown (a target loss)
    seconds: float  # of the run's own clock
    loss: float  # of the latest point, NaN before the first
    evaluation: Evaluation | None
    curve: dict[str, np.ndarray]
    tried: dict[str, np.ndarray]
    phase: str = ""


class Curve:
    """The training loss by step, in bins that grow so that there are never more than twice POINTS."""

    def __init__(self) -> None:
        self.width = 1  # steps per bin
        self.bins = np.zeros((0, 4))  # rows, seconds, loss, samples: sums over the rows of a bin
        self._read: dict[int, tuple[int, int]] = {}  # rank -> (rows, samples) taken so far

    def add(self, event_logs: Sequence[EventLog]) -> None:
        """Add the losses recorded since the last call to the bins."""
        new = []
        for event_log in event_logs:
            done, samples = self._read.get(event_log.rank, (0, 0))
            recorded = event_log.losses[done:]
            for step, so_far, seconds, loss in recorded:
                new.append((step, seconds, loss, so_far - samples))
                samples = so_far
            self._read[event_log.rank] = (done + len(recorded), samples)
        if not new:
            return
        rows = np.array(new)  # (rows, 4)
        steps = np.maximum(rows[:, 0], 0).astype(int)
        last = int(steps.max())
        while last // self.width >= 2 * POINTS:
            self.width *= 2
            if len(self.bins) % 2:
                self.bins = np.vstack([self.bins, np.zeros((1, 4))])
            self.bins = self.bins[0::2] + self.bins[1::2]
        missing = last // self.width + 1 - len(self.bins)
        if missing > 0:
            self.bins = np.vstack([self.bins, np.zeros((missing, 4))])
        rows[:, 0] = 1
        np.add.at(self.bins, steps // self.width, rows)

    def columns(self) -> dict[str, np.ndarray]:
        """Return seconds, step, samples and loss of the bins that have rows."""
        full = np.flatnonzero(self.bins[:, 0])
        count, seconds, loss, samples = self.bins[full].T if len(full) else np.zeros((4, 0))
        return {
            "seconds": seconds / count,
            "step": (full + 0.5) * self.width,
            "samples": np.cumsum(samples),
            "loss": loss / count,
        }


class ProgressObserver:
    """A callback that turns a cluster's reports (event_logs, seconds) into Progress, and evaluates the latest model now
    and then.
    """

    def __init__(self, experiment: Experiment, workload: Workload, per_epoch: int, tell: Callable[[Progress], None]):
        self.experiment, self.workload, self.tell = experiment, workload, tell
        self.limit = experiment.budget.limit(per_epoch)
        self.workers = range(experiment.servers, experiment.ranks)
        self.curve = Curve()
        self.tried: list[tuple[float, float, float]] = []
        self._index, self._spent, self._began = 0, 0.0, time.perf_counter()

    def __call__(self, event_logs: Sequence[EventLog], seconds: float) -> None:
        self.curve.add(event_logs)
        self._try(event_logs)
        self._tell(self._fraction(event_logs, seconds), seconds)

    def prepare(self, phase: str) -> None:
        """Report the phase of a real cluster whose clock has not started."""
        self._tell(0.0, 0.0, phase)

    def _tell(self, fraction: float, seconds: float, phase: str = "") -> None:
        curve = self.curve.columns()
        tried = np.array(self.tried).reshape(-1, 3).T
        self.tell(
            Progress(
                fraction=fraction,
                seconds=seconds,
                loss=float(curve["loss"][-1]) if len(curve["loss"]) else float("nan"),
                evaluation=Evaluation(*self.tried[-1][1:]) if self.tried else None,
                curve=curve,
                tried=dict(zip(("seconds", "loss", "accuracy"), tried, strict=True)),
                phase=phase,
            )
        )

    def _try(self, event_logs: Sequence[EventLog]) -> None:
        start = time.perf_counter()
        if self._spent > EVALUATING * (start - self._began):
            return
        indices = evaluations.complete(event_logs, over=False)
        if not indices or indices[-1] <= self._index:
            return
        self._index = indices[-1]
        model = evaluations.assemble(event_logs, self._index, self.workload.parameters)
        if model:
            self.tried.append((model.seconds, *evaluations.evaluate(self.workload, model.w)))
        self._spent += time.perf_counter() - start

    def _fraction(self, event_logs: Sequence[EventLog], seconds: float) -> float:
        shares = [0.0]
        if self.limit:
            shares.append(sum(event_logs[rank].step + 1 for rank in self.workers) / len(self.workers) / self.limit)
        if self.experiment.seconds:
            shares.append(seconds / self.experiment.seconds)
        return min(1.0, max(shares))
