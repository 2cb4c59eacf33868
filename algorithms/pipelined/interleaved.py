"""Interleaved 1F1B gives each rank several thin stages, so that the pipeline fills and drains that much faster.

Rank r of S holds the stages r, S+r, 2S+r, ...: the model winds around the ranks `pieces` times, and micro-batches go
through in groups of S. The gradient is that of the mini-batch:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    rank 0   F0 F1 f0 f1 F2 b0 F3 b1 f2 B0 f3 B1 .. b2 .. b3 B2 B3
    rank 1   .. F0 F1 f0 b0 f1 b1 F2 B0 F3 B1 f2 b2 f3 b3 B2 B3 ..        (small letters: second stages)

Price: the bubble shrinks to (S-1)(f+b) / pieces, and activations cross pieces S - 1 boundaries instead of S - 1, from
the last rank back to the first too: 2 batch a for each. Rank r holds 2(S-1-r) + (pieces-1) S + 1 thin micro-batches.
Staleness: none.
Source: Narayanan et al., SC 2021, arXiv:2104.04473; the order is that of Megatron-LM.
"""

from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline import settings
from algorithms.parts.pipeline.executor import Executor
from algorithms.parts.pipeline.plan import flush

SYNCHRONOUS = True
START = settings.START
EQUIVALENCES = (
    Equivalence("one stage and one micro-batch is SGD", to="sgd", settings={"chunks": 1, "pieces": 1}),
    Equivalence(
        "it sums as DAPPLE does, in the order of micro-batches",
        to="dapple",
        workers=2,
        to_workers=4,
        settings={"chunks": 4},
        to_settings={"chunks": 4},
    ),
)


class Settings(settings.Flushed):
    pieces: int = knob(2, "stages on each rank", ge=1, le=64)


def shards(workers, s):
    return 1


def plan(workers, s):
    return flush("interleaved", workers, s.chunks, pieces=s.pieces)


def stages(workers, s):
    return plan(workers, s).stages


def refuse(workers, batch, workload, s):
    return settings.refuse(batch, workload, plan(workers, s), s.cuts)


def words(shape, s):
    return plan(shape.workers, s).words(shape)


def worker(comm, task, s=Settings()):
    return Executor(comm, task, plan(comm.size, s), settings.rule(s), s.cuts).run()


if __name__ == "__main__":
    from experiments.cli.script import main

    main(__spec__.name)
