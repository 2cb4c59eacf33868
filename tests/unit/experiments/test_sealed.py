"""Sealed folders: whole or not at all, synced, and never swept while a process writes them."""

import os
import tempfile
from pathlib import Path

import pytest

from experiments.jobs.spec import keep
from experiments.runs import sealed, store


def write(folder, text="whole"):
    (folder / "result.json").write_text(text)
    (folder / "part").mkdir()
    (folder / "part" / "rows").write_bytes(b"123")


def damage(folder):
    (folder / "result.json").write_text("who")


def test_what_a_process_left_is_swept_at_once_and_what_one_writes_never_whatever_the_clock_says(tmp_path):
    left = tmp_path / ".part-left"
    left.mkdir()
    with sealed.under_way(tmp_path) as part:
        assert not left.exists()
        os.utime(part, (0, 0))  # as if the clock had jumped
        with sealed.under_way(tmp_path) as other:
            assert part.exists() and other.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_swept_before_it_is_held_is_begun_again(tmp_path, monkeypatch):
    lock, swept = sealed._lock, []

    def late(folder, wait):
        if wait and not swept:
            swept.append(folder)
            handle = lock(folder, wait)
            folder.rmdir()
            return handle
        return lock(folder, wait)

    monkeypatch.setattr(sealed, "_lock", late)
    with sealed.under_way(tmp_path) as part:
        assert part.exists() and part != swept[0]


def test_files_and_folder_are_synced_before_the_result_has_its_name_and_the_name_after(tmp_path, monkeypatch):
    events, sync, rename = [], os.fsync, Path.rename
    monkeypatch.setattr(os, "fsync", lambda handle: (events.append(os.fstat(handle).st_ino), sync(handle)))
    monkeypatch.setattr(Path, "rename", lambda path, to: (events.append("renamed"), rename(path, to))[1])
    place = keep(tmp_path / "result", write)
    before, after = (set(some) for some in (events[: events.index("renamed")], events[events.index("renamed") :]))
    files = {path.stat().st_ino for path in place.rglob("*") if path.is_file()}
    assert len(files) == 3 and files | {place.stat().st_ino} <= before
    assert tmp_path.stat().st_ino in after


def test_a_file_that_was_changed_cut_short_or_removed_is_named(tmp_path):
    place = keep(tmp_path / "result", write)
    assert sealed.altered_files(place) == []
    damage(place)
    assert sealed.altered_files(place) == ["result.json"]
    (place / "part" / "rows").unlink()
    assert sealed.altered_files(place) == ["part/rows", "result.json"]
    for text in (b"", b"\xff\xfe", b"nonsense\n"):
        (place / sealed.SUMS).write_bytes(text)
        assert sealed.altered_files(place) == [sealed.SUMS]
    (place / sealed.SUMS).unlink()
    assert sealed.altered_files(place) == [sealed.SUMS]


def test_a_damaged_result_is_made_again_and_put_aside(small_run, tmp_path):
    place = keep(tmp_path / "result", write)
    assert (
        keep(place, lambda folder: write(folder, "another")) == place
        and "whole" in place.joinpath("result.json").read_text()
    )
    damage(place)
    assert keep(place, write) == place and sealed.altered_files(place) == []
    (aside,) = tmp_path.glob(".damaged-result-*/result/result.json")
    assert aside.read_text() == "who"

    folder, code = store.save(small_run, tmp_path), small_run.environment["code"]
    assert store.find_stored_run(small_run.experiment, code, tmp_path) == folder
    content = (folder / "spans.parquet").read_bytes()
    (folder / "spans.parquet").write_bytes(content[: len(content) // 2])
    assert store.find_stored_run(small_run.experiment, code, tmp_path) is None
    assert store.save(small_run, tmp_path) == folder == store.find_stored_run(small_run.experiment, code, tmp_path)
    assert store.recent(tmp_path) == [folder]


def test_runs_that_had_no_room_are_listed_and_moved(small_run, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "file").write_text("in the way")
    folder, sentence = store.save_somewhere(small_run, tmp_path / "file")
    assert str(folder) in sentence and "lockstep kept" in sentence and store.elsewhere() == [folder]
    moved = store.move(folder, tmp_path / "runs")
    assert store.load(moved).summary == small_run.summary and not folder.parent.exists() and not store.elsewhere()


def test_a_run_that_cannot_be_moved_stays(small_run, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = store.save(small_run, tmp_path / f"{store.ELSEWHERE}x")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="cannot be written"):
        store.move(folder, tmp_path / "file")
    assert store.elsewhere() == [folder]


def test_a_hidden_folder_that_another_process_sweeps_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    made, make = [], tempfile.mkdtemp

    def make_and_lose_the_first(**where):
        folder = make(**where)
        if not made:
            os.rmdir(folder)
        made.append(folder)
        return folder

    monkeypatch.setattr(sealed.tempfile, "mkdtemp", make_and_lose_the_first)
    with sealed.under_way(tmp_path) as part:
        (part / "a").write_text("x")
    assert len(made) == 2 and str(part) == made[1]
