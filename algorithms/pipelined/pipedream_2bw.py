"""PipeDream-2BW updates every M micro-batches, and never needs more than two versions of the weights.

Each stage alternates one forward and one backward over micro-batches (1F1B), without a flush. Micro-batch z belongs to
mini-batch t = z // M; forward and backward read version max(t-1, 0) on every stage. So all stages have the same delay,
one update, and the version before the newest is the only old one that must be kept:

    w(t+1) <- w(t) - lr (g_0 + ... + g_{M-1}) / M        all gradients at w(t-1)

    stage 0   F0 F1 F2 .. .. B0 F3 B1 F4 B2 F5 B3 .. B4 .. B5
    stage 1   .. F0 F1 .. B0 F2 B1 F3 B2 F4 B3 F5 B4 .. B5 ..
    stage 2   .. .. F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 .. ..        M = 3: updates after B2 and B5

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step, there and back. Two versions of
the weights, and the activations of S-s micro-batches on stage s. M must be at least S-1, or two would not be enough.
Staleness: one update on every stage; none where there is only one stage.
Source: Narayanan et al., ICML 2021, arXiv:2006.09503; version rule as in the authors' code.
"""

from collections.abc import Iterator
from math import inf

import kernels
from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline.one_f_one_b import one_f_one_b
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.plan import Stream
from algorithms.parts.pipeline.settings import StreamSettings
from algorithms.parts.pipeline.stage_state import PinnedVersion
from algorithms.parts.pipeline.stream_executor import stream
from knobs import Refusal, multiples


class Settings(StreamSettings):
    chunks: int = knob(8, "micro-batches per update", ge=1, le=1024)


def schedule(rank: int, ranks: int, chunks: float, per_update: int | None = None) -> Iterator[Op]:
    """Return the ops of a stream of `chunks` micro-batches.

    An update follows every `per_update` micro-batches, by default `ranks`.
    """
    per_update = per_update or ranks
    if chunks < inf and chunks % per_update:
        raise Refusal(
            f"{chunks} micro-batches cannot be divided into updates of {per_update}; use a multiple of {per_update}.",
            multiples(per_update, int(chunks)),
        )
    if per_update < ranks - 1:
        raise Refusal(
            f"{per_update} micro-batches per update on {ranks} ranks need a third version of the weights; use "
            f"{ranks - 1} or more.",
            [ranks - 1],
        )
    return one_f_one_b(rank, ahead=ranks - 1 - rank, per_update=per_update, chunks=chunks)


def version(chunk: int, per_update: int, ranks: int) -> int:
    """Return the version of the weights that micro-batch `chunk` reads. With a single rank there is no delay."""
    batch = chunk // per_update
    return max(batch - 1, 0) if ranks > 1 else batch


def plan(workers, s):
    return Stream.of(schedule, workers, s.chunks, per_update=s.chunks)


def policy(s, stage, w):
    v = kernels.state_like(w)

    def update(w, g):
        kernels.momentum(w, v, g, s.learning_rate, s.momentum)

    return PinnedVersion(update, lambda chunk: version(chunk, s.chunks, stage.count), versions=2)


ALGORITHM = stream(
    schedule,
    Settings,
    policy,
    plan=plan,
    schedules={"pipedream_2bw": schedule},
    equivalences=(
        Equivalence("one stage gives SGD", to="sgd", settings={"chunks": 1}),
        Equivalence(
            "gradients are one update late, whatever the depth: a delay of 1",
            to="delayed",
            exactness="RND",
            workers=3,
            to_workers=1,
            settings={"chunks": 4},
            to_settings={"delay": 1, "layerwise": False},
        ),
    ),
)
