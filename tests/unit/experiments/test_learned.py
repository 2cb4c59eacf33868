"""What a timeline's frame says about what the run has learned."""

import numpy as np

from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from experiments.viewer.canvases import timeline
from experiments.viewer.canvases.learned import learning
from experiments.viewer.column_codec import unpack


def header(frame: bytes) -> dict:
    return unpack(frame)[0].get("learned")


def test_the_lines_below_the_lanes_are_the_runs_evaluations():
    done = run(Experiment.of({"steps": 20, "evaluations": 4}))
    found = header(timeline.frame(done, "it"))
    assert found["at"] == done.evaluations["seconds"].tolist()
    assert found["loss"] == done.evaluations["loss"].tolist()
    assert found["accuracy"] == done.evaluations["accuracy"].tolist()
    assert (found["samples"], found["noun"]) == (360, "digits")


def test_guesses_and_pictures_reach_the_browser():
    done = run(Experiment.of({"steps": 20, "evaluations": 4}))
    found, columns = unpack(timeline.frame(done, "it"))
    assert found["learned"]["guesses"]["guess"] == done.guesses.guess.tolist()
    assert np.array_equal(columns["pictures"], done.guesses.x.ravel())


def test_a_workload_without_classes_has_a_loss_only():
    found = header(timeline.frame(run(Experiment.of({"workload": "quadratic", "steps": 20})), "it"))
    assert found["accuracy"] == [] and found["guesses"] is None and len(found["loss"]) > 2


def test_a_loss_that_is_no_number_leaves_a_gap():
    done = run(Experiment.of({"steps": 20, "evaluations": 4, "learning_rate": 1000, "algorithm": "asgd"}))
    assert done.status == "diverged"
    loss = done.evaluations["loss"]
    assert len(loss) > 1 and not np.isfinite(loss).all()
    assert learning(done).header["loss"] == [value if np.isfinite(value) else None for value in loss.tolist()]


def test_timelines_that_zoom_together_have_no_room_for_it():
    done = run(Experiment.of({"steps": 20, "evaluations": 4}))
    assert header(timeline.frame(done, "it", together="race")) is None
