"""Zero bubble: only the gradient of the inputs (I) keeps others waiting; that of the weights (W) fills the holes.

A rank goes forward some micro-batches ahead, then F, I and W take turns, and the W of rank s lag behind:

    H1   S-1-s ahead, W lag s         holds S-s micro-batches, as 1F1B             idle (S-1)(f+i-w)
    H2   2(S-1-s) ahead, W lag 2s     holds 2(S-s)-1                    idle in the span (S-1)(f+i-2w)

    rank 0   F0 F1 F2 .. .. I0 W0 F3 I1 W1 I2 W2 I3 W3
    rank 1   .. F0 F1 .. I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
    rank 2   .. .. F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3        . idle, here H1: 2 of 14

1F1B would idle 6 of 18 slots here, its backward being I and W. Both formulas hold as long as w <= f and w <= i. H2 has
no bubble if f = i = w: ranks start and end one after the other, each without a gap, so each makes its update when it
is done, and nobody waits for all.

Source: Qi et al., ICLR 2024, arXiv:2401.10241; H1 as in torch.distributed, H2 as in the paper's figures and tables.
"""

from collections.abc import Iterator

from algorithms.parts.pipeline.ops import Op


def h1(rank: int, ranks: int, chunks: int) -> Iterator[Op]:
    """One mini-batch in the memory of 1F1B."""
    return lagging(rank, ranks - 1 - rank, rank, chunks)


def h2(rank: int, ranks: int, chunks: int) -> Iterator[Op]:
    """One mini-batch in twice the memory of 1F1B, so that no rank has a gap between its first op and its last."""
    if chunks < 2 * ranks - 1:
        raise ValueError(f"{chunks} micro-batches do not fill {ranks} ranks in ZB-H2; use {2 * ranks - 1} or more.")
    return lagging(rank, 2 * (ranks - 1 - rank), 2 * rank, chunks)


def lagging(stage: int, ahead: int, lag: int, chunks: int) -> Iterator[Op]:
    """F `ahead` times, then F, I and W in turn, the W `lag` micro-batches behind the I."""
    for chunk in range(min(ahead, chunks)):
        yield Op("F", stage, chunk)
    for chunk in range(chunks):
        if chunk + ahead < chunks:
            yield Op("F", stage, chunk + ahead)
        yield Op("I", stage, chunk)
        if chunk >= lag:
            yield Op("W", stage, chunk - lag)
    for chunk in range(max(0, chunks - lag), chunks):
        yield Op("W", stage, chunk)
    yield Op("U", stage, 0)
