import numpy as np
import pytest

from experiments.execution.run import run as real_run
from experiments.specification.experiment import Experiment
from experiments.viewer import curves


@pytest.fixture
def run(made):
    return made(Experiment(algorithm="downpour", workers=3))


def test_what_a_method_measured_is_a_line_in_steps_from_one(made):
    done = made(Experiment(), quantities=("noise", "signal"))
    line = curves.measurements(done, "signal")
    assert line.x[0] == 1 and len(line.x) == 40 and line.y.tolist() == [10 + step for step in range(40)]


@pytest.mark.parametrize("axis", curves.AXES)
def test_every_axis_ascends_and_every_line_is_short_and_small(run, axis):
    for line in (*curves.training(run, axis), curves.held_out(run, axis)):
        assert line.x.dtype == line.y.dtype == np.float32
        assert 0 < len(line.x) == len(line.y) <= curves.POINTS
        assert (np.diff(line.x) >= 0).all()


@pytest.mark.parametrize("axis", curves.AXES)
def test_every_point_of_a_line_is_reached_at_a_time_of_the_run(run, axis):
    for line in (curves.training(run, axis)[1], curves.held_out(run, axis)):
        assert len(line.seconds) == len(line.x) and (np.diff(line.seconds) >= 0).all()
        assert line.seconds[0] >= 0 and line.seconds[-1] <= run.trace.seconds() * 1.0001


def test_against_time_a_point_is_reached_where_it_stands(run):
    smooth = curves.training(run, "seconds")[1]
    np.testing.assert_allclose(smooth.seconds, smooth.x, rtol=1e-6)


def test_the_samples_axis_ends_at_all_samples_of_all_workers(run):
    every, _ = curves.training(run, "samples")
    assert every.x[-1] == run.summary["samples"]


def test_the_bytes_axis_ends_at_what_was_sent(run):
    every, _ = curves.training(run, "bytes")
    assert every.x[-1] == pytest.approx(run.summary["bytes"])


def test_a_running_mean_forgets_a_loss_that_blew_up_and_came_back():
    y = np.full(200, 2.0)
    y[20] = 1e25
    mean = curves._running(y, 5)
    assert mean[20] == pytest.approx(2e24)
    np.testing.assert_array_equal(mean[[*range(18), *range(23, 200)]], 2.0)


def test_a_running_mean_is_that_of_the_finite_values_around_each():
    y = np.random.default_rng(0).normal(size=101)
    y[::4] = np.nan
    for window in (1, 2, 3, 40, 300):
        around = (y[max(n - window // 2, 0) : n + (window + 1) // 2] for n in range(len(y)))
        known = [part[np.isfinite(part)] for part in around]
        wanted = [part.mean() if len(part) else np.nan for part in known]
        np.testing.assert_allclose(curves._running(y, window), wanted)


def test_the_running_mean_of_a_constant_is_the_constant(run):
    run.losses["loss"][:] = 1.5
    _, smooth = curves.training(run, "step")
    np.testing.assert_allclose(smooth.y, 1.5, rtol=1e-6)


def test_at_one_step_the_mean_is_over_the_ranks(run):
    run.losses["loss"][:] = run.losses["rank"]
    _, smooth = curves.training(run, "step")
    np.testing.assert_allclose(smooth.y, np.mean([1, 2, 3]), rtol=1e-6)


def test_thinning_loses_no_peak():
    x, y = np.arange(100_000.0), np.zeros(100_000)
    y[[7, 61_803]] = 9, -9
    kept_x, kept_y = curves.thin(x, y, 200)
    assert len(kept_x) <= 200
    assert {kept_y.max(), kept_y.min()} == {9, -9}
    assert (np.diff(kept_x) > 0).all()


def test_a_loss_that_is_not_a_number_leaves_the_others(run):
    run.losses["loss"][-1] = np.nan
    _, smooth = curves.training(run, "seconds")
    assert np.isfinite(smooth.y[:-2]).all()


def test_without_accuracy_there_is_an_empty_line(made):
    run = made(Experiment(workload="quadratic"), accuracy=False)
    assert len(curves.held_out(run, "step", "accuracy").x) == 0


def test_a_run_that_recorded_nothing_gives_empty_lines(run):
    for table in (run.losses, run.evaluations):
        for name in table:
            table[name] = table[name][:0]
    for axis in curves.AXES:
        assert [len(line.x) for line in curves.training(run, axis)] == [0, 0]


def test_when_a_worker_is_lost_held_out_and_training_curve_end_at_the_same_step():
    done = real_run(Experiment.of({"algorithm": "asgd", "workload": "quadratic", "steps": 20, "crash": "2:0.0003"}))
    assert done.evaluations["step"][-1] < 20  # of all workers, the lost one among them
    assert curves.held_out(done, "step").x[-1] == curves.training(done, "step")[1].x[-1] == 20


def test_updates_that_were_in_flight_at_the_last_mini_batch_have_steps_of_their_own():
    done = real_run(Experiment.of({"algorithm": "delayed", "workload": "quadratic", "steps": 20, "delay": 8}))
    x = curves.held_out(done, "step").x
    assert (np.diff(x) > 0).all() and x[-1] == 28  # as late as all others


def test_without_loss_or_delay_the_steps_are_those_that_were_recorded(run):
    np.testing.assert_allclose(curves.tried_steps(run), run.evaluations["step"])
