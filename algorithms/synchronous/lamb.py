"""LARS and LAMB scale the step of every layer to a fraction of the norm of the layer's own weights.

With very large batches, one rate is too high for some layers and too low for others, since |g| / |w| differs a
hundredfold between them. So each tensor's step is rescaled by its own norm, with g the mean gradient of all workers:

    lars    t = eta |w| / (|g| + wd |w|)                     v <- mu v + lr t (g + wd w)        w <- w - v
    lamb    u = adam's direction of g, plus wd w             w <- w - lr (|w| / |u|) u

The factor is 1 where a norm is 0 and, with adapt `matrices`, for biases and other vectors. The rate grows with the
batch from its base, linearly for lars and with the square root for lamb, after a warm-up as in large_batch. Without wd,
multiplying the loss by a positive number changes nothing.

Price: an all-reduce per step, 2 (N-1) d elements in total by the ring; v, or Adam's two vectors and u. Staleness: none.
Source: You, Gitman & Ginsburg, arXiv:1708.03888 (LARS, with eta 0.001 and rates a thousand times as large); You et al.,
ICLR 2020, arXiv:1904.00962 (LAMB).
"""

from math import sqrt
from typing import Literal

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, ring_all_reduces
from algorithms.parts.lr_schedules import WarmUp, linear_scaling, root_scaling, warm_up_rate
from algorithms.parts.optimizers import BETAS


class Settings(Knobs):
    learning_rate: float = knob(
        0.02, "step size at the base batch; where steps are rescaled, a fraction of the weights' norm", gt=0, le=1000
    )
    rule: Literal["lars", "lamb"] = knob("lamb", "what is rescaled: momentum's step (lars), or Adam's (lamb)")
    adapt: Literal["all", "matrices", "none"] = knob("all", "tensors whose steps are rescaled")
    trust: float = knob(1.0, "eta, factor of the rescaled steps", when={"rule": ("lars",)}, gt=0, le=1000)
    momentum: float = knob(0.9, "mu, decay of the velocity", when={"rule": ("lars",)}, ge=0, lt=1)
    eps: float = knob(1e-6, "small constant that keeps Adam's division finite", when={"rule": ("lamb",)}, ge=0, le=1000)
    weight_decay: float = knob(0.0, "wd, share of the weights that is added to the gradient or direction", ge=0, le=1)
    base_batch: int = knob(
        128, "samples per step, over all workers, that the base learning rate is meant for", ge=1, unit="samples"
    )
    warm_up: WarmUp = knob("gradual", "how the learning rate rises to its full value: gradual, constant or none")
    warm_up_epochs: float = knob(
        5.0, "epochs until the full learning rate", unless={"warm_up": ("none",)}, ge=0, le=1000, unit="epochs"
    )

    def rate(self, step, per_epoch, batch):
        """Return the learning rate of this step, at `batch` samples per step of all workers."""
        scaling = linear_scaling if self.rule == "lars" else root_scaling
        peak = scaling(self.learning_rate, batch, self.base_batch)
        return warm_up_rate(self.learning_rate, peak, step, self.warm_up_epochs * per_epoch, self.warm_up)


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,), equal on all ranks, and it stays so
    step_of = Lars(w, s) if s.rule == "lars" else Lamb(w, s)
    rescaled = {"all": 1, "matrices": 2, "none": 99}[s.adapt]  # axes of the tensors whose steps are
    for step in task.steps(together=True):
        rate = s.rate(step, task.per_epoch, comm.size * task.batch)
        _, g = task.gradient(w)
        comm.all_reduce(g, op="mean")
        step_of.prepare(g, step + 1)
        for place, shape in task.tensors:
            step_of.take(w[place], g[place], place, rate, len(shape) >= rescaled)
        if comm.rank == 0:
            task.measure("learning rate", rate)
            task.report(w)
    return w


class Lars:
    def __init__(self, w, s):
        self.s, self.v = s, kernels.state_like(w)

    def prepare(self, g, count):
        """Do nothing: LARS, unlike LAMB, needs only the gradient of one tensor at a time."""

    def take(self, w, g, place, rate, rescaled):
        weights, gradient = norm(w), norm(g)
        if rescaled and weights and gradient:
            rate *= self.s.trust * weights / (gradient + self.s.weight_decay * weights)
        kernels.mix(g, w, 1.0, self.s.weight_decay)
        v = self.v[place]
        kernels.mix(v, g, self.s.momentum, rate)
        kernels.sgd(w, v, 1.0)


class Lamb:
    def __init__(self, w, s):
        self.s, self.u = s, kernels.keep(kernels.empty_like(w))
        self.moments = kernels.state_like(w), kernels.state_like(w)

    def prepare(self, g, count):
        """Set `u` to Adam's direction for all tensors, which is Adam's step from 0 with a rate of -1."""
        self.u[:] = 0
        kernels.adam(self.u, *self.moments, g, count, -1.0, *BETAS, self.s.eps)

    def take(self, w, g, place, rate, rescaled):
        u = self.u[place]
        kernels.mix(u, w, 1.0, self.s.weight_decay)
        weights, direction = norm(w), norm(u)
        if rescaled and weights and direction:
            rate *= weights / direction
        kernels.sgd(w, u, rate)


def norm(x):
    return sqrt(kernels.squared_norm(x))


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=ring_all_reduces,
    computes_together=True,
    compresses="mean",
    equivalences=(
        Equivalence(
            "N workers equal one worker with N times the batch",
            to="lamb",
            exactness="RND",
            workers=4,
            to_workers=1,
            to_batch=4,
        ),
        Equivalence(
            "without rescaled steps LAMB is synchronous Adam",
            to="sync_sgd",
            exactness="RND",
            workers=2,
            settings={"adapt": "none", "eps": 1e-8, "warm_up": "none", "base_batch": 8},
            to_settings={"update": "adam"},
            batch=4,
        ),
        Equivalence(
            "without rescaled steps, and at a constant rate, LARS is synchronous SGD with momentum",
            to="sync_sgd",
            exactness="RND",
            workers=2,
            settings={"rule": "lars", "adapt": "none", "warm_up": "none", "base_batch": 8},
            to_settings={"update": "momentum"},
            batch=4,
        ),
    ),
)
