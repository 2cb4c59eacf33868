"""Search for the learning rates in `algorithms/rates.toml`, one for each algorithm on each workload and model.

If two algorithms take the same steps at the rate where searches begin, they are the same computation with different
communication and share one line: GPipe, DAPPLE and zero bubble need only one search.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context

import numpy as np

import algorithms
from algorithms.rates import FEW, STEPS, Rate
from experiments.execution.run import check, run, workload_of
from experiments.jobs.dask_cluster import mapping
from experiments.specification.experiment import Experiment
from experiments.study.rates import SEEDS, Search, end, rung
from workloads.workload import Workload

PAIRS = (
    *(("digits", model) for model in ("mlp", "residual", "cnn", "cnn_bn")),
    *(("spirals", model) for model in ("mlp", "residual")),
    *((workload, "") for workload in ("sparse", "quadratic", "text")),
)
START = -3  # 0.1
# workers; 6 is not a power of two, so gossip pairs workers differently, and backup workers are a different share
MORE = (6, 8, 16)
LEARNED = 0.75  # share of the way from the initial to the lowest loss that a rate has to reach
NEAR = 0.8  # share of that way that the best rate has to reach, or the line gets a note
FEWER_BEAR, MORE_BEAR = (1, 2), (1, 2, 4, 8, 16)  # divisors of the rate to try with fewer and with more workers
TIE = 1.1  # losses within this factor of the lowest count as equal, and the larger rate is taken
SLOW = (
    "After {steps} steps its held-out loss is {loss:.2g} even at its best rate; the lowest of all methods here is "
    "{lowest:.2g}. Give it more steps."
)
ALIKE = 1e-3  # relative difference between losses of two algorithms that compute the same in a different order


@dataclass(frozen=True)
class Beginning:
    """The first run of a search: the experiment, and its results at the rate where searches begin."""

    experiment: Experiment
    curve: np.ndarray  # mini-batch losses, averaged over the ranks of a step
    loss: float
    seconds: float  # wall time of the run


def lines(
    pair: tuple[str, str], names: Sequence[str], jobs: int, tell: Callable[[str], None], address: str = ""
) -> Iterator[tuple[str, Rate]]:
    """Yield (algorithm, its line of the table) for each algorithm that can run on the workload, as the searches end.

    Searches run in `jobs` processes of this machine, or on the Dask cluster at `address`.
    """
    tell(f"{' '.join(pair)}: running each algorithm once first")
    with mapping(address) if address else _processes(jobs) as imap:
        begun = dict(zip(names, imap(_begin, [(name, *pair) for name in names]), strict=True))
        able = {name: one for name, one in begun.items() if one}
        if refused := [name for name in names if name not in able]:
            tell(f"refused: {', '.join(refused)}")
        groups = alike(able)
        chosen = [min((able[name] for name in group), key=lambda one: one.seconds) for group in groups]
        for group, found in zip(groups, imap(_line, chosen), strict=True):
            tell(f"{', '.join(group)}: {in_words(found)}")
            yield from ((name, found) for name in group)


@contextmanager
def _processes(jobs: int) -> Iterator[Callable[[Callable, Iterable], Iterator]]:
    with get_context("spawn").Pool(jobs, _one_thread) as pool:
        yield pool.imap


def in_words(found: Rate) -> str:
    """Return a line of the table as a phrase, such as "best rate 0.5, with a held-out loss of 0.112; ..."."""
    best = f"best rate {found.best:g}, with a held-out loss of {found.loss:g}"
    return f"{best}; default {found.rate:g}, with more than {FEW} workers {found.many:g}"


def alike(begun: dict[str, Beginning]) -> list[list[str]]:
    """Return groups of algorithms that had the same losses and have the same number of workers."""
    groups: list[list[str]] = []
    for name, one in begun.items():
        group = next((group for group in groups if same(one, begun[group[0]])), None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    return groups


def same(one: Beginning, other: Beginning) -> bool:
    """Return True if two runs learned the same, step by step, and the loss moved enough to tell."""
    if one.curve.shape != other.curve.shape or not np.isfinite([one.loss, other.loss]).all():
        return False
    moved = np.ptp(one.curve) > 0.1 * abs(one.curve[0])
    near = np.allclose(one.curve, other.curve, ALIKE) and math.isclose(one.loss, other.loss, rel_tol=ALIKE)
    return bool(moved and near)


def experiment_of(name: str, workload: str, model: str, workers: int = FEW) -> Experiment | None:
    """Return the experiment at its defaults with the largest possible number of workers up to `workers`, or None."""
    for fewer in range(workers, 0, -1):
        values = {"algorithm": name, "workload": workload, "workers": fewer, "evaluations": 1}
        try:
            made = Experiment.of({**values, **({"model": model} if model else {})})
            check(made)
            return made
        except ValueError:
            continue
    return None


def line(experiment: Experiment, seeds: Sequence[int] = SEEDS) -> Rate:
    """Return the table's line for an experiment at its defaults: learning rates for its number of workers, for fewer,
    and for more.
    """
    search = Search(experiment, seeds)
    best = search.best(START)
    loss = search.loss(best)
    workload = workload_of(experiment)
    start = workload.evaluate(workload.start(0)).loss
    enough = start - LEARNED * (start - loss)
    few, few_loss = fewer(experiment), 0.0
    rate, missed = largest_rate([*few, experiment], rung(best), FEWER_BEAR, enough, seeds)
    if missed:  # then the fewest workers decide; if they tolerate neither, half the rate only hurts the others
        half, alone = largest_rate(few[:1], rung(best), FEWER_BEAR, enough, seeds)
        rate = rung(best) if alone else half
        few_loss = lost if (lost := worst(few, rate, seeds)) > enough else 0.0
    many, many_loss = largest_rate(more(experiment), rate, MORE_BEAR, enough, seeds)
    return Rate(rung(best), _short(loss), rate, many, _short(many_loss), _short(few_loss))


def _short(loss: float) -> float:
    return float(f"{loss:.4g}")


def fewer(experiment: Experiment) -> list[Experiment]:
    """Return a copy of the experiment for each smaller number of workers with which it can run, or just the
    experiment.
    """
    return with_workers(experiment, range(1, experiment.workers)) or [experiment]


def more(experiment: Experiment) -> list[Experiment]:
    """Return copies of the experiment with 6, 8 and 16 workers. If it cannot run with 16, use every number above 4 with
    which it can.
    """
    most = with_workers(experiment, MORE[-1:])
    return [*with_workers(experiment, MORE[:-1]), *most] if most else with_workers(experiment, range(FEW + 1, MORE[-1]))


def with_workers(experiment: Experiment, numbers: Iterable[int]) -> list[Experiment]:
    """Return a copy of the experiment for each number of workers in `numbers` with which it can run."""
    able = []
    for number in numbers:
        try:
            check(one := experiment.change(workers=number))
        except ValueError:
            continue
        able.append(one)
    return able


def largest_rate(
    experiments: Sequence[Experiment], rate: float, parts: Sequence[int], enough: float, seeds: Sequence[int]
) -> tuple[float, float]:
    """Return (largest suitable learning rate, 0).

    A rate is one of `rate` / `parts`. It is suitable if the runs of all experiments and seeds end at a loss of at most
    `enough`. If no rate is, return the largest one whose worst final loss is within a tenth of the lowest, and that
    loss. If there are no experiments, return `rate` and 0.
    """
    if not experiments:
        return rate, 0.0
    ends = {}
    for part in parts:
        ends[rate / part] = worst(experiments, rate / part, seeds)
        if ends[rate / part] <= enough:
            return rate / part, 0.0
    lowest = min(ends.values())
    return max((part, loss) for part, loss in ends.items() if loss <= TIE * lowest)


def worst(experiments: Sequence[Experiment], rate: float, seeds: Sequence[int]) -> float:
    """Return the highest final held-out loss over experiments and seeds at this learning rate."""
    return max(end(one.change(learning_rate=rate, seed=seed)) for one in experiments for seed in seeds)


def add_notes(lines: dict[str, Rate], workload: Workload) -> dict[str, Rate]:
    """Return the lines, with a note added to each whose loss stays far above the lowest one even at its best learning
    rate.
    """
    start, lowest = workload.evaluate(workload.start(0)).loss, min(one.loss for one in lines.values())
    enough = start - NEAR * (start - lowest)
    return {
        name: replace(one, note="" if one.loss <= enough else _slow(name, one, lowest)) for name, one in lines.items()
    }


def _slow(name: str, one: Rate, lowest: float) -> str:
    steps = algorithms.find(name).defaults.get("steps", STEPS)
    return SLOW.format(steps=steps, loss=one.loss, lowest=lowest)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)
    os.nice(5)


def _begin(case: tuple[str, str, str]) -> Beginning | None:
    made = experiment_of(*case)
    if made is None:
        return None
    done = run(made.change(learning_rate=rung(START)))
    steps, losses = done.losses["step"], done.losses["loss"]
    curve = np.bincount(steps, losses) / np.maximum(np.bincount(steps), 1) if len(steps) else np.zeros(0)
    loss = done.summary["held_out_loss"]
    finished = done.status == "finished" and loss is not None
    return Beginning(made, curve, loss if finished else math.inf, done.summary["wall_seconds"])


def _line(begun: Beginning) -> Rate:
    return line(begun.experiment)
