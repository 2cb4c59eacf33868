"""Chimera runs two pipelines through the same ranks in opposite directions, each filling the bubbles of the other.

Rank r of S holds stage r for the micro-batches that go down and stage S-1-r for those that go up, half of them each.
Every stage is on two ranks (on 2f with f `pipes` each way), which sum their gradients before they update alike:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    rank 0   F0 F1 .. f2 b2 f3 b3 B0 .. B1
    rank 1   .. F0 f2 F1 f3 b2 B0 b3 B1 ..
    rank 2   .. F2 f0 F3 f1 b0 B2 b1 B3 ..
    rank 3   F2 F3 .. f0 b0 f1 b1 B2 .. B3        (capitals: stages 0 and 1, small letters: 2 and 3)

More micro-batches than S follow in units of S, one behind the other: seamless only where backward takes no longer than
forward. With `doubling` a forward takes two micro-batches at once, and a unit 2S of them, at twice the activations.

Price: S-2 idle slots instead of 2(S-1), for two copies of the weights: 2 batch a per step over each boundary, and 2d to
sum the gradients of d parameters. With `recompute` inputs only are stored, and passes go forward once more.
Staleness: none.
Source: Li & Hoefler, SC 2021, arXiv:2107.06925 (direct concatenation of units; forward doubling).
"""

from typing import Literal

from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline import settings
from algorithms.parts.pipeline.executor import Executor
from algorithms.parts.pipeline.plan import flush

SYNCHRONOUS = True
START = settings.START
EQUIVALENCES = (
    Equivalence("two directions are SGD", to="sgd", exactness="RND", workers=4),
    Equivalence(
        "a pipeline each way for every pair of ranks is SGD",
        to="sgd",
        exactness="RND",
        workers=4,
        settings={"pipes": 2},
    ),
    Equivalence("so are forwards of two micro-batches", to="sgd", exactness="RND", workers=4,
                settings={"doubling": True, "recompute": "early"}),
)  # fmt: skip


class Settings(settings.Flushed):
    pipes: int = knob(1, "pipelines each way", ge=1, le=256)
    doubling: bool = knob(False, "a forward takes two micro-batches, which come back one after the other")
    recompute: Literal["none", "early", "late"] = knob("none", "store inputs only, and go forward once more")


def shards(workers, s):
    return 1


def plan(workers, s):
    return flush("chimera", workers, s.chunks, s.recompute, pipes=s.pipes, doubling=s.doubling)


def refuse(workers, batch, workload, s):
    return settings.refuse(batch, workload, plan(workers, s), s.cuts)


def words(shape, s):
    return plan(shape.workers, s).words(shape)


def worker(comm, task, s=Settings()):
    return Executor(comm, task, plan(comm.size, s), settings.rule(s), s.cuts).run()


if __name__ == "__main__":
    from experiments.cli.script import main

    main(__spec__.name)
