"""Compiling: what Numba compiles is told and its time is the compiler's; what it finds on disk is neither."""

import importlib
import sys
import time

import numpy as np
import pytest
from numba import njit

from cluster.real import threads
from experiments.cli import entry
from experiments.execution.run import run
from experiments.jobs import worker
from experiments.jobs.job import Job, JobState
from experiments.specification.experiment import Experiment
from kernels import compiling

SOURCE = "from kernels.compiled import exact, formula\n{0}\n@exact\ndef double(x):\n    return once(x) + once(x)\n"


def compile_something():
    """Have Numba compile a function that it cannot have compiled before, and which is not kept."""
    njit(lambda x: x + 1)(1)


@pytest.fixture
def heard():
    count = []
    with compiling.telling(lambda: count.append(compiling.WORDS)):
        yield count


def test_a_compilation_is_told_once_with_all_that_it_calls_and_what_is_on_disk_is_not(tmp_path, monkeypatch, heard):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "doubled.py").write_text(SOURCE.format("@exact\ndef once(x):\n    return x\n"))
    before = compiling.seconds()
    assert importlib.import_module("doubled").double(2) == 4
    after = compiling.seconds()
    assert after > before and len(heard) == 1
    del sys.modules["doubled"]
    assert importlib.import_module("doubled").double(2) == 4
    assert compiling.seconds() == after and len(heard) == 1


def test_what_compiling_takes_is_no_part_of_the_time_in_which_a_run_was_made():
    def worker(comm, task, s):
        compile_something()
        return task.start()

    began, before = time.perf_counter(), compiling.seconds()
    made = run(Experiment(steps=1, workers=1), worker_override=worker)
    compiled, total = compiling.seconds() - before, time.perf_counter() - began
    assert compiled > 0 and made.summary["wall_seconds"] <= total - compiled


def test_a_command_that_compiles_says_so_once(capsys, monkeypatch):
    import click

    def callback():
        compile_something()
        compile_something()

    monkeypatch.setattr(entry, "WORTH", -1)
    entry.run_group(click.Group("ours", {"go": click.Command("go", callback=callback)}), ["go"], "ours")
    assert capsys.readouterr().err.count(compiling.WORDS) == 1


def test_a_job_that_compiles_has_it_as_its_phase():
    job = Job("one", Experiment(), JobState("running", fraction=0.5))
    with worker.telling(lambda kind, **values: job.hear({"kind": kind, **values})):
        compile_something()
    assert job.state == JobState("running", fraction=0.5, phase=compiling.WORDS)


def test_a_real_run_says_if_kernels_were_compiled_on_its_clock():
    def program(comm):
        comm.barrier()
        if comm.rank:
            compile_something()
        return np.zeros(1)

    assert any("compiled during the run" in note for note in threads.run(program, 2).notes)
    assert not any("compiled" in note for note in threads.run(lambda comm: comm.barrier(), 2).notes)
