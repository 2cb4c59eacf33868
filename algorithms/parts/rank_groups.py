"""The best number of model replicas on N ranks, if each of G groups of N/G ranks shares a model.

A group takes B/G of a batch of B samples. Its ranks exchange the outputs of their units, and in backward the errors of
each other's units; ranks with the same units average their gradients. A rank sends

    2 (P-1)/P (B/G) F + 2 (G-1)/G d/P  elements per step       P = N/G, F units in all, d parameters

The first term falls with G and the second rises. For one layer from F units to F units, with d = F^2 parameters and
many ranks, a rank sends about 2 (B F / G + F^2 G / N) elements. That is least at

    G = sqrt(N B / F)

as `theory.traffic` computes it. G = 1 is model parallel, G = N data parallel. In MLSL's sample programs "groups" counts
the parts of the model, N/G.
Source: Das et al., arXiv:1602.06709; Sridharan et al., arXiv:1801.08030 (MLSL).
"""

from knobs import Refusal


def elements_per_rank(units: int, parameters: int, batch: int, ranks: int, groups: int) -> float:
    """Return how many elements a rank sends per step, for `units` in all layers and the `batch` of all ranks."""
    members = ranks // groups
    activations = 2 * (members - 1) / members * (batch / groups) * units
    return activations + 2 * (groups - 1) / groups * parameters / members


def check_chunks(batch: int, chunks: int) -> None:
    """Raise Refusal unless a batch can be divided into this many micro-batches."""
    if batch % chunks:
        fitting = divisors(batch)
        raise Refusal(f"{chunks} micro-batches do not divide a batch of {batch}; use {one_of(fitting)}.", fitting)


def one_of(numbers: list[int]) -> str:
    """Return the numbers as text, such as "1, 2 or 4"."""
    *fewer, last = map(str, numbers)
    return f"{', '.join(fewer)} or {last}" if fewer else last


def divisors(ranks: int) -> list[int]:
    """Return the divisors of `ranks` in ascending order, such as the possible numbers of groups."""
    return [groups for groups in range(1, ranks + 1) if ranks % groups == 0]
