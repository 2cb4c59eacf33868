"""What the evaluated models of a run make of a few held-out samples, and the file that keeps it."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.execution import guess as asking
from experiments.execution import run as running
from experiments.execution.guess import guess
from experiments.execution.run import run, workload_of
from experiments.runs import guesses, store
from experiments.runs.evaluations import Model
from experiments.specification.experiment import Experiment
from workloads import stored_table
from workloads.stored_table import Table


def done(**settings):
    return run(Experiment.of({"steps": 20, "workers": 2, "evaluations": 5, **settings}))


@pytest.fixture(scope="module")
def digits():
    return done()


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_TABLES", str(tmp_path))
    draw = np.random.default_rng(0)
    x = draw.normal(size=(200, 2))
    cells = np.concatenate([x, (x[:, :1] > 0), 100 + 10 * x[:, :1]], axis=1)
    return stored_table.save(
        Table(("length", "width", "kind", "weight"), cells, {"kind": ("small", "large")}, file="fish")
    )


def test_the_last_guesses_are_what_the_final_model_answers(digits):
    workload = workload_of(digits.experiment)
    x, target = workload.held_out
    answers = workload.model.infer(digits.parameters, x, workload.model.statistics(digits.parameters, x)).argmax(1)
    pictures = (255 * x.reshape(len(x), 8, 8)).round()
    where = [int(np.flatnonzero((pictures == one).all((1, 2)))[0]) for one in digits.guesses.x]
    assert digits.guesses.model[-1] == len(digits.evaluations["loss"]) - 1
    assert digits.guesses.guess[-1].tolist() == [str(answers[n]) for n in where]
    assert digits.guesses.answer.tolist() == [str(target[n]) for n in where]


def test_nine_images_are_of_nine_digits(digits):
    assert digits.guesses.x.shape == (9, 8, 8)
    assert len({*digits.guesses.answer.tolist()}) == 9


def test_before_the_first_evaluation_nothing_is_guessed(digits):
    assert digits.evaluations["seconds"][0] == 0
    assert 0 not in digits.guesses.model
    assert len(digits.guesses.model) == len(digits.evaluations["seconds"]) - 1


def test_guessing_changes_nothing_in_the_run(digits, monkeypatch):
    monkeypatch.setattr(running, "guess", lambda workload, models: None)
    without = done()
    assert without.guesses is None
    left_out = ("wall_seconds",)
    summaries = [{k: v for k, v in one.summary.items() if k not in left_out} for one in (digits, without)]
    assert summaries[0] == summaries[1]


def test_points_come_with_the_class_of_every_cell_around_them():
    of = done(workload="spirals")
    workload = workload_of(of.experiment)
    left, right, bottom, top = of.guesses.box
    u, v = np.linspace(left, right, asking.GRID), np.linspace(bottom, top, asking.GRID)
    at = np.array([[u[3], v[20]]], np.float32)
    answer = workload.model.infer(of.parameters, at, workload.model.statistics(of.parameters, workload.x)).argmax(1)
    assert of.guesses.cells[-1][20, 3] == answer[0]
    assert of.guesses.guess.shape == (len(of.guesses.cells), len(of.guesses.x))


def test_a_better_model_writes_another_text_after_the_same_words():
    of = done(workload="text", steps=6, evaluations=3)
    workload = workload_of(of.experiment)
    prompt = "".join(workload.labels[token] for token in workload.held_out[0][0])
    written = of.guesses.guess[:, 0].tolist()
    assert of.guesses.answer.tolist() == [prompt]
    assert len({*written}) == len(written) > 1
    assert all(len(text) == asking.WRITTEN for text in written)
    assert done(workload="text", steps=6, evaluations=3).guesses.guess[:, 0].tolist() == written


def test_of_a_table_the_first_held_out_rows_are_shown_in_their_own_words(tables):
    of = done(workload="table", table=tables, label="kind", steps=60)
    assert of.guesses.kind == "rows"
    assert of.guesses.columns.tolist() == ["length", "width", "weight"]
    assert len(of.guesses.x) == 5
    for (length, _, weight), answer in zip(of.guesses.x.astype(float), of.guesses.answer, strict=True):
        assert weight == pytest.approx(100 + 10 * length, abs=0.01)
        assert answer == ("large" if length > 0 else "small")
    workload = workload_of(of.experiment)
    answers = workload.model.infer(of.parameters, workload.held_out[0][:5], [None] * workload.depth).argmax(1)
    assert of.guesses.guess[-1].tolist() == [("small", "large")[n] for n in answers]


def test_an_estimate_is_in_the_unit_of_the_table(tables):
    of = done(workload="table", table=tables, label="weight", regression=True, steps=60, learning_rate=0.1)
    assert of.guesses.kind == "numbers" and not of.guesses.is_marked
    answer, estimate = of.guesses.answer.astype(float), of.guesses.guess[-1].astype(float)
    assert answer == pytest.approx(100 + 10 * of.guesses.x[:, 0].astype(float), abs=0.1)
    assert np.abs(estimate - answer).max() < 5


def test_a_model_that_blew_up_guesses_nothing(digits):
    workload = workload_of(digits.experiment)
    w = np.full(workload.parameters, np.nan, workload.dtype)
    assert {*guess(workload, [Model(1, 1.0, w)]).guess.ravel().tolist()} == {""}
    text = workload_of(Experiment(workload="text"))
    assert guess(text, [Model(1, 1.0, np.full(text.parameters, np.nan, text.dtype))]).guess.tolist() == [[""]]


def test_a_costly_model_is_asked_less_often_and_the_last_one_always(digits, monkeypatch):
    workload = workload_of(digits.experiment)
    models = [Model(n, float(n), digits.parameters) for n in range(21)]
    each = 9 * sum(layer.flops for layer in workload.model.layers)
    monkeypatch.setattr(asking, "WORK", 4.5 * each)
    assert guess(workload, models).model.tolist() == [1, 7, 13, 20]
    monkeypatch.setattr(asking, "WORK", each / 2)
    assert guess(workload, models).guess.shape == (0, 9)


def test_a_workload_without_samples_to_show_has_no_guesses():
    assert done(workload="quadratic").guesses is None


def test_guesses_come_back_from_the_disk_as_they_were(digits, tmp_path):
    back = store.load(store.save(digits, tmp_path)).guesses
    for one, other in zip(back, digits.guesses, strict=True):
        assert np.array_equal(one, other)
    assert store.load(store.save(replace(digits, guesses=None), tmp_path / "without")).guesses is None


def altered(**fields):
    return lambda folder, found: guesses.save(found._replace(**fields), folder)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder, found: (folder / guesses.FILE).write_bytes(b"PK\3\4"),
        lambda folder, found: np.savez(folder / guesses.FILE, kind="images"),
        lambda folder, found: np.savez(folder / guesses.FILE, **found._asdict(), more=1),
        lambda folder, found: np.savez(
            folder / guesses.FILE, **found._replace(answer=np.array([{}], object))._asdict()
        ),
        altered(kind="pictures"),
        altered(x=np.zeros((9, 8), np.uint8)),
        altered(answer=np.array(["x" * 300] * 9)),
        altered(guess=np.zeros((2, 2), "U1")),
        altered(model=np.array([1, 1, 2, 3, 4], "i4")),
        altered(model=np.array([1, 2, 3, 4, 99], "i4")),
        altered(x=np.zeros((9, 1000, 1000), np.uint8)),
        altered(box=np.array([0.0, np.nan, 0.0, 1.0])),
    ],
)
def test_a_damaged_file_is_refused_in_a_sentence(digits, tmp_path, damage):
    folder = store.save(digits, tmp_path)
    damage(folder, digits.guesses)
    with pytest.raises(ValueError, match=r"guesses\.npz is damaged"):
        store.load(folder)
