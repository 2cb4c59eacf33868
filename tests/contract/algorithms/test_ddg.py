import numpy as np
import pytest

from tests.rows import CHAIN, IDEAL, after_iteration, digits, most, numbers, passes, period, times, versions
from tests.training import ScalarChain, train

BOOK = {  # (w0, w1, w2) after 1, 2, 4 and 8 updates of every module; a scalar chain, eta 0.1
    "stash": (
        ".533180 .627650 .723700", ".582315 .668595 .757647", ".650846 .723208 .803252", ".788285 .840875 .906530",
    ),
    "none": (
        ".533180 .627650 .723700", ".584579 .668595 .757647", ".657342 .723208 .803252", ".798473 .840527 .906212",
    ),
}  # fmt: skip
HEAVY_BALL = (".598905 .682420 .769497", ".741367 .797353 .864348", ".957535 .974295 1.015960")  # after 2, 4, 8; stash


def course(steps, **settings):
    return train("ddg", ScalarChain(), 3, {"learning_rate": 0.1} | settings, steps=steps)


@pytest.mark.parametrize("weights", BOOK)
def test_the_weights_are_those_of_the_book(weights):
    for steps, row in zip((1, 2, 4, 8), BOOK[weights], strict=True):
        assert course(steps, weights=weights).models[0] == pytest.approx(numbers(row), abs=6e-7)


def test_the_weights_with_heavy_ball_are_those_of_the_book():
    for steps, row in zip((2, 4, 8), HEAVY_BALL, strict=True):
        run = course(steps, update="momentum", momentum=0.5)
        assert run.models[0] == pytest.approx(numbers(row), abs=6e-7)


def test_by_iteration_lower_modules_are_behind():
    assert after_iteration(course(10), 8) == pytest.approx([0.728249, 0.818476, 0.906530], abs=6e-7)


@pytest.mark.parametrize("weights", ["stash", "none"])
def test_module_k_is_as_many_updates_late_as_modules_come_after_it(weights):
    run = train("ddg", CHAIN, 4, {"weights": weights, "learning_rate": 0.01}, steps=12)
    assert run.staleness == [[min(step, delay) for step in range(12)] for delay in (3, 2, 1, 0)]


def test_each_iteration_goes_back_through_an_older_mini_batch_further_down():
    run = course(5)
    assert passes(run, 0) == "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4"
    assert passes(run, 1) == "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4"
    assert passes(run, 2) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4"


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("barrier", [True, False])
def test_fewer_mini_batches_than_modules_come_home_too(steps, barrier):
    run = train("ddg", CHAIN, 4, {"barrier": barrier}, steps=steps)
    assert [len(staleness) for staleness in run.staleness] == [steps] * 4


def test_a_step_of_module_k_is_the_gradient_at_the_weights_that_its_mini_batch_met():
    workload = digits(shuffle=False)
    run = train("ddg", workload, 3, {"learning_rate": 0.1}, batch=8, steps=9)
    w = [versions(run, workload, rank) for rank in range(3)]
    for b in (0, 1, 5, 6):
        met = np.concatenate([w[k][max(0, b - (2 - k))] for k in range(3)])
        g = workload.gradient(met, workload.batch(np.arange(8 * b, 8 * b + 8)))[1]
        step = np.concatenate([(w[k][b] - w[k][b + 1]) / 0.1 for k in range(3)])
        assert np.allclose(step, g, rtol=1e-9, atol=1e-12)


def test_with_the_barrier_an_iteration_takes_the_whole_way_forward_and_one_module_back():
    run = train("ddg", CHAIN, 4, {"learning_rate": 0.01}, steps=40, network=IDEAL)
    forward, backward = times(run)
    assert period(run) == pytest.approx(forward + backward / 4, rel=0.01)


def test_without_the_barrier_it_is_pipedream_in_time_as_well():
    row = train("ddg", CHAIN, 4, {"learning_rate": 0.01, "barrier": False}, steps=40, network=IDEAL)
    pipeline = train("pipedream", CHAIN, 4, {"learning_rate": 0.01}, steps=40, network=IDEAL)
    forward, backward = times(row)
    assert period(row) == pytest.approx((forward + backward) / 4, rel=0.01)
    assert row.outcome.trace().seconds() == pytest.approx(pipeline.outcome.trace().seconds(), rel=0.01)


@pytest.mark.parametrize(("weights", "kept"), [("stash", [4, 3, 2, 1]), ("none", [1, 1, 1, 1])])
def test_module_k_keeps_activations_of_all_mini_batches_under_way_and_with_stash_their_weights(weights, kept):
    run = train("ddg", CHAIN, 4, {"weights": weights, "learning_rate": 0.01}, batch=2, steps=6)
    assert most(run, "parameters") == [8 * n for n in kept]
    assert most(run, "activations") == [16 * n for n in (4, 3, 2, 1)]
