"""ZB-H2 spends twice the memory of 1F1B to leave no bubble at all: ranks start and end one after the other.

As in ZB-H1 the backward is split, I for the stage before, W for the update. Stage s goes forward 2(S-1-s)+1 times
before its first I, and its W lag 2s micro-batches behind:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    stage 0   F0 F1 F2 F3 F4 I0 W0 I1 W1 I2 W2 I3 W3 I4 W4
    stage 1   .. F0 F1 F2 I0 F3 I1 F4 I2 W0 I3 W1 I4 W2 W3 W4
    stage 2   .. .. F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 W1 W2 W3 W4        no gap between first and last op of a stage

Within the span of a stage (S-1)(f+i-2w) is idle as long as w <= f and w <= i: nothing if f = i = w. Each stage updates
when its own W are done, and starts the next mini-batch without a barrier. To clip the whole gradient, however,
all stages have to know its norm; with `validation` after, they update first and receive it later (`norm_clipping.py`).

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step. Stage s holds 2(S-s)-1
micro-batches, and what W needs of 2s more. Staleness: none.
Source: Qi et al., ICLR 2024, arXiv:2401.10241, Figure 3 (bottom) and Table 2.
"""

from collections.abc import Iterator
from typing import Literal

from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline.executor import Executor, pipeline
from algorithms.parts.pipeline.norm_clipping import GlobalNormClipping, PostValidation
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.plan import Flush
from algorithms.parts.pipeline.settings import FlushSettings
from algorithms.pipelined.zb_h1 import lagging
from knobs import Refusal


class Settings(FlushSettings):
    max_norm: float = knob(0.0, "maximum norm of the whole gradient; 0 is no limit", ge=0, le=1e6)
    validation: Literal["before", "after"] = knob(
        "after", "when the gradient's norm is checked: before or after the update", unless={"max_norm": (0,)}
    )


def schedule(rank: int, ranks: int, chunks: int) -> Iterator[Op]:
    """Return the ops of one mini-batch, with twice the memory of 1F1B. No rank idles between its first op and
    its last.
    """
    if chunks < 2 * ranks - 1:
        raise Refusal(
            f"{chunks} micro-batches do not fill {ranks} ranks in ZB-H2; use {2 * ranks - 1} or more.", [2 * ranks - 1]
        )
    return lagging(rank, ahead=2 * (ranks - 1 - rank), lag=2 * rank, chunks=chunks)


def executor(comm, task, plan, s, policy):
    if not s.max_norm:
        return Executor(comm, task, plan, s, policy)
    return (PostValidation if s.validation == "after" else GlobalNormClipping)(comm, task, plan, s)


def elements_sent(shape, s):
    if s.max_norm and shape.workers > 1:
        return None  # the norms as well, and the forwards that are repeated
    return Flush.of(schedule, shape.workers, s.chunks).elements_sent(shape)


ALGORITHM = pipeline(
    schedule,
    Settings,
    executor=executor,
    elements_sent=elements_sent,
    schedules={"zb_h2": schedule},
    equivalences=(
        Equivalence("one stage and one micro-batch give SGD", to="sgd", settings={"chunks": 1}),
        Equivalence(
            "it adds gradients in the order of micro-batches, as DAPPLE does",
            to="dapple",
            workers=3,
            settings={"chunks": 8},
            to_settings={"chunks": 8},
            batch=8,
        ),
        Equivalence(
            "an update that is rolled back equals one that waited for the norm",
            to="zb_h2",
            workers=3,
            settings={"max_norm": 0.01, "update": "adam"},
            to_settings={"max_norm": 0.01, "update": "adam", "validation": "before"},
        ),
    ),
)
