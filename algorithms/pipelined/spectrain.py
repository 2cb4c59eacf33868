"""SpecTrain predicts the weights at the end of a mini-batch, and runs its passes on those.

The pipeline is PipeDream's, 1F1B without a flush, but nothing is stashed. With momentum the next updates are nearly
known, so a pass that will be overtaken by n of them reads

    u = w - n lr v            v <- m v + g        w <- w - lr v

Of S stages, S-1-s updates of stage s lie between a forward and its own backward, and [s/2] more until the mini-batch
has come back to stage 0. `form` says what to predict: end, the weights when stage 0 is done, n = S-1-s + [s/2] forward
and [s/2] backward; own, the weights at its own backward, n = S-1-s forward, stashed and read again backward.

    stage 0   F0 F1 F2 .. .. B0 F3 B1 F4 B2
    stage 1   .. F0 F1 .. B0 F2 B1 F3 B2 F4
    stage 2   .. .. F0 B0 F1 B1 F2 B2 F3 B3        . idle only while the pipeline fills

`fading` sums the velocity as it would decay without new gradients, (m - m^(n+1)) / (1 - m) times, instead of n times.
Without momentum the velocity is one noisy gradient, and predicting does harm.

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step. One copy of the weights and a
scratch (own: S-s stashed predictions), the activations of S-s mini-batches. Staleness: S-1-s updates, less what the
prediction makes up for.
Source: Chen, Yang & Cheng, arXiv:1809.02839; the numbers n as in the authors' code, whose version 2 is `own`.
"""

from collections.abc import Iterator
from typing import Literal

import kernels
from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline.one_f_one_b import one_f_one_b
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.settings import StreamSettings
from algorithms.parts.pipeline.stream_executor import stream


class Settings(StreamSettings):
    learning_rate: float = knob(0.01, "step size", gt=0, le=1000)
    momentum: float = knob(0.9, "fraction of the last step carried into the next (heavy ball)", ge=0, lt=1)
    form: Literal["end", "own"] = knob(
        "end", "weights to predict: at the end of the mini-batch, or at the stage's own backward pass"
    )
    fading: bool = knob(False, "predict weights as if the velocity decayed")


def schedule(rank: int, ranks: int, chunks: float) -> Iterator[Op]:
    """Return the ops of a stream of `chunks` mini-batches, with an update after every backward."""
    return one_f_one_b(rank, ahead=ranks - 1 - rank, per_update=1, chunks=chunks)


def ahead(stage, stages, form="end"):
    """Return (forward, backward): the number of updates of `stage` that each pass looks ahead.

    >>> [ahead(stage, 4) for stage in range(4)]
    [(3, 0), (2, 0), (2, 1), (1, 1)]
    """
    until_own = stages - 1 - stage
    return (until_own, 0) if form == "own" else (until_own + stage // 2, stage // 2)


class PredictedWeights:
    """Weight policy of a stage: passes read weights predicted `ahead` updates in advance, (forward, backward)."""

    versions = 1

    def __init__(self, s, stage, w):
        self.ahead, self.s, self.stash = ahead(stage.index, stage.count, s.form), s, s.form == "own"
        self.v = kernels.state_like(w)

    def forward(self, weights, batch):
        return self.predict(weights, self.ahead[0])

    def backward(self, weights, flight):
        if self.stash:
            return flight.version, flight.w
        return self.predict(weights, self.ahead[1])

    def predict(self, weights, n):
        """Return (version, u): the newest weights, predicted n updates ahead."""
        version, w = weights.newest
        if not n:
            return version, w
        m = self.s.momentum
        w = kernels.copy(w)
        kernels.sgd(w, self.v, self.s.learning_rate * ((m - m ** (n + 1)) / (1 - m) if self.s.fading else n))
        return version, w

    def update(self, w, g):
        kernels.momentum(w, self.v, g, self.s.learning_rate, self.s.momentum)


ALGORITHM = stream(
    schedule,
    Settings,
    PredictedWeights,
    equivalences=(
        Equivalence(
            "one stage has nothing to predict: it is SGD with momentum", to="momentum", to_settings={"momentum": 0.9}
        ),
    ),
    stable_rate=0.01,
)
