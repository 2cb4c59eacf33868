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

A slow stage may be given several ranks, `replicas`: mini-batch b goes to replica b mod r of a stage, and after each
turn the replicas average their gradients and update together. They make fewer updates of more mini-batches each, so
with `scale_rate`, as in the authors' code, the rate of a stage with r_s replicas is lr r_s / r_0.

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step, there and back. Stage s holds
S-s versions of its weights (vertical: S) and the activations of S-s mini-batches. Replicas move 2(r-1) numbers for
every parameter in r mini-batches.
Staleness: S-1-s updates on stage s (vertical: S-1 everywhere), decided by the schedule and not by the network.
Source: Harlap et al., arXiv:1806.03377; Narayanan et al., SOSP 2019; msr-fiddle/pipedream."""

from functools import partial
from math import inf
from typing import Literal

import kernels
from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline import settings
from algorithms.parts.pipeline.plan import Stream
from algorithms.parts.pipeline.stream_executor import StreamExecutor
from algorithms.parts.pipeline.weight_policies import LatestWeights, PinnedVersion, StashedWeights
from algorithms.pipelined.schedules import one_f_one_b
from knobs import Counts, listed

SYNCHRONOUS = True  # stale, but always by the same updates: the network changes when, and not what
START = settings.START
EQUIVALENCES = (
    Equivalence("one stage is SGD", to="sgd"),
    Equivalence("one stage has no other version to read", to="sgd", settings={"weights": "vertical"}),
    Equivalence(
        "with vertical sync every stage is as late as the first: a delay of S-1, bit for bit", to="delayed", workers=4,
        settings={"weights": "vertical"}, to_settings={"delay": 3, "layerwise": False},
    ),
)  # fmt: skip


class Settings(settings.Pipeline):
    weights: Literal["stash", "vertical", "none"] = knob("stash", "which version the passes read", delay=True)
    replicas: Counts = knob("", "ranks of each stage, for example 2,1; one each if empty")
    scale_rate: bool = knob(False, "the step size of a stage grows with its replicas, over those of the first")


def shards(workers, s):
    return 1


def plan(workers, s):
    replicas = s.replicas or (1,) * workers
    return Stream(replicas, partial(one_f_one_b.replicated, replicas=replicas, chunks=inf))


def refuse(workers, batch, workload, s):
    wanted = sum(s.replicas) or workers
    if wanted != workers:
        return (
            f"replicas {listed(s.replicas)} are {wanted} ranks and there are {workers} workers; "
            f"let them add up to {workers}."
        )
    if s.replicas and s.weights == "vertical":
        return "vertical sync is not defined for stages of several ranks; use stash or none."
    return settings.refuse(batch, workload, plan(workers, s), s.cuts)


def words(shape, s):
    if s.replicas:
        return None  # that depends on how large each stage is
    return 2 * shape.steps * shape.batch * sum(shape.boundaries)


def stages(workers, s):
    return plan(workers, s).stages


def worker(comm, task, s=Settings()):
    return executor(comm, task, s).run()


def executor(comm, task, s):
    pipe = plan(comm.size, s)

    def policy(stage, w):
        v = kernels.state_like(w)
        rate = s.learning_rate * (pipe.replicas[stage.index] / pipe.replicas[0] if s.scale_rate else 1)

        def update(w, g):
            kernels.momentum(w, v, g, rate, s.momentum)

        if s.weights == "vertical":  # when a mini-batch arrives, stage s is s updates ahead of stage 0
            return PinnedVersion(update, lambda batch: max(0, batch - (stage.count - 1)), keep=stage.index + 1)
        return StashedWeights(update) if s.weights == "stash" else LatestWeights(update)

    return StreamExecutor(comm, task, pipe, policy, s.cuts)


if __name__ == "__main__":
    from experiments.cli.script import main

    main(__spec__.name)
