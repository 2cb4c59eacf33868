"""GPipe: all micro-batches go forward, then all come back in reverse.

    rank 0   F0 F1 F2 .. .. .. .. B2 B1 B0
    rank 1   .. F0 F1 F2 .. .. B2 B1 B0 ..
    rank 2   .. .. F0 F1 F2 B2 B1 B0 .. ..        . idle: the bubble, (S-1)(f+b)

With re-materialisation (`recompute`) a stage keeps the inputs of a micro-batch and goes forward once more before it
goes back: early, while the gradient is still on its way, and the bubble stays (S-1)(f+b); or late, when it has come
("0R2+0B2"), and the bubble is (S-1)(2f+b). The last micro-batch goes back as soon as it has come; with `except_last` it
is stored as a whole, for no more memory, and the step is shorter by f.

Source: Huang et al., NeurIPS 2019, arXiv:1811.06965; order of the backward passes, and except_last, as in torchgpipe.
"""

from algorithms.parts.pipeline.ops import Op, rematerialise


def schedule(
    rank: int, ranks: int, chunks: int, recompute: bool = False, late: bool = False, except_last: bool = False
) -> list[Op]:
    """The ops of one mini-batch; every stage has the same."""
    forward = [Op("F", rank, chunk) for chunk in range(chunks)]
    backward = [Op("B", rank, chunk) for chunk in reversed(range(chunks))]
    if recompute:
        backward = rematerialise(backward, late, {chunks - 1} if except_last else ())
    return [*forward, *backward, Op("U", rank, 0)]
