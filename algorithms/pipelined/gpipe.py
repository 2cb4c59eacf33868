"""GPipe streams the micro-batches of one mini-batch through the stages, then makes one synchronous update.

Rank s holds stage s of the model. A mini-batch is cut in `chunks` micro-batches; all go forward, all come back, and
the mean of their gradients, summed in the order of micro-batches, is the gradient of the mini-batch:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    stage 0   F0 F1 F2 .. .. .. .. B2 B1 B0
    stage 1   .. F0 F1 F2 .. .. B2 B1 B0 ..
    stage 2   .. .. F0 F1 F2 B2 B1 B0 .. ..        . idle: the bubble, (S-1)/(M+S-1) of the step

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step, there and back. A stage stores
the activations of M micro-batches; with `recompute` only their inputs, for a third more work. Staleness: none.
Source: Huang et al., NeurIPS 2019, arXiv:1811.06965; order of the backward passes as in torchgpipe.
"""

import kernels
from algorithms.declare import Equivalence, Knobs, knob
from algorithms.pipelined.executor import Executor
from algorithms.pipelined.schedule import repeat
from algorithms.pipelined.schedules.gpipe import schedule

SYNCHRONOUS = True
START = {"model": "residual", "depth": 6, "width": 64, "activation": "tanh"}  # eight layers to cut
EQUIVALENCES = (
    Equivalence("one stage and one micro-batch is SGD", to="sgd", settings={"chunks": 1}),
    Equivalence("a pipeline without micro-batches is SGD on a cut model", to="sgd", workers=3, settings={"chunks": 1}),
    Equivalence("micro-batches sum to the mini-batch", to="sgd", exactness="RND", workers=3, settings={"chunks": 4}),
)


class Settings(Knobs):
    learning_rate: float = knob(0.1, "step size", gt=0, le=1000)
    chunks: int = knob(4, "micro-batches in a mini-batch", ge=1, le=1024)
    recompute: bool = knob(False, "store inputs only and go forward once more before going backward")


def shards(workers, s):
    return 1


def refuse(workers, batch, workload, s):
    workload.split(workers)  # or it says into how many stages it can be cut
    if batch % s.chunks:
        *others, largest = [str(n) for n in range(1, batch + 1) if batch % n == 0]
        fitting = f"{', '.join(others)} or {largest}" if others else largest
        return f"{s.chunks} micro-batches do not divide a batch of {batch}; use {fitting}."


def words(shape, s):
    return 2 * shape.steps * shape.batch * sum(shape.boundaries)


def worker(comm, task, s=Settings()):
    pipe = Executor(comm, task, chunks=s.chunks, recompute=s.recompute)
    batch = schedule(comm.rank, comm.size, s.chunks, s.recompute)
    return pipe.run(repeat(batch, s.chunks), lambda w, g: kernels.sgd(w, g, s.learning_rate))


if __name__ == "__main__":
    from experiments.script import main

    main(__spec__.name)
