import numpy as np
import pytest

from algorithms.parts.optimizers import Optimizer
from tests.rows import CHAIN, IDEAL, after_iteration, digits, most, numbers, passes, period, times
from tests.training import ScalarChain, train

BOOK = (  # as PipeDream without stashing: where modules are linear, going forward again changes nothing
    ".533180 .627650 .723700", ".584579 .668595 .757647", ".657342 .723208 .803252", ".798473 .840527 .906212",
)  # fmt: skip


def test_the_weights_are_those_of_the_book():
    for steps, row in zip((1, 2, 4, 8), BOOK, strict=True):
        run = train("features_replay", ScalarChain(), 3, {"learning_rate": 0.1}, steps=steps)
        assert run.models[0] == pytest.approx(numbers(row), abs=6e-7)


def test_by_iteration_lower_modules_are_behind():
    run = train("features_replay", ScalarChain(), 3, {"learning_rate": 0.1}, steps=10)
    assert after_iteration(run, 8) == pytest.approx([0.737070, 0.818729, 0.906212], abs=6e-7)


@pytest.mark.parametrize("weights", ["stash", "none"])
def test_while_weights_stand_still_its_gradients_are_those_of_ddg(monkeypatch, weights):
    def gradients(name, **settings):
        seen = []
        monkeypatch.setattr(Optimizer, "step", lambda rule, w, g, rate: seen.append(g.tobytes()))
        train(name, digits(), 4, settings, batch=8, steps=6)
        return sorted(seen)

    assert gradients("features_replay") == gradients("ddg", weights=weights)


def test_it_goes_apart_from_ddg_as_the_square_of_the_rate():
    def apart(rate):
        replayed, delayed = (
            train(name, digits(), 4, {"learning_rate": rate}, batch=8, steps=8).models[0]
            for name in ("features_replay", "ddg")
        )
        return np.linalg.norm(replayed - delayed)

    assert apart(1e-3) > 0
    assert apart(2e-3) / apart(1e-3) == pytest.approx(4, rel=0.05)


def test_where_a_module_is_more_than_one_layer_going_again_is_not_going_back_through_new_weights():
    replayed = train("features_replay", CHAIN, 2, {"learning_rate": 0.1}, steps=8).models[0]
    current = train("ddg", CHAIN, 2, {"learning_rate": 0.1, "weights": "none"}, steps=8).models[0]
    assert np.abs(replayed - current).max() > 1e-3


def test_every_module_but_the_last_goes_forward_again_before_it_goes_back():
    run = train("features_replay", ScalarChain(), 3, {}, steps=4)
    assert passes(run, 0) == "F0 F1 F2 R0 B0 F3 R1 B1 R2 B2 R3 B3"
    assert passes(run, 1) == "F0 F1 R0 B0 F2 R1 B1 F3 R2 B2 R3 B3"
    assert passes(run, 2) == "F0 B0 F1 B1 F2 B2 F3 B3"


def test_features_are_as_many_updates_old_as_modules_come_after():
    run = train("features_replay", CHAIN, 4, {"learning_rate": 0.01}, steps=12)
    assert run.staleness == [[min(step, delay) for step in range(12)] for delay in (3, 2, 1, 0)]


def test_the_first_module_may_be_given_another_rate_as_in_the_authors_code():
    once, twice = (
        train("features_replay", ScalarChain(), 3, {"learning_rate": 0.1, "first_rate": n}, steps=1) for n in (1, 2)
    )
    start = ScalarChain().start(0)
    assert twice.models[0] - start == pytest.approx((once.models[0] - start) * [2, 1, 1])


@pytest.mark.parametrize("barrier", [True, False])
def test_an_iteration_takes_one_forward_of_a_module_more_than_that_of_ddg(barrier):
    run = train("features_replay", CHAIN, 4, {"learning_rate": 0.01, "barrier": barrier}, steps=40, network=IDEAL)
    forward, backward = times(run)
    assert period(run) == pytest.approx(forward * (1 if barrier else 1 / 4) + (forward + backward) / 4, rel=0.01)


def test_module_k_keeps_the_inputs_of_all_mini_batches_under_way_and_the_activations_of_one():
    chain = ScalarChain(w=np.ones(8), x=np.linspace(0.5, 1.5, 12))  # two numbers per module and sample
    run = train("features_replay", chain, 4, {"learning_rate": 0.01}, batch=2, steps=6)
    assert most(run, "parameters") == [2 * 8] * 4
    assert most(run, "activations") == [2 * 2 * 8] * 4
    assert most(run, "buffers") == [2 * 8 * n for n in (3, 2, 1, 0)]  # beside the one that goes again
