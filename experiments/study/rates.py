"""Search for the best learning rate of an experiment. Only the rate is varied, and each rate is tried with several
seeds.

Rates are 1, 2 and 5 times powers of ten. The search climbs: first in large strides towards the lowest final held-out
loss, averaged over seeds, then in single ones until both neighbours are worse. A rate at which a run of any seed
diverges is worse than every other. If three seeds cannot separate the best rate from its neighbour, and the difference
would matter, the search continues with eight.
"""

import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from algorithms.rates import find_rate
from experiments.execution.run import check, run
from experiments.jobs.spec import JobSpec
from experiments.specification.experiment import Experiment
from experiments.study.sweep import stored_sweep

SEEDS = (0, 1, 2)
SECOND_LOOK = tuple(range(8))  # seeds that decide where fewer cannot
LOWEST, HIGHEST = -18, 9  # rungs: 1e-6 to 1000


def rung(number: int) -> float:
    """Return the learning rate on a rung of the ladder: 1 on rung 0, 2 on rung 1, 5 on rung 2, 10 on rung 3.

    >>> [rung(n) for n in (-3, -2, -1, 0, 1, 2, 3)]
    [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
    """
    power, place = divmod(number, 3)
    return float(f"{(1, 2, 5)[place]}e{power}")


def nearest(rate: float) -> int:
    """Return the rung whose learning rate is nearest to `rate`, by ratio.

    >>> nearest(0.2), nearest(0.29), nearest(700)
    (-2, -2, 8)
    """
    return min(range(LOWEST, HIGHEST + 1), key=lambda number: abs(math.log(rung(number) / rate)))


@dataclass
class Search:
    """A search for a learning rate, running or finished. `losses` are by rung, then by seed, and infinite for a run
    that did not finish.

    No run is made twice. With a folder `root`, where runs are stored, those of earlier searches are not repeated
    either.
    """

    experiment: Experiment
    seeds: Sequence[int] = SEEDS
    root: str | Path | None = None
    tell: Callable[[float, list[float]], None] | None = None
    losses: dict[int, dict[int, float]] = field(default_factory=dict)

    def at(self, number: int, seed: int) -> Experiment:
        """Return the experiment with this seed, at the learning rate of this rung."""
        return self.experiment.change(learning_rate=rung(number), seed=seed)

    def loss(self, number: int, seeds: Sequence[int] | None = None) -> float:
        """Return the final held-out loss at this rung, averaged over the seeds, or infinity if a run did not finish.
        Missing runs are made first.
        """
        done, seeds = self.losses.setdefault(number, {}), self.seeds if seeds is None else seeds
        for seed in seeds:
            if seed not in done:
                done[seed] = end(self.at(number, seed), self.root)
                if self.tell:
                    self.tell(rung(number), list(done.values()))
            if math.isinf(done[seed]):
                return math.inf
        return sum(done[seed] for seed in seeds) / len(seeds)

    def climb(self, number: int, stride: int, seeds: Sequence[int] | None = None) -> int:
        """Return the rung, found by climbing from `number`, at which neither a stride up nor a stride down lowers the
        loss.
        """
        while True:
            around = [n for n in (number, number - stride, number + stride) if LOWEST <= n <= HIGHEST]
            best = min(around, key=lambda n: self.loss(n, seeds))
            if math.isinf(self.loss(best, seeds)):
                best = number - stride  # all diverged: lower
                if best < LOWEST:
                    return number
            if best == number:
                return number
            number = best

    def best(self, start: int) -> int:
        """Return the rung with the lowest loss, climbing from rung `start`: with the first seed, and then with all.

        If these cannot decide, `seeds` become those of SECOND_LOOK.
        """
        near = self.climb(start, 3, self.seeds[:1])
        found = self.climb(self.climb(near, 1, self.seeds[:1]), 1)
        if len(self.seeds) < len(SECOND_LOOK) and not self.is_settled(found):
            self.seeds = SECOND_LOOK
            found = self.climb(found, 1)
        return found

    def is_settled(self, number: int) -> bool:
        """Return True if more seeds would hardly change which of the neighbouring rates is best.

        The rate leads a neighbour by two standard errors of their paired difference, or this error is at most a
        tenth of its loss, so that little is lost by the wrong choice. One seed has no error.
        """
        loss = self.loss(number)
        for beside in (number - 1, number + 1):
            if len(self.seeds) > 1 and beside in self.losses and math.isfinite(loss + self.loss(beside)):
                leads = [self.losses[beside][seed] - self.losses[number][seed] for seed in self.seeds]
                error = stdev(leads) / math.sqrt(len(leads))
                if fmean(leads) < 2 * error and error > loss / 10:
                    return False
        return True

    def interior(self, number: int) -> bool:
        """Return True if both neighbouring rates were tried and neither has a lower loss."""
        return all(n in self.losses and self.loss(n) >= self.loss(number) for n in (number - 1, number + 1))


def end(experiment: Experiment, root: str | Path | None = None) -> float:
    """Run the experiment, and return its final held-out loss, or infinity unless the run finished.

    With a folder `root` the run is stored there, or read if it is stored already.
    """
    done = next(stored_sweep([experiment], root)).outcome if root else run(experiment).outcome
    loss = done.summary["held_out_loss"]
    return loss if done.status == "finished" and loss is not None and math.isfinite(loss) else math.inf


def at_best(experiment: Experiment, root: str | Path) -> tuple[Experiment, str]:
    """Return (the experiment at its best learning rate, a phrase on where the rate comes from).

    The rate comes from the table if the experiment is in it; otherwise it is searched for on the simulated cluster and
    stored under `root`. Raise ValueError if all rates diverge.
    """
    if rate := rate_in_table(experiment):
        return experiment.change(learning_rate=rate), "from the table of searches"
    spec = job_spec(experiment)
    found = _result(spec.find_result(root) or spec.perform(root))
    seeds = len(found["losses"][str(found["best"])])
    return experiment.change(learning_rate=found["best"]), f"searched for with seeds 0 to {seeds - 1}"


def rate_in_table(experiment: Experiment) -> float | None:
    """Return the best learning rate in the table, or None if the experiment differs from the table's in a setting that
    affects it.
    """
    plain = Experiment.of({"algorithm": experiment.algorithm, "workload": experiment.workload})
    model = experiment.data.get("model")
    if model != plain.data.get("model"):
        plain = plain.change(model=model)
    line = find_rate(experiment.algorithm, experiment.workload, model or "")
    return line.best if line and bare(experiment) == bare(plain) else None


def bare(experiment: Experiment) -> Experiment:
    """Return the experiment on the simulated cluster, with everything a search varies or ignores at its default."""
    return experiment.change(learning_rate=None, seed=None, evaluations=1, cluster=None)


def job_spec(experiment: Experiment) -> JobSpec:
    """Return the spec of the job that searches for an experiment's best learning rate."""
    return JobSpec("rate", {"experiment": bare(experiment).flat()})


def perform(values: dict[str, Any], root: Path, progress: Callable[[float], None] = lambda part: None) -> Path:
    """Search for the best learning rate and return the folder of the result. Raise ValueError if the experiment cannot
    run or always diverges.
    """
    experiment = Experiment.of(values["experiment"])
    check(experiment)
    done = itertools.count(1)
    search = Search(experiment, tell=lambda rate, losses: progress(1 - 0.9 ** next(done)))  # about fifteen runs
    best = search.best(nearest(experiment.settings["learning_rate"]))
    if math.isinf(search.loss(best)):
        raise ValueError(
            f"{experiment.algorithm} diverged at every learning rate tried, from {rung(best):g} up to the starting "
            "rate; change another setting, such as a larger batch."
        )
    losses = {rung(n): list(one.values()) for n, one in search.losses.items()}
    return JobSpec("rate", values).keep_json(root, "rate.json", {"best": rung(best), "losses": losses})


def read(folder: Path) -> float:
    return _result(folder)["best"]


def _result(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "rate.json").read_text("utf-8"))
