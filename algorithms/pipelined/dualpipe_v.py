"""DualPipeV is DualPipe cut in half: the second direction is the way back of the first, and no stage is held twice.

Rank r of S holds the stages r and 2S-1-r, as in ZB-V; a forward of one is done together with a backward of the other,
and towards the ends of the pipeline the backward is split, with W in the holes:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    rank 0   F0 F1 F2 f0 i0 w0 f1 F3+b1 f2+B0 b2 f3+B1 b3 I2 W2 I3 W3
    rank 1   F0 f0 F1 f1 F2 b0 f2+B0 F3+b1 f3+B1 b2 B2 i3 I3 w3 W3        (capitals: way down, small letters: way up)

Price: DualPipe's bubble on half as many ranks, with one copy of the weights: 2 batch a per step over each of 2S-1
boundaries but the one at the bottom. Staleness: none.
Source: DeepSeek-AI, arXiv:2412.19437; the steps are those of the authors' code.
"""

from algorithms.algorithm import Equivalence
from algorithms.parts.pipeline import settings
from algorithms.parts.pipeline.executor import Executor
from algorithms.parts.pipeline.plan import flush

SYNCHRONOUS = True
START = settings.START
EQUIVALENCES = (
    Equivalence(
        "it sums as DAPPLE does, in the order of micro-batches",
        to="dapple",
        workers=2,
        to_workers=4,
        settings={"chunks": 4},
        to_settings={"chunks": 4},
    ),
)
Settings = settings.Flushed


def shards(workers, s):
    return 1


def plan(workers, s):
    return flush("dualpipe_v", workers, s.chunks)


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
