"""Priority overlaps the all-reduce with the next forward pass as well, and sends first what that pass needs first.

Back-propagation yields the last layer's gradient first; the next forward pass needs the first layer's update first.
Layer l is updated just before it is read again, and gradients are sent in slices, those of early layers overtaking:

    compute   B2 B1 B0 . F0 F1 F2 B2 B1 B0        . only the first layer's sum has nothing to hide behind
    network      g2 g2 g0 g1 g1 g2 g2 g2          g0 waits for the slice in flight, not for all of g2
    g[l] = (g_1[l] + ... + g_N[l]) / N        w[l] <- w[l] - lr g[l]        (or another optimizer)

Every layer reads exactly the weights of synchronous SGD. First come, first served ("fifo") gains nothing: the first
layer's gradient, which the forward pass begins with, is then the last to arrive. Priority is a hint,
`comm.all_reduce(..., priority=...)`, which the simulated cluster follows and a real one may ignore.

Price: the bytes of synchronous SGD in still more messages, each with its latency; d elements in flight.
Staleness: none.
Source: Jayarajan et al. (P3), MLSys 2019; Peng et al. (ByteScheduler), SOSP 2019; Sridharan et al. (MLSL),
arXiv:1801.08030, whose newest-first order is the same, since the newest gradient is that of the earliest layer.
"""

from functools import cache
from typing import Literal

from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, ring_all_reduces
from algorithms.parts.optimizers import HEAVY, Rule, optimizer


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    order: Literal["priority", "fifo"] = knob(
        "priority", "what is sent first: priority (early layers) or fifo (whatever is ready first)"
    )
    slice: int = knob(
        32_768,
        "maximum number of elements per slice; between two slices, more urgent ones may be sent",
        ge=1,
        unit="numbers",
    )
    update: Rule = knob("sgd", "optimizer of every worker, applied to the mean gradient")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    in_flight = {}  # first parameter of a layer -> its gradient, and the sums of its slices

    @cache
    def rule(start, stop):
        return optimizer(s.update, w[start:stop], s.momentum)  # each layer has its own state

    def update(place):
        """Update a layer once its gradient is averaged over all workers."""
        g, sums = in_flight.pop(place.start)
        for handle in sums:
            handle.wait()
        rule(place.start, place.stop).step(w[place], g, s.learning_rate)

    for step in task.steps(together=True):
        layers = task.layerwise()
        task.holds("parameters", w.nbytes)
        for layer in layers:
            if step:
                update(layer.place)  # just before it is read again
            layer.forward(w[layer.place])
        if step and comm.rank == 0:
            task.report(w)
        for layer in reversed(layers):
            g, start = layer.backward(w[layer.place]), layer.place.start
            urgency = 1 + start if s.order == "priority" else 1
            slices = [g[i : i + s.slice] for i in range(0, len(g), s.slice)]
            in_flight[start] = g, [comm.all_reduce(x, "mean", async_op=True, priority=urgency) for x in slices]
        task.holds("gradients", w.nbytes)
    for place in task.layers:
        update(place)
    if comm.rank == 0:
        task.report(w)
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=ring_all_reduces,
    computes_together=True,
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd"),
        Equivalence("two workers give synchronous SGD, bit for bit", to="sync_sgd", workers=2),
        Equivalence("more workers give synchronous SGD, up to rounding", to="sync_sgd", exactness="RND", workers=3),
        Equivalence(
            "the order of sending changes only the timing, not the weights",
            to="priority",
            workers=3,
            settings={"order": "fifo"},
        ),
    ),
)
