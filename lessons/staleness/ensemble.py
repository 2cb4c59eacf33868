"""The average behaviour of asynchronous SGD over many clusters that differ only in their random times."""

from functools import cache

import numpy as np

from algorithms.asynchronous import asgd
from cluster import simulated
from cluster.faults import JITTERS, Faults
from cluster.network import NETWORKS
from workloads import quadratic
from workloads.budget import Budget
from workloads.task import Task

HEAVY = 300  # times the cost of one number: the server takes no time compared with the gradient


@cache
def mean_course(seed: int, workers: int, rate: float, jitter: str, updates: int, clusters: int) -> np.ndarray:
    """Return the server's w before and after each update, (updates + 1,), averaged over clusters. It starts at 1, and
    the loss is w^2 / 2.

    Each cluster has its own random times, and each seed has different clusters. Every worker may take as many steps as
    there are updates, so that none stops before the end. The figure and the quiz request the same results: each is
    computed once, and is read-only.
    """
    bowl = quadratic.build(quadratic.Settings(dimension=1, points=workers), np.float64)
    s = asgd.Settings(learning_rate=rate)

    def program(comm):
        shard = None if comm.rank == asgd.SERVER else comm.rank - 1
        task = Task(bowl, comm, budget=Budget(steps=updates), batch=1, data_shard=shard, data_shards=workers)
        return asgd.worker(comm, task, s)

    def course(number):
        times = Faults(slow=dict.fromkeys(range(1, workers + 1), HEAVY), jitter=JITTERS[jitter], seed=number)
        outcome = simulated.run(program, workers + 1, network=NETWORKS["ideal"], faults=times)
        if outcome.error:
            raise outcome.error
        return [1.0, *(float(w[0]) for *_, w in outcome.event_logs[0].reports[:updates])]

    mean = np.mean([course(clusters * seed + one) for one in range(clusters)], axis=0)
    mean.flags.writeable = False
    return mean
