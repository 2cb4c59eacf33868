"""What a run learned: its path, the plane and the ground, the boundaries of its models."""

import numpy as np
import pytest

from experiments.execution.run import run, run_with_models, workload_of
from experiments.exports import export
from experiments.learning import boundary, plane, record, replay
from experiments.learning import recording as recording_of
from experiments.learning.trajectory import GRADIENT, REPORT, Trajectory, arrows, watch_worker
from experiments.specification.experiment import Experiment
from experiments.viewer.canvases import landscape
from experiments.viewer.column_codec import unpack

SMALL = {"steps": 12, "workload": "quadratic", "dimension": 2, "noise": 1, "evaluations": 6, "precision": "float64"}
TEXT = {"workload": "text", "steps": 7, "workers": 2, "evaluations": 2}
SPIRALS = {"workload": "spirals", "points": 400, "hidden": "8", "steps": 12, "evaluations": 6}


def learned(**settings):
    e = Experiment.of(settings)
    return replay.learn(e, run(e).summary["digest"])


def path(learning, who):
    """Where a rank, or the model, was, (moves, 2)."""
    return learning.points[learning.place[learning.who == who]].astype(float)


@pytest.mark.parametrize(
    "settings",
    [
        {**SMALL, "algorithm": "sync_sgd"},
        {**SMALL, "algorithm": "easgd", "slow": "2:3"},
        {**SMALL, "algorithm": "asgd", "crash": "2:1e-4"},
        {**SMALL, "algorithm": "adpsgd"},
        {**SMALL, "algorithm": "hogwild", "workers": 2},
        {**SPIRALS, "algorithm": "zero3", "workers": 2},
        {**SPIRALS, "algorithm": "gpipe", "workers": 2},
        {**SPIRALS, "algorithm": "sync_sgd", "compression": "top_k", "workers": 2},
    ],
    ids=lambda settings: settings["algorithm"],
)
def test_a_replay_that_is_watched_ends_with_the_digest_of_the_run(settings):
    learning = learned(**settings)  # which raises otherwise
    model = path(learning, learning.ranks)
    assert len(model) > 1 and np.abs(model[-1]).max() < 1e-6  # the plane goes through the final model


@pytest.mark.parametrize("algorithm", ["sync_sgd", "asgd", "gpipe"])
def test_a_run_that_was_recorded_while_it_trained_has_the_bits_and_the_picture_of_its_replay(algorithm, monkeypatch):
    e = Experiment.of({**TEXT, "algorithm": algorithm})
    recorded, recording = recording_of.record(e)
    digest = run(e).summary["digest"]
    assert recording and recorded.summary["digest"] == digest
    monkeypatch.setattr(replay, "TOO_MUCH", 0)  # for a ground, which is a function of what is compared
    replayed = replay.learn(e, digest)
    monkeypatch.setattr(replay, "run_with_models", None)  # it does not train again
    for of, shown in vars(replay.learn(e, digest, recording=recording)).items():
        assert np.array_equal(shown, vars(replayed)[of], equal_nan=of == "ground"), of


def test_only_a_run_whose_gradients_take_far_longer_than_a_copy_of_its_model_is_recorded(monkeypatch):
    assert recording_of.record(Experiment.of({**SMALL, "algorithm": "sync_sgd"}))[1] is None
    monkeypatch.setattr(recording_of, "LIMIT", 580_000)  # 8 of the 10 models of this run
    assert recording_of.record(Experiment.of({**TEXT, "steps": 9}))[1] is None


def test_a_replay_that_ends_otherwise_shows_nothing():
    with pytest.raises(ValueError, match="ended with the digest"):
        replay.learn(Experiment.of(SMALL), "0" * 16)


@pytest.mark.parametrize("settings, status", [({"cluster": "threads"}, "finished"), ({}, "cancelled")])
def test_what_cannot_be_replayed_is_said(made, settings, status):
    with pytest.raises(ValueError, match="replay"):
        record.spec(made(Experiment.of(settings), status=status))


def test_where_the_path_lies_in_the_plane_the_loss_beneath_a_dot_is_that_of_its_model():
    e = Experiment.of({**SMALL, "algorithm": "easgd"})
    trajectory = Trajectory(2, 8, e.ranks)
    run(e, worker_override=watch_worker(e.method.worker, trajectory))
    flat, workload = plane.through(trajectory.models, trajectory.models[-1]), workload_of(e)
    points = flat.coordinates(trajectory.models)
    for model, point in zip(trajectory.models, points, strict=True):
        assert workload.evaluate(flat.model(*point)).loss == pytest.approx(workload.evaluate(model).loss, rel=1e-12)
    ground = plane.ground(flat, points, lambda w: workload.evaluate(w).loss, 108)
    corner = flat.model(ground.box[1], ground.box[3])
    assert ground.loss[-1, -1] == workload.evaluate(corner).loss
    assert sum(flat.shares) == pytest.approx(1)


def test_the_plane_of_many_dimensions_holds_as_much_of_the_path_as_any():
    draw = np.random.default_rng(0)
    models = [*draw.standard_normal((30, 20)) * np.geomspace(5, 0.1, 20)]
    flat = plane.through(models, models[-1])
    rows = np.array(models) - models[-1]
    best = np.square(np.linalg.svd(rows, compute_uv=False)[:2]).sum() / np.square(rows).sum()
    assert sum(flat.shares) == pytest.approx(best)
    assert flat.directions @ flat.directions.T == pytest.approx(np.eye(2))


def test_the_springs_of_easgd_pull_the_centre_by_their_lengths():
    a, period = 0.2, 4
    learning = learned(**SMALL, algorithm="easgd", synchronous=True, pull=a, period=period, workers=3)
    replicas = [path(learning, rank)[:-1:period] for rank in range(3)]  # where they visit
    centre = path(learning, 3)[:-1]
    springs = sum(x[: len(centre) - 1] - centre[:-1] for x in replicas)
    assert np.diff(centre, axis=0) == pytest.approx(a * springs, abs=1e-6)
    header, columns = unpack(landscape.frame(run(Experiment.of({**SMALL, "algorithm": "easgd"})), learning, "it"))
    assert (header["tie"], header["model"]) == ("spring", "centre") and len(columns["who"]) == len(columns["at"])


def test_averaging_with_more_neighbours_contracts_the_cloud():
    size = {}
    for topology in ("ring", "complete"):
        learning = learned(**SMALL, algorithm="dpsgd", topology=topology, workers=8)
        cloud = np.array([path(learning, rank)[2:12] for rank in range(8)])
        size[topology] = np.square(cloud - cloud.mean(0)).sum()
        assert path(learning, 8)[-1] == pytest.approx(np.mean([path(learning, r)[-1] for r in range(8)], 0), abs=1e-6)
    assert 0 < size["complete"] < size["ring"]


def test_workers_that_average_come_to_one_model():
    learning = learned(**SMALL, algorithm="local_sgd", period=4, workers=3)
    places = np.array([learning.place[learning.who == rank] for rank in range(3)])
    together = [step for step in range(12) if len(set(places[:, step])) == 1]
    assert together == [0, 4, 8]


def test_an_arrow_leads_from_the_version_that_its_worker_had_read():
    e = Experiment.of({**SMALL, "algorithm": "asgd", "workers": 3})
    trajectory = Trajectory(2, 8, e.ranks)
    done = run(e, worker_override=watch_worker(e.method.worker, trajectory))
    found = [*arrows(trajectory, e.servers)]
    assert len(found) == np.count_nonzero(done.applied["staleness"]) > 0
    seen = {what: {one.place for one in trajectory.sightings if one.what == what} for what in (GRADIENT, REPORT)}
    assert all(one.start in seen[GRADIENT] and one.stop in seen[REPORT] for one in found)


def test_a_long_path_is_thinned_evenly_and_stays_within_its_memory():
    trajectory = Trajectory(4, 8, 2, limit=2000)
    for step in range(500):
        for rank in (0, 1):
            trajectory.see(rank, float(step), GRADIENT, np.full(4, rank + 2.0 * step))
    assert 8 * 4 * len(trajectory.models) <= 2000
    for rank in (0, 1):
        steps = [one.number for one in trajectory.sightings if one.rank == rank]
        assert steps == [*range(0, 500, trajectory.every)] and len(steps) > 10
    with pytest.raises(ValueError, match="use a smaller model"):
        Trajectory(1000, 8, 2, limit=2000)


def test_the_points_that_a_boundary_tells_apart_are_as_many_as_its_accuracy_says():
    e = Experiment.of({**SPIRALS, "algorithm": "sync_sgd", "learning_rate": 1.0})
    done, models = run_with_models(e)
    seen = boundary.snapshots(workload_of(e), done, models)
    assert len(seen.x) == done.held_out_samples and seen.cells.shape == (len(models), record.GRID, record.GRID)
    assert seen.right.mean(1) == pytest.approx(seen.accuracy)
    assert (seen.accuracy == done.evaluations["accuracy"]).all() and seen.accuracy[-1] > seen.accuracy[0]
    left, right, bottom, top = seen.box
    corner = boundary.scores(workload_of(e), models[-1].w, np.array([[left, top], [right, bottom]]))
    assert [seen.cells[-1, -1, 0] // record.STEPS, seen.cells[-1, 0, -1] // record.STEPS] == corner.argmax(1).tolist()


def test_a_run_that_explodes_is_drawn_up_to_where_it_leaves_for_good():
    learning = learned(**{**SMALL, "steps": 60}, algorithm="sgd", learning_rate=3)
    assert 0 < learning.blown < learning.seconds[-1]
    first = np.linalg.norm(path(learning, 0)[0] - path(learning, 0)[1])
    assert learning.box[1] - learning.box[0] < 20 * first
    assert "drawn until it leaves" in landscape.describe(run(Experiment.of({**SMALL, "algorithm": "sgd"})), learning)


def test_a_run_that_explodes_in_its_first_step_is_drawn_with_that_step():
    learning = learned(**{**SMALL, "steps": 60}, algorithm="sgd", learning_rate=100)
    one, two, *_ = path(learning, 0)
    assert learning.blown < learning.seconds[learning.who == 0][1] and sum(learning.shares) == pytest.approx(1)
    left, right = learning.box[:2]
    assert left < min(one[0], two[0]) < max(one[0], two[0]) < right < left + 3 * np.linalg.norm(two - one)


def test_a_page_of_its_own_and_the_report_have_how_a_run_learned(tmp_path, made):
    done = run(Experiment.of({**SMALL, "algorithm": "sync_sgd", "workers": 2}))
    assert export.learning(done, tmp_path, patience=-1) is None  # who may not compute has what is stored
    (alone,) = export.export(done, "learning", tmp_path / "run.learning.html", tmp_path)
    (whole,) = export.export(done, "html", tmp_path / "run.html", tmp_path)
    assert export.learning(done, tmp_path, patience=-1) is not None
    for page in (alone, whole):
        assert '"learning": ["landscape", ' in page.read_text("utf-8")
    real = made(Experiment.of({"cluster": "processes", "workers": 2}))
    with pytest.raises(ValueError, match="cannot be replayed"):
        export.export(real, "learning", tmp_path / "real.html", tmp_path)
    (without,) = export.export(real, "html", tmp_path / "real.html", tmp_path)
    assert '["landscape", ' not in without.read_text("utf-8")


def test_the_job_of_a_run_stores_what_it_learned_once(tmp_path):
    done = run(Experiment.of({**SMALL, "algorithm": "sync_sgd", "workers": 2}))
    job, told = record.spec(done), []
    assert job.find_result(tmp_path) is None
    folder = job.perform(tmp_path, told.append)
    assert job.find_result(tmp_path) == folder and told == sorted(told) and told[-1] == pytest.approx(1)
    assert record.load(folder).ranks == 2
    other = run(Experiment.of({**SMALL, "algorithm": "sync_sgd", "workers": 2, "seed": 1}))
    assert record.spec(other).find_result(tmp_path) is None


def test_what_was_learned_is_read_back_as_it_was_stored(tmp_path):
    learning = learned(**SPIRALS, algorithm="sync_sgd", workers=2)
    record.save(learning, tmp_path / record.FILE)
    back = record.load(tmp_path)
    for name, value in vars(learning).items():
        if name != "boundary":
            assert np.array_equal(getattr(back, name), value), name
    assert all(np.array_equal(a, b) for a, b in zip(back.boundary, learning.boundary, strict=True))
    assert (back.box, back.shares) == (learning.box, learning.shares)
    (tmp_path / record.FILE).write_bytes(b"no arrays")
    with pytest.raises(ValueError, match="no readable record"):
        record.load(tmp_path)
