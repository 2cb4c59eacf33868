"""Weights and their versions: which a pass reads, and how an update makes the next.

Update number v makes version v. A policy has

    keep, stash              how many versions are kept for others to read; whether a flight keeps the one it read
    forward(weights, chunk)  -> (version, w) that the forward of this micro-batch reads
    backward(weights, flight) -> (version, w) that its backward reads
    update(w, g)             changes w in place

Here are the four that read what is there. Those that read what they predict are in the files of their algorithms.

Source: Harlap et al., arXiv:1806.03377 (stashing, vertical sync); Narayanan et al., ICML 2021 (double buffering).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import kernels


class Policy(Protocol):
    """How one stage reads and updates its weights; see the head of this file."""

    keep: int
    stash: bool

    def forward(self, weights: Weights, chunk: int) -> tuple[int, Any]: ...

    def backward(self, weights: Weights, flight) -> tuple[int, Any]: ...

    def update(self, w, g) -> None: ...


class Weights:
    """The newest weights of a stage, (d_s,), and the versions before it that are kept."""

    def __init__(self, w, keep: int = 1):
        self.history = deque([(0, w)], maxlen=keep)  # (version, w), oldest first

    @property
    def newest(self) -> tuple[int, Any]:
        """(version, w)."""
        return self.history[-1]

    @property
    def version(self) -> int:
        """Updates so far."""
        return self.history[-1][0]

    @property
    def w(self):
        """The newest weights."""
        return self.history[-1][1]

    def at(self, version: int) -> tuple[int, Any]:
        """(version, w) of a version that is kept."""
        return self.history[version - self.version - 1]

    def step(self, policy: Policy, g) -> None:
        """The next version. Where nobody can read the last one any more, it takes its place in memory."""
        version, w = self.newest
        if policy.stash or self.history.maxlen > 1:
            w = kernels.copy(w)
        policy.update(w, g)
        self.history.append((version + 1, w))


class LatestWeights:
    """Both passes read the newest weights there are when their turn comes."""

    keep, stash = 1, False

    def __init__(self, update: Callable):
        self.update = update

    def forward(self, weights, chunk):
        return weights.newest

    def backward(self, weights, flight):
        return weights.newest


class StashedWeights(LatestWeights):
    """The backward reads again what its forward read."""

    stash = True

    def backward(self, weights, flight):
        return flight.version, flight.w


class PinnedVersion(StashedWeights):
    """Both passes read the version that `version(chunk)` names, of the newest `keep`."""

    def __init__(self, update: Callable, version: Callable[[int], int], keep: int):
        super().__init__(update)
        self.version, self.keep = version, keep

    def forward(self, weights, chunk):
        return weights.at(self.version(chunk))
