"""Chen's pipeline puts groups of layers of a speech network on several GPUs, and accepts that updates come late.

The slots are Pétrowski's, with mini-batches for patterns: in slot k stage s goes forward with mini-batch k-s and
backward with k-2(S-1)+s, on the newest weights, and updates at once, with momentum as usual:

    v_s <- m v_s + g_s        w_s <- w_s - lr v_s        g_s: activations of version b-2(S-1-s), weights of version b

A speech network ends in thousands of outputs, so its last layer is as much work as several others: the pipeline is as
slow as the stage that holds it, until that layer too is cut, in stripes, one on each of several GPUs (`striped`).

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step, there and back. Stage s holds
one version of its weights and the activations of 2(S-1-s)+1 mini-batches.
Staleness: 2(S-1-s) updates on stage s; momentum makes it more expensive.
Source: Chen, Eversole, Li, Yu & Seide, Interspeech 2012 (mini-batches on GPUs); the slots are the standard reading.
"""

from collections.abc import Iterator

import kernels
from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline.one_f_one_b import one_f_one_b
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.settings import StreamSettings
from algorithms.parts.pipeline.stage_state import LatestWeights
from algorithms.parts.pipeline.stream_executor import stream


class Settings(StreamSettings):
    learning_rate: float = knob(0.05, "step size", gt=0, le=1000)


def schedule(rank: int, ranks: int, chunks: float) -> Iterator[Op]:
    """Return the ops of a stream of `chunks` mini-batches."""
    return one_f_one_b(rank, ahead=2 * (ranks - 1 - rank), per_update=1, chunks=chunks)


def policy(s, stage, w):
    v = kernels.state_like(w)
    return LatestWeights(lambda w, g: kernels.momentum(w, v, g, s.learning_rate, s.momentum))


ALGORITHM = stream(
    schedule,
    Settings,
    policy,
    equivalences=(
        Equivalence("one stage gives SGD", to="sgd"),
        Equivalence("no momentum gives Pétrowski's pipeline", to="petrowski", workers=3, settings={"momentum": 0.0}),
    ),
)
