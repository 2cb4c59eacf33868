"""ZB-V folds the pipeline into a V: each rank has a thin stage down and one up, and with enough batches none idles.

Rank r of S holds the stages r and 2S-1-r: the path goes down the ranks and back up, so the loss is computed next to the
inputs, and every rank holds as much as any other. The backward is split as in ZB-H1, I for the stage before, W for the
update:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    rank 0   F0 F1 F2 f0 i0 w0 f1 i1 w1 F3 I0 W0 f2 i2 w2 I1 W1 f3 i3 w3 I2 W2 I3 W3 ..
    rank 1   .. F0 f0 F1 f1 i0 w0 F2 I0 W0 f2 i1 w1 F3 I1 W1 f3 i2 w2 I2 i3 I3 W2 w3 W3        (small letters: way up)

Price: no idle slot within a rank's span if f = i = w and M >= 2S-1 (each micro-batch fewer leaves two idle slots), in
the memory of 1F1B's first rank (2S thin micro-batches), for twice the traffic: 2 batch a per step over each of 2S-1
boundaries except the one at the bottom. Staleness: none.
Source: Qi et al., arXiv:2401.10241, section 6, which the version of ICLR 2024 lacks; the order is that of
torch.distributed.
"""

from algorithms.parts.pipeline.executor import pipeline
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.settings import AS_DAPPLE
from algorithms.parts.pipeline.settings import FlushSettings as Settings


def schedule(rank: int, ranks: int, chunks: int) -> list[Op]:
    """Return the ops of one mini-batch on two stages per rank."""
    down, up = rank, 2 * ranks - 1 - rank
    total = max(2 * ranks - 1, chunks)  # micro-batches beyond `chunks` are left out at the end
    ops: list[Op] = []
    done: dict[tuple[str, int], int] = {}  # the newest chunk

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


ALGORITHM = pipeline(
    schedule,
    Settings,
    schedules={"zb_v": schedule},
    equivalences=(AS_DAPPLE,),
)
