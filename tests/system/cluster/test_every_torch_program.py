"""Every program of torch.distributed, on simulated ranks and on real processes, with one trace whatever is hashed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.comm import RankFailed
from tests.torch_zoo import QUICK, TUTORIALS
from tests.torch_zoo.compare import difference, on_processes, simulated
from tests.torch_zoo.programs import NOT_ON_GLOO, PROGRAMS

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
TRACED = *QUICK, "ddp_static_graph", "ddp_power_sgd", "hsdp", "experts", "zero_bubble_v"
CODE = """
import hashlib, sys
from tests.torch_zoo.compare import simulated
for name in sys.argv[1:]:
    trace = simulated(4, name).trace
    cells = [column.tobytes() for table in (trace.spans, trace.messages) for column in table.values()]
    print(name, hashlib.sha256(b"".join(cells) + "|".join(trace.labels).encode()).hexdigest())
"""


@pytest.mark.parametrize(("size", "apart"), [(2, 0.0), (4, 1e-5)])
def test_every_program_gives_the_bits_of_two_processes_and_almost_those_of_four(size, apart):
    real = on_processes(size, list(PROGRAMS))
    for name in PROGRAMS:
        assert difference(simulated(size, name).results, real[name]) <= apart, name


def test_what_gloo_cannot_run_fails_with_the_same_words_on_simulated_ranks():
    real = on_processes(2, list(NOT_ON_GLOO))
    for name, (_, words) in NOT_ON_GLOO.items():
        with pytest.raises(RankFailed, match=words):
            simulated(2, name)
        assert all(words in error for error in real[name])


@pytest.mark.parametrize("name", [*PROGRAMS, *TUTORIALS])
def test_every_program_runs_on_64_ranks(name):
    done = simulated(64, name)
    assert len(done.results) == 64 and done.summary.seconds > 0


def test_a_trace_is_the_same_in_five_processes_with_five_hash_seeds():
    printed = set()
    for seed in "01234":
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, "-c", CODE, *TRACED]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", check=True)
        printed.add(done.stdout)
    assert len(printed) == 1 and len(printed.pop().splitlines()) == len(TRACED)
