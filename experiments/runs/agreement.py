"""Compare two runs: whether they are the same training, bit for bit or up to rounding, or where they first differ.

The runs may be of different experiments, such as one worker with a batch of 64 and four with 16 each. A hash of the
model tells only whether its bits are equal. So the training losses are compared, each over the same samples in both
runs, and finally the held-out losses of the two final models. A difference is a share of the largest loss so far.
Rounding is recognised by how differences grow: each update adds about one unit in the last place (eps), and later
updates multiply it. In measured pairs that differ only by rounding, no loss differed by more than 33 times the largest
earlier difference, or 320 times at an edge of stability. A different sample, rate or rule makes the first losses that
it affects differ by hundreds to millions of eps at once.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from experiments.runs.difference import tolerance
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.wording import units

Verdict = Literal["bits", "rounding", "parted", "grown", "longer"]

LEAP = 64  # times the largest earlier difference, or eps: more than rounding adds in one update of stable training
SURE = 1000  # times: more than rounding adds in any update


class Agreement(NamedTuple):
    """What two runs have in common.

    verdict   "bits": the final models are equal; "rounding": no difference exceeds rounding; "parted": a loss
              suddenly differs by more; "grown": differences grew past rounding gradually, or from one that had already
              grown; "longer": equal up to rounding for as long as the shorter run lasts
    samples   number of samples over which losses are equal up to rounding
    update    the first update, counted from 1, whose loss is not; None if there is none, or if the runs' updates have
              different samples
    apart     the largest difference of losses, as a share of the largest loss so far
    models    the largest difference of the final models, as a share of their largest weight; None if one has none
    ended     True if only the final models differ: every training loss is equal up to rounding
    """

    verdict: Verdict
    samples: int
    update: int | None
    apart: float
    models: float | None
    ended: bool = False

    @property
    def same(self) -> bool:
        """True if the runs are the same training, at least up to rounding."""
        return self.verdict in ("bits", "rounding")


def agreement(a: Run, b: Run) -> Agreement | None:
    """Return how far two runs agree. Return None if they cannot be compared because they have different data or models,
    or no losses.
    """
    one, other = a.experiment, b.experiment
    models = _models(a, b)
    if (one.workload, one.files) != (other.workload, other.files) or (models is None and _both_ended(a, b)):
        return None
    samples, apart = _by_sample(a, b)
    most = float(apart.max(initial=0.0))
    if models == 0 and _dtype(a) == _dtype(b):
        return Agreement("bits", int(samples.max(initial=0)), None, most, models)
    if not len(samples):
        return None
    whole = _samples(a) == _samples(b)
    if whole and models is not None:
        apart = np.append(apart, _held_out(a, b))
        most = float(apart.max())
    eps, limit = (max(of(run) for run in (a, b)) for of in (_eps, tolerance))
    before = np.maximum.accumulate(np.append(eps, apart))[:-1]
    first = np.flatnonzero((apart > LEAP * before) | (apart > limit))
    if not len(first):
        return Agreement("rounding" if whole else "longer", int(samples[-1]), None, most, models)
    at = int(first[0])
    ended = at == len(samples)
    counted = not ended and a.updates == b.updates == len(samples)
    word: Verdict = "parted" if at == 0 or apart[at] > SURE * before[at] else "grown"
    return Agreement(word, int(samples[at - 1]) if at else 0, at + 1 if counted else None, most, models, ended)


def is_expected(a: Experiment, b: Experiment) -> bool:
    """Return True if a reader may expect two runs of these experiments to be the same training.

    That is the case if they have the same algorithm, or if one algorithm is declared to be equivalent to the other with
    these settings.
    """
    return a.algorithm == b.algorithm or _claims(a, b) or _claims(b, a)


def _claims(a: Experiment, b: Experiment) -> bool:
    def has(e: Experiment, settings: Mapping[str, Any]) -> bool:
        return all(e.settings.get(name) == value for name, value in settings.items())

    claims = [one for one in a.method.equivalences if one.to == b.algorithm and (one.workers > 1 or a.workers == 1)]
    return any(has(a, one.settings) and has(b, one.to_settings) for one in claims)


def verdict(found: Agreement) -> str:
    """Return what two runs have in common, as a sentence without a full stop."""
    apart = "" if found.models is None else f"the models differ by at most {found.models:.0e} of their largest weight"
    if found.verdict == "bits":
        return "the same model, bit for bit"
    if found.verdict == "rounding":
        return f"the same training: {apart or f'losses differ by at most {found.apart:.0e}'}, which is rounding"
    if found.verdict == "longer":
        return f"the same training, up to rounding, for {found.samples:,} samples; then only one run continues"
    if found.ended:
        return f"the same losses, up to rounding, in all updates, but a different model at the end: {apart}"
    if found.verdict == "grown":
        return (
            f"the same, up to rounding, for {found.samples:,} samples; then the difference grows to "
            f"{units.share(found.apart)} of the loss. Either training amplified rounding, which --precision float64 "
            "makes a billion times smaller, or their settings differ slightly"
        )
    if not found.samples:
        return "not the same training: they differ from the first update on"
    where = f"before update {found.update:,}" if found.update else f"for {found.samples:,} samples"
    return f"not the same training: equal up to rounding {where}, different from then on"


def _both_ended(a: Run, b: Run) -> bool:
    return a.parameters is not None and b.parameters is not None


def _by_sample(a: Run, b: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return the sample counts that both runs reach, and the differences of the runs' mean losses between these
    counts.
    """
    (n, x), (m, y) = _rows(a), _rows(b)
    samples, i, j = np.intersect1d(n.cumsum(), m.cumsum(), assume_unique=True, return_indices=True)
    if not len(samples):
        return samples, np.zeros(0)
    means = [
        np.add.reduceat(count * loss, np.append(0, ends[:-1] + 1))[: len(ends)] / np.diff(samples, prepend=0)
        for count, loss, ends in ((n[: i[-1] + 1], x[: i[-1] + 1], i), (m[: j[-1] + 1], y[: j[-1] + 1], j))
    ]
    return samples, _shares(*means)


def _rows(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return (samples, loss) of each mini-batch, in order of step and rank, over all workers."""
    order = np.lexsort([run.losses["rank"], run.losses["step"]])
    rank, total = run.losses["rank"][order], run.losses["samples"][order]
    count = total.copy()
    for one in np.unique(rank):
        own = np.flatnonzero(rank == one)
        count[own] = np.diff(total[own], prepend=0)
    return count[count > 0], run.losses["loss"][order][count > 0]


def _shares(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return |u - v| as a share of the largest finite value so far. It is infinite where only one of u and v is
    finite.
    """
    finite = np.isfinite(u) & np.isfinite(v)
    scale = np.maximum.accumulate(np.where(finite, np.maximum(abs(u), abs(v)), 0.0))
    apart = np.where(np.isfinite(u) == np.isfinite(v), 0.0, np.inf)
    apart[finite] = abs(u[finite] - v[finite]) / np.where(scale[finite] > 0, scale[finite], 1.0)
    return apart


def _held_out(a: Run, b: Run) -> float:
    """Return the difference of the final held-out losses, as a share of the largest held-out loss."""
    tried = [run.evaluations["loss"] for run in (a, b)]
    if not all(map(len, tried)):
        return 0.0
    largest = np.nanmax([np.nanmax(some) for some in tried])
    return float(_shares(*(np.array([largest, some[-1]]) for some in tried))[1])


def _models(a: Run, b: Run) -> float | None:
    u, v = a.parameters, b.parameters
    if u is None or v is None or u.shape != v.shape:
        return None
    u, v = u.astype(float), v.astype(float)
    return float(abs(u - v).max(initial=0.0) / (max(abs(u).max(initial=0.0), abs(v).max(initial=0.0)) or 1.0))


def _dtype(run: Run) -> np.dtype | None:
    return None if run.parameters is None else run.parameters.dtype


def _samples(run: Run) -> int:
    return int(_rows(run)[0].sum())


def _eps(run: Run) -> float:
    return run.experiment.eps
