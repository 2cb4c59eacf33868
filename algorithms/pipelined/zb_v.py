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

from algorithms.algorithm import Algorithm, Equivalence, shared_by_all
from algorithms.parts.pipeline import settings
from algorithms.parts.pipeline.executor import Executor
from algorithms.parts.pipeline.plan import flush

Settings = settings.Flushed


def plan(workers, s):
    return flush("zb_v", workers, s.chunks)


def stages(workers, s):
    return plan(workers, s).stages


def check(workers, batch, workload, s):
    settings.check(batch, workload, plan(workers, s), s.cuts)


def elements_sent(shape, s):
    return plan(shape.workers, s).elements_sent(shape)


def worker(comm, task, s=Settings()):
    return Executor(comm, task, plan(comm.size, s), settings.rule(s), settings.counts(s.cuts)).run()


ALGORITHM = Algorithm(
    worker,
    Settings,
    data_shards=shared_by_all,
    stages=stages,
    check=check,
    elements_sent=elements_sent,
    model_defaults=settings.MODEL_DEFAULTS,
    plan=plan,
    equivalences=(
        Equivalence(
            "it sums as DAPPLE does, in the order of micro-batches",
            to="dapple",
            workers=2,
            to_workers=4,
            settings={"chunks": 4},
            to_settings={"chunks": 4},
        ),
    ),
)
