import numpy as np
import pytest

from app.workbench import live
from experiments.jobs.job import JobState
from experiments.specification.experiment import Experiment
from experiments.viewer.column_codec import unpack


@pytest.fixture
def session(monkeypatch):
    """A session whose reader asked for the default experiment and looks at an axis."""

    class Session(dict):
        __getattr__ = dict.__getitem__

    state = Session(asked=Experiment(), axis="step")
    monkeypatch.setattr(live.st, "session_state", state)
    return state


def under_way(**values):
    steps = np.arange(1.0, 51.0)
    curve = {"step": steps, "samples": steps * 128, "seconds": steps * 1e-3, "loss": 2.3 * np.exp(-steps / 20)}
    tried = {name: np.array(column) for name, column in (("seconds", [0.01, 0.04]), ("loss", [2.0, 0.9]))}
    tried["accuracy"] = np.array([0.3, 0.8])
    return JobState("running", **{"fraction": 0.25, "seconds": 0.05, "curve": curve, "tried": tried} | values)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (JobState("queued", place=1), "Waiting: this one is next."),
        (JobState("queued", place=2), "Waiting: 1 run ahead of this one."),
        (JobState("queued", place=4), "Waiting: 3 runs ahead of this one."),
        (JobState("running"), "Starting."),
        (JobState("running", seconds=0.1), "Step 1."),
        (under_way(), "25.0 % · 50 ms of virtual time · loss 0.189"),
        (under_way(fraction=0.0), "50 ms of virtual time · loss 0.189"),
    ],
)
def test_where_a_run_stands_is_said_in_words(session, state, words):
    assert live._words(state) == words


@pytest.mark.parametrize(
    ("cluster", "phase", "words"),
    [
        ("processes", "loading torch", "Starting 2 processes: loading torch."),
        ("processes", "warming up, 1 of 2 ready", "Starting 2 processes: warming up, 1 of 2 ready."),
        ("threads", "warming up", "Starting 2 threads: warming up."),
    ],
)
def test_what_a_real_cluster_does_before_its_first_step_is_said(session, cluster, phase, words):
    session["asked"] = Experiment(cluster=cluster, workers=2)
    assert live._words(JobState("running", phase=phase)) == words


@pytest.mark.parametrize(("axis", "most"), [("step", 50), ("samples", 6400), ("seconds", 50), ("bytes", 50)])
def test_the_axis_reaches_as_far_as_the_run_until_it_doubles(session, axis, most):
    session["axis"] = axis
    header, columns = unpack(live._panel(under_way(), "loss"))
    assert header["x"]["most"] == pytest.approx(most)
    assert columns["x0"][-1] == pytest.approx(most)
    assert unpack(live._panel(under_way(fraction=0.4), "loss"))[0]["x"]["most"] == pytest.approx(1.25 * most)


def test_held_out_points_lie_where_the_training_curve_was_at_that_time(session):
    _, columns = unpack(live._panel(under_way(), "loss"))
    np.testing.assert_allclose(columns["x1"], [10, 40])
    np.testing.assert_allclose(columns["y1"], [2.0, 0.9])


@pytest.mark.parametrize("quantity", ["loss", "accuracy"])
def test_before_the_first_point_there_is_an_empty_frame(session, quantity):
    header, _ = unpack(live._panel(JobState("running"), quantity))
    assert header["x"]["most"] > 0 and header["y"]["most"] > 0


def test_a_loss_that_is_not_a_number_does_not_take_the_axis_with_it(session):
    state = under_way()
    state.curve["loss"][-1] = np.nan
    header, _ = unpack(live._panel(state, "loss"))
    assert 2 < header["y"]["most"] < 3


def test_a_run_that_ends_while_its_first_frame_is_drawn_is_shown_without_waiting_for_the_next(
    page, stored, own_folder, monkeypatch
):
    from app.session import session

    e = Experiment(steps=5)
    folder, drawn = stored(e), []
    draw, pool = live.show, session.pool()
    monkeypatch.setattr(live, "show", lambda *given: (draw(*given), drawn.append(True)))
    monkeypatch.setattr(pool, "submit", lambda owner, work: "the job")
    ended = JobState("finished", folder=folder)
    monkeypatch.setattr(pool, "state", lambda job: ended if drawn else under_way())
    opened = page(e.query())
    assert drawn and opened.session_state["shown"] == str(folder) and opened.session_state["job"] is None
