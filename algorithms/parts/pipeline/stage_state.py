"""The state of one stage on one rank: versions of the weights, micro-batches in flight, gradients not yet applied.

Update number v makes version v of the weights. Which version a pass reads is left to a weight policy, which has

    versions, stash           how many of the newest versions are kept; whether the one that a forward read is stashed
    forward(weights, chunk)   -> (version, w) that the forward of this micro-batch reads
    backward(weights, flight) -> (version, w) that its backward reads
    update(w, g)              changes w in place

The three policies below read versions that exist; those that predict weights are in the files of their algorithms.

Source: Harlap et al., arXiv:1806.03377 (stashing, vertical sync); Narayanan et al., ICML 2021 (double buffering).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import kernels


class Policy(Protocol):
    """How one stage reads and updates its weights; see the top of this file."""

    versions: int
    stash: bool

    def forward(self, weights: Weights, chunk: int) -> tuple[int, Any]: ...

    def backward(self, weights: Weights, flight: InFlight) -> tuple[int, Any]: ...

    def update(self, w, g) -> None: ...


class LatestWeights:
    """Weight policy: both passes read the weights that are newest when they run."""

    versions, stash = 1, False

    def __init__(self, update: Callable):
        self.update = update

    def forward(self, weights, chunk):
        return weights.newest

    def backward(self, weights, flight):
        return weights.newest


class StashedWeights(LatestWeights):
    """Weight policy: a backward pass reads the same weights as its forward pass (weight stashing)."""

    stash = True

    def backward(self, weights, flight):
        return flight.version, flight.w


class PinnedVersion(StashedWeights):
    """Weight policy: both passes read the version `pinned(chunk)`, one of the newest `versions`."""

    def __init__(self, update: Callable, pinned: Callable[[int], int], versions: int):
        super().__init__(update)
        self.pinned, self.versions = pinned, versions

    def forward(self, weights, chunk):
        return weights.at(self.pinned(chunk))


class Weights:
    """The newest weights of a stage, (d_s,), and the earlier versions that are kept."""

    def __init__(self, w, versions: int = 1):
        self.several = versions > 1
        self.history = deque([(0, w)], maxlen=versions)  # (version, w), oldest first

    @property
    def newest(self) -> tuple[int, Any]:
        """The newest weights, as (version, w)."""
        return self.history[-1]

    @property
    def version(self) -> int:
        """The number of updates so far."""
        return self.history[-1][0]

    @property
    def w(self):
        """The newest weights."""
        return self.history[-1][1]

    def at(self, version: int) -> tuple[int, Any]:
        """Return (version, w) for a version that is kept."""
        return self.history[version - self.version - 1]

    def step(self, policy: Policy, g) -> None:
        """Make the next version, in place if no pass can read the current version any more."""
        version, w = self.newest
        if policy.stash or self.several:
            w = kernels.copy(w)
        policy.update(w, g)
        self.history.append((version + 1, w))


@dataclass
class InFlight:
    """A micro-batch on one stage, from its forward pass until its gradient is complete."""

    version: int  # of the weights that its forward read
    w: Any  # these weights, if its backward pass reads them again
    saved: Any = None  # saved by the forward for the backward; with re-materialisation only the input, until R
    dy: Any = None  # gradient of the outputs, on the last stage
    pending: Any = None  # saved by I for W
    gap: int = 0  # versions by which its backward read newer weights than its forward
    nbytes: int = 0  # of what is saved or pending

    def store(self, arrays, workload) -> Any:
        """Set `nbytes` to the size of `arrays`, which the `workload`'s model saved, and return `arrays`."""
        self.nbytes = sum(workload.extents(arrays).values())
        return arrays


class StageState:
    """A stage held by this rank; `policy(stage, w)` returns its weight policy."""

    def __init__(self, stage, policy: Callable[[Any, Any], Policy]):
        w = stage.start()
        self.stage, self.policy = stage, policy(stage, w)
        self.weights = Weights(w, self.policy.versions)
        self.in_flight: dict[int, InFlight] = {}  # by micro-batch
        self.g: Any = None  # sum of the gradients since the last update
        self.spare: Any = None  # a vector for the next sum
        self.gradients = 0  # of micro-batches in the sum
        self.delay = self.gap = 0  # the largest among them, in versions
        self.group: Any = None  # communicator of the ranks that hold this stage, if there are others

    @property
    def versions_held(self) -> int:
        """The number of versions of this stage's weights in memory now."""
        if not self.policy.stash and self.policy.versions == 1:
            return 1
        stashed = (id(flight.w) for flight in self.in_flight.values() if flight.w is not None)
        return len({id(w) for _, w in self.weights.history}.union(stashed))

    def sum(self) -> tuple[Any, bool]:
        """Return (g, add): the vector for the next micro-batch's gradient, or None, and whether to add to it."""
        return (self.spare, False) if self.g is None else (self.g, True)

    def accumulate(self, chunk: int) -> None:
        """Count a micro-batch whose backward pass has added its gradient to the sum; it is no longer in flight."""
        flight = self.in_flight.pop(chunk)
        self.gradients += 1
        if self.gradients == 1:
            self.delay = self.gap = 0
        else:
            kernels.add.charge(self.g, self.g)
        self.delay = max(self.delay, self.weights.version - flight.version)
        self.gap = max(self.gap, flight.gap)

    def take_gradient(self):
        """Return the sum of gradients (zeros if there are none) and start the next sum."""
        g, self.g, self.spare, self.gradients = self.g, None, None, 0
        return kernels.zeros_like(self.weights.w) if g is None else g
