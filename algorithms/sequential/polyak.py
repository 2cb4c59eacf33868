"""Polyak-Ruppert averaging is SGD that returns the mean of its models over time and never trains from it.

    w <- w - lr t^-q g(w)        z <- z + a (w - z)        t = 1, 2, ...

From step `after` on, a = 1 / (steps since then): z is the arithmetic mean of all models since; or a is constant and z
is an exponential average. Until then z is w. Near the optimum w keeps fluctuating, and its mean does not; the variance
of the mean, s^2 / (h^2 T) with gradient noise s and curvature h, is independent of the rate.

Price: no communication; one more vector, z. Staleness: none.
Source: Polyak & Juditsky, SIAM Journal on Control and Optimization 30(4), 1992; Ruppert, Cornell TR 781, 1988.
"""

from typing import Literal

import kernels
from algorithms.algorithm import Equivalence, Knobs, knob, sequential


class Settings(Knobs):
    learning_rate: float = knob(0.2, "initial step size", gt=0, le=1000)
    decay: float = knob(
        0.0,
        "q, exponent of the rate's decay 1 / t^q; theory requires more than 1/2; 0 keeps it constant",
        ge=0,
        lt=1,
    )
    average: Literal["uniform", "exponential"] = knob(
        "uniform", "how models are averaged over time: uniform or exponential"
    )
    weight: float = knob(
        0.01, "a, weight of the newest model in the exponential average", when={"average": ("exponential",)}, gt=0, le=1
    )
    after: int = knob(100, "steps before averaging begins", ge=0, le=10_000_000, unit="steps")

    def share(self, step):
        """Return a, the weight of this step's model in the average."""
        if step < self.after:
            return 1.0
        return 1 / (step - self.after + 1) if self.average == "uniform" else self.weight


def notes(e):
    s = e.knobs
    if e.steps and e.steps <= s.after + 1 and not s.decay:
        half = e.steps // 2
        yield f"Averaging begins after step {s.after}, but the run ends first: this is sgd; set after to {half}."


def worker(comm, task, s=Settings()):
    w, z = task.start(), kernels.keep(task.start())  # (d,), (d,)
    for step in task.steps():
        _, g = task.gradient(w)
        kernels.sgd(w, g, s.learning_rate * (step + 1) ** -s.decay)
        kernels.ema(z, w, s.share(step))
        task.report(z)
    return z


ALGORITHM = sequential(
    worker,
    Settings,
    notes=notes,
    equivalences=(
        Equivalence(
            "an average that keeps nothing of the past gives SGD",
            to="sgd",
            exactness="RND",
            settings={"average": "exponential", "weight": 1, "after": 0},
        ),
    ),
)
