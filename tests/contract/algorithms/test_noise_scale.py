import numpy as np
import pytest

from experiments.execution.run import check
from experiments.specification.experiment import Experiment
from tests.training import ScalarChain, train
from workloads import quadratic

WORKERS, BATCH = 4, 2
STILL = {"learning_rate": 1e-9}


def noisy(**knobs):
    return quadratic.build(quadratic.Settings(**{"points": 1024, "noise": 2.0} | knobs), np.float64)


def measured(run, quantity):
    return np.array([row[3] for row in run.outcome.event_logs[0].measures if row[2] == quantity])


def exactly(bowl, w):
    """(tr C, |G|^2) at w."""
    gradients = bowl.curvature * (w - bowl.points)
    return gradients.var(0).sum(), np.square(gradients.mean(0)).sum()


def test_signal_and_noise_are_unbiased():
    bowl = noisy()
    run = train("noise_scale", bowl, WORKERS, STILL | {"memory": 0.0}, batch=BATCH, steps=2000)
    covariance, square = exactly(bowl, bowl.start())
    # a shuffle deals without replacement, which makes of C what n - 1 makes of n, and takes as much off |G|^2
    n = bowl.samples
    for quantity, truth in (("noise", covariance * n / (n - 1)), ("signal", square - covariance / (n - 1))):
        estimates = measured(run, quantity)
        error = estimates.std() / len(estimates) ** 0.5
        assert error < 0.05 * truth
        assert abs(estimates.mean() - truth) < 3 * error


def test_all_samples_at_once_give_the_exact_signal():
    bowl = noisy(points=8)
    run = train("noise_scale", bowl, 4, STILL | {"memory": 0.0}, batch=2, steps=1)
    w, (groups,) = bowl.start(), [bowl.points[np.random.default_rng([0, 0xBA7C, 0]).permutation(8)].reshape(4, 2, -1)]
    small = np.square(bowl.curvature * (w - groups.mean(1))).sum(1).mean()
    long = np.square(bowl.curvature * w).sum()  # the points' mean is 0
    assert measured(run, "signal") == pytest.approx([(8 * long - 2 * small) / 6], rel=1e-8)
    assert measured(run, "noise") == pytest.approx([(small - long) / (1 / 2 - 1 / 8)], rel=1e-8)


def test_it_is_the_ratio_of_means_and_not_the_mean_of_ratios():
    bowl = noisy(noise=4.0)

    def course(memory):
        return train("noise_scale", bowl, WORKERS, STILL | {"memory": memory}, batch=BATCH, steps=1000)

    raw, averaged = course(0.0), course(0.99)
    signal, noise = measured(raw, "signal"), measured(raw, "noise")
    weights = 0.99 ** np.arange(1000)[::-1]
    ratio_of_means = (weights @ noise) / (weights @ signal)
    assert measured(averaged, "noise scale")[-1] == pytest.approx(ratio_of_means, rel=1e-6)
    covariance, square = exactly(bowl, bowl.start())
    assert noise.mean() / signal.mean() == pytest.approx(covariance / square, rel=0.2)
    assert weights @ (noise / signal) / weights.sum() != pytest.approx(ratio_of_means, rel=0.1)


def test_a_negative_signal_is_kept_in_the_mean_and_no_scale_is_measured_from_it():
    run = train("noise_scale", noisy(noise=8.0), 2, STILL | {"memory": 0.0}, batch=1, steps=200)
    signal = measured(run, "signal")
    assert 10 < (signal < 0).sum() < 190
    assert len(measured(run, "noise scale")) == (signal > 0).sum()


def test_without_noise_the_scale_is_nothing():
    run = train("noise_scale", noisy(noise=0.0), 3, batch=BATCH, steps=10)
    assert np.abs(measured(run, "noise scale")).max() < 1e-12


@pytest.mark.parametrize("settings", [{}, {"update": "momentum", "learning_rate": 0.02}, {"update": "adam"}])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_weights_are_those_of_synchronous_sgd_bit_for_bit(settings, dtype):
    both = [
        train(name, ScalarChain(dtype=dtype), 4, settings, batch=2, steps=20) for name in ("noise_scale", "sync_sgd")
    ]
    assert np.array_equal(both[0].models, both[1].models)


def test_one_worker_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"one worker .*at least 2 workers"):
        check(Experiment.of({"algorithm": "noise_scale", "workers": 1}))


@pytest.mark.parametrize("batch", [1, 8, 64])
def test_the_noise_scale_says_what_a_step_of_a_smaller_batch_gains_and_with_which_rate(batch):
    bowl = noisy(condition=1.0, dimension=100)  # on a round bowl rate 1 without noise gains everything
    w = bowl.start()
    covariance, square = exactly(bowl, w)
    scale = covariance / square
    draw = np.random.default_rng(batch)
    gradients = [bowl.gradient(w, bowl.batch(draw.integers(bowl.samples, size=batch)))[1] for _ in range(400)]

    def gain(rate):
        return bowl.evaluate(w).loss - np.mean([bowl.evaluate(w - rate * g).loss for g in gradients])

    best = 1 / (1 + scale / batch)
    assert gain(best) == pytest.approx(bowl.evaluate(w).loss / (1 + scale / batch), rel=0.03)
    assert gain(best) > max(gain(0.6 * best), gain(1.4 * best))
