"""Expert parallelism: each rank has some experts of a mixture, and tokens travel to the experts they choose and back.

N ranks train on samples of their own. Of E experts in each block (`workloads/experts.py`), rank r has E/N, and it has a
copy of everything else. In each block, and once more on the way back, rows of tokens cross twice:

    route        each rank lets its own tokens choose experts
    all-to-all   rows -> the ranks of their experts          forward: tokens          backward: gradients of outputs
    compute      each expert takes the rows of all ranks, in the order of ranks
    all-to-all   rows -> the ranks of their tokens           forward: outputs         backward: gradients of tokens

    replicated:  g <- mean over ranks of g          own experts:  g <- g / N, where g is already the sum over ranks
    w <- w - lr rule(g)

An expert takes at most `capacity` times an equal share of a rank's tokens; the rest bypass it. So ranks compute, up to
rounding, what synchronous SGD with all experts on each rank would. How much a rank has to do depends on what tokens
choose: the slowest is the one with the most popular experts.

Price: in each block and step all ranks together send 4 h elements for each row whose expert is on another rank, h being
the width. If experts are equally popular and nothing is dropped, that is 4 n T k h (N-1)/N elements, for n samples of
all ranks and T tokens that choose k experts each. Replicated parameters add 2 (N-1) d_replicated. A rank holds 1/N of
the experts. Staleness: none.
Source: Lepikhin et al., GShard, arXiv:2006.16668; Fedus, Zoph & Shazeer, Switch Transformers, arXiv:2101.03961.
"""

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, one_model
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from algorithms.parts.rank_groups import divisors, one_of
from kernels.arrays import concatenate
from knobs import Refusal


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    update: Rule = knob("sgd", "optimizer of every rank, for its shard")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


def check(workers, batch, workload, s):
    experts = workload.experts()
    if experts % workers:
        raise Refusal(
            f"{workers} workers do not divide {experts} experts; use {one_of(divisors(experts))} workers.",
            divisors(experts),
        )


def elements_sent(shape, s):
    return None if shape.workers > 1 else 0  # it depends on what tokens choose


def worker(comm, task, s=Settings()):
    shard = task.expert_shard(comm.rank, comm.size)
    exchange = TokenExchange(comm)
    w = shard.start()  # (d_r,)
    rule = optimizer(s.update, w, s.momentum)
    for _ in task.steps(together=True):
        batch = task.next_batch()
        loss, g = shard.gradient(w, batch, exchange)
        task.record(loss, len(batch[0]))
        task.measure("tokens dropped", shard.fraction_dropped)
        task.measure("imbalance", shard.imbalance)
        comm.all_reduce(g[shard.own :], op="mean")
        kernels.scale(g[: shard.own], 1 / comm.size)
        rule.step(w, g, s.learning_rate)
        shard.report(w)
    return w


class TokenExchange:
    """All-to-all exchanges between the ranks that have tokens and the ranks that have experts.

    Each list of rows has one array for each expert.
    """

    def __init__(self, comm):
        self.comm = comm

    def to_experts(self, rows):
        """Send this rank's rows to the ranks of their experts.

        Return all ranks' rows for this rank's experts, and the counts that `to_tokens` needs.
        """
        own = len(rows) // self.comm.size
        sent = [tuple(rows[at : at + own]) for at in range(0, len(rows), own)]
        received = self.comm.all_to_all(sent)
        counts = [[len(part) for part in parts] for parts in received]  # by rank and own expert
        return [concatenate(parts) for parts in zip(*received, strict=True)], counts

    def to_tokens(self, rows, counts):
        """Send the rows of this rank's experts back to the ranks of their tokens.

        Return this rank's own rows, by expert.
        """
        starts, back = [0] * len(rows), []
        for own in counts:
            ends = [start + count for start, count in zip(starts, own, strict=True)]
            back.append(tuple(x[start:end] for x, start, end in zip(rows, starts, ends, strict=True)))
            starts = ends
        return [part for parts in self.comm.all_to_all(back) for part in parts]


ALGORITHM = Algorithm(
    worker,
    Settings,
    split=one_model,  # experts are most of it
    check=check,
    elements_sent=elements_sent,
    model_defaults={"experts": 4},
    defaults={"workload": "text"},
    equivalences=(
        Equivalence("one rank gives SGD", to="sgd"),
        Equivalence("two ranks give synchronous SGD", to="sync_sgd", exactness="RND", workers=2),
        Equivalence("four ranks give synchronous SGD", to="sync_sgd", exactness="RND", workers=4),
    ),
    example_workers=4,
)
