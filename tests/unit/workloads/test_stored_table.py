"""Tables as they are stored: names that are content, and damage that is one sentence."""

import numpy as np
import pytest

from workloads import stored_table
from workloads.stored_table import Table, load, save


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_TABLES", str(tmp_path))
    return tmp_path


def pets(rows=60, **values):
    rng = np.random.default_rng(3)
    size, kind = rng.normal(5, 3, rows), rng.integers(0, 3, rows)
    return Table(("size", "kind"), np.column_stack([size, kind]), {"kind": ("bird", "cat", "dog")}, **values)


def test_a_table_comes_back_under_a_name_that_its_content_decides(folder):
    name = save(pets())
    assert save(pets()) == name and save(pets(61)) != name
    again = load(name)
    assert (again.names, again.words) == (pets().names, pets().words)
    np.testing.assert_array_equal(again.cells, pets().cells)
    assert {path.name for path in folder.iterdir()} == {f"{name}.npz", f"{save(pets(61))}.npz"}


def test_a_table_with_a_file_is_named_after_it():
    name = save(pets(file="pets"))
    assert name.startswith("pets_") and stored_table.title(name) == "the table “pets”" and load(name).file == "pets"
    assert stored_table.title(save(pets())) == f"the table “{save(pets())}”"


def test_pixels_are_kept_as_bytes():
    cells = np.arange(40.0).reshape(10, 4)
    assert load(save(Table(("a", "b", "c", "d"), cells, {}))).cells.dtype == np.uint8


@pytest.mark.parametrize("name", ["", "0" * 16, "../../etc/passwd", "x" * 16, "0" * 15 + "/"])
def test_a_table_that_is_not_there_is_one_sentence(name):
    with pytest.raises(ValueError, match=r"^table: [^\n]+$"):
        load(name)


def test_a_name_is_no_path(folder):
    (folder / f"{save(pets())}.npz").rename(folder.parent / "outside.npz")
    with pytest.raises(ValueError, match=r"no table '\.\./outside' here"):
        load("../outside")


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04rubbish", b"\x80\x04cos\nsystem\n"])
def test_a_damaged_table_is_one_sentence(folder, damage):
    name = save(pets())
    (folder / f"{name}.npz").write_bytes(damage)
    with pytest.raises(ValueError, match=r"^table: [^\n]+cannot be read[^\n]+$"):
        load(name)


def test_missing_numbers_come_back_and_where_the_first_of_them_is():
    table = pets(gaps={"size": "line 3: size is empty"})
    table.cells[1, 0] = np.nan
    again = load(save(table))
    assert again.gaps == table.gaps
    np.testing.assert_array_equal(again.cells, table.cells)


def test_a_table_keeps_its_name_when_a_note_on_it_is_worded_in_another_way():
    assert save(pets(notes=("a was left out.",))) == save(pets(notes=("Column a was left out.",))) == save(pets())
    assert save(pets(gaps={"size": "line 3"})) == save(pets(gaps={"size": "in line 3"}))


def test_notes_of_a_table_that_was_stored_with_the_workloads_name_in_front_come_back_without_it():
    assert load(save(pets(notes=("table: a was left out.",)))).notes == ("a was left out.",)
