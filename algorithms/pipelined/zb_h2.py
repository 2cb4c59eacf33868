"""ZB-H2 spends twice the memory of 1F1B to leave no bubble at all: ranks start and end one after the other.

As in ZB-H1 the backward is split, I for the stage before, W for the update. Stage s goes forward 2(S-1-s)+1 times
before its first I, and its W are 2s micro-batches behind:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    stage 0   F0 F1 F2 F3 F4 I0 W0 I1 W1 I2 W2 I3 W3 I4 W4
    stage 1   .. F0 F1 F2 I0 F3 I1 F4 I2 W0 I3 W1 I4 W2 W3 W4
    stage 2   .. .. F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 W1 W2 W3 W4        no gap between first and last op of a stage

Each stage updates when its own W are done, and goes on with the next mini-batch: nobody waits for all. To clip the
whole gradient all have to know its norm; with `validation` after, they update first and learn it later (`clipped.py`).

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step. Stage s holds 2(S-s)-1
micro-batches, and what W needs of 2s more. Staleness: none.
Source: Qi et al., ICLR 2024, arXiv:2401.10241, figures 2 and 3 and Table 2.
"""

from typing import Literal

from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline import settings
from algorithms.parts.pipeline.executor import Executor
from algorithms.parts.pipeline.norm_clipping import GlobalNormClipping, PostValidation
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
        settings={"chunks": 8},
        to_settings={"chunks": 8},
        batch=8,
    ),
    Equivalence(
        "an update that is taken back is as one that waited for the norm", to="zb_h2", workers=3, to_workers=3,
        settings={"max_norm": 0.01, "update": "adam"},
        to_settings={"max_norm": 0.01, "update": "adam", "validation": "before"},
    ),
)  # fmt: skip


class Settings(settings.Flushed):
    max_norm: float = knob(0.0, "largest norm of the whole gradient; 0 for any", ge=0, le=1e6)
    validation: Literal["before", "after"] = knob("after", "the norm is known before the update, or it is taken back")


def shards(workers, s):
    return 1


def plan(workers, s):
    return flush("zb_h2", workers, s.chunks)


def refuse(workers, batch, workload, s):
    return settings.refuse(batch, workload, plan(workers, s), s.cuts)


def words(shape, s):
    if s.max_norm and shape.workers > 1:
        return None  # the norms as well, and what goes forward again
    return plan(shape.workers, s).words(shape)


def worker(comm, task, s=Settings()):
    if s.max_norm:
        form = PostValidation if s.validation == "after" else GlobalNormClipping
        return form(comm, task, plan(comm.size, s), s, s.cuts).run()
    return Executor(comm, task, plan(comm.size, s), settings.rule(s), s.cuts).run()


if __name__ == "__main__":
    from experiments.cli.script import main

    main(__spec__.name)
