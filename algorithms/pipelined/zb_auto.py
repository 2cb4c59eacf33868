"""ZB-1p and ZB-2p look for their schedule: they place F, I and W by the times that these really take.

I is the gradient of a stage's inputs, which the stage before needs; W, that of its weights, may come any time before
the update. Ranks fill their lists one op after the other, W in the gaps, within `limit` times the memory of 1F1B:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    stage 0   F0 F1 F2 F3 .. I0 W0 I1 W1 I2 W2 I3 W3
    stage 1   .. F0 F1 F2 I0 F3 I1 W0 I2 W1 I3 W2 W3
    stage 2   .. .. F0 I0 F1 I1 F2 I2 F3 I3 W0 W1 W2 W3        limit 2, all times alike; with limit 1 it is ZB-H1

`time_f`, `time_i`, `time_w` and `time_link` are those of F, I, W and a message, in any unit. H1 and H2 are made for
times that are alike, and idle where W is quicker; with limit 2 and enough micro-batches hardly any of that is left.

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step. No stage holds more than limit S
micro-batches, where what only W still needs counts for less than half of one. Staleness: none.
Source: Qi et al., ICLR 2024, arXiv:2401.10241, section 3.1.
"""

from algorithms.algorithm import Equivalence, knob
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
        settings={"chunks": 4, "time_w": 0.5, "time_link": 0.2},
        to_settings={"chunks": 4},
    ),
)


class Settings(settings.Flushed):
    limit: int = knob(2, "memory of a stage, in what the first stage of 1F1B holds", ge=1, le=64)
    time_f: float = knob(1.0, "time of F, in any unit", gt=0, le=1e6)
    time_i: float = knob(1.0, "time of I, in the same", gt=0, le=1e6)
    time_w: float = knob(1.0, "time of W", ge=0, le=1e6)
    time_link: float = knob(0.0, "time of a message between stages", ge=0, le=1e6)


def shards(workers, s):
    return 1


def plan(workers, s):
    times = {"forward": s.time_f, "inputs": s.time_i, "weights": s.time_w, "latency": s.time_link}
    return flush("zb_1p", workers, s.chunks, limit=s.limit, **times)


def refuse(workers, batch, workload, s):
    return settings.refuse(batch, workload, plan(workers, s), s.cuts)


def words(shape, s):
    return plan(shape.workers, s).words(shape)


def worker(comm, task, s=Settings()):
    return Executor(comm, task, plan(comm.size, s), settings.rule(s), s.cuts).run()


if __name__ == "__main__":
    from experiments.cli.script import main

    main(__spec__.name)
