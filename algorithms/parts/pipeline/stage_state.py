"""What a rank holds of a stage: its weights, and the micro-batches that are between their forward and their update."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import kernels
from algorithms.parts.pipeline.weight_policies import Policy, Weights
from kernels.arrays import extents


@dataclass
class InFlight:
    """A micro-batch on one stage, from its forward until its gradient is there."""

    version: int  # of the weights that its forward read
    w: Any  # these weights, if its backward is to read them again
    saved: Any = None  # what backward needs of the forward; with re-materialisation the input, until it has gone again
    dy: Any = None  # gradient of the outputs, on the last stage
    pending: Any = None  # what W needs of I
    g: Any = None  # gradient of the weights
    gap: int = 0  # how many versions newer its backward read
    kept: int = 0  # bytes of what is saved and pending

    def keeps(self, what) -> Any:
        """`what`, which it keeps from now on instead of what it kept so far."""
        self.kept = sum(extents(what).values())
        return what


class StageState:
    """One stage that this rank holds."""

    def __init__(self, stage, policy: Callable[[Any, Any], Policy]):
        w = stage.start()
        self.stage, self.policy = stage, policy(stage, w)
        self.weights = Weights(w, self.policy.keep)
        self.flying: dict[int, InFlight] = {}  # by micro-batch
        self.g = None  # the gradients that have come back since the last update, added up
        self.delay = self.gap = 0  # the largest among them, in versions
        self.group = None  # the ranks that hold it, if there are others

    @property
    def versions(self) -> int:
        """How many versions of its weights are held now."""
        if not self.policy.stash and self.policy.keep == 1:
            return 1
        stashed = (id(flight.w) for flight in self.flying.values() if flight.w is not None)
        return len({id(w) for _, w in self.weights.history}.union(stashed))

    def lands(self, chunk: int) -> None:
        """The gradient of a micro-batch is there, and is added to the others."""
        flight = self.flying.pop(chunk)
        if self.g is None:
            self.g, self.delay, self.gap = flight.g, 0, 0
        else:
            kernels.add(self.g, flight.g)
        self.delay = max(self.delay, self.weights.version - flight.version)
        self.gap = max(self.gap, flight.gap)

    def gradient(self):
        """What has been added up; zeros if nothing has."""
        g, self.g = self.g, None
        return kernels.zeros_like(self.weights.w) if g is None else g
