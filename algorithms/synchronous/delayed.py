"""Delayed gradient descent applies gradients a fixed number of steps late, to overlap their all-reduce with the steps.

Every worker computes g_i(w_t), starts its all-reduce, and continues; it applies the sum that was started k steps ago:

    compute   F B | F B | F B | F B |             k = 1: the all-reduce of a step overlaps the whole next step,
    network      [ g_0 ][ g_1 ][ g_2 ]            layer by layer until just before its layer is read again
    w_t+1[l] <- w_t[l] - lr (g_1(w_t-k)[l] + ... + g_N(w_t-k)[l]) / N

The delay is the same for all layers and workers, so all replicas stay equal to the bit. Delay 0 is synchronous SGD;
delay 1 is as fast as any: a step takes the longer of computation and communication, at best half of their sum. The
first k steps apply nothing, and after the last step the sums in flight are applied: T steps are T updates.

On curvature h it is stable for lr h < 2 sin(pi / (4 k + 2)): 2, 1, 0.62, 0.45 for k = 0, 1, 2, 3.

Price: the bytes of synchronous SGD; k more gradients in memory. Staleness: exactly k updates, and less for
the first k gradients.
Source: Daily et al., "Leveraging Asynchronicity in Gradient Descent for Scalable Deep Learning", OpenReview rkFd2P5gl;
stability from the roots of z^(k+1) = z^k - lr h.
"""

import math
from collections import deque
from functools import cache

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, ring_all_reduces
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from algorithms.rates import find_rate


class Settings(Knobs):
    learning_rate: float = knob(0.1, "step size", gt=0, le=1000)
    delay: int = knob(1, "k, steps by which every gradient is applied late", ge=0, le=64, unit="steps", postpones=True)
    layerwise: bool = knob(True, "reduce each layer as soon as its gradient is ready, not the whole model at once")
    update: Rule = knob("sgd", "optimizer of every worker, applied to the mean gradient")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


def notes(e):
    if e.knobs.delay > 1:
        yield (
            f"The last {e.knobs.delay} updates are applied after the last mini-batch, so the held-out curve ends with "
            "several points at one step."
        )


def unstable(e):
    delay, rate = e.knobs.delay, e.knobs.learning_rate
    found = find_rate("delayed", e.workload, e.data.get("model", ""))  # at a delay of 1
    left = 2 * math.sin(math.pi / (4 * delay + 2))  # of the largest stable rate at a delay of 1
    most = float(f"{left * found.default(e.workers):.2g}") if found else rate
    if delay > 1 and rate > most:
        yield (
            "delay",
            f"the learning rate is {rate:g}, but each gradient is applied {delay} steps late, which lowers the largest "
            f"stable rate to {100 * left:.2g} % of that at a delay of 1; use a shorter delay, or a learning rate of at "
            f"most {most:g}",
        )


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    late, updates = deque(), 0  # of each step not applied yet: its sums, and the version of its w

    @cache
    def rule(start, stop):
        return optimizer(s.update, w[start:stop], s.momentum)  # each layer has its own state

    def apply(place, handle):
        rule(place.start, place.stop).step(w[place], handle.wait(), s.learning_rate)

    def applied(version):
        nonlocal updates
        if comm.rank == 0:
            task.applied(updates - version)
            task.report(w)
        updates += 1

    for _ in task.steps(together=True):
        sums, version = late.popleft() if len(late) > s.delay else ({}, None)
        layers = task.layerwise()
        task.holds("parameters", w.nbytes)
        for layer in layers:
            if layer.place.start in sums:
                apply(*sums[layer.place.start])  # just before it is read again
            layer.forward(w[layer.place])
        if sums:
            applied(version)
        late.append((start_sums(comm, layers, w, s.layerwise), updates))
        task.holds("gradients", len(late) * w.nbytes)
    for sums, version in late:
        for place, handle in sums.values():
            apply(place, handle)
        applied(version)
    return w


def start_sums(comm, layers, w, layerwise):
    """Run a step's backward pass and start the all-reduces of its gradients.

    Return {first parameter: (slice of w, handle)} of the layers or, if not `layerwise`, of the whole model.
    """
    gradients = ((layer.place, layer.backward(w[layer.place])) for layer in reversed(layers))
    if not layerwise:
        whole = kernels.empty_like(w)
        for place, g in gradients:
            whole[place] = g
        gradients = [(slice(0, len(w)), whole)]
    return {place.start: (place, comm.all_reduce(g, "mean", async_op=True, priority=1)) for place, g in gradients}


ALGORITHM = Algorithm(
    worker,
    Settings,
    unstable=unstable,
    notes=notes,
    elements_sent=ring_all_reduces,
    computes_together=True,
    counts_staleness=True,
    equivalences=(
        Equivalence("one worker without delay gives SGD", to="sgd", settings={"delay": 0}),
        Equivalence(
            "without delay, in one piece, it is synchronous SGD, bit for bit",
            to="sync_sgd",
            workers=3,
            settings={"delay": 0, "layerwise": False},
        ),
        Equivalence(
            "a delay of 0 gives synchronous SGD", to="sync_sgd", exactness="RND", workers=3, settings={"delay": 0}
        ),
    ),
)
