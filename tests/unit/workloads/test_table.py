"""Tables as a workload: which rows train, what is predicted, and names that are content."""

import numpy as np
import pytest

from workloads import table as tables
from workloads.table import Settings, Table, build, load, save


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_TABLES", str(tmp_path))
    return tmp_path


def pets(rows=60, **values):
    rng = np.random.default_rng(3)
    size, age, kind = rng.normal(5, 3, rows), rng.normal(-2, 0.1, rows), rng.integers(0, 3, rows)
    cells = np.column_stack([size, age, np.full(rows, 7.0), kind])
    return Table(("size", "age", "same", "kind"), cells, {"kind": ("bird", "cat", "dog")}, **values)


def test_a_table_comes_back_under_a_name_that_its_content_decides(folder):
    name = save(pets())
    assert save(pets()) == name and save(pets(61)) != name
    again = load(name)
    assert (again.names, again.words) == (pets().names, pets().words)
    np.testing.assert_array_equal(again.cells, pets().cells)
    assert {path.name for path in folder.iterdir()} == {f"{name}.npz", f"{save(pets(61))}.npz"}


def test_a_table_with_a_file_is_named_after_it():
    name = save(pets(file="pets"))
    assert name.startswith("pets_") and tables.title(name) == "pets" and load(name).file == "pets"
    assert tables.title(save(pets())) == save(pets())


def test_pixels_are_kept_as_bytes():
    cells = np.arange(40.0).reshape(10, 4)
    assert load(save(Table(("a", "b", "c", "d"), cells, {}))).cells.dtype == np.uint8


@pytest.mark.parametrize("name", ["", "0" * 16, "../../etc/passwd", "x" * 16, "0" * 15 + "/"])
def test_a_table_that_is_not_there_is_one_sentence(name):
    with pytest.raises(ValueError, match=r"^table: [^\n]+$"):
        load(name)


def test_a_name_is_no_path(folder):
    (folder / f"{save(pets())}.npz").rename(folder.parent / "outside.npz")
    with pytest.raises(ValueError, match=r"there is no table '\.\./outside' here"):
        load("../outside")


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04rubbish", b"\x80\x04cos\nsystem\n"])
def test_a_damaged_table_is_one_sentence(folder, damage):
    name = save(pets())
    (folder / f"{name}.npz").write_bytes(damage)
    with pytest.raises(ValueError, match=r"^table: [^\n]+cannot be read[^\n]+$"):
        load(name)


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
        ({"label": "colour"}, "there is no column 'colour'; there are size, age, same, kind"),
        ({"label": "same"}, "same is the same in every row"),
        ({"model": "cnn"}, "a cnn needs images"),
    ],
)
def test_a_label_or_a_model_that_does_not_fit_is_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        build(Settings(table=save(pets()), **settings))


def test_a_number_to_be_estimated_is_no_class():
    with pytest.raises(ValueError, match="size has 200 different values; a label has 2 to 100"):
        build(Settings(table=save(pets(200)), label="size"))


def test_classes_that_are_numbers_have_all_their_digits():
    days = np.array([20240101, 20240102, 0.1, -1] * 3)
    assert Table(("day",), days[:, None], {}).classes("day")[1] == ["-1", "0.1", "20240101", "20240102"]


def test_of_many_columns_of_words_that_are_left_out_the_first_are_named():
    names = tuple("abcdefghi")
    made = Table(names, np.zeros((10, 9)), dict.fromkeys(names[1:], ("p", "q")))
    assert made.left_out("i") == "left out, as only columns of numbers are learned from: b, c, d, e, f and 2 more."
    assert Table(names, made.cells, {"b": ("p", "q")}).left_out("b") == ""


def test_words_alone_predict_nothing():
    table = Table(("a", "b"), np.column_stack([np.arange(12) % 2, np.arange(12) % 3]), {"a": ("x", "y")})
    with pytest.raises(ValueError, match="beside b there is no column of numbers"):
        build(Settings(table=save(table)))


def test_pixels_stay_where_they_are_for_a_cnn():
    cells = np.random.default_rng(0).integers(0, 255, (40, 37)).astype(float)
    cells[:, -1] = np.arange(40) % 2
    table = Table((*(f"pixel {n}" for n in range(36)), "label"), cells, {}, shape=(1, 6, 6))
    assert build(Settings(table=save(table), model="cnn")).x.shape == (32, 1, 6, 6)


def test_notes_of_the_table_are_notes_of_the_workload():
    assert build(Settings(table=save(pets(notes=("table: a note.",))))).notes == ("table: a note.",)


def test_what_can_be_told_apart_is_learned(tmp_path):
    from experiments.experiment import Experiment
    from experiments.run import run

    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (300, 2))
    name = save(Table(("a", "b", "c"), np.column_stack([x, x[:, 0] * x[:, 1] > 0]), {}))
    done = run(Experiment.of({"workload": "table", "table": name, "steps": 300, "workers": 2, "evaluations": 2}))
    assert done.summary["accuracy"] > 0.9
    assert tables.folder() == tmp_path
