"""DAPPLE keeps GPipe's one update but lets each stage go backward as soon as it can: 1F1B with a flush.

Stage s goes forward S-s times; then a backward and a forward take turns, so no stage ever holds more than S-s
micro-batches, however many there are. The gradient is that of the mini-batch:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    stage 0   F0 F1 F2 .. .. B0 F3 B1 .. B2 .. B3
    stage 1   .. F0 F1 .. B0 F2 B1 F3 B2 .. B3 ..
    stage 2   .. .. F0 B0 F1 B1 F2 B2 F3 B3 .. ..        . idle: as much as GPipe, (S-1)(f+b)

`policy` PA is that; it idles also in the steady state if links have a latency. PB sends 2(S-s)-1 micro-batches ahead,
which hides it. `copies` of the pipeline, on ranks of their own, share the micro-batches out; the ranks that hold a
stage add their gradients up before they update alike, which is data parallelism around a pipeline.

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step, there and back. Stage s stores
the activations of min(M, S-s) micro-batches; with `recompute` their inputs only. R copies move 2(R-1) d more, to sum
the gradients of d parameters. Staleness: none.
Source: Fan et al., PPoPP 2021, arXiv:2007.01045; PipeDream-Flush of Narayanan et al., ICML 2021, arXiv:2006.09503."""

from typing import Literal

from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline import settings
from algorithms.parts.pipeline.executor import Executor
from algorithms.parts.pipeline.plan import flush

SYNCHRONOUS = True
START = settings.START
EQUIVALENCES = (
    Equivalence("one stage and one micro-batch is SGD", to="sgd", settings={"chunks": 1}),
    Equivalence(
        "it is GPipe, but for the order in which gradients are added",
        to="gpipe",
        exactness="RND",
        workers=3,
        to_workers=3,
        settings={"chunks": 4},
        to_settings={"chunks": 4},
    ),
    Equivalence("copies are SGD", to="sgd", exactness="RND", workers=4, settings={"copies": 2}),
    Equivalence("copies of one stage are SGD", to="sgd", exactness="RND", workers=2, settings={"copies": 2}),
)


class Settings(settings.Flushed):
    policy: Literal["PA", "PB"] = knob("PA", "how many micro-batches are on their way: few, or enough to hide latency")
    copies: int = knob(1, "pipelines that share the mini-batch out", ge=1, le=1024)
    recompute: Literal["none", "early", "late"] = knob("none", "store inputs only, and go forward once more")


def shards(workers, s):
    return 1


def plan(workers, s):
    return flush("1f1b", workers, s.chunks, s.recompute, s.copies, policy=s.policy)


def refuse(workers, batch, workload, s):
    return settings.refuse(batch, workload, plan(workers, s), s.cuts)


def words(shape, s):
    return plan(shape.workers, s).words(shape)


def worker(comm, task, s=Settings()):
    return Executor(comm, task, plan(comm.size, s), settings.rule(s), s.cuts).run()


if __name__ == "__main__":
    from experiments.cli.script import main

    main(__spec__.name)
