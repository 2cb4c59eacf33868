"""ZB-V folds the pipeline in a V: each rank holds a thin stage on the way down and one on the way up, and none idles.

Rank r of S holds the stages r and 2S-1-r, so the loss is computed beside the inputs and every rank holds as much. The
backward is split as in ZB-H1, I for the stage before, W for the update:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    rank 0   F0 F1 F2 f0 i0 w0 f1 i1 w1 F3 I0 W0 f2 i2 w2 I1 W1 f3 i3 w3 I2 W2 I3 W3
    rank 1   .. F0 f0 F1 f1 i0 w0 F2 I0 W0 f2 i1 w1 F3 I1 W1 f3 i2 w2 I2 i3 I3 W2 w3 W3        (small letters: way up)

Price: no idle slot within a rank's span if f = i = w, in the memory of 1F1B's first rank (2S thin micro-batches), for
twice the traffic: 2 batch a per step over each of 2S-1 boundaries but the one at the bottom. Staleness: none.
Source: Qi et al., ICLR 2024, section 6; the order is that of torch.distributed.
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
    return flush("zb_v", workers, s.chunks)


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
