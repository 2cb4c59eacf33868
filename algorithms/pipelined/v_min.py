"""V-Min sends each micro-batch through the V as fast as it can: a third of the activations of 1F1B.

Rank r of S holds the stages r and 2S-1-r, as in ZB-V and V-Half. A micro-batch passes without a stop in the slots

    F down r        F up 2S-1-r        I up 2S+k + r        I down 4S-1+k - r        k = 2 if 3 divides S, else 0

and the next one follows 6 slots later. It is held for 4S slots plus a few in total, so a rank holds 2S/3 thin
micro-batches plus a few (`building_block.py` makes the lists from these slots):

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    rank 0   F0 F1 F2 .. .. f0 i0 w0 f1 .. .. I0 i1 W0 w1 f2 F3 I1 i2 W1 w2 f3 i3 I2 W2 w3 .. I3 W3
    rank 1   .. F0 F1 .. f0 .. f1 i0 w0 .. I0 F2 W0 i1 f2 w1 I1 F3 W1 i2 f3 w2 I2 i3 W2 w3 I3 W3
    rank 2   .. .. F0 f0 F1 f1 .. .. i0 I0 w0 W0 F2 f2 i1 I1 w1 W1 F3 f3 i2 I2 w2 W2 i3 I3 w3 W3

Idle within a rank's span, if f = i = w, the times of both stages of a rank, and M >= S >= 3: (4S-7)/2 f where 3 divides
S, else (4S-5)/2 f; 1F1B has 3(S-1) f. There is no slack: where times differ, ranks wait again for every micro-batch.

Price: no rank holds more than 2((S+4)//3) thin micro-batches until W, (S+4)//3 whole ones; 1F1B's first rank holds S.
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
    gap = 0 if ranks % 3 else 2
    return rank, 2 * ranks - 1 - rank, 2 * ranks + gap + rank, 4 * ranks - 1 + gap - rank


ALGORITHM = pipeline(
    schedule,
    Settings,
    schedules={"v_min": schedule},
    equivalences=(AS_DAPPLE,),
)
