"""PipeDream keeps the pipeline full: each stage alternates one forward and one backward, on weights it stashed.

Stage s goes forward S-1-s times; then F and B take turns without end (1F1B), with an update after every B. By the
time a mini-batch comes back, the weights it met have been updated S-1-s times: so each stage stashes the version
that F read, and B reads it again. With w_s(b) the weights of stage s after b updates:

    w_s(b+1) = w_s(b) - lr dL/dw_s ( w_0(b-S+1), w_1(b-S+2), ..., w_{S-1}(b) )

    stage 0   F0 F1 F2 .. .. B0 F3 B1 F4 B2
    stage 1   .. F0 F1 .. B0 F2 B1 F3 B2 F4
    stage 2   .. .. F0 B0 F1 B1 F2 B2 F3 B3        . idle only while the pipeline fills

`weights` chooses the versions. stash: as above. vertical: every stage reads version b-S+1, one consistent model.
none: B reads the newest weights, which is the gradient of nothing, but stores one copy.

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step, there and back. Stage s holds
S-s versions of its weights (vertical: S) and the activations of S-s mini-batches.
Staleness: S-1-s updates on stage s (vertical: S-1 everywhere), decided by the schedule and not by the network.
Source: Harlap et al., arXiv:1806.03377; Narayanan et al., SOSP 2019; msr-fiddle/pipedream.
"""

from itertools import count
from typing import Literal

import kernels
from algorithms.declare import Equivalence, Knobs, knob
from algorithms.pipelined.executor import Executor
from algorithms.pipelined.schedule import Op

SYNCHRONOUS = True  # stale, but always by the same updates: the network changes when, and not what
START = {"model": "residual", "depth": 6, "width": 64, "activation": "tanh"}  # eight layers to cut
EQUIVALENCES = (
    Equivalence("one stage is SGD", to="sgd"),
    Equivalence("one stage has no other version to read", to="sgd", settings={"weights": "vertical"}),
)


class Settings(Knobs):
    learning_rate: float = knob(0.1, "step size", gt=0, le=1000)
    momentum: float = knob(0.0, "share of the last step that goes on (heavy ball)", ge=0, lt=1)
    weights: Literal["stash", "vertical", "none"] = knob("stash", "which version the passes read", delay=True)


def shards(workers, s):
    return 1


def refuse(workers, batch, workload, s):
    workload.split(workers)  # or it says into how many stages it can be cut


def words(shape, s):
    return 2 * shape.steps * shape.batch * sum(shape.boundaries)


def stream(stage, stages):
    """The ops of `stage`, without end: an update after every backward."""
    ahead = stages - 1 - stage
    yield from (Op("F", stage, chunk) for chunk in range(ahead))
    for chunk in count():
        yield Op("F", stage, chunk + ahead)
        yield Op("B", stage, chunk)
        yield Op("U", stage, chunk)


def worker(comm, task, s=Settings()):
    lag = comm.rank if s.weights == "vertical" else 0  # when a mini-batch arrives, s updates ahead of stage 0
    pipe = Executor(comm, task, lag=lag, stash=s.weights != "none")
    v = kernels.zeros_like(pipe.w)
    return pipe.run(stream(comm.rank, comm.size), lambda w, g: kernels.momentum(w, v, g, s.learning_rate, s.momentum))


if __name__ == "__main__":
    from experiments.script import main

    main(__spec__.name)
