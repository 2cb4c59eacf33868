"""`lockstep script`: what is printed, exported and refused."""

import json
import re
import textwrap
from pathlib import Path

import pytest

from experiments.cli.main import main
from experiments.runs import store
from tests.quotes import quote

TRAIN = """
    import sys, torch, torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    dist.init_process_group("nccl")
    model = DistributedDataParallel(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(int(sys.argv[2])):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).square().mean().backward()
        optimizer.step()
    print("done", sys.argv[1:])
"""


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / "train.py"
        path.write_text(textwrap.dedent(text), "utf-8")
        return str(path)

    return write


@pytest.fixture
def said(capsys, tmp_path, monkeypatch):
    """Run `lockstep script ...`: its exit code, output and errors."""
    monkeypatch.setenv("LOCKSTEP_RUNS", str(tmp_path / "runs"))

    def run(*arguments):
        code = main(["script", *map(str, arguments)])
        return code, *capsys.readouterr()

    return run


def test_a_script_gives_a_summary_a_trace_and_what_it_prints(script, said, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    trace = Path("timeline.json")
    code, out, _ = said(script(TRAIN), "--ranks", 4, "--slow", "2:5", "--trace", trace, "--", "--epochs", 3)
    assert code == 0
    for words in ("4 ranks, 10GbE", "3 steps", "backward()", "3 ranks wait for rank 2", "gradients", "sent"):
        assert words in out, words
    assert "rank 1: done ['--epochs', '3']" in out
    (folder,) = store.recent(tmp_path / "runs")
    assert f"stored  {folder}\n" in out  # a path is not folded, however long it is
    assert max(map(len, out.replace(str(folder), "").splitlines())) <= 80
    events = json.loads(trace.read_text("utf-8"))["traceEvents"]
    assert {event["name"] for event in events} >= {"forward", "backward", "all_reduce"}


def test_a_summary_as_json_has_the_numbers_and_nothing_else_is_printed(script, said):
    code, out, _ = said(script(TRAIN), "--ranks", 2, "--json", "--", "--epochs", 2)
    told = json.loads(out)
    assert code == 0 and told["summary"]["steps"] == 2 and told["error"] == ""
    assert len(told["summary"]["memory"]["gradients"]) == 2


def test_only_the_first_rank_may_be_heard_and_ranks_may_stop_after_some_steps(script, said):
    _, out, _ = said(script(TRAIN), "--ranks", 3, "--output", "first", "--steps", 2, "--", "--epochs", 9)
    assert "2 steps" in out and "done" not in out
    _, out, _ = said(script(TRAIN), "--ranks", 3, "--output", "first", "--", "--epochs", 1)
    assert out.count("done") == 1


def test_an_exception_of_the_script_is_shown_from_its_first_line_on_with_its_rank(script, said):
    text = """
        import torch.distributed as dist
        def load():
            return open("nowhere.pt")
        dist.init_process_group()
        if dist.get_rank() == 2:
            load()
        dist.barrier()
    """
    code, _, err = said(script(text), "--ranks", 4)
    assert code == 1 and "rank 2 failed" in err
    assert "train.py" in err and "cluster/torch" not in err and "launch.py" not in err


def test_a_mistake_is_one_sentence(script, said, tmp_path):
    good = script(TRAIN)
    for arguments, words in (
        ((tmp_path / "missing.py",), "cannot read the script"),
        ((good, "--slow", "9:2"), "there is no rank 9"),
        ((good, "--network", "carrier pigeon"), "network"),
        ((good, "--device", "abacus"), "device"),
        ((good, "--jitter", "wild"), "jitter: there is no 'wild'"),
        ((good, "--crash", "1:0.1-0.2"), "cannot restart"),
        ((good, "--clock", "sundial"), "clock … roofline or measured"),
        ((good, "--eager", "many"), "many"),
        ((good, "--trace", tmp_path / "no" / "t.json"), "there is no folder"),
        ((good, "--epochs", "3"), "after --"),
    ):
        code, out, err = said(*arguments)
        assert code == 2 and out == "" and "Traceback" not in err, arguments
        assert re.search(quote(words), " ".join(err.split())), (words, err)


def test_a_script_that_asks_for_what_is_not_there_gets_one_sentence(script, said):
    for text, words in (
        ("import torch\ntorch.cuda.set_device(0)\n", "asks for CUDA (line 2 of train.py)"),
        ("import os\nos._exit(7)\n", "exits with 7"),
        ("import torch.multiprocessing as mp\nmp.spawn(print)\nraise KeyError(1)\n", "failed outside of its ranks"),
    ):
        code, _, err = said(script(text), "--ranks", 2)
        assert code == 1 and words in " ".join(err.split()), err
