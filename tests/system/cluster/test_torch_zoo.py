"""Programs of torch.distributed give on simulated ranks what they give on real processes, with one trace."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import torch_zoo

ROOT = Path(__file__).parents[3]
CODE = """
import hashlib, sys
from cluster.torch import simulate
from tests.torch_zoo import PROGRAMS
for name in sys.argv[1:]:
    trace = simulate(PROGRAMS[name], 4, on_line=lambda *_: None).trace
    cells = [column.tobytes() for table in (trace.spans, trace.messages) for column in table.values()]
    print(name, hashlib.sha256(b"".join(cells) + "|".join(trace.labels).encode()).hexdigest())
"""


def test_two_simulated_ranks_give_the_bits_of_two_processes():
    real = torch_zoo.on_processes(2, torch_zoo.QUICK)
    for name in torch_zoo.QUICK:
        assert torch_zoo.difference(torch_zoo.simulated(2, name), real[name]) == 0.0, name


@pytest.mark.slow
def test_every_program_gives_the_bits_of_two_processes_and_almost_those_of_four():
    for size, apart in ((2, 0.0), (4, 1e-5)):
        real = torch_zoo.on_processes(size, list(torch_zoo.PROGRAMS))
        for name in torch_zoo.PROGRAMS:
            assert torch_zoo.difference(torch_zoo.simulated(size, name), real[name]) <= apart, (name, size)


@pytest.mark.slow
def test_a_trace_is_the_same_in_processes_with_other_hash_seeds():
    printed = set()
    for seed in "013":
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, "-c", CODE, *torch_zoo.QUICK]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", check=True)
        printed.add(done.stdout)
    assert len(printed) == 1 and len(printed.pop().splitlines()) == len(torch_zoo.QUICK)
