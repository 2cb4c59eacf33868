"""GPipe streams the micro-batches of one mini-batch through the stages, then makes one synchronous update.

Rank s holds stage s of the model. A mini-batch is cut into `chunks` micro-batches: all go forward, then all come back
in reverse order, and the mean of their gradients, added up as they arrive, is the gradient of the mini-batch:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    stage 0   F0 F1 F2 .. .. .. .. B2 B1 B0
    stage 1   .. F0 F1 F2 .. .. B2 B1 B0 ..
    stage 2   .. .. F0 F1 F2 B2 B1 B0 .. ..        . idle: the bubble, (S-1)(f+b), or (S-1)/(M+S-1) of the step

With re-materialisation (`recompute`) a stage stores only the inputs of a micro-batch and repeats its forward (R) before
its backward: early, while the gradient is still on its way, and the bubble stays (S-1)(f+b); or late, once the gradient
has arrived ("0R2+0B2"), and the bubble is (S-1)(2f+b). The last micro-batch comes back at once, so `except_last` stores
it as a whole: it takes no more memory, and the step is shorter by f.

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step, there and back. A stage stores
the activations of M micro-batches; with `recompute` only their inputs, for a third more work.
Staleness: none.
Source: Huang et al., NeurIPS 2019, arXiv:1811.06965; order of the backward passes, and except_last, as in torchgpipe.
"""

from collections.abc import Iterable
from functools import partial
from typing import Literal

from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline.executor import pipeline
from algorithms.parts.pipeline.ops import Op, rematerialise
from algorithms.parts.pipeline.plan import Flush
from algorithms.parts.pipeline.settings import FlushSettings


class Settings(FlushSettings):
    chunks: int = knob(4, "micro-batches per mini-batch", ge=1, le=1024)
    recompute: Literal["none", "early", "late"] = knob(
        "none", "recompute activations before the backward pass: none, early or late"
    )
    except_last: bool = knob(
        False,
        "do not recompute the last micro-batch, whose backward pass immediately follows its forward pass",
        unless={"recompute": ("none",)},
    )


def schedule(
    rank: int, ranks: int, chunks: int, recompute: bool = False, late: bool = False, except_last: bool = False
) -> list[Op]:
    """Return the ops of one mini-batch, in the same order on every stage."""
    forward = [Op("F", rank, chunk) for chunk in range(chunks)]
    backward: Iterable[Op] = [Op("B", rank, chunk) for chunk in reversed(range(chunks))]
    if recompute:
        backward = rematerialise(backward, late, {chunks - 1} if except_last else ())
    return [*forward, *backward, Op("U", rank, 0)]


def plan(workers, s):
    recompute, late = s.recompute != "none", s.recompute == "late"
    return Flush.of(schedule, workers, s.chunks, recompute=recompute, late=late, except_last=s.except_last)


ALGORITHM = pipeline(
    schedule,
    Settings,
    plan=plan,
    schedules={
        "gpipe": schedule,
        "gpipe_early": partial(schedule, recompute=True),
        "gpipe_late": partial(schedule, recompute=True, late=True),
    },
    equivalences=(
        Equivalence("one stage and one micro-batch give SGD", to="sgd", settings={"chunks": 1}),
        Equivalence(
            "a pipeline without micro-batches is SGD on a cut model", to="sgd", workers=3, settings={"chunks": 1}
        ),
        Equivalence(
            "micro-batches sum to the mini-batch", to="sgd", exactness="RND", workers=3, settings={"chunks": 4}
        ),
    ),
)
