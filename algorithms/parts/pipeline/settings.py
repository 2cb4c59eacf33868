"""What pipelines can be told, and what they refuse."""

from __future__ import annotations

from collections.abc import Sequence

from algorithms.algorithm import Knobs, knob
from algorithms.parts.optimizers import Rule, optimizer
from algorithms.parts.pipeline.weight_policies import LatestWeights
from knobs import Counts

START = {"model": "residual", "depth": 6, "width": 64, "activation": "tanh"}  # eight layers to cut


class Pipeline(Knobs):
    """The knobs of every pipeline."""

    learning_rate: float = knob(0.1, "step size", gt=0, le=1000)
    momentum: float = knob(0.0, "share of the last step that goes on (heavy ball)", ge=0, lt=1)
    cuts: Counts = knob("", "layers in each stage, for example 3,3,2; balanced by work if empty")


class Flushed(Knobs):
    """The knobs of every pipeline that updates once per mini-batch, by whatever rule."""

    learning_rate: float = knob(0.1, "step size", gt=0, le=1000)
    update: Rule = knob("sgd", "what is done with the gradient of a mini-batch")
    momentum: float = knob(0.9, "of the update rules that have one", ge=0, lt=1)
    chunks: int = knob(8, "micro-batches in a mini-batch", ge=1, le=1024)
    cuts: Counts = knob("", "layers in each stage, for example 3,3,2; balanced by work if empty")


def rule(s: Flushed):
    """The `policy` of an executor: every stage has an update rule of its own, for its own weights."""

    def policy(stage, w):
        update = optimizer(s.update, w, s.momentum)
        return LatestWeights(lambda w, g: update.step(w, g, s.learning_rate))

    return policy


def refuse(batch: int, workload, plan, cuts: Sequence[int] = ()) -> str | None:
    """Why this plan cannot be carried out, in one sentence: or a ValueError of the workload's says it."""
    if cuts and len(cuts) != plan.stages:
        return f"cuts names {len(cuts)} stages and there are {plan.stages}; name the layers of each."
    workload.split(cuts or plan.stages)  # or it says into how many stages it can be cut
    if batch % plan.chunks:
        *others, largest = [str(n) for n in range(1, batch + 1) if batch % n == 0]
        fitting = f"{', '.join(others)} or {largest}" if others else largest
        return f"{plan.chunks} micro-batches do not divide a batch of {batch}; use {fitting}."
    return None
