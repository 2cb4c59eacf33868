"""A command line ends in a sentence, whatever goes wrong."""

import os
import signal

import click
import numba.core.caching as caching
import pytest
from rich.markdown import Markdown

from experiments.cli.console import rich_console, wrap
from experiments.cli.entry import run_group
from experiments.cli.running import stoppable
from experiments.execution import run as running
from experiments.specification.experiment import Experiment
from kernels.compiled import exact, on_disk


def command(function):
    group = click.Group("ours", {"go": click.Command("go", callback=function)})
    return run_group(group, ["go"], "ours")


def test_a_lack_of_memory_is_a_sentence(capsys):
    def lack():
        raise MemoryError("Unable to allocate 1.00 GiB")

    assert command(lack) == 2
    said = capsys.readouterr().err
    assert "1.00 GiB" in said and "smaller model" in said and "Traceback" not in said


@pytest.mark.parametrize("compile", [exact, on_disk(error_model="numpy")])
def test_without_a_folder_for_compiled_kernels_a_sentence_names_the_variable_that_gives_one(
    compile, capsys, monkeypatch
):
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    assert command(lambda: compile(lambda x: x)) == 2
    assert "NUMBA_CACHE_DIR" in capsys.readouterr().err


def test_a_block_of_code_in_a_pipe_has_no_blanks_behind_its_lines(capsys):
    rich_console().print(Markdown("```python\nx = 1\n```"))
    said = capsys.readouterr().out
    assert "x = 1\n" in said and max(map(len, said.splitlines())) < 80


def test_a_number_and_its_unit_stay_on_one_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    for measured in ("19.1 ms", "55.8 %", "3 kB", "1.5 min", "6 GB"):
        before = "x" * (38 - len(measured))
        assert wrap(f"{before} {measured} of it") == f"{before} {measured}\nof it"
        assert wrap(f"{before}xxx {measured} of it") == f"{before}xxx\n{measured} of it"
    assert wrap("x" * 37 + " 3 sums") == "x" * 37 + " 3\nsums"


def test_one_signal_ends_a_program_that_still_builds_its_workload(monkeypatch):
    def build(*_):
        os.kill(os.getpid(), signal.SIGTERM)
        pytest.fail("it went on")

    monkeypatch.setattr(running, "workload_of", build)

    def go():
        with stoppable() as stop:
            running.run(Experiment(), stop=stop)

    assert command(go) == 130
