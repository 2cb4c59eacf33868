"""The life of a script's run, with the real command line: run, listed, shown, compared, exported, replayed."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[3]
TRAIN = """
import sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import lockstep
from model import Model
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(Model())
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(int(sys.argv[1])):
    x = torch.full((4, 20), 1.0 + dist.get_rank())
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    lockstep.log(norm=model.module.layer.weight.norm())
    optimizer.step()
    print(f"step {step} loss: {loss.item():.9g}", flush=True)
dist.destroy_process_group()
"""
MODEL = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(20, 200)

    def forward(self, x):
        return self.layer(x)
"""


@pytest.fixture
def process(tmp_path):
    """Run a command as a process, in a folder with a script and a module: its exit code, output and errors."""
    (tmp_path / "train.py").write_text(TRAIN, "utf-8")
    (tmp_path / "model.py").write_text(MODEL, "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LOCKSTEP_RUNS": str(tmp_path / "runs"), "COLUMNS": "80"}

    def run(*words, module="experiments"):
        command = [sys.executable, "-m", module, *map(str, words)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8")
        assert "cluster/torch" not in done.stderr, done.stderr  # no traceback of ours
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def call(process, main, monkeypatch, tmp_path):
    """As `process`, but in this process: to import torch and all it needs takes seconds."""
    monkeypatch.setenv("LOCKSTEP_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("COLUMNS", "80")
    return main


def stored(out):
    return Path(re.search(r"^stored +(.+)$", out, re.M)[1])


def test_a_run_of_a_script_is_kept_listed_shown_compared_exported_and_replayed(call, tmp_path):
    code, out, err = call("script", "train.py", "--ranks", 3, "--output", "first", "--", 3)
    folder = stored(out)
    assert code == 0 and folder.parent == tmp_path / "runs", err
    assert "rank 0: step 2 loss: " in out and "rank 1: step" not in out
    assert "logged    norm " in out and "printed   loss " in out
    assert stored(call("script", "train.py", "--ranks", 3, "--", 3)[1]) == folder
    slow = stored(call("script", "train.py", "--ranks", 3, "--slow", "1:50", "--", 3)[1])

    _, listed, _ = call("runs")
    assert len(re.findall("train.py, 3 ranks", listed)) == 2 and "slow 1:50" in listed
    assert call("show", folder.name[:8])[1] == out[out.index("train.py on 3 ranks") :]

    _, compared, _ = call("compare", folder.name, slow.name)
    told = " ".join(compared.split())
    assert "the same numbers" in told and "times as long" in told and "for rank 1 in all_reduce" in told
    assert max(map(len, compared.splitlines())) <= 80

    code, made, err = call("export", folder.name, "--to", "csv", "--out", "numbers.csv")
    assert code == 0, err
    assert {Path(line).name for line in made.splitlines()} == {
        f"numbers-{name}.csv" for name in ("losses", "logged", "memory", "waits", "printed")
    }
    with (tmp_path / "numbers-logged.csv").open(encoding="utf-8") as file:
        assert {row["quantity"] for row in csv.DictReader(file)} == {"norm", "printed loss"}
    for file in ("t.trace.json", "t.timeline.svg", "c.svg", "s.json"):
        assert call("export", folder.name, "--to", file)[0] == 0, file
    events = json.loads((tmp_path / "t.trace.json").read_text("utf-8"))["traceEvents"]
    assert {event["args"]["name"] for event in events if event["name"] == "thread_name"} == {
        "rank 0",
        "rank 1",
        "rank 2",
    }
    assert "rank 2" in (tmp_path / "t.timeline.svg").read_text("utf-8")
    assert "norm" in (tmp_path / "c.svg").read_text("utf-8").lower()
    assert json.loads((tmp_path / "s.json").read_text("utf-8"))["source"] == TRAIN
    code, out, err = call("export", folder.name, "--to", "html")
    assert (code, out) == (2, "") and "cannot be exported as html; choose csv, trace" in " ".join(err.split())

    (tmp_path / "train.py").unlink()
    code, out, _ = call("replay", folder.name)
    assert code == 0 and out.startswith(f"identical, bit for bit: {folder.name}")


def test_a_script_that_fails_is_kept_with_its_line(call, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN.replace("    lockstep.log", "    nothing\n    lockstep.log"), "utf-8")
    code, out, err = call("script", "train.py", "--ranks", 2, "--", 3)
    folder = stored(out)
    assert code == 1 and "NameError: name 'nothing' is not defined" in err and "line 15" in err
    assert call("show", folder.name) == (0, out[out.index("train.py on 2") :], err)
    assert "train.py, 2 ranks, failed" in call("runs")[1]


@pytest.mark.slow
def test_a_script_that_logs_runs_unmodified_on_real_processes_and_computes_the_same(process):
    _, out, _ = process("script", "train.py", "--ranks", 2, "--", 3)
    simulated = sorted(re.findall(r"step \d loss: \S+", out))
    port = free_port()
    code, out, err = process(
        "--nproc-per-node", 2, "--master-port", port, "train.py", 3, module="torch.distributed.run"
    )
    assert code == 0, err
    assert sorted(re.findall(r"step \d loss: \S+", out)) == simulated and len(simulated) == 6
