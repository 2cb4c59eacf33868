"""V-Half folds the pipeline into a V as ZB-V does, but sends micro-batches down slowly: half the activations of 1F1B.

Rank r of S holds the stages r and 2S-1-r, so a rank that is early on the way down, and holds a micro-batch for long, is
late on the way up, and holds it briefly: all ranks hold equally much. How much depends on the slots in which a
micro-batch passes; I is the gradient of a stage's inputs, W that of its weights:

    F down 2r        F up 3S-2-r        I up 3S-1+k + 2r        I down 6S-2+k - r        k = 3 if S is even, else 0

A micro-batch follows every 6 slots. It is held for 6S - 3r slots on the way down and 3r on the way up, plus a few: so a
rank holds S thin micro-batches plus a few, each half as large (`building_block.py` makes the lists from these slots):

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    rank 0   F0 F1 F2 .. .. f0 i0 w0 f1 i1 w1 .. I0 W0 F3 f2 i2 w2 I1 W1 .. f3 i3 I2 w3 W2 .. I3 W3
    rank 1   .. F0 F1 .. f0 .. f1 i0 w0 F2 .. I0 i1 W0 f2 w1 F3 I1 i2 W1 f3 w2 I2 i3 W2 w3 I3 W3
    rank 2   .. .. F0 f0 F1 f1 .. .. i0 w0 I0 W0 F2 f2 i1 w1 I1 W1 F3 f3 i2 I2 w2 W2 i3 I3 w3 W3

Idle within a rank's span, if f = i = w, the times of both stages of a rank, and M >= S >= 3: (3S-7)/2 f for an even S,
(3S-4)/2 f for an odd one; 1F1B has 3(S-1) f. Where times differ it idles longer, but the idle time does not grow with
the number of micro-batches as long as w + 2i >= 2f and w + 2f >= 2i.

Price: no rank holds more than 2((S+2)//2) thin micro-batches until W, (S+2)//2 whole ones; 1F1B's first rank holds S.
2 batch a per step over each of 2S-1 boundaries except the one at the bottom. Staleness: none.
Source: Qi, Wan, Amar & Lin, NeurIPS 2024, arXiv:2405.15362; slots and idle times are those of the authors' code.
"""

from algorithms.parts.pipeline import building_block
from algorithms.parts.pipeline.executor import pipeline
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.settings import AS_DAPPLE
from algorithms.parts.pipeline.settings import FlushSettings as Settings


def schedule(rank: int, ranks: int, chunks: int) -> list[Op]:
    """Return the ops of one mini-batch on two stages per rank, down and back up."""
    ops = building_block.lists(block, ranks, chunks)[rank]
    return [*ops, Op("U", rank, 0), Op("U", 2 * ranks - 1 - rank, 0)]


def block(rank, ranks):
    """Return the slots of F down, F up, I up and I down for micro-batch 0."""
    gap = 0 if ranks % 2 else 3
    return 2 * rank, 3 * ranks - 2 - rank, 3 * ranks - 1 + gap + 2 * rank, 6 * ranks - 2 + gap - rank


ALGORITHM = pipeline(
    schedule,
    Settings,
    schedules={"v_half": schedule},
    equivalences=(AS_DAPPLE,),
)
