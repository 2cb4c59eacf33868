import numpy as np
import pytest

from algorithms.algorithm import Shape
from algorithms.decoupled import feedback_alignment
from tests.rows import CHAIN, IDEAL, digits, period, times, versions
from tests.training import train
from workloads.decoupled import Direct, Module


def test_back_through_the_weights_themselves_it_is_back_propagation(monkeypatch):
    start = Module.start

    def remembered(self):
        self.w = start(self)
        return self.w

    monkeypatch.setattr(Module, "start", remembered)
    monkeypatch.setattr(Module, "feedback", lambda self: self.w)
    for workload in (digits(), CHAIN):
        (sgd,) = train("sgd", workload, 1, {"learning_rate": 0.1}, batch=6, steps=5).models
        (aligned,) = train(
            "feedback_alignment", workload, 3, {"direct": False, "learning_rate": 0.1}, batch=6, steps=5
        ).models
        assert np.array_equal(aligned, sgd)


def test_a_product_of_the_weights_above_in_place_of_a_random_matrix_is_back_propagation(monkeypatch):
    monkeypatch.setattr(Direct, "_matrix", lambda self, layer, columns: CHAIN.w[layer + 1 :].prod().reshape(1, 1))
    (sgd,) = train("sgd", CHAIN, 1, {"learning_rate": 0.1}, batch=6, steps=1).models
    (direct,) = train("feedback_alignment", CHAIN, 3, {"learning_rate": 0.1}, batch=6, steps=1).models
    assert direct == pytest.approx(sgd, rel=1e-14)


@pytest.mark.parametrize("direct", [True, False])
def test_weights_turn_until_random_errors_point_downhill(direct):
    workload = digits(shuffle=False, depth=2, width=32)
    run = train("feedback_alignment", workload, 4, {"direct": direct, "learning_rate": 0.2}, batch=16, steps=80)
    w = np.concatenate([versions(run, workload, rank) for rank in range(4)], axis=1)
    hidden = slice(0, workload.split(4)[3].offset)  # the last layer's error is the true one

    def cosine(t):
        g = workload.gradient(w[t], workload.batch(np.arange(16 * t, 16 * t + 16)))[1][hidden]
        step = (w[t] - w[t + 1])[hidden]
        return g @ step / np.linalg.norm(g) / np.linalg.norm(step)

    early, late = (np.mean([cosine(t) for t in some]) for some in (range(5), range(70, 80)))
    assert late > 0.2 > early
    assert late > early + 0.1


def test_direct_feedback_learns_from_zeros_where_back_propagation_stands_still(monkeypatch):
    workload = digits(model="mlp", hidden="32,32", activation="tanh")
    monkeypatch.setattr(type(workload.model), "start", lambda self, seed: np.zeros(self.parameters))
    loss = {
        name: workload.evaluate(
            train(name, workload, workers, {"learning_rate": 0.3}, batch=32, steps=100).shipped
        ).loss
        for name, workers in (("sgd", 1), ("feedback_alignment", 3))
    }
    assert loss["sgd"] == pytest.approx(np.log(10), rel=0.01)
    assert loss["feedback_alignment"] < 1.5


def test_with_direct_feedback_all_go_back_at_once_and_otherwise_one_by_one():
    direct, layered = (
        train("feedback_alignment", CHAIN, 4, {"direct": direct}, steps=40, network=IDEAL) for direct in (True, False)
    )
    forward, backward = times(direct)
    assert period(direct) == pytest.approx(forward + backward / 4, rel=0.01)
    assert period(layered) == pytest.approx(sum(times(layered)), rel=0.01)


def test_an_error_goes_to_each_of_the_other_ranks():
    workload = digits()
    run = train("feedback_alignment", workload, 4, {}, batch=8, steps=2)
    shape = Shape(workload.parameters, 4, 2, 8, boundaries=workload.boundaries(4), outputs=10)
    assert run.outcome.trace().traffic().sum() == 8 * feedback_alignment.ALGORITHM.elements_sent(
        shape, feedback_alignment.Settings()
    )


def test_feedback_is_fixed_and_as_random_as_the_seed():
    def first_step(seed):
        run = train("feedback_alignment", digits(), 2, {}, batch=8, steps=1, seed=seed)
        return run.models[0] - digits().start(seed)

    assert np.array_equal(first_step(1), first_step(1))
    assert not np.allclose(first_step(1), first_step(2))
