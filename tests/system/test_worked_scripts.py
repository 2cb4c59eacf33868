"""The scripts that a course hands out: they do on simulated machines what they do on real processes."""

import re
import subprocess
import sys
from functools import cache

import pytest

from cluster.torch import simulate
from tests.ports import free_port
from tests.sources import ROOT
from tests.tiers import slow_except

FOLDER = ROOT / "docs" / "scripts"
NAMES = sorted(path.name for path in FOLDER.glob("*.py"))


@cache
def printed(name: str, ranks: int):
    """Return the run of a script and the lines that it printed; several tests look at one run."""
    lines = []
    run = simulate(FOLDER / name, ranks, on_line=lambda rank, line: lines.append(line))
    return run, lines


CASES = [(name, ranks) for name in NAMES for ranks in (2, 4)]
QUICK = [(name, 4 if name == "ring.py" else 2) for name in NAMES]


@pytest.mark.parametrize(("name", "ranks"), slow_except(QUICK, CASES))
def test_a_worked_script_runs_and_is_short_enough_for_a_handout(name, ranks):
    run, lines = printed(name, ranks)
    assert lines and run.summary.seconds > 0 and not run.notes
    assert len((FOLDER / name).read_text("utf-8").splitlines()) <= 45


@pytest.mark.parametrize(("name", "ranks"), slow_except(QUICK, [case for case in CASES if case[0] != "ring.py"]))
def test_a_worked_script_learns_and_prints_its_loss(name, ranks):
    _, lines = printed(name, ranks)
    losses = [float(found) for found in re.findall(r"loss: ([\d.]+)", "\n".join(lines))]
    assert len(losses) > 2 and losses[-1] < losses[0]


def test_each_rank_of_the_ring_sends_what_its_script_says():
    run, _ = printed("ring.py", 4)
    vector, rounds = 4_000_000, 3
    assert run.summary.sent.tolist() == [rounds * 2 * 3 / 4 * vector] * 4


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_worked_script_prints_under_torchrun_what_it_prints_on_simulated_ranks(name):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port"]
    done = subprocess.run([*command, str(free_port()), str(FOLDER / name)], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == printed(name, 2)[1]
