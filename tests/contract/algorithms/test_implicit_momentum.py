from itertools import product

import numpy as np
import pytest

from algorithms.asynchronous import asgd
from cluster.faults import JITTERS, Faults
from cluster.network import NETWORKS
from tests.contract.algorithms.test_asgd import long, served
from tests.training import Springs, train


def test_the_server_adds_only_the_momentum_that_is_missing():
    run = train("implicit_momentum", Springs([0.0] * 2), 2, {"learning_rate": 0.1, "momentum": 0.8}, steps=2)
    w, v, seen = [1.0, 1.0], 0.0, [1.0, 1.0]  # a round robin: gradients are one update old
    for k in range(4):
        v = (0.8 - 0.5) * v + w[k]
        w.append(w[-1] - 0.1 * v)
        seen.append(w[-1])
    assert served(run) == pytest.approx(w[2:], rel=1e-14)


UPDATES = 12


def predicted(w, workers, rate):
    """The momentum recursion of the theorem, from the first update on, when everybody has looked at the start."""
    w = [w[0], w[1]]
    for _ in range(UPDATES - 1):
        w.append(w[-1] + (1 - 1 / workers) * (w[-1] - w[-2]) - rate / workers * w[-1])
    return np.array(w)


class Script:
    """A server's view, comm and task in one: pushes come from `senders` in this order, each with g(w) = w."""

    rank = 0

    def __init__(self, workers, senders):
        self.size, self.course = workers + 1, [1.0]
        self.pushes, self.seen = iter(senders), [np.ones(1)] * self.size
        self.leaving = iter(range(1, self.size))

    def start(self):
        return np.ones(1)

    def recv_any(self):
        sender = next(self.pushes, None)
        return (next(self.leaving), None) if sender is None else (sender, self.seen[sender].copy())

    def send(self, w, worker):
        self.seen[worker] = w.copy()

    def applied(self, staleness):
        pass

    def report(self, w):
        self.course.append(float(w[0]))


@pytest.mark.parametrize(("workers", "updates"), [(1, 6), (2, 8), (3, 6), (5, 4)])
def test_averaged_over_all_orders_in_which_pushes_can_come_it_is_exactly_momentum(workers, updates):
    """If times are exponential the next push comes from any worker, all as likely: N^T courses, and their mean."""
    courses = []
    for senders in product(range(1, workers + 1), repeat=updates):
        script = Script(workers, senders)
        asgd.server(script, script, asgd.Settings(learning_rate=0.3))
        courses.append(script.course)
    w = np.mean(courses, 0)
    momentum = (1 - 1 / workers) * (w[1:-1] - w[:-2]) - 0.3 / workers * w[1:-1]
    assert w[2:] - w[1:-1] == pytest.approx(momentum, abs=1e-12)


@pytest.mark.slow
def test_on_average_asynchronous_sgd_at_random_speeds_is_sgd_with_momentum_1_minus_1_over_n():
    workers, rate = 4, 0.1
    courses = []
    for seed in range(2000):
        run = train(
            "asgd", Springs([0.0] * workers), workers, {"learning_rate": rate}, steps=UPDATES,
            network=NETWORKS["ideal"], faults=Faults(jitter=JITTERS["exponential"], seed=seed),
        )  # fmt: skip
        courses.append([1.0, *served(run)[:UPDATES]])
    mean, error = np.mean(courses, 0), np.std(courses, 0) / np.sqrt(len(courses))
    assert (np.abs(mean - predicted(mean, workers, rate))[2:] < 3 * error[2:]).all()
    assert error.max() < 0.005


def test_a_fixed_delay_is_no_momentum():
    w = [1.0, *served(long(4, {"learning_rate": 0.4}, steps=6))[:UPDATES]]
    assert np.abs(w - predicted(w, 4, 0.4)).max() > 0.2
