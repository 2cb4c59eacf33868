"""Settings shared by pipelines, and the check for settings that a pipeline cannot run."""

from collections.abc import Sequence

from algorithms.algorithm import Equivalence, Knobs, knob
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from algorithms.parts.pipeline.stage_state import LatestWeights
from algorithms.parts.rank_groups import check_chunks
from knobs import Counts

AS_DAPPLE = Equivalence(
    "it adds gradients in the order of micro-batches, as DAPPLE does",
    to="dapple",
    workers=2,
    to_workers=4,
    settings={"chunks": 4},
    to_settings={"chunks": 4},
)
"""For schedules with two stages per rank: they sum as DAPPLE does on twice as many ranks."""


class FlushSettings(Knobs):
    """Knobs of pipelines that update once per mini-batch, by any update rule."""

    learning_rate: float = knob(0.1, "step size", gt=0, le=1000)
    update: Rule = knob("sgd", "optimizer that applies the gradient of a mini-batch")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)
    chunks: int = knob(8, "micro-batches per mini-batch", ge=1, le=1024)
    cuts: Counts = knob("", "layers per stage; empty balances them by work", example="3,3,2")


class StreamSettings(Knobs):
    """Knobs of pipelines without a flush."""

    learning_rate: float = knob(0.1, "step size", gt=0, le=1000)
    momentum: float = knob(0.0, "fraction of the last step carried into the next (heavy ball)", ge=0, lt=1)
    cuts: Counts = knob("", "layers per stage; empty balances them by work", example="3,3,2")


def optimizer_weights(s: FlushSettings, stage, w) -> LatestWeights:
    """Return the weight policy of a flush: the newest weights, updated by the rule that the settings name."""
    rule = optimizer(s.update, w, s.momentum)
    return LatestWeights(lambda w, g: rule.step(w, g, s.learning_rate))


def check(batch: int, workload, plan, cuts: Sequence[int] = ()) -> None:
    """Raise ValueError if `plan` cannot be executed."""
    if cuts and len(cuts) != plan.stages:
        raise ValueError(
            f"cuts lists {len(cuts)} stages, but there are {plan.stages}; give the number of layers of each stage."
        )
    workload.split(cuts or plan.stages)  # raises if it cannot be cut into this many stages
    check_chunks(batch, plan.chunks)
