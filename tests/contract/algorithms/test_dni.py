import numpy as np
import pytest

from tests.rows import IDEAL, digits, measured, period, times, versions
from tests.training import ScalarChain, train
from workloads import decoupled

DEEP = ScalarChain(w=np.linspace(0.8, 1.1, 4), x=np.linspace(0.5, 1.5, 12))


class Oracle:
    """In the place of a synthesiser: the gradient itself, from a run of SGD that saw the same batches."""

    def __init__(self, module, *_):
        workload, batch = module.task.workload, module.task.batch
        w, after = workload.start(0), module.where.stop
        cut = next(n for n, part in enumerate(workload.split(workload.depth)) if part.offset == after)
        own, rest = workload.split((cut, workload.depth - cut))
        self.errors = []
        for step in range(6):
            x, target = workload.batch(np.arange(batch * step, batch * (step + 1)))
            h, _ = own.forward(w[:after], x)
            y, saved = rest.forward(w[after:], h)
            self.errors.append(rest.backward(w[after:], saved, rest.loss(y, target)[1])[0])
            w -= 0.1 * workload.gradient(w, (x, target))[1]

    def start(self):
        return np.zeros(1)

    def guess(self, a, y, target):
        return self.errors.pop(0), None

    def lesson(self, a, thought, d):
        return 0.0, np.zeros(1)


def test_with_an_oracle_for_a_synthesiser_it_is_back_propagation(monkeypatch):
    monkeypatch.setattr(decoupled, "Synthesiser", Oracle)
    workload = digits(shuffle=False)
    (sgd,) = train("sgd", workload, 1, {"learning_rate": 0.1}, batch=8, steps=6).models
    (guessed,) = train("dni", workload, 3, {"learning_rate": 0.1, "labels": False}, batch=8, steps=6).models
    assert np.array_equal(guessed, sgd)
    assert not np.array_equal(sgd, workload.start(0))


def test_lower_modules_stand_still_until_the_first_lesson_has_come():
    workload = digits()
    run = train("dni", workload, 3, {"learning_rate": 0.1}, batch=8, steps=3)
    for rank in range(3):
        start, first, *later = versions(run, workload, rank)
        assert np.array_equal(start, first) == (rank < 2)
        assert not np.array_equal(first, later[-1])


def test_what_is_mixed_is_a_part_of_the_guess_and_a_part_of_the_truth(monkeypatch):
    workload = digits()
    start, cut = workload.start(0), workload.split(2)[1].offset
    monkeypatch.setattr(decoupled.Synthesiser, "guess", lambda self, a, y, target: (np.ones_like(y), None))
    monkeypatch.setattr(decoupled.Synthesiser, "lesson", lambda self, a, thought, d: (0.0, np.zeros_like(a)))
    guess, some, truth = (
        train(name, workload, workers, settings | {"learning_rate": 1e-3}, batch=8, steps=1).models[0][:cut]
        - start[:cut]
        for name, workers, settings in (("dni", 2, {}), ("dni", 2, {"mix": 0.3}), ("sgd", 1, {}))
    )
    assert some == pytest.approx(0.7 * guess + 0.3 * truth, rel=1e-9)
    assert np.linalg.norm(guess) > 0 < np.linalg.norm(truth)


@pytest.mark.parametrize("labels", [True, False])
def test_synthesisers_learn_while_modules_stand_still(labels):
    settings = {"learning_rate": 1e-30, "guess_rate": 0.02, "labels": labels}
    run = train("dni", digits(), 3, settings, batch=32, steps=150)
    _, last = measured(run, 1, "synthesiser loss")  # next to the last module, whose error is the true one
    assert last[-20:].mean() < (0.5 if labels else 0.9) * last[:5].mean()


def test_a_lesson_for_the_lowest_synthesiser_is_what_the_next_one_makes_of_its_own_guess():
    run = train("dni", digits(), 3, {"learning_rate": 1e-30}, batch=32, steps=2)
    (_, lowest), (_, middle) = (measured(run, rank, "synthesiser loss") for rank in (0, 1))
    assert lowest[0] == 0 < lowest[1]  # the first guess of the middle is 0, and what comes down from it as well
    assert middle[0] > 0


@pytest.mark.parametrize("late", [0, 1, 3])
def test_a_lesson_is_learned_so_many_steps_after_its_guess_and_none_is_lost(late):
    run = train("dni", digits(), 3, {"late": late}, batch=8, steps=6)
    for rank in (0, 1):
        steps, _ = measured(run, rank, "synthesiser loss")
        assert len(steps) == 6 and steps[: 6 - late] == list(range(late, 6))


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("late", [0, 1])
def test_a_step_takes_as_long_as_one_module_or_waits_for_one_more_however_many_there_are(workers, late):
    chain = ScalarChain(w=np.ones(workers), x=DEEP.x)
    settings = {"learning_rate": 0.01, "guess_width": 1, "late": late}
    run = train("dni", chain, workers, settings, steps=40, network=IDEAL)
    forward, backward = times(run)
    waiting = 0 if late else forward
    assert period(run) == pytest.approx((forward + backward + waiting) / workers, rel=0.05)


def test_back_propagation_takes_the_time_of_all_modules():
    run = train("dni", DEEP, 4, {"mix": 1.0, "guess_width": 1}, steps=40, network=IDEAL)
    assert period(run) == pytest.approx(sum(times(run)), rel=0.05)


def test_updates_are_never_stale():
    assert train("dni", DEEP, 4, {}, steps=5).staleness == [[0] * 5] * 4


def test_labels_keep_a_deep_model_from_collapsing():
    def accuracy(labels):
        workload = digits(depth=6, width=32)
        run = train("dni", workload, 4, {"labels": labels}, batch=32, steps=120)
        return workload.evaluate(run.shipped).accuracy

    assert accuracy(labels=True) > accuracy(labels=False) + 0.1
