"""GPipe streams the micro-batches of one mini-batch through the stages, then makes one synchronous update.

Rank s holds stage s of the model. A mini-batch is cut in `chunks` micro-batches; all go forward, all come back, and
the mean of their gradients, added up as they come, is the gradient of the mini-batch:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    stage 0   F0 F1 F2 .. .. .. .. B2 B1 B0
    stage 1   .. F0 F1 F2 .. .. B2 B1 B0 ..
    stage 2   .. .. F0 F1 F2 B2 B1 B0 .. ..        . idle: the bubble, (S-1)/(M+S-1) of the step

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step, there and back. A stage stores
the activations of M micro-batches; with `recompute` only their inputs, for a third more work: early, while it waits for
the gradient, or late, when it has come. `except_last` stores the micro-batch that comes back first as a whole.
Staleness: none.
Source: Huang et al., NeurIPS 2019, arXiv:1811.06965; order of the backward passes as in torchgpipe.
"""

from typing import Literal

from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline import settings
from algorithms.parts.pipeline.executor import Executor
from algorithms.parts.pipeline.plan import flush

SYNCHRONOUS = True
START = settings.START
EQUIVALENCES = (
    Equivalence("one stage and one micro-batch is SGD", to="sgd", settings={"chunks": 1}),
    Equivalence("a pipeline without micro-batches is SGD on a cut model", to="sgd", workers=3, settings={"chunks": 1}),
    Equivalence("micro-batches sum to the mini-batch", to="sgd", exactness="RND", workers=3, settings={"chunks": 4}),
)


class Settings(settings.Flushed):
    chunks: int = knob(4, "micro-batches in a mini-batch", ge=1, le=1024)
    recompute: Literal["none", "early", "late"] = knob("none", "store inputs only, and go forward once more")
    except_last: bool = knob(False, "but not of the last micro-batch, which comes back at once, as in torchgpipe")


def shards(workers, s):
    return 1


def plan(workers, s):
    name = "gpipe" if s.recompute == "none" else f"gpipe_{s.recompute}"
    return flush(name, workers, s.chunks, except_last=s.except_last)


def refuse(workers, batch, workload, s):
    return settings.refuse(batch, workload, plan(workers, s), s.cuts)


def words(shape, s):
    return plan(shape.workers, s).words(shape)


def worker(comm, task, s=Settings()):
    return Executor(comm, task, plan(comm.size, s), settings.rule(s), s.cuts).run()


if __name__ == "__main__":
    from experiments.cli.script import main

    main(__spec__.name)
