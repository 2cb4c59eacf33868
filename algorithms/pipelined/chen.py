"""Chen's pipeline puts groups of layers of a speech network on several GPUs, and accepts that updates come late.

The slots are Petrowski's, with mini-batches for patterns: in slot k stage s goes forward with mini-batch k-s and
backward with k-2(S-1)+s, on the weights that are there, and updates at once, with momentum as usual:

    v_s <- m v_s + g_s        w_s <- w_s - lr v_s        g_s: activations of version b-2(S-1-s), weights of version b

A speech network ends in thousands of outputs, so its last layer is as much work as several others: the pipeline is as
slow as the stage that holds it, until that layer too is cut, in stripes, one on each of several GPUs (`striped`).

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step, there and back. Stage s holds
one version of its weights and the activations of 2(S-1-s)+1 mini-batches.
Staleness: 2(S-1-s) updates on stage s; momentum makes it dearer.
Source: Chen, Eversole, Li, Yu & Seide, Interspeech 2012 (mini-batches on GPUs); the slots are the standard reading.
"""

from functools import partial
from math import inf

import kernels
from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline import settings
from algorithms.parts.pipeline.plan import Stream
from algorithms.parts.pipeline.stream_executor import StreamExecutor
from algorithms.parts.pipeline.weight_policies import LatestWeights
from algorithms.pipelined.schedules import systolic

SYNCHRONOUS = True  # stale, but always by the same updates: the network changes when, and not what
START = settings.START
EQUIVALENCES = (Equivalence("one stage is SGD", to="sgd"),)


class Settings(settings.Pipeline):
    learning_rate: float = knob(0.05, "step size", gt=0, le=1000)


def shards(workers, s):
    return 1


def plan(workers, s):
    return Stream([1] * workers, partial(systolic.schedule, ranks=workers, chunks=inf))


def refuse(workers, batch, workload, s):
    return settings.refuse(batch, workload, plan(workers, s), s.cuts)


def words(shape, s):
    return 2 * shape.steps * shape.batch * sum(shape.boundaries)


def worker(comm, task, s=Settings()):
    def policy(stage, w):
        v = kernels.state_like(w)
        return LatestWeights(lambda w, g: kernels.momentum(w, v, g, s.learning_rate, s.momentum))

    return StreamExecutor(comm, task, plan(comm.size, s), policy, s.cuts).run()


if __name__ == "__main__":
    from experiments.cli.script import main

    main(__spec__.name)
