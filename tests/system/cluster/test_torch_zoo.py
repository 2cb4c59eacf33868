"""Programs of torch.distributed give on simulated ranks what they give on real processes, with one trace."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.comm import RankFailed
from tests import torch_zoo
from tests.tiers import slow_except
from tests.torch_zoo.compare import difference, on_processes, simulated

ROOT = Path(__file__).parents[3]
TRACED = *torch_zoo.QUICK, "ddp_static_graph", "ddp_power_sgd", "hsdp", "experts", "zero_bubble_v"
CODE = """
import hashlib, sys
from tests.torch_zoo.compare import simulated
for name in sys.argv[1:]:
    trace = simulated(4, name).trace
    cells = [column.tobytes() for table in (trace.spans, trace.messages) for column in table.values()]
    print(name, hashlib.sha256(b"".join(cells) + "|".join(trace.labels).encode()).hexdigest())
"""


def test_two_simulated_ranks_give_the_bits_of_two_processes():
    real = on_processes(2, torch_zoo.QUICK)
    for name in torch_zoo.QUICK:
        assert difference(simulated(2, name).results, real[name]) == 0.0, name


@pytest.mark.slow
@pytest.mark.parametrize(("size", "apart"), [(2, 0.0), (4, 1e-5)])
def test_every_program_gives_the_bits_of_two_processes_and_almost_those_of_four(size, apart):
    real = on_processes(size, list(torch_zoo.PROGRAMS))
    for name in torch_zoo.PROGRAMS:
        assert difference(simulated(size, name).results, real[name]) <= apart, name


@pytest.mark.slow
def test_what_gloo_cannot_run_fails_with_the_same_words_on_simulated_ranks():
    real = on_processes(2, list(torch_zoo.NOT_ON_GLOO))
    for name, (_, words) in torch_zoo.NOT_ON_GLOO.items():
        with pytest.raises(RankFailed, match=words):
            simulated(2, name)
        assert all(words in error for error in real[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [*torch_zoo.PROGRAMS, *torch_zoo.TUTORIALS])
def test_every_program_runs_on_64_ranks(name):
    done = simulated(64, name)
    assert len(done.results) == 64 and done.summary.seconds > 0


@pytest.mark.parametrize("name", slow_except({"ddp_spawn", "fsdp2_transformer"}, torch_zoo.TUTORIALS))
def test_tutorials_run_on_one_rank_and_on_four_and_every_rank_takes_part(name):
    for size in (1, 4):
        done = simulated(size, name)
        steps = done.summary.steps
        assert steps > 0 and all(log.step == steps for log in done.event_logs), size
        assert size == 1 or done.summary.sent.min() > 0


@pytest.mark.slow
def test_a_trace_is_the_same_in_five_processes_with_five_hash_seeds():
    printed = set()
    for seed in "01234":
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, "-c", CODE, *TRACED]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", check=True)
        printed.add(done.stdout)
    assert len(printed) == 1 and len(printed.pop().splitlines()) == len(TRACED)
