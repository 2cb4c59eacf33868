"""Answers to the quiz on collectives, from closed forms and from sums that are actually computed."""

from lessons.collectives import experiments
from lessons.collectives.exchanges import all_reduce, by_one_server, run_exchange, took
from lessons.collectives.experiments import ALPHA, BETA
from lessons.figure import value
from theory import collective_costs

MEBIBYTE = 1 << 20
BYTES = {"300 kilobytes": 3e5, "1 megabyte": 1e6, "3 megabytes": 3e6}


def door(run, workers: int) -> float:
    """Return the time that one server takes to sum a mebibyte from each of these workers, in ms."""
    return took(by_one_server, workers + 1, MEBIBYTE)


def least(run, few: int, many: int) -> float:
    """Return by what percentage the least traffic of the busiest rank grows from `few` to `many` ranks.

    This is the smallest number of bytes that the busiest rank can send in an all-reduce.
    """
    return 100 * (collective_costs.share(many) / collective_costs.share(few) - 1)


def small(run, ranks: int) -> float:
    """Return the time of a 4-kB all-reduce around a ring of this many ranks, as a multiple of the time with eight
    ranks.
    """
    return took(all_reduce, ranks, experiments.SMALL) / took(all_reduce, 8, experiments.SMALL)


def crossing(run, ranks: int) -> float:
    """Return the size up to which recursive doubling is faster than the ring, in kilobytes."""
    return collective_costs.doubling_up_to(ranks, ALPHA, BETA, "ring") / 1000


def twelve(run, ranks: int) -> float:
    """Return how much the busiest rank sends in an all-reduce by halving and doubling, as a multiple of the vector's
    size.
    """
    outcome = run_exchange(all_reduce, ranks, experiments.DIVISIBLE, "halving_doubling")
    return float(outcome.trace().traffic().sum(axis=1).max() / experiments.DIVISIBLE)


def leaving(run, nodes: int, algorithm: str) -> float:
    """Return how many megabytes leave the first node in an all-reduce of one megabyte. A node has eight ranks."""
    name = "ring" if "ring" in algorithm else "recursive_doubling"
    ranks, nbytes = 8 * nodes, experiments.DIVISIBLE
    traffic = run_exchange(all_reduce, ranks, nbytes, name).trace().traffic()
    return float(traffic[:8, 8:].sum() / nbytes)


def training(run, workers: int, model: str) -> str:
    """Return the all-reduce that makes a training step of this model shortest."""
    size = "small" if "small" in model else "large"
    return min(experiments.CLOSED, key=lambda name: experiments.step(run, name, size, workers)[0])


def order(run, algorithm: str) -> str:
    """Return the results that ranks get for the sum of 1e8, 1, -1e8 and 1 in float32 with this all-reduce. The distinct
    ones are in one string.
    """
    name = {"the": "ring", "recursive": "recursive_doubling", "one": "one server"}[algorithm.split()[0]]
    return value(experiments.order_of_sums.rows(run), "1e8 + 1 - 1e8 + 1", algorithm=name)


def buy(run, vector: str) -> float:
    """Return by what percentage the better of two upgrades shortens a ring all-reduce among 32 ranks.

    The upgrades are half the latency and twice the bandwidth.
    """
    now = collective_costs.ring(32, BYTES[vector], ALPHA, BETA)
    bought = [collective_costs.ring(32, BYTES[vector], ALPHA * a, BETA * b) for a, b in ((0.5, 1), (1, 0.5))]
    return 100 * (1 - min(bought) / now)
