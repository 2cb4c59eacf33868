"""What a rank holds of a stage: its weights, and the micro-batches that are between their forward and their update."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from algorithms.pipelined.weights import Policy, Weights


@dataclass
class Flight:
    """A micro-batch on one stage, from its forward until its gradient is used."""

    version: int  # of the weights that its forward read
    w: Any  # these weights, if its backward is to read them again
    saved: Any  # what backward needs of the forward; with re-materialisation the input, until it has gone again
    dy: Any = None  # gradient of the outputs, on the last stage
    pending: Any = None  # what W needs of I
    gap: int = 0  # how many versions newer its backward read
    g: Any = None  # gradient of the weights, once it is back


class Held:
    """One stage that this rank holds."""

    def __init__(self, stage, policy: Callable[[Any, Any], Policy]):
        w = stage.start()
        self.stage, self.policy = stage, policy(stage, w)
        self.weights = Weights(w, self.policy.keep)
        self.flying: dict[int, Flight] = {}  # by micro-batch
        self.group = None  # the ranks that hold it, if there are others

    @property
    def versions(self) -> int:
        """How many versions of its weights are held now."""
        stashed = (flight.version for flight in self.flying.values() if flight.w is not None)
        return len({version for version, _ in self.weights.history}.union(stashed))
