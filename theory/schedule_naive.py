"""Naive model parallelism: the model is cut because it does not fit on one rank, and only one rank works at a time.

    rank 0   F0 .. .. .. .. B0 F1 .. .. .. .. B1
    rank 1   .. F0 .. .. B0 .. .. F1 .. .. B1 ..
    rank 2   .. .. F0 B0 .. .. .. .. F1 B1 .. ..

Source: folklore; the baseline of Huang et al., NeurIPS 2019, and of Harlap et al., arXiv:1806.03377.
"""

from collections.abc import Iterator

from algorithms.parts.pipeline.one_f_one_b import one_f_one_b
from algorithms.parts.pipeline.ops import Op


def schedule(rank: int, ranks: int, chunks: int) -> Iterator[Op]:
    """Return the ops of one rank for a mini-batch. Each micro-batch completes its forward and backward before the next
    begins.
    """
    return one_f_one_b(rank, ahead=0, per_update=chunks, chunks=chunks)
