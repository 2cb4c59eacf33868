"""Fit the planner's constants of a GPU and its links to short measurements on them.

    product      s = 2 M N Q / (share x peak) + traffic x (bytes of the three matrices) / bandwidth
    memory       s = bytes / (share x bandwidth)           an operation that memory bounds
    attention    s = causal FLOPs / (share x peak)         forward
    all-gather   s = bytes (n-1)/n / rate + hop (n-1)      over n ranks

These are the formulas of `step_time`. Each is linear in the inverse of its share or rate, and in its other constant, so
least squares finds them. Every row is divided by its time, so that short measurements count as much as long ones. A
standard error comes from the residuals, and so contains both noise and what the formula leaves out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from theory.planner.constants import COLLECTIVES, FITTED, Constants
from theory.planner.setup import Gpu


class GpuTimings(NamedTuple):
    """Measured operations of one kind of GPU, each with its time in s."""

    products: Sequence[tuple[int, int, int, float]] = ()  # rows, columns, inner size, time
    memory: Sequence[tuple[float, float]] = ()  # bytes read and written, time
    attention: Sequence[tuple[float, float]] = ()  # causal FLOPs, time
    gathers: Sequence[tuple[int, float, float]] = ()  # ranks, bytes of the gathered array, time


@dataclass(frozen=True)
class MeasuredGpu:
    """The measured constants of one kind of GPU. A constant that was not measured is None. `errors` has their standard
    errors, by the same names.

    Shares are of the peaks `half`, in FLOP/s, and `bandwidth`, in bytes/s. Rates are those that collectives reach.
    """

    device: str
    half: float
    bandwidth: float
    memory_size: float = 0.0  # bytes; needed for a GPU that is not in `setup.GPUS`
    products: float | None = None
    traffic: float | None = None
    memory: float | None = None
    attention: float | None = None
    link: float | None = None  # bytes/s inside a node
    network: float | None = None  # bytes/s of each GPU between nodes
    hop: float | None = None  # s
    errors: dict[str, float] = field(default_factory=dict, hash=False)
    source: str = ""  # the machine, or the file

    @property
    def constants(self) -> Constants:
        """The planner's constants, in which the measured ones replace those fitted to A100 and H100."""
        own = {"products_a100": self.products, "products_h100": self.products, "memory": self.memory}
        own |= {"traffic": self.traffic, "hop": self.hop}
        return FITTED._replace(**{name: value for name, value in own.items() if value is not None})

    def apply(self, gpu: Gpu) -> Gpu:
        """Return `gpu` with the measured rates of attention and links. Its network rate is the rate of a whole node."""
        own: dict[str, float] = {"flash": self.attention} if self.attention else {}
        own |= {"link": self.link / COLLECTIVES} if self.link else {}
        own |= {"network": self.network / COLLECTIVES * gpu.per_node} if self.network else {}
        return replace(gpu, **own)


def fit_gpu(
    device: str, half: float, bandwidth: float, timings: GpuTimings, per_node: int = 0, memory_size: float = 0.0
) -> MeasuredGpu:
    """Fit the constants of a GPU to `timings` and return them. `half` and `bandwidth` are its peaks (FLOP/s, bytes/s),
    and `memory_size` is its memory (bytes).

    The ranks of a gather fill nodes of `per_node` GPUs; 0 for a single node. Raise ValueError if these
    measurements do not determine the constants.
    """
    found: dict[str, tuple[float, float]] = {}
    if timings.products:
        m, n, q, took = np.array(timings.products, float).T
        terms = np.array([2 * m * n * q / half, 2 * (m * n + n * q + m * q) / bandwidth])
        share, found["traffic"] = _solve(terms, took)
        if not share[0]:
            raise ValueError(
                "the times of matrix products do not grow with their FLOPs, so they do not give a share of the peak; "
                "stop other programs on the GPU and measure again."
            )
        found["products"] = _inverse(*share)
    for name, rows, peak in (("memory", timings.memory, bandwidth), ("attention", timings.attention, half)):
        if rows:
            work, took = np.array(rows, float).T
            found[name] = _inverse(*_solve(work[None] / peak, took)[0])
    if timings.gathers:
        ranks, nbytes, took = np.array(timings.gathers, float).T
        per_byte, hop = _solve(np.array([nbytes * (ranks - 1) / ranks, ranks - 1]), took)
        rate = _inverse(*per_byte)
        if per_node:  # all GPUs of a node share its network
            found |= {"network": (rate[0] / per_node, rate[1] / per_node), "hop": hop}
        else:
            found["link"] = rate
    values: dict[str, Any] = {name: value for name, (value, _) in found.items()}
    errors = {name: error for name, (_, error) in found.items()}
    return MeasuredGpu(device, half, bandwidth, memory_size, **values, errors=errors)


def _solve(terms: np.ndarray, took: np.ndarray) -> list[tuple[float, float]]:
    """Fit `took` as a weighted sum of `terms`, (weights, measurements). Return (value, standard error) of each weight.

    Negative weights are set to 0, and the rest are fitted again without them.
    """
    count, rows = terms.shape
    if rows <= count:
        raise ValueError(f"{rows} measurements do not determine {count} constants and their errors; measure more.")
    scaled = terms / took
    values, *_ = np.linalg.lstsq(scaled.T, np.ones(rows), rcond=None)
    if count > 1 and (values < 0).any():
        kept = values > 0
        rest = iter(_solve(terms[kept], took))
        return [next(rest) if use else (0.0, 0.0) for use in kept]
    residual = np.ones(rows) - values @ scaled
    spread = residual @ residual / (rows - count)
    errors = np.sqrt(spread * np.diag(np.linalg.inv(scaled @ scaled.T)))
    return [(float(value), float(error)) for value, error in zip(values, errors, strict=True)]


def _inverse(value: float, error: float) -> tuple[float, float]:
    """Return 1 / `value` and its standard error."""
    return 1 / value, error / value**2
