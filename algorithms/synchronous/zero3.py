"""ZeRO-3 shards the parameters, too, and gathers those of a layer only while it computes; also known as FSDP.

Rank r owns piece r of every layer, written [r]. No rank holds all of w:

    w_l <- w_l[1], ..., w_l[N]                        all-gather before the forward of layer l, freed after it
    w_l <- w_l[1], ..., w_l[N]                        all-gather before its backward, freed after it
    g_l[r] <- mean over the ranks of g_l[r]           reduce-scatter after its backward
    w[r] <- w[r] - lr rule(g[r])   when all layers are done

So a rank holds d/N elements of w, of the gradient, and of each state vector of the optimizer; and, of one layer at a
time, all parameters and their gradient.

Price: 3 (N-1) d elements per step in total, half as many again as the ring, in three rounds for each layer, which all
ranks wait for: FSDP prefetches the next layer, at the memory of a second one. Staleness: none.
Source: Rajbhandari, Rasley, Ruwase & He, SC 2020; Zhao et al., VLDB 2023 (FSDP), arXiv:2304.11277.
"""

import numpy as np

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, one_model
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from kernels.arrays import concatenate, shares


class Settings(Knobs):
    learning_rate: float = knob(0.01, "step size", gt=0, le=1000)
    update: Rule = knob("adam", "optimizer of each rank, applied to its pieces of the mean gradient")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


def elements_sent(shape, s):
    return 3 * (shape.workers - 1) * shape.parameters * shape.steps


def worker(comm, task, s=Settings()):
    w = ShardedParameters(task, comm.rank, comm.size)
    g = kernels.empty_like(w.mine)  # (d / N,)
    rule = optimizer(s.update, w.mine, s.momentum)

    def gather(layer):
        whole = concatenate(comm.all_gather(w.mine[w.piece(layer.place)]))  # (d_l,)
        task.holds("parameters", whole.nbytes, stored=w.mine.nbytes)
        return whole

    for _ in task.steps(together=True):
        layers = task.layerwise()
        for layer in layers:
            layer.forward(gather(layer))  # the only reference: freed as soon as the layer is through
        for layer in reversed(layers):
            whole = layer.backward(gather(layer))  # (d_l,), of this rank's mini-batch
            g[w.piece(layer.place)] = comm.reduce_scatter(whole, op="mean")
            task.holds("gradients", g.nbytes + whole.nbytes)
        if not task.is_usable(g, agree=comm):
            continue
        rule.step(w.mine, g, s.learning_rate)
        task.report(w.mine, w.where)
    return w.mine


class ShardedParameters:
    """A rank's shard of w: `mine`, (d / N,), holds the rank's pieces of all layers in order, and `where` their indices
    in w.
    """

    def __init__(self, task, rank, size):
        self._rank, self._size = rank, size
        self._pieces, where, end = {}, [], 0  # by the layer's first place in w
        for place in task.layers:
            where.append(np.arange(place.start, place.stop)[shares(place.stop - place.start, size)[rank]])
            start, end = end, end + len(where[-1])
            self._pieces[place.start] = slice(start, end)
        self.where = np.concatenate(where)
        self.mine = task.start()[self.where]

    def take(self, place, whole):
        """Keep this rank's piece of the `whole` layer, (d_l,), at `place` in w."""
        self.mine[self.piece(place)] = whole[shares(len(whole), self._size)[self._rank]]

    def piece(self, place):
        """Return the slice of `mine` that is this rank's piece of the layer at `place` in w."""
        return self._pieces[place.start]


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=elements_sent,
    split=one_model,
    computes_together=True,
    skips_overflow=True,
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd", settings={"update": "sgd"}),
        *(
            Equivalence(
                f"with {rule} it is ZeRO-2, bit for bit",
                to="zero2",
                workers=3,
                settings={"update": rule},
                to_settings={"update": rule},
            )
            for rule in ("sgd", "nesterov", "adam")
        ),
    ),
)
