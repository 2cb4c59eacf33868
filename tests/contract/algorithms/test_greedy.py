import numpy as np
import pytest

from algorithms.decoupled import greedy
from cluster.faults import Faults
from tests.rows import CHAIN, IDEAL, digits, measured, most, passes, period, times, versions
from tests.training import ScalarChain, train
from workloads.decoupled import Classifier


def test_nothing_above_a_module_has_an_effect_on_it():
    def course(last):
        return train("greedy", ScalarChain(w=(0.5, 0.6, last), x=CHAIN.x), 3, {}, batch=2, steps=5).models[0]

    one, other = course(0.7), course(-5.0)
    assert np.array_equal(one[:2], other[:2]) and one[2] != other[2]


def test_a_step_of_a_module_is_the_gradient_of_its_own_classifiers_loss(monkeypatch):
    seen = []
    gradient = Classifier.gradient

    def watched(self, a, y, target):
        seen.append((self, a.copy()))
        return gradient(self, a, y, target)

    monkeypatch.setattr(Classifier, "gradient", watched)
    workload = digits(shuffle=False)
    run = train("greedy", workload, 2, {"learning_rate": 0.1}, batch=8, steps=2)
    part, (_, first, second) = workload.split(2)[0], versions(run, workload, 0)
    classifier, a = seen[1]
    x, target = workload.batch(np.arange(8, 16))

    def loss(w):
        return gradient(classifier, a, part.forward(w, x)[0], target)[0]

    g, h = (first - second) / 0.1, 1e-6
    for place in (0, 100, len(first) - 1):
        e = h * np.eye(1, len(first), place)[0]
        assert g[place] == pytest.approx((loss(first + e) - loss(first - e)) / (2 * h), rel=1e-5, abs=1e-9)


def test_all_classifiers_learn():
    run = train("greedy", digits(depth=6, width=32), 3, {}, batch=32, steps=100)
    for rank in (0, 1):
        _, losses = measured(run, rank, "local loss")
        assert losses[-10:].mean() < 0.7 * losses[:5].mean()


@pytest.mark.parametrize("ahead", [1, 2, 9])
@pytest.mark.parametrize("slow", [0, 2])
def test_any_interleaving_of_the_modules_gives_the_same_weights(ahead, slow):
    plain = train("greedy", digits(), 3, {}, batch=8, steps=8).models[0]
    faults = Faults(slow={slow: 5.0})
    other = train("greedy", digits(), 3, {"ahead": ahead}, batch=8, steps=8, faults=faults)
    assert np.array_equal(other.models[0], plain)


def test_a_step_takes_as_long_as_the_longest_module():
    chain = ScalarChain(w=np.ones(7), x=CHAIN.x)  # modules of 3, 2 and 2 layers
    run = train("greedy", chain, 3, {"learning_rate": 0.01, "head_width": 1}, steps=40, network=IDEAL)
    assert period(run) == pytest.approx(sum(times(run)) * 3 / 7, rel=0.05)


@pytest.mark.parametrize("ahead", [1, 3])
def test_a_fast_module_waits_when_it_is_too_far_ahead(ahead):
    faults = Faults(slow={1: 10.0})
    run = train("greedy", CHAIN, 2, {"ahead": ahead}, steps=12, faults=faults)
    sent = [row[3] for row in run.outcome.event_logs[0].messages if row[2]]
    taken = [row[1] for row in run.outcome.event_logs[1].spans if row[4][0] == "F"]
    lead = [n + 1 - sum(start <= time for start in taken) for n, time in enumerate(sent)]
    assert max(lead) == ahead


def test_features_and_labels_go_up_and_nothing_comes_down():
    run = train("greedy", ScalarChain(w=np.ones(4), x=np.ones(8)), 4, {}, batch=2, steps=3)
    up = 3 * 2 * (1 + 1) * 8  # steps, samples, a feature and a label, bytes
    assert np.array_equal(run.outcome.trace().traffic(), np.diag([up] * 3, k=1))


def test_one_after_the_other_each_module_learns_in_its_phase_and_the_last_to_the_end():
    workload = digits()
    run = train("greedy", workload, 3, {"phase": 3}, batch=8, steps=11)
    for rank, phase in enumerate(({0, 1, 2}, {3, 4, 5}, {6, 7, 8, 9, 10})):
        w = versions(run, workload, rank)
        assert {t for t in range(11) if not np.array_equal(w[t], w[t + 1])} == phase
    assert passes(run, 0) == "F0 B0 F1 B1 F2 B2 F3 F4 F5 F6 F7 F8 F9 F10"


def test_a_classifier_is_held_beside_the_module():
    run = train("greedy", CHAIN, 2, {"head_layers": 1, "head_width": 5}, batch=2, steps=2)
    assert most(run, "parameters") == [8 * (2 + 5 + 5 + 5 + 1), 8 * 2]


def test_frozen_modules_keep_their_weights_and_only_pass_features_on():
    workload = digits()
    run = train("greedy", workload, 3, {"frozen": 2}, batch=8, steps=4)
    for rank in (0, 1):
        w = versions(run, workload, rank)
        assert all(np.array_equal(w[0], later) for later in w) and passes(run, rank) == "F0 F1 F2 F3"
    assert not np.array_equal(*versions(run, workload, 2)[-2:])
    assert most(run, "gradients")[:2] == [0, 0] and min(most(run, "parameters")) > 0


def test_a_phase_begins_with_the_first_module_that_is_not_frozen():
    workload = digits()
    run = train("greedy", workload, 3, {"phase": 3, "frozen": 1}, batch=8, steps=6)
    for rank, phase in enumerate(((), (0, 1, 2), (3, 4, 5))):
        w = versions(run, workload, rank)
        assert tuple(t for t in range(6) if not np.array_equal(w[t], w[t + 1])) == phase


def test_at_least_one_module_has_to_learn():
    greedy.ALGORITHM.check(3, 8, digits(), greedy.Settings(frozen=2))
    with pytest.raises(ValueError, match=r"frozen is 3, .*none of 3 modules .*at most 2"):
        greedy.ALGORITHM.check(3, 8, digits(), greedy.Settings(frozen=3))
