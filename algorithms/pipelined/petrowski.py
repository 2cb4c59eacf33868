"""In every slot, each stage of Pétrowski's pipeline runs one pattern forward and an older one backward.

In slot k stage s goes forward with pattern k-s and backward with pattern k-2(S-1)+s, and updates at once; the last
stage does both with the same pattern. No stage waits, and none keeps old weights: a backward reads the newest ones,

    w_s(b+1) = w_s(b) - lr g_s        g_s: activations of version b-2(S-1-s), transposed weights of version b

    slot       0    1    2      3      4      5
    stage 0   F0   F1   F2     F3     F4 B0  F5 B1
    stage 1   .    F0   F1     F2 B0  F3 B1  F4 B2
    stage 2   .    .    F0 B0  F1 B1  F2 B2  F3 B3        . idle only while the pipeline fills

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step, there and back. Stage s holds
one version of its weights and the activations of 2(S-1-s)+1 patterns. In the paper a pattern is a sample; here it is a
mini-batch of any size.
Staleness: 2(S-1-s) updates on stage s, twice that of 1F1B.
Source: Pétrowski, Dreyfus & Girault, IEEE Trans. Neural Networks 4(6), 1993; the slots are the standard reading, as in
Kosson et al., MLSys 2021.
"""

from collections.abc import Iterator

import kernels
from algorithms.algorithm import Equivalence, Knobs, knob
from algorithms.parts.pipeline.one_f_one_b import one_f_one_b
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.settings import Counts
from algorithms.parts.pipeline.stage_state import LatestWeights
from algorithms.parts.pipeline.stream_executor import stream


class Settings(Knobs):
    learning_rate: float = knob(0.05, "step size", gt=0, le=1000)
    cuts: Counts = knob("", "layers per stage; empty balances them by work", example="3,3,2")


def schedule(rank: int, ranks: int, chunks: float) -> Iterator[Op]:
    """Return the ops of a stream of `chunks` patterns."""
    return one_f_one_b(rank, ahead=2 * (ranks - 1 - rank), per_update=1, chunks=chunks)


def policy(s, stage, w):
    return LatestWeights(lambda w, g: kernels.sgd(w, g, s.learning_rate))


ALGORITHM = stream(schedule, Settings, policy, equivalences=(Equivalence("one stage gives SGD", to="sgd"),))
