"""A command line ends in a sentence, whatever goes wrong."""

import os
import signal

import click
import numba.core.caching as caching
import pytest
from rich.markdown import Markdown

from experiments.cli.console import rich_console
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


def test_one_signal_ends_a_program_that_still_builds_its_workload(monkeypatch):
    def build(*_):
        os.kill(os.getpid(), signal.SIGTERM)
        pytest.fail("it went on")

    monkeypatch.setattr(running, "workload_of", build)

    def go():
        with stoppable() as stop:
            running.run(Experiment(), stop=stop)

    assert command(go) == 130
