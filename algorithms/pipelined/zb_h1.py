"""ZB-H1 splits the backward in two, and fills the bubble with the half that nobody waits for.

I is the gradient of a stage's inputs, which the stage before needs; W, that of its weights, may come any time before
the update. On stage s the W are s micro-batches behind the I:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    stage 0   F0 F1 F2 .. .. I0 W0 F3 I1 W1 I2 W2 I3 W3
    stage 1   .. F0 F1 .. I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
    stage 2   .. .. F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3        . idle: (S-1)(f+i-w), 2 of 14; 1F1B has 6 of 18

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step. Stage s holds S-s micro-batches,
as 1F1B does, and what W needs of s more. Staleness: none.
Source: Qi et al., ICLR 2024, arXiv:2401.10241; the order is that of torch.distributed.
"""

from algorithms.algorithm import Equivalence
from algorithms.parts.pipeline import settings
from algorithms.parts.pipeline.executor import Executor
from algorithms.parts.pipeline.plan import flush

SYNCHRONOUS = True
START = settings.START
EQUIVALENCES = (
    Equivalence("one stage and one micro-batch is SGD", to="sgd", settings={"chunks": 1}),
    Equivalence(
        "it sums as DAPPLE does, in the order of micro-batches",
        to="dapple",
        workers=3,
        to_workers=3,
        settings={"chunks": 4},
        to_settings={"chunks": 4},
    ),
)
Settings = settings.Flushed


def shards(workers, s):
    return 1


def plan(workers, s):
    return flush("zb_h1", workers, s.chunks)


def refuse(workers, batch, workload, s):
    return settings.refuse(batch, workload, plan(workers, s), s.cuts)


def words(shape, s):
    return plan(shape.workers, s).words(shape)


def worker(comm, task, s=Settings()):
    return Executor(comm, task, plan(comm.size, s), settings.rule(s), s.cuts).run()


if __name__ == "__main__":
    from experiments.cli.script import main

    main(__spec__.name)
