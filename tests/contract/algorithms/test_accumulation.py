import numpy as np
import pytest

from cluster.network import Link, Network
from tests.training import ScalarChain, Springs, train
from theory import collective_costs

SAMPLES = np.linspace(0.6, 1.2, 48)


@pytest.mark.parametrize(("workers", "accumulate"), [(1, 4), (2, 3), (4, 2), (2, 1)])
def test_it_is_one_worker_with_a_batch_as_large_as_all_of_them(workers, accumulate):
    together = workers * accumulate
    one = train("sgd", ScalarChain(x=SAMPLES), batch=2 * together, steps=10, settings={"learning_rate": 0.2})
    settings = {"learning_rate": 0.2, "accumulate": accumulate}
    many = train("accumulation", ScalarChain(x=SAMPLES), workers, settings, batch=2, steps=10 * accumulate)
    assert all(np.allclose(w, one.models[0], rtol=1e-12, atol=0) for w in many.models)
    assert not np.array_equal(one.models[0], ScalarChain().start(0))


@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize(("workers", "accumulate"), [(1, 4), (2, 2), (1, 3)])
def test_it_is_the_large_batch_over_epochs_whose_samples_fill_no_whole_number_of_updates(workers, accumulate, epochs):
    chain, together = ScalarChain(x=SAMPLES[:45]), workers * accumulate
    budget = {"budget": {"epochs": epochs}, "seed": 3}
    one = train("sgd", chain, batch=2 * together, settings={"learning_rate": 0.2}, **budget)
    shared = train("sync_sgd", chain, together, {"learning_rate": 0.2}, batch=2, **budget)
    settings = {"learning_rate": 0.2, "accumulate": accumulate}
    many = train("accumulation", chain, workers, settings, batch=2, **budget)
    assert all(np.allclose(w, one.models[0], rtol=1e-12, atol=0) for w in (*many.models, *shared.models))


def test_it_stays_where_it_is_between_updates_and_a_short_last_round_is_a_mean_as_well():
    springs = Springs([1.0, 2.0, 6.0, 9.0], starts=[0.0])
    run = train("accumulation", springs, 1, {"learning_rate": 0.5, "accumulate": 2}, steps=3)
    assert [springs.seen[centre][0][0] for centre in (1.0, 2.0, 6.0)] == [0.0, 0.0, 0.75]
    assert run.models[0] == [0.75 + 0.5 * (6 - 0.75)]


def test_a_sample_costs_as_many_times_less_traffic_as_mini_batches_are_accumulated():
    def traffic(accumulate):
        run = train("accumulation", ScalarChain(), 4, {"accumulate": accumulate}, batch=2, steps=12)
        return run.outcome.trace().traffic().sum()

    assert traffic(1) == 4 * traffic(4) == 12 * traffic(12)


def test_a_round_takes_its_gradients_one_after_the_other_and_one_all_reduce():
    link = Link(1e-3, 1e6)
    compute = train("accumulation", Springs([0.0] * 8, parameters=64), 1, {"accumulate": 1}, steps=1)
    once = compute.outcome.trace().seconds()

    def seconds(accumulate):
        where = {"network": Network(link, link)}
        settings = {"accumulate": accumulate}
        run = train("accumulation", Springs([0.0] * 8, parameters=64), 4, settings, steps=12, **where)
        return run.outcome.trace().seconds()

    exchange = collective_costs.ring(4, 64 * 8, link.latency, 1 / link.bandwidth)
    for accumulate in (1, 2, 6):
        assert seconds(accumulate) == pytest.approx(12 * once + 12 / accumulate * exchange, rel=0.02)
