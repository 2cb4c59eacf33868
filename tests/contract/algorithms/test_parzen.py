import numpy as np
import pytest

from algorithms.asynchronous.parzen import Settings, ahead, worker
from cluster.faults import Faults
from tests.contract.algorithms.test_dpsgd import Apart
from tests.training import Springs, train


@pytest.mark.parametrize(("theirs", "accepted"), [(0.5, True), (1.5, False), (0.95, False)])
def test_only_states_that_lie_ahead_are_accepted(theirs, accepted):
    assert ahead(np.array([1.0]), np.array([2.0]), np.array([theirs]), 0.1) == accepted


def test_silent_it_is_one_shot_averaging_bit_for_bit():
    springs = [3.0, -1.0, 0.5]
    silent = train("parzen", Springs(springs), 3, {"learning_rate": 0.1, "period": 1000}, steps=10)
    once = train("one_shot", Springs(springs), 3, {"learning_rate": 0.1}, steps=10)
    assert np.array_equal(silent.models, once.models)


@pytest.mark.parametrize(("scaled", "reached"), [(True, 0.775), (False, 0.55)])
def test_an_accepted_state_draws_half_way_towards_it(scaled, reached):
    """w = 1, gradient 2, rate 0.1, and a state at 0.5 that has come: the numbers of the book."""
    places = [1.0, 0.5]

    class Steep(Apart):
        def gradient(self, w, batch):
            super().gradient(w, batch)
            return 1.0, np.full_like(w, 2.0 if len(np.ravel(list(self.seen.values()))) > 1 else 0.0)

    settings = {"learning_rate": 0.1, "period": 1, "scaled": scaled}
    run = train("parzen", lambda rank: Steep(places, [0.0, 0.0], rank), 2, settings, steps=2)
    second = run.outcome.event_logs[0].reports[1][4][0]
    assert second == pytest.approx(reached, rel=1e-12)


class Inbox:
    """A worker's view of the others, who have sent these states before its first step."""

    rank, size = 0, 2

    def __init__(self, states):
        self.states = [np.array([state]) for state in states]

    def poll(self, tag):
        return list(self.states)

    def recv_any(self, tag):
        return 1, self.states.pop(0) if self.states else None

    def send(self, x, other, tag):
        pass

    def all_reduce(self, w, op):
        return w


class OneStep:
    """w = 1 with gradient 2, once."""

    seed = 0

    def start(self):
        return np.ones(1)

    def steps(self):
        return range(1)

    def gradient(self, w):
        return 1.0, np.full(1, 2.0)

    def measure(self, quantity, number):
        self.accepted = number

    def report(self, w):
        pass


@pytest.mark.parametrize(
    ("states", "buffers", "accepted", "mean"),
    [
        ([0.5], 4, 1, 0.75),
        ([0.5, 1.5, 0.25], 4, 2 / 3, (1 + 0.5 + 0.25) / 3),
        ([0.25, 0.5], 1, 1, 0.75),  # the newest one only
        ([1.5, 0.95], 4, None, 1.0),
    ],
)
def test_it_is_drawn_to_the_mean_of_itself_and_what_it_accepts(states, buffers, accepted, mean):
    task = OneStep()
    w = worker(Inbox(states), task, Settings(learning_rate=0.1, buffers=buffers))
    assert w[0] == pytest.approx(1 - 0.1 * (1 - mean + 2), rel=1e-14)
    assert getattr(task, "accepted", None) == accepted


def test_a_lost_worker_stops_nobody_before_the_average():
    crash = Faults(crash={2: 0.004})
    run = train("parzen", Springs([0.0] * 4), 4, {"period": 2}, steps=60, fails=True, faults=crash)
    assert all(len(event_log.losses) == 60 for rank, event_log in enumerate(run.outcome.event_logs) if rank != 2)
