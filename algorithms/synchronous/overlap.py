"""Overlap hides the all-reduce behind back-propagation: a layer's gradients travel while earlier layers compute theirs.

The last layer's gradient is ready first. As soon as a bucket of layers is full its all-reduce starts, without waiting:

    backward   B3  B2  B1  B0                    bucket = two layers
    network            [g3 g2]   [g1 g0]         the step ends when the last bucket is reduced
    g = (g_1 + ... + g_N) / N        w <- w - lr g        (or the update of another optimizer)

With a minimum size of 0 every layer is sent alone (wait-free back-propagation); a bucket as large as the model leaves
nothing to hide behind. The best size lies in between: each all-reduce costs its latencies, and the last bucket is
always exposed. Helper threads for the sums, or updates in the order of completion ("lazy"), change the waiting and not
the result: all layers are updated before the next step begins.

Price: the bytes of synchronous SGD in more messages; one buffer for the gradient of the whole model. Staleness: none.
Source: Zhang et al. (Poseidon), USENIX ATC 2017, section 3; PyTorch's DistributedDataParallel (buckets); Daily et
al., "Leveraging Asynchronicity in Gradient Descent for Scalable Deep Learning", OpenReview rkFd2P5gl (layer by layer,
non-blocking).
"""

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, ring_all_reduces
from algorithms.parts.optimizers import HEAVY, Rule, optimizer


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    bucket_bytes: int = knob(
        32_768, "minimum number of bytes reduced together; 0 reduces layer by layer", ge=0, le=1 << 30, unit="bytes"
    )
    update: Rule = knob("sgd", "optimizer of every worker, applied to the mean gradient")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    rule = optimizer(s.update, w, s.momentum)
    for _ in task.steps(together=True):
        layers = task.layerwise()
        layers.forward(w)
        g, end, in_flight = kernels.empty_like(w), len(w), []
        task.holds("gradients", g.nbytes)
        for layer in reversed(layers):
            g[layer.place] = layer.backward(w[layer.place])
            start = layer.place.start
            bucket = g[start:end]
            if bucket.nbytes >= s.bucket_bytes or start == 0:
                in_flight.append(comm.all_reduce(bucket, op="mean", async_op=True))
                end = start
        for handle in in_flight:
            handle.wait()
        if not task.is_usable(g):
            continue
        rule.step(w, g, s.learning_rate)
        if comm.rank == 0:
            task.report(w)
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=ring_all_reduces,
    computes_together=True,
    skips_overflow=True,
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd"),
        Equivalence("two workers give synchronous SGD, bit for bit", to="sync_sgd", workers=2),
        Equivalence(
            "in one bucket it is synchronous SGD, bit for bit",
            to="sync_sgd",
            workers=3,
            settings={"bucket_bytes": 1 << 30},
        ),
        Equivalence("more workers give synchronous SGD, up to rounding", to="sync_sgd", exactness="RND", workers=3),
    ),
)
