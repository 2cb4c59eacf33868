"""ZB-V: each rank holds two thin stages, one on the way down and one on the way up, and no rank is ever short of work.

Rank r of S holds the stages r and 2S-1-r: the path goes down the ranks and back up, so the loss is computed beside the
inputs, and every rank holds as much (2S thin micro-batches, the memory of 1F1B's first rank).

    rank 0   F0 F1 F2 f0 i0 w0 f1 i1 w1 F3 I0 W0 f2 i2 w2 I1 W1 f3 i3 w3 I2 W2 I3 W3 ..
    rank 1   .. F0 f0 F1 f1 i0 w0 F2 I0 W0 f2 i1 w1 F3 I1 W1 f3 i2 w2 I2 i3 I3 W2 w3 W3

(capitals: stages on the way down, small letters: on the way up). No idle slot within a rank's span if f = i = w.

Source: Qi et al., ICLR 2024, section 6; the order is that of torch.distributed.
"""

from algorithms.parts.pipeline.ops import Op


def schedule(rank: int, ranks: int, chunks: int) -> list[Op]:
    """One mini-batch on two stages per rank."""
    down, up = rank, 2 * ranks - 1 - rank
    total = max(2 * ranks - 1, chunks)  # micro-batches that are not there are left out at the end
    ops, done = [], {}

    def do(kinds, stage):
        for kind in kinds:
            chunk = done[kind, stage] = done.get((kind, stage), -1) + 1
            ops.append(Op(kind, stage, chunk))

    def forwards(stage):
        return done.get(("F", stage), -1) + 1

    for _ in range(2 * (ranks - rank) - 1):
        do("F", down)
    for _ in range(rank):
        do("F", up)
        do("F", down)
    for _ in range(ranks - rank):
        do("FIW", up)
    while forwards(up) < forwards(down) or forwards(down) < total:
        if forwards(down) < total:
            do("F", down)
        do("IW", down)
        do("FIW", up)
    for _ in range(rank):
        do("I", down)
        do("I", up)
    for _ in range(ranks - rank):
        do("IW", down)
    ops += [Op("W", stage, chunk) for stage in (up, down) for chunk in range(done["W", stage] + 1, total)]
    return [op for op in ops if op.chunk < chunks] + [Op("U", down, 0), Op("U", up, 0)]
