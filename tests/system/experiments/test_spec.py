import importlib
import time

import pytest

from experiments.jobs.pool import Pool
from experiments.jobs.spec import KINDS, JobSpec, keep
from experiments.study import schedules

LARGE = JobSpec("study", {"schedule": "gpipe", "ranks": 16, "chunks": 100})


def test_a_job_is_done_once_and_kept(tmp_path):
    assert LARGE.find_result(tmp_path) is None
    folder = LARGE.perform(tmp_path)
    assert LARGE.find_result(tmp_path) == folder
    assert schedules.load(folder).summary["ops"] == 16 * 201
    before = (folder / "study.json").stat().st_mtime_ns
    assert LARGE.perform(tmp_path) == folder and (folder / "study.json").stat().st_mtime_ns == before
    text = (folder / "study.json").read_text()
    (folder / "study.json").write_text(text[: len(text) // 2])  # as after a power loss
    assert LARGE.find_result(tmp_path) is None
    assert (
        LARGE.perform(tmp_path) == LARGE.find_result(tmp_path) == folder and (folder / "study.json").read_text() == text
    )


def test_a_result_is_kept_whole_or_not_at_all(tmp_path):
    def half(folder):
        (folder / "one").write_text("1")
        raise OSError(28, "no space left")

    with pytest.raises(OSError, match="no space left"):
        keep(tmp_path / "result", half)
    assert list(tmp_path.iterdir()) == []


def test_other_values_are_another_job():
    assert LARGE.key() != JobSpec("study", {**LARGE.values, "ranks": 17}).key()
    assert LARGE.key() == JobSpec("study", dict(reversed(LARGE.values.items()))).key()


def test_the_pool_does_other_jobs_beside_runs(tmp_path):
    pool = Pool(tmp_path, 1)
    try:
        job = pool.submit("ada/study", LARGE)
        refused = pool.submit("bob", JobSpec("study", {"ranks": 200, "chunks": 4000}))
        while pool.state(job).active or pool.state(refused).active:
            time.sleep(0.01)
        assert schedules.load(pool.state(job).folder).summary["ops"] == 16 * 201
        assert pool.state(refused).status == "failed" and "at most 60,000" in pool.state(refused).message
    finally:
        pool.close()


def test_an_owner_that_is_gone_is_gone_with_all_its_jobs(tmp_path):
    pool = Pool(tmp_path, 1, grace=0.0, command=("sleep", "60"))
    try:
        job = pool.submit("ada/study", LARGE)
        other = pool.submit("adam", JobSpec("study", {"ranks": 5}))
        pool.release("ada")
        while pool.state(job).active:
            time.sleep(0.01)
        assert "its reader has left" in pool.state(job).message
        assert pool.state(other).active
    finally:
        pool.close()


def test_every_kind_has_a_module_that_does_it():
    assert all(callable(importlib.import_module(module).perform) for module in KINDS.values())
