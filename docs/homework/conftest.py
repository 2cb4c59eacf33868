"""Shared by the tests of all assignments: the file to grade, and the simulated machines that it runs on."""

import importlib.util
import os

import pytest
import torch.distributed as dist

from cluster.comm import ClusterError, RankFailed
from cluster.torch import simulate


@pytest.fixture
def homework(request):
    """The module to grade: HOMEWORK, a path relative to the assignment's folder; by default its starter.py."""
    path = request.path.parent / os.environ.get("HOMEWORK", "starter.py")
    if not path.is_file():
        pytest.exit(f"HOMEWORK: there is no file {path}; give a full path, or a file in {request.path.parent}.")
    spec = importlib.util.spec_from_file_location("homework", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run():
    """A function that runs `program(rank)` on simulated ranks with a process group, and returns what `simulate` does.

    A deadlock, mismatched collectives, or an unwritten function fail the test with one sentence.
    """

    def run(program, ranks, **machines):
        def on_rank():
            dist.init_process_group("gloo")
            return program(dist.get_rank())

        try:
            return simulate(on_rank, ranks, **machines)
        except RankFailed as error:
            if not isinstance(error.__cause__, NotImplementedError):
                raise (error.__cause__ or error) from None  # its traceback ends in the homework
            message = str(error.__cause__)
        except ClusterError as error:
            message = str(error)
        pytest.fail(message, pytrace=False)

    return run
