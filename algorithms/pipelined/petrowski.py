"""Petrowski's pipeline does in every slot a forward of one pattern and a backward of an older one, on every stage.

In slot k stage s goes forward with pattern k-s and backward with pattern k-2(S-1)+s, and updates at once; the last
stage does both with the same pattern. Nobody waits, and nobody keeps old weights: a backward reads what is there,

    w_s(b+1) = w_s(b) - lr g_s        g_s: activations of version b-2(S-1-s), transposed weights of version b

    slot       0    1    2      3      4      5
    stage 0   F0   F1   F2     F3     F4 B0  F5 B1
    stage 1   .    F0   F1     F2 B0  F3 B1  F4 B2
    stage 2   .    .    F0 B0  F1 B1  F2 B2  F3 B3        . idle only while the pipeline fills

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step, there and back. Stage s holds
one version of its weights and the activations of 2(S-1-s)+1 patterns. In the paper a pattern is a sample; here it is
whatever the batch size says.
Staleness: 2(S-1-s) updates on stage s, twice that of 1F1B.
Source: Petrowski, Dreyfus & Girault, IEEE Trans. Neural Networks 4(6), 1993; the slots are the standard reading.
"""

from functools import partial
from math import inf

import kernels
from algorithms.algorithm import Equivalence, Knobs, knob
from algorithms.parts.pipeline import settings
from algorithms.parts.pipeline.plan import Stream
from algorithms.parts.pipeline.stream_executor import StreamExecutor
from algorithms.parts.pipeline.weight_policies import LatestWeights
from algorithms.pipelined.schedules import systolic

SYNCHRONOUS = True  # stale, but always by the same updates: the network changes when, and not what
START = settings.START
EQUIVALENCES = (Equivalence("one stage is SGD", to="sgd"),)


class Settings(Knobs):
    learning_rate: float = knob(0.05, "step size", gt=0, le=1000)
    cuts: settings.Counts = knob("", "layers in each stage, for example 3,3,2; balanced by work if empty")


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
        return LatestWeights(lambda w, g: kernels.sgd(w, g, s.learning_rate))

    return StreamExecutor(comm, task, plan(comm.size, s), policy, s.cuts).run()


if __name__ == "__main__":
    from experiments.cli.script import main

    main(__spec__.name)
