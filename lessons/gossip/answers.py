"""Answers to the quiz on gossip, from closed forms, products of mixing matrices, and the chapter's own runs."""

from math import log

import numpy as np

from algorithms.decentralized.gossipgrad import Settings as Gossip
from algorithms.decentralized.gossipgrad import partners
from algorithms.parts.topology import mixing, ring, spectral_gap
from lessons.gossip.experiments import PEERS, agreement, gradients, less, pairs, waiting


def latency(run, workers: int) -> float:
    """Return the number of message latencies in a step of the ring all-reduce, as a multiple of their number in a step
    of D-PSGD.
    """
    small = {"workers": workers, "steps": 3, "batch": 16, "learning_rate": 0.2, "evaluations": 1}
    grown = {}
    for method, values in (("sum", {"algorithm": "sync_sgd", "collective": "ring"}), ("mix", {"algorithm": "dpsgd"})):
        seconds = [run(latency=latency, **small, **values).summary["seconds"] for latency in (1e-3, 2e-3)]
        grown[method] = seconds[1] - seconds[0]
    return grown["sum"] / grown["mix"]


def tenth(run, workers: int) -> float:
    """Return the number of steps after which the slowest mode of disagreement on a ring has shrunk to a tenth."""
    return log(0.1) / log(1 - spectral_gap(mixing(ring(workers))))


def apart(run, graph: str) -> str:
    """Compare the distance of workers from their mean on a graph with the distance on a ring.

    Return "nearer", "farther" or "alike".
    """
    distance = {name: agreement.apart(run, name)[1] for name in ("ring", graph.split()[0])}
    ratio = distance[graph.split()[0]] / distance["ring"]
    return "nearer" if ratio < 0.8 else "alike" if ratio < 1.25 else "farther"


def heard(run, workers: int) -> float:
    """Return the number of steps of gossip after which every worker has received something from every other, directly
    or through others.
    """
    known, step = np.eye(workers, dtype=bool), 0
    while not known.all():
        sources = [partners(rank, workers, step, Gossip(rotate=False))[1] for rank in range(workers)]
        known, step = known | known[sources], step + 1
    return step


def raw(run, graph: str) -> str:
    """Return how the distance between neighbours develops if they exchange gradients and never average their models.

    The answer is "none" if there is no distance, "grows" or "bounded".
    """
    names = {"a ring": "ring", "a 4 x 4 torus": "torus", "the complete graph": "complete"}
    weights = "one" if graph in names else "lazy"
    distance = gradients.raw(run, names.get(graph, "ring"), 16, weights=weights)["spread"]
    early, middle, late = (float(distance[step]) for step in (80, 160, 240))
    if late < 1e-20:
        return "none"
    return "grows" if late / middle > 10 and middle / early > 10 else "bounded"


def slow(run, times: int, method: str) -> float:
    """Return the mean number of mini-batches that a worker computes if one of the eight workers is slow.

    They are counted at the time at which D-PSGD has finished 100 steps without a slow worker.
    """
    end = run(algorithm="dpsgd", steps=100, evaluations=1, **waiting.ON_A_RING).summary["seconds"]
    if method.startswith("D"):
        done = run(algorithm="dpsgd", steps=100, evaluations=1, slow=f"7:{times}", **waiting.ON_A_RING)
    else:
        done = run(algorithm="adpsgd", seconds=end, evaluations=1, slow=f"6:{times}", **waiting.ON_A_RING)
    return float(waiting.count_batches(done, end).mean())


def lost(run, method: str) -> str:
    """Return what happens to the other workers when one is lost.

    The answer is "stop", "on" if they continue, or "worse" if they continue but end at a higher loss.
    """
    whole, left = waiting.run_with_loss(run, PEERS[method.split()[0]])
    if left.status == "failed":
        return "stop"
    return "on" if left.summary["held_out_loss"] < 1.1 * whole.summary["held_out_loss"] else "worse"


def differences(run, what: str) -> str:
    """Return what becomes of workers that only gossip, with a tenth of the numbers in each message.

    The answer is "agree", "stop" if a distance remains, or "apart" if they drift apart.
    """
    sent = less.DIFFERENCE if what.startswith("the difference") else less.LARGEST
    distance = less.gossip(run, sent, 0.3 if "three tenths" in what else 1.0)
    kept = distance[100] / distance[0]
    return "agree" if kept < 1e-4 else "stop" if kept < 1 else "apart"


def in_pairs(run, late: str) -> str:
    """Compare the training time with outer steps in pairs to the time with sums over all workers.

    Return "same", "less" or "half".
    """
    in_twos, in_sum = (pairs.step_time(run, method, OUTER[late], collective="ring") for method in ("noloco", "diloco"))
    return "same" if in_twos > 0.95 * in_sum else "less" if in_twos > 0.5 * in_sum else "half"


OUTER = {
    "all workers are late now and then, and messages take no time": {"jitter": "exponential"},
    "worker 7 is three times as slow as the others, and messages take no time": {"slow": "7:3"},
    "nobody is late, and a message takes as long as ten steps": {"latency": 7.7e-5},
}
