"""The systolic pipeline: in every slot, each stage does the forward of one pattern and the backward of an older one.

In slot k, stage s does F of pattern k-s and B of pattern k-2(S-1)+s, and updates at once; the last stage does both for
the same pattern in one slot. No stage waits, but a pattern's gradient is 2(S-1-s) updates late (Pétrowski, Chen).

    slot      0    1    2      3      4      5
    rank 0   F0   F1   F2     F3     F4 B0  F5 B1
    rank 1   .    F0   F1     F2 B0  F3 B1  F4 B2
    rank 2   .    .    F0 B0  F1 B1  F2 B2  F3 B3

If the last stage does B one slot later (`fused` off), so do all stages, and the delay is 2(S-1-s) + 1 (PipeMare).

Source: Pétrowski, Dreyfus & Girault, IEEE Trans. Neural Networks 1993 (patterns); Chen et al., Interspeech 2012
(mini-batches); the slots are the standard reading, as in Kosson et al., MLSys 2021.
"""

from collections.abc import Iterator

from algorithms.parts.pipeline.ops import Op
from algorithms.pipelined import petrowski, pipemare


def schedule(rank: int, ranks: int, chunks: int, fused: bool = True) -> Iterator[Op]:
    """Return the ops of one rank for `chunks` patterns, or mini-batches, with an update for each."""
    return (petrowski if fused else pipemare).schedule(rank, ranks, chunks)
