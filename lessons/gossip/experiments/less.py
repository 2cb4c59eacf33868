"""Shorter messages that neighbours can send instead of whole models."""

from itertools import pairwise

import numpy as np

from algorithms.decentralized import choco, dpsgd
from algorithms.parts.topology import mixing, neighbours
from lessons.figure import Look, column, figure, interior, ratio, value

EIGHT = {"workers": 8, "topology": "ring", "network": "ideal"}
WHOLE, LARGEST, DIFFERENCE = "whole models", "the largest tenth", "the largest tenth of the difference (CHOCO)"


class Still:
    """A task with the given start and zero gradients, so that workers gossip but do not learn."""

    def __init__(self, task, start):
        self._task, self._start = task, start

    def __getattr__(self, name):
        return getattr(self._task, name)

    def start(self):
        return self._start.copy()

    def gradient(self, w):
        return 0.0, np.zeros_like(w)


def send_the_largest(comm, task, s):
    """Gossip like CHOCO, without gradients, and return the model, (d,).

    Unlike CHOCO, send neighbours the largest elements of the model itself.
    """
    graph = neighbours(s.topology, comm.size, s.edges)
    share, others = mixing(graph)[comm.rank], graph[comm.rank]
    x = task.start()  # (d,)
    k = max(1, round(s.fraction * len(x)))
    for _ in task.steps(together=True):
        q = np.zeros_like(x)
        largest = np.argsort(-np.abs(x), kind="stable")[:k]
        q[largest] = x[largest]
        for other in others:
            comm.send(q, other)
        x += s.consensus * ((share[comm.rank] - 1) * q + sum(share[other] * comm.recv(other) for other in others))
        task.report(x)
    return x


def gossip(run, sent, consensus, steps=100):
    """Return the mean squared distance of eight workers from their mean, first at their random start and then after
    each step.
    """
    starts = np.random.default_rng([run.seed, 8]).standard_normal((8, 50))
    worker = {WHOLE: dpsgd.worker, LARGEST: send_the_largest, DIFFERENCE: choco.worker}[sent]
    values = {"algorithm": "dpsgd"} if sent == WHOLE else {"algorithm": "choco", "consensus": consensus}
    values |= {"workload": "quadratic", "dimension": 50, "batch": 1, "points": 8, "precision": "float64"}
    values |= {"steps": steps + 1, "evaluations": steps + 1, "learning_rate": 0.1} | EIGHT
    done = run(worker_override=lambda comm, task, s: worker(comm, Still(task, starts[comm.rank]), s), **values)
    return [float(np.square(starts - starts.mean(0)).sum(1).mean()), *done.evaluations["spread"][1:].tolist()]


CONSENSUS = {WHOLE: (1.0,), LARGEST: (0.4, 0.7, 1.0), DIFFERENCE: (0.2, 0.3, 0.4)}


@figure(
    "Do neighbours agree if they send only the largest tenth of the numbers?",
    source="Koloskova, Stich & Jaggi, 2019; the measurements are ours",
    claims={
        "if the model's largest numbers are sent, the distance falls by less than half in the last 40 steps": (
            lambda rows: (
                2 * value(rows, "apart", sent=LARGEST, steps=100) > value(rows, "apart", sent=LARGEST, steps=60)
            )
        ),
        "if the model's largest numbers are sent, 100 steps leave over a fiftieth of the initial distance": (
            lambda rows: (
                value(rows, "apart", sent=LARGEST, steps=100) > value(rows, "apart", sent=LARGEST, steps=0) / 50
            )
        ),
        "if the largest differences are sent, every 20 steps more than halve the distance": lambda rows: all(
            2 * after < before for before, after in pairwise(column(rows, "apart", sent=DIFFERENCE))
        ),
        "if whole models are sent, the distance is smaller still at every step shown": lambda rows: all(
            value(rows, "apart", sent=WHOLE, steps=steps) < value(rows, "apart", sent=DIFFERENCE, steps=steps)
            for steps in (20, 40, 60, 80, 100)
        ),
    },
    look=Look("steps", ("apart",), "sent", log="y", title="mean squared distance from the mean"),
)
def compressed_gossip(run):
    """Eight workers on a ring start from random vectors of 50 numbers and only gossip: there are no gradients.

    Two of the three methods send five numbers per message, each with the best of three consensus steps. If workers send
    the largest numbers of the model, a consensus step of 1 works. If they send the largest differences, steps above 0.4
    drive the workers apart.
    """
    for sent, tried in CONSENSUS.items():
        distances = [gossip(run, sent, consensus) for consensus in tried]
        best = min(distances, key=lambda distance: distance[100])
        for steps in range(0, 101, 20):
            yield {"sent": sent, "steps": steps, "apart": best[steps]}


@figure(
    "Do neighbours train as well with a fifth of the bytes?",
    source="Koloskova, Lin, Stich & Jaggi, 2020; the measurements on digits are ours",
    claims={
        "CHOCO sends a fifth of D-PSGD's bytes": lambda rows: (
            abs(ratio(rows, "megabytes", method=("CHOCO", "D-PSGD")) - 0.2) < 0.005
        ),
        "with each method at its own best rate, CHOCO's loss is less than 15 % above D-PSGD's": lambda rows: (
            ratio(rows, "loss", method=("CHOCO", "D-PSGD")) < 1.15
        ),
    },
    look=Look("method", ("loss",), kind="bar", title="held-out loss"),
)
def fewer_bytes(run):
    """Eight workers on a ring train on digits for 150 steps. Each method uses the best of five learning rates, a factor
    of two apart.
    """
    small = {"hidden": "32", "batch": 16, "steps": 150, "evaluations": 1} | EIGHT
    for method, values in {
        "D-PSGD": {"algorithm": "dpsgd"},
        "CHOCO": {"algorithm": "choco", "fraction": 0.1, "consensus": 0.3},
    }.items():
        tried = {rate: run(learning_rate=rate, **small, **values).summary for rate in (0.2, 0.4, 0.8, 1.6, 3.2)}
        losses = {rate: summary["held_out_loss"] for rate, summary in tried.items()}
        best = interior({rate: np.inf if loss is None else loss for rate, loss in losses.items()})
        yield {"method": method, "rate": best, "loss": losses[best], "megabytes": tried[best]["bytes"] / 1e6}
