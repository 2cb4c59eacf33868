"""ZeRO-2 shards the gradient, too: a rank keeps only the piece of each layer's gradient that its update needs.

In the backward pass each layer's gradient is reduced as soon as it is computed, and then freed. Rank r owns piece r of
every layer, written [r]:

    g[r] <- mean over the ranks of g[r]          reduce-scatter, layer by layer, the last one first
    w[r] <- w[r] - lr rule(g[r])
    w    <- w[1], ..., w[N]                      all-gather

So a rank holds d elements of w, d/N of the gradient plus one layer's, and d/N for each state vector of the optimizer.

Price: 2 (N-1) d elements per step in total, like the ring, but in a round of messages for each layer, which all ranks
wait for: bucketing and overlap would hide them. Staleness: none.
Source: Rajbhandari, Rasley, Ruwase & He, SC 2020.
"""

from functools import cache

from algorithms.algorithm import Algorithm, Equivalence, Knobs, Split, knob, ring_all_reduces
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from kernels.arrays import shares


class Settings(Knobs):
    learning_rate: float = knob(0.01, "step size", gt=0, le=1000)
    update: Rule = knob("adam", "optimizer of each rank, applied to its piece of the mean gradient")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,), equal on all ranks, and it stays so

    @cache
    def pieces(start, stop):
        return [w[start:stop][share] for share in shares(stop - start, comm.size)]  # parts of w, not copies

    @cache
    def rule(start, stop):
        return optimizer(s.update, pieces(start, stop)[comm.rank], s.momentum)  # each layer has its own state

    for _ in task.steps(together=True):
        layers = task.layerwise()
        layers.forward(w)
        means = {}  # (start, stop) of a layer in w -> this rank's piece of its mean gradient
        for layer in reversed(layers):
            g = layer.backward(w[layer.place])
            means[layer.place.start, layer.place.stop] = comm.reduce_scatter(g, op="mean")
            task.holds("gradients", g.nbytes + sum(mean.nbytes for mean in means.values()))
        if not task.is_usable(*means.values(), agree=comm):
            continue
        for layer, mean in means.items():
            rule(*layer).step(pieces(*layer)[comm.rank], mean, s.learning_rate)
        mine = tuple(pieces(*layer)[comm.rank] for layer in means)
        for rank, theirs in enumerate(comm.all_gather(mine)):
            for layer, piece in zip(means, theirs, strict=True):
                pieces(*layer)[rank][:] = piece
        if comm.rank == 0:
            task.report(w)
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=ring_all_reduces,
    split=lambda workers, s: Split(1, workers, workers),
    computes_together=True,
    skips_overflow=True,
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd", settings={"update": "sgd"}),
        Equivalence("two workers give ZeRO-1, bit for bit", to="zero1", workers=2),
        *(
            Equivalence(
                f"with {rule} it is synchronous SGD with {rule}, summed layer by layer",
                to="overlap",
                workers=3,
                settings={"update": rule},
                to_settings={"update": rule, "bucket_bytes": 0},
            )
            for rule in ("sgd", "momentum", "adam")
        ),
    ),
)
