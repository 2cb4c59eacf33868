import numpy as np
import pytest

from algorithms.parts.optimizers import optimizer
from cluster.network import Link, Network
from tests.training import ScalarChain, Springs, train
from theory import collective_costs

RATE = 0.1


def reported(run):
    """The models of the first rank after 1, 2, ... updates."""
    return [row[4] for row in run.outcome.event_logs[0].reports]


def by_hand(rule, updates, workers):
    """The models after each update, by the formula, with the batches of 1 that workers take in turn."""
    chain = ScalarChain()
    w, estimate, found = chain.start(0), chain.start(0), []
    kept = optimizer(rule, w)

    def mean(at, step):
        batches = [chain.batch(np.array([(workers * step + rank) % chain.samples])) for rank in range(workers)]
        return np.mean([chain.gradient(at, batch)[1] for batch in batches], axis=0)

    for update in range(updates):
        first, second = mean(estimate, 2 * update), mean(w, 2 * update + 1)
        guess, state = optimizer(rule, w), [vector.copy() for vector in kept.state]
        guess.steps, guess.state = kept.steps, tuple(state)
        estimate = w.copy()
        guess.step(estimate, first, RATE)
        kept.step(w, (first + second) / 2, RATE)
        found.append(w.copy())
    return found


@pytest.mark.parametrize("rule", ["sgd", "momentum", "adam"])
def test_the_first_half_is_computed_at_an_estimate_that_leaves_no_trace_in_the_optimizer(rule):
    run = train("acco", ScalarChain(), 2, {"learning_rate": RATE, "update": rule}, steps=10)
    np.testing.assert_allclose(reported(run), by_hand(rule, 5, 2), rtol=1e-12)
    assert all(np.array_equal(w, reported(run)[-1]) for w in run.models)


def test_a_run_that_ends_between_the_halves_takes_the_step_of_the_first_one():
    springs = Springs([1.0, 2.0, 6.0, 9.0], starts=[0.0])
    run = train("acco", springs, 1, {"learning_rate": 0.5}, steps=3)
    assert [springs.seen[centre][0][0] for centre in (1.0, 2.0)] == [0.0, 0.0]
    assert springs.seen[6.0][0][0] == 0.5  # the estimate: half of the way to the first centre
    assert reported(run) == [[0.75], [0.75 + 0.5 * (6 - 0.5)]]


@pytest.mark.parametrize("ratio", [0.3, 0.9, 3.0])
def test_a_mini_batch_takes_the_longer_of_its_computation_and_an_all_reduce(ratio):
    def seconds(name, workers, steps, **where):
        return train(name, Springs([0.0] * 8, parameters=64), workers, steps=steps, **where).outcome.trace().seconds()

    computing = seconds("sgd", 1, 11) - seconds("sgd", 1, 10)
    once = collective_costs.ring(4, 64 * 8, 0.0, 1.0)
    link = Link(0.0, once / (ratio * computing))  # an all-reduce takes `ratio` times as long as a gradient
    where = {"network": Network(link, link), "collective": "ring"}
    hidden, plain = (
        (seconds(name, 4, 22, **where) - seconds(name, 4, 12, **where)) / 10 for name in ("acco", "sync_sgd")
    )
    assert hidden == pytest.approx(max(1, ratio) * computing, rel=0.02)
    assert plain == pytest.approx((1 + ratio) * computing, rel=0.02)
