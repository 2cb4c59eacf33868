import numpy as np
import pytest

from experiments.specification.experiment import Experiment
from tests.training import ScalarChain, Springs, train


def rates(workers=2, steps=40, batch=2, **settings):
    """The learning rates of a run; an epoch has 4 steps."""
    run = train("large_batch", ScalarChain(x=np.ones(4 * workers * batch)), workers, settings, batch=batch, steps=steps)
    return [row[3] for row in run.outcome.event_logs[0].measures if row[2] == "learning rate"]


def test_it_warms_up_in_every_step_and_then_has_k_times_the_base_rate_until_the_first_milestone():
    seen = rates(learning_rate=0.01, base_batch=1, warm_up_epochs=2, milestones="6,9")
    assert seen[:8] == pytest.approx([0.01 + 0.03 * t / 8 for t in range(8)])
    assert seen[8:24] == [0.04] * 16
    assert seen[24:36] == pytest.approx([0.004] * 12)
    assert seen[36:] == pytest.approx([0.0004] * 4)


def test_k_counts_the_samples_of_all_workers():
    peaks = [rates(workers, 1, batch, learning_rate=0.01, base_batch=2, warm_up="none") for workers, batch in
             ((1, 2), (4, 2), (2, 4), (1, 8))]  # fmt: skip
    assert peaks == [[0.01], [0.04], [0.04], [0.04]]


@pytest.mark.parametrize("warm_up", ["gradual", "constant", "none"])
@pytest.mark.parametrize("workers", [1, 4])
def test_at_the_base_batch_it_is_the_baseline_bit_for_bit_whatever_the_warm_up(workers, warm_up):
    where = {"batch": 2, "steps": 30}
    settings = {"learning_rate": 0.1, "base_batch": 2 * workers, "warm_up": warm_up, "warm_up_epochs": 3}
    mine = train("large_batch", ScalarChain(dtype=np.float32), workers, settings, **where)
    plain = {"learning_rate": 0.1, "update": "nesterov"}
    theirs = train("sync_sgd", ScalarChain(dtype=np.float32), workers, plain, **where)
    assert np.array_equal(mine.models, theirs.models)


@pytest.mark.parametrize("k", [2, 8, 64])
def test_k_small_steps_and_one_large_one_differ_by_the_square_of_its_length(k):
    rate = 1e-5
    (small,) = train("sgd", Springs(), settings={"learning_rate": rate}, steps=k).models[0]
    settings = {"learning_rate": rate, "base_batch": 1, "warm_up": "none", "momentum": 0}
    (large,) = train("large_batch", Springs([0.0] * k), k, settings, steps=1).models[0]
    assert (small - large) / ((k * rate) ** 2 / 2) == pytest.approx((k - 1) / k, rel=1e-3)


def test_milestones_that_do_not_rise_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match="milestones is '60,30'; write increasing numbers"):
        Experiment.of({"algorithm": "large_batch", "milestones": "60,30"})
    assert Experiment.of({"algorithm": "large_batch", "milestones": ""}).knobs.milestones == ()
