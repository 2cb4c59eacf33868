"""Tables as a workload: which rows train, and what is predicted."""

import numpy as np
import pytest

from tests.quotes import quote
from workloads import stored_table
from workloads.stored_table import Table, save
from workloads.table import Settings, build


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_TABLES", str(tmp_path))
    return tmp_path


def pets(rows=60, **values):
    rng = np.random.default_rng(3)
    size, age, kind = rng.normal(5, 3, rows), rng.normal(-2, 0.1, rows), rng.integers(0, 3, rows)
    cells = np.column_stack([size, age, np.full(rows, 7.0), kind])
    return Table(("size", "age", "same", "kind"), cells, {"kind": ("bird", "cat", "dog")}, **values)


def test_features_have_mean_zero_and_variance_one_where_they_are_trained_on():
    workload = build(Settings(table=save(pets())), np.float64)
    assert workload.x.shape == (48, 3) and workload.held_out[0].shape == (12, 3)
    np.testing.assert_allclose(workload.x.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(workload.x.std(0), [1, 1, 0], atol=1e-12)


def test_the_label_is_the_last_column_or_the_one_that_is_named():
    table = Table(("a", "b", "c"), np.column_stack([np.arange(20) % 2, np.arange(20) % 5, np.arange(20) % 3]), {})
    name = save(table)
    assert build(Settings(table=name)).target.max() == 2
    assert build(Settings(table=name, label="b")).target.max() == 4


def test_every_row_is_trained_on_or_held_out_and_the_seed_decides_which():
    name = save(pets())
    one, same, other = (build(Settings(table=name, split=seed), np.float64) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.x, same.x)
    assert not np.array_equal(one.x, other.x)
    assert len(one.x) + len(one.held_out[0]) == 60
    assert np.sort(np.concatenate([one.target, one.held_out[1]])).tolist() == sorted(pets().cells[:, 3])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"label": "colour"}, "no column 'colour' … size, age, same, kind"),
        ({"label": "same"}, "same is the same"),
        ({"model": "cnn"}, "cnn needs images"),
    ],
)
def test_a_label_or_a_model_that_does_not_fit_is_refused(settings, words):
    with pytest.raises(ValueError, match=quote(words)):
        build(Settings(table=save(pets()), **settings))


def test_pixels_stay_where_they_are_for_a_cnn():
    cells = np.random.default_rng(0).integers(0, 255, (40, 37)).astype(float)
    cells[:, -1] = np.arange(40) % 2
    table = Table((*(f"pixel {n}" for n in range(36)), "label"), cells, {}, shape=(1, 6, 6))
    assert build(Settings(table=save(table), model="cnn")).x.shape == (32, 1, 6, 6)


def test_notes_of_the_table_are_notes_of_the_workload():
    assert build(Settings(table=save(pets(notes=("a note.",))))).notes == ("table: a note.",)


def test_what_can_be_told_apart_is_learned(tmp_path):
    from experiments.execution.run import run
    from experiments.specification.experiment import Experiment

    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (300, 2))
    name = save(Table(("a", "b", "c"), np.column_stack([x, x[:, 0] * x[:, 1] > 0]), {}))
    done = run(Experiment.of({"workload": "table", "table": name, "steps": 300, "workers": 2, "evaluations": 2}))
    assert done.summary["accuracy"] > 0.9
    assert stored_table.folder() == tmp_path


def numbers(rows=200, **values):
    rng = np.random.default_rng(5)
    x = rng.normal(4, 3, (rows, 2))
    cells = np.column_stack([x, 1000 + 50 * x[:, 0] - 20 * x[:, 1]])
    return Table(("a", "b", "price"), cells, {}, **values)


def test_a_number_to_be_estimated_is_standardised_and_guessing_costs_half_its_variance():
    workload = build(Settings(table=save(numbers()), regression=True), np.float64)
    assert workload.model.outputs == (1,) and workload.target.shape == (160, 1)
    assert workload.target.mean() == pytest.approx(0) and workload.target.std() == pytest.approx(1)
    assert workload.guessing == pytest.approx(workload.held_out[1].var() / 2)
    assert workload.held_out_samples == 0 and np.isnan(workload.evaluate(workload.start(0)).accuracy)


def test_a_missing_number_takes_the_mean_of_the_training_rows():
    table = numbers()
    table.cells[::7, 0] = np.nan
    workload = build(Settings(table=save(table), regression=True, missing="mean"), np.float64)
    filled = np.concatenate([workload.x, workload.held_out[0]])[:, 0] == 0  # the mean, once standardised
    assert filled.sum() == 29 and workload.x[:, 0].mean() == pytest.approx(0)
    assert workload.notes == ("table: 29 missing cells of a filled with the mean of the column.",)


def test_a_regression_learns_and_is_judged_by_r2_in_place_of_accuracy():
    from sklearn.metrics import r2_score

    from experiments.execution.run import run, workload_of
    from experiments.specification.experiment import Experiment

    e = Experiment.of({"workload": "table", "table": save(numbers()), "regression": True, "steps": 100, "workers": 2})
    done = run(e)
    assert done.summary["accuracy"] is None and done.summary["r2"] > 0.9
    workload = workload_of(e)
    x, target = workload.held_out
    y = workload.model.infer(done.parameters, x, workload.model.statistics(done.parameters, None))
    assert done.summary["r2"] == pytest.approx(r2_score(target, y), abs=1e-5)
