"""PipeDream-2BW updates every M micro-batches, and never needs more than two versions of the weights.

Each stage alternates one forward and one backward over micro-batches, without a flush. Micro-batch z belongs to
mini-batch t = z // M; forward and backward read version max(t-1, 0) on every stage, the one before the newest:

    w(t+1) <- w(t) - lr (g_0 + ... + g_{M-1}) / M        all gradients at w(t-1)

    stage 0   F0 F1 F2 .. .. B0 F3 B1 F4 B2 F5 B3 .. B4 .. B5
    stage 1   .. F0 F1 .. B0 F2 B1 F3 B2 F4 B3 F5 B4 .. B5 ..
    stage 2   .. .. F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 .. ..        M = 3: updates after B2 and B5

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step, there and back. Two versions of
the weights, and the activations of S-s micro-batches on stage s. M has to be S-1 or more, or two were not enough.
Staleness: one update on every stage; none where there is only one stage.
Source: Narayanan et al., ICML 2021, arXiv:2006.09503; version rule as in the authors' code.
"""

from functools import partial

import kernels
from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline import settings
from algorithms.parts.pipeline.plan import Stream
from algorithms.parts.pipeline.stream_executor import StreamExecutor
from algorithms.parts.pipeline.weight_policies import PinnedVersion
from algorithms.pipelined.schedules import pipedream_2bw

SYNCHRONOUS = True  # stale, but always by one update: the network changes when, and not what
START = settings.START
EQUIVALENCES = (
    Equivalence("one stage is SGD", to="sgd", settings={"chunks": 1}),
    Equivalence(
        "its delay is one update, whatever the depth", to="delayed", exactness="RND", workers=3,
        settings={"chunks": 4}, to_settings={"delay": 1, "layerwise": False},
    ),
)  # fmt: skip


class Settings(settings.Pipeline):
    chunks: int = knob(8, "micro-batches in an update", ge=1, le=1024)


def shards(workers, s):
    return 1


def plan(workers, s):
    return Stream([1] * workers, partial(pipedream_2bw.stream, ranks=workers, per_update=s.chunks), s.chunks)


def refuse(workers, batch, workload, s):
    return settings.refuse(batch, workload, plan(workers, s), s.cuts)


def words(shape, s):
    return 2 * shape.steps * shape.batch * sum(shape.boundaries)


def worker(comm, task, s=Settings()):
    def policy(stage, w):
        v = kernels.state_like(w)

        def version(chunk):
            return pipedream_2bw.version(chunk, s.chunks, comm.size)

        return PinnedVersion(lambda w, g: kernels.momentum(w, v, g, s.learning_rate, s.momentum), version, keep=2)

    return StreamExecutor(comm, task, plan(comm.size, s), policy, s.cuts).run()


if __name__ == "__main__":
    from experiments.cli.script import main

    main(__spec__.name)
