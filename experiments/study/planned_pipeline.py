"""A short schedule that shows the pattern of a planned layout's pipeline."""

from typing import NamedTuple

import numpy as np

from experiments.study.schedules import Plan
from theory.planner.search import Found
from theory.planner.step_time import StepPrices


class PipelineSketch(NamedTuple):
    """A sketch of a planned pipeline: at most two micro-batches per rank, in units of a stage's forward pass."""

    schedule: str
    ranks: int
    chunks: int  # micro-batches that are drawn
    planned: int  # micro-batches of the plan
    pieces: int
    backward: float
    weights: float  # the part of `backward` that computes the gradients of weights
    latency: float
    forward: float  # s

    @property
    def plan(self) -> Plan:
        """The schedule, as input for `schedules.study`."""
        return Plan.of(
            schedule=self.schedule, ranks=self.ranks, chunks=self.chunks,
            options={"pieces": self.pieces} if self.pieces > 1 else {},
            inputs=round(self.backward - self.weights, 3), weights=self.weights, latency=self.latency,
        )  # fmt: skip

    @property
    def remark(self) -> str:
        """A sentence that says how many micro-batches are left out, or "" if all are drawn."""
        left_out = f"Only {self.chunks} of its {self.planned:,} micro-batches are drawn, so the bubble looks too large."
        return left_out if self.planned > self.chunks else ""

    @property
    def command(self) -> str:
        """The command that draws this pipeline."""
        pieces = f" --pieces {self.pieces}" * (self.pieces > 1)
        parts = f"I={self.backward - self.weights:g},W={self.weights:g}"
        passes = parts if self.schedule == "zb_h1" else f"B={self.backward:g}"
        costs = f"--costs F=1,{passes} --latency {self.latency:g}"
        return f"lockstep schedule {self.schedule} --ranks {self.ranks} --chunks {self.chunks}{pieces} {costs}"


def sketch_pipeline(found: Found, i: int = 0) -> PipelineSketch | None:
    """Return a sketch of the pipeline of layout `i`, or None if the layout has no pipeline."""
    at = found.setup.layout
    ranks, pieces = int(at.pipeline[i]), int(at.pieces[i])
    if ranks == 1:
        return None
    one = found.take(np.array([i]))
    passes, time = StepPrices(one.setup).layer(), one.time
    layers = float(np.ceil(one.setup.model.layers / ranks))
    forward = float(passes.forward[0]) * layers
    backward, weights = (float(part[0] / passes.forward[0]) for part in (passes.backward, passes.weights))
    message = float(time.messages[0] / time.micro_batches[0]) / (2 * pieces)
    chunks = min(int(time.micro_batches[0]), 2 * ranks)
    name = "zb_h1" if at.defers[i] else "interleaved" if pieces > 1 else "1f1b"
    return PipelineSketch(
        name, ranks, chunks, int(time.micro_batches[0]), pieces, round(backward, 2), round(weights, 2),
        round(message / forward, 3), forward,
    )  # fmt: skip
