"""XPipe predicts weights as SpecTrain does, but once per mini-batch, for all its micro-batches, and along Adam's step.

The pipeline is 1F1B over micro-batches without a flush, with an update every M of them. The first micro-batch of a
mini-batch, the bellwether, counts the missing updates: mini-batch t should read version t, but finds version v; so

    u = w - (t - v) lr step        step: momentum's v, or Adam's m / (sqrt(v) + eps), both corrected for their start
    w <- w - lr (what the rule makes of (g_0 + ... + g_{M-1}) / M)        all g at u

The others of the mini-batch read the same u, and so do all their backwards.

    stage 0   F0 F1 F2 .. .. B0 F3 B1 F4 B2 F5 B3        M = 2: updates after B1 and B3; the bellwethers are F0, F2, F4
    stage 1   .. F0 F1 .. B0 F2 B1 F3 B2 F4 B3 F5
    stage 2   .. .. F0 B0 F1 B1 F2 B2 F3 B3 F4 B4

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step. The newest weights and a
prediction for each mini-batch in flight; the activations of S-s micro-batches. Staleness: (S-1-s) / M updates, rounded
up, less what the prediction makes up for.
Source: Guan et al., arXiv:1911.04610 and arXiv:2312.00839. Here the missing updates are counted, since the paper's
formula could not be checked. With M = 1 and momentum it is SpecTrain's form `own`.
"""

from collections.abc import Iterator
from typing import Literal

import kernels
from algorithms.algorithm import Equivalence, knob
from algorithms.parts.optimizers import BETAS, EPS, optimizer
from algorithms.parts.pipeline.one_f_one_b import one_f_one_b
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.plan import Stream
from algorithms.parts.pipeline.settings import StreamSettings
from algorithms.parts.pipeline.stage_state import StashedWeights
from algorithms.parts.pipeline.stream_executor import stream


class Settings(StreamSettings):
    learning_rate: float = knob(0.003, "step size", gt=0, le=1000)
    update: Literal["adam", "momentum"] = knob("adam", "optimizer that makes the steps and predicts them")
    momentum: float = knob(
        0.9, "fraction of the last step carried into the next (heavy ball)", when={"update": ("momentum",)}, ge=0, lt=1
    )
    chunks: int = knob(4, "micro-batches per update", ge=1, le=1024)


def schedule(rank: int, ranks: int, chunks: float, per_update: int = 1) -> Iterator[Op]:
    """Return the ops of a stream of `chunks` micro-batches, with an update after every `per_update` of them."""
    return one_f_one_b(rank, ahead=ranks - 1 - rank, per_update=per_update, chunks=chunks)


def plan(workers, s):
    return Stream.of(schedule, workers, s.chunks, per_update=s.chunks)


class BellwetherPrediction(StashedWeights):
    """Weight policy of a stage: one prediction per mini-batch, made by its first micro-batch."""

    def __init__(self, s, stage, w):
        rule = optimizer(s.update, w, s.momentum)
        super().__init__(lambda w, g: rule.step(w, g, s.learning_rate))
        self.s, self.rule = s, rule

    def forward(self, weights, chunk):
        batch, part = divmod(chunk, self.s.chunks)
        if part == 0:
            self.prediction = weights.version, self.ahead(weights.w, batch - weights.version)
        return self.prediction

    def ahead(self, w, n):
        """Return the weights after n more updates like the last one."""
        if not n or not self.rule.steps:
            return w
        u = kernels.copy(w)
        if self.s.update == "momentum":
            kernels.sgd(u, *self.rule.state, n * self.s.learning_rate)
        else:
            kernels.adam_ahead(u, w, *self.rule.state, self.rule.steps, n, self.s.learning_rate, *BETAS, EPS)
        return u


ALGORITHM = stream(
    schedule,
    Settings,
    BellwetherPrediction,
    plan=plan,
    equivalences=(
        Equivalence("one stage has nothing to predict: it is Adam", to="adam", settings={"chunks": 1}),
        Equivalence(
            "with one micro-batch and momentum it is SpecTrain",
            to="spectrain",
            workers=3,
            settings={"chunks": 1, "update": "momentum", "learning_rate": 0.02},
            to_settings={"form": "own", "learning_rate": 0.02},
        ),
    ),
    stable_rate=0.003,
)
