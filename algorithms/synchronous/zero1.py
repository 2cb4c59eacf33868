"""ZeRO-1 updates each parameter on one rank only, so the optimizer state is sharded over all ranks.

The all-reduce is split into its two halves, with the update in between. Rank r owns piece r of the vector, written [r]:

    g[r] <- mean over the ranks of g[r]          reduce-scatter
    w[r] <- w[r] - lr rule(g[r])
    w    <- w[1], ..., w[N]                      all-gather

Optimizers that treat every parameter on its own, as all of ours do, compute the same. MLSL calls it the distributed
update, and gathers the increments of w instead of w.

Price: 2 (N-1) d elements per step in total, like the ring; each rank has 1/N of the optimizer's state, up to 2 d
elements with Adam, and of its work. All workers wait for the slowest. Staleness: none.
Source: Rajbhandari, Rasley, Ruwase & He, SC 2020; Sridharan et al., arXiv:1801.08030 (MLSL).
"""

from algorithms.algorithm import Algorithm, Equivalence, Knobs, Split, knob, ring_all_reduces
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from kernels.arrays import shares


class Settings(Knobs):
    learning_rate: float = knob(0.01, "step size", gt=0, le=1000)
    update: Rule = knob("adam", "optimizer of each rank, applied to its piece of the mean gradient")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,), equal on all ranks, and it stays so
    pieces = [w[share] for share in shares(len(w), comm.size)]
    mine = pieces[comm.rank]  # a part of w, not a copy
    rule = optimizer(s.update, mine, s.momentum)
    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        mean = comm.reduce_scatter(g, op="mean")
        if not task.is_usable(mean, agree=comm):
            continue
        rule.step(mine, mean, s.learning_rate)
        for rank, updated in enumerate(comm.all_gather(mine)):
            if rank != comm.rank:
                pieces[rank][:] = updated
        if comm.rank == 0:
            task.report(w)
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=ring_all_reduces,
    split=lambda workers, s: Split(1, 1, workers),
    computes_together=True,
    skips_overflow=True,
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd", settings={"update": "sgd"}),
        *(
            Equivalence(
                f"with {rule} it is synchronous SGD with {rule}",
                to="sync_sgd",
                workers=3,
                settings={"update": rule},
                to_settings={"update": rule},
            )
            for rule in ("sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam")
        ),
    ),
)
