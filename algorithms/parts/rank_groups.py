"""Node groups: how many replicas of a model N ranks should hold, if G groups of N/G ranks share a model each.

Of a batch of B samples a group takes B/G. Its ranks tell each other the outputs of their units, and on the way back
what they know of the others'; ranks with the same units average their gradients. A rank sends

    2 (P-1)/P (B/G) F + 2 (G-1)/G d/P  numbers a step          P = N/G, F units in all, d parameters

The first falls with G and the second rises. Of one layer from F units to F, with d = F^2 and many ranks, it is about
2 (B F / G + F^2 G / N), least at

    G = sqrt(N B / F)

G = 1 is model parallel, G = N data parallel. In MLSL's sample programs "groups" counts the parts of the model, N/G.
Source: Das et al., arXiv:1602.06709; Sridharan et al., arXiv:1801.08030 (MLSL).
"""

from __future__ import annotations

import math


def elements_per_rank(units: int, parameters: int, batch: int, ranks: int, groups: int) -> float:
    """Numbers that a rank sends in a step, of layers with so many `units`; `batch` is that of all ranks together."""
    members = ranks // groups
    activations = 2 * (members - 1) / members * (batch / groups) * units
    return activations + 2 * (groups - 1) / groups * parameters / members


def elements_of_many_ranks(units: int, batch: int, ranks: int, groups: int) -> float:
    """The same of one layer from `units` to `units`, as it is for many ranks."""
    return 2 * units * (batch / groups + units * groups / ranks)


def optimal_groups(units: int, batch: int, ranks: int) -> float:
    """The number of groups, not always a whole one, that sends least."""
    return math.sqrt(ranks * batch / units)


def one_of(numbers: list[int]) -> str:
    """Numbers in words: "1, 2 or 4"."""
    *fewer, last = map(str, numbers)
    return f"{', '.join(fewer)} or {last}" if fewer else last


def divisors(ranks: int) -> list[int]:
    """The numbers of groups that there can be."""
    return [groups for groups in range(1, ranks + 1) if ranks % groups == 0]
