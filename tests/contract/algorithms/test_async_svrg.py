"""AsySVRG: alone it is SVRG, its estimator is right on average and exact at the anchor, and it converges linearly."""

import numpy as np
import pytest

import kernels
from algorithms.shared_memory.async_svrg import descend, descend_rows
from tests.contract.algorithms.test_hogwild import problem
from tests.training import ScalarChain, train
from workloads.batches import Batches
from workloads.shared_memory import Descent
from workloads.workload import Evaluation, Workload


class LeastSquares(Workload):
    """f(w) = mean over samples of (x.w - y)^2 / 2, d = 10."""

    name, shuffle, dtype = "lsq", True, np.dtype("float64")
    samples, parameters, tensors = 240, 10, ((slice(0, 10), (10,)),)

    def __init__(self):
        rng = np.random.default_rng(1)
        self.x = rng.standard_normal((self.samples, self.parameters)) / np.sqrt(self.parameters)
        self.y = self.x @ rng.standard_normal(self.parameters) + 0.5 * rng.standard_normal(self.samples)
        self.optimum = np.linalg.lstsq(self.x, self.y, rcond=None)[0]

    def start(self, seed):
        return np.zeros(self.parameters)

    def batch(self, indices):
        return self.x[indices], self.y[indices]

    def gradient(self, w, batch):
        x, y = batch
        wrong = x @ w - y
        return float(wrong @ wrong) / 2 / len(y), x.T @ wrong / len(y)

    def evaluate(self, w):
        away = self.x @ (w - self.optimum)
        return Evaluation(float(away @ away) / 2 / self.samples, np.nan)


def svrg(workload, rate, batch, epochs, passes=2):
    """The models after each epoch of SVRG as it is written in the books."""
    batches, u, models = Batches(workload.samples, batch, shuffle=workload.shuffle), workload.start(0), []
    for _ in range(epochs):
        a, G = u.copy(), np.zeros_like(u)
        for _ in range(batches.per_epoch):
            G += workload.gradient(a, workload.batch(next(batches)))[1]
        G *= u.dtype.type(1 / batches.per_epoch)
        for _ in range(passes * batches.per_epoch):
            for i in next(batches):
                one = workload.batch(np.array([i]))
                v = (workload.gradient(u, one)[1] - workload.gradient(a, one)[1]) + G
                kernels.sgd(u, v, rate)
        models.append(u.copy())
    return models


WORKLOADS = {
    "dense": lambda: ScalarChain(w=(0.7, 0.8, 0.9), x=np.linspace(0.6, 1.2, 24)),
    "sparse": lambda: problem(rows=48, features=30, nonzeros=4),
}


@pytest.mark.parametrize("reading", ["consistent", "inconsistent", "unlock"])
@pytest.mark.parametrize("kind", WORKLOADS)
def test_one_thread_is_svrg_bit_for_bit(run, reading, kind):
    settings = {"learning_rate": 0.25, "reading": reading}
    steps = 2 * 3 * (WORKLOADS[kind]().samples // 4)  # two epochs
    done = train("async_svrg", WORKLOADS[kind](), 1, settings, batch=4, steps=steps, run=run)
    assert np.array_equal(done.models[0], svrg(WORKLOADS[kind](), 0.25, 4, 2)[-1])


def estimates(workload, u, a):
    """(all v_i at u with the anchor a, grad f(u), grad f(a)), v_i from the kernel's own step."""
    everything = workload.batch(np.arange(workload.samples))
    G = workload.gradient(a, everything)[1]
    v = []
    for i in range(workload.samples):
        stepped = u.copy()
        descend_rows(stepped, np.array([i]), workload.rows, 1.0, a, G, False)
        v.append(u - stepped)
    return np.array(v), workload.gradient(u, everything)[1], G


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_step_that_its_file_shows_is_the_one_of_its_compiled_loop_bit_for_bit(dtype):
    workload, rng = problem(dtype, l2=0.01), np.random.default_rng(1)
    mine, a, G = rng.standard_normal((3, workload.parameters)).astype(dtype)
    compiled, indices = mine.copy(), rng.permutation(workload.samples)[:21]
    descent = Descent(workload, indices, descend, descend_rows, (0.3, a, G), dense=True)
    losses = sum(step(mine, False) for step in descent.parts())
    assert losses == pytest.approx(descent(compiled, False), rel=1e-12)
    assert np.array_equal(mine, compiled)


def test_at_the_anchor_the_estimator_is_the_whole_gradient_whichever_sample_it_takes():
    workload = problem()
    a = np.zeros(workload.parameters)  # so that what was subtracted from it can be read off exactly
    v, _, G = estimates(workload, a, a)
    assert all(np.array_equal(one, G) for one in v)


def test_the_mean_of_the_estimator_over_all_samples_is_the_gradient():
    workload, rng = problem(), np.random.default_rng(0)
    v, g, _ = estimates(workload, rng.standard_normal(200), rng.standard_normal(200))
    np.testing.assert_allclose(v.mean(0), g, rtol=0, atol=1e-15 * len(v))


@pytest.mark.parametrize("settings", [{}, {"average": True}, {"reading": "consistent"}], ids=str)
def test_the_gap_falls_by_a_factor_in_every_epoch(settings):
    workload, gaps = LeastSquares(), []
    for epochs in (2, 4, 6, 8):
        done = train("async_svrg", workload, 4, {"learning_rate": 0.1} | settings, batch=5, steps=epochs * 36)
        gaps.append(workload.evaluate(done.models[0]).loss)
    rates = np.diff(np.log(gaps))
    assert (rates < -1).all()  # at least e in two epochs
    assert rates.min() > 3 * rates.max()  # and about as much in all of them
    assert gaps[-1] < 1e-4 * gaps[0]


def test_the_next_anchor_is_the_mean_of_what_was_seen_if_asked_for():
    one_epoch, seen = 36, []
    for steps in range(one_epoch // 3 + 1, one_epoch + 1):
        seen.append(train("async_svrg", LeastSquares(), 1, {}, batch=20, steps=steps).models[0])
    done = train("async_svrg", LeastSquares(), 1, {"average": True}, batch=20, steps=one_epoch)
    np.testing.assert_allclose(done.models[0], np.mean(seen, axis=0), rtol=1e-10)


def test_without_the_correction_a_constant_rate_does_not_get_there():
    workload = LeastSquares()
    done = train("hogwild", workload, 4, {"learning_rate": 0.1}, batch=5, steps=8 * 36)
    corrected = train("async_svrg", workload, 4, {"learning_rate": 0.1}, batch=5, steps=8 * 36)
    assert workload.evaluate(done.models[0]).loss > 1000 * workload.evaluate(corrected.models[0]).loss


def test_locks_cost_time_and_keep_looks_and_steps_whole():
    def course(reading):
        return train("async_svrg", problem(rows=192, features=1000), 4, {"reading": reading}, batch=4, steps=24)

    consistent, inconsistent, unlock = (course(reading) for reading in ("consistent", "inconsistent", "unlock"))
    seconds = [run.outcome.trace().seconds() for run in (consistent, inconsistent, unlock)]
    assert seconds[0] > seconds[1] > seconds[2]
    lost = [sum(row[3] for j in run.outcome.event_logs for row in j.measures if row[2] == "lost")
            for run in (consistent, inconsistent, unlock)]  # fmt: skip
    assert lost[0] == lost[1] == 0 < lost[2]
