"""`lockstep script`: what is printed, exported and refused."""

import json
import re
import textwrap
import warnings
from pathlib import Path

import pytest

from experiments.cli.main import main
from experiments.jobs.script import job_spec
from experiments.runs import store
from experiments.wording import units
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


BEGIN = "import torch, torch.distributed as dist\ndist.init_process_group()\nx = torch.ones(1)\n"


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
    steps = [event["args"].get("step") for event in events if event["ph"] == "s" and event["name"] == "all_reduce"]
    assert steps and sorted(set(steps)) == [0, 1, 2], "messages carry their step"


def test_the_summary_says_what_slow_ranks_cost_once_the_run_without_them_is_stored(script, said, tmp_path):
    path = script(TRAIN)

    def slow_line(*options):
        _, out, _ = said(path, "--ranks", 3, *options, "--", "--epochs", 3)
        return re.findall(r"  slow      (.*(?:\n {12}.*)*)", out)

    def step(folder):
        return store.load_script(folder).summary.step_seconds

    [before] = slow_line("--slow", "2:5")
    (slow,) = store.recent(tmp_path / "runs")
    assert before.startswith("rank 2, five times slower") and f"show {slow.name[:8]}" in before
    assert slow_line() == slow_line("--slow", "2:0.5") == []
    [after] = slow_line("--slow", "2:5")
    even = next(one for one in store.recent(tmp_path / "runs") if store.load_script(one).experiment.slow == "")
    assert units.seconds(step(slow)) in after and units.seconds(step(even)) in after
    assert f"{units.number(step(slow) / step(even), 3)} times" in after


def test_a_script_without_an_optimizer_has_no_step_and_its_slow_ranks_cost_time_of_the_run(script, said, tmp_path):
    path = script(f"{BEGIN}for _ in range(3):\n    dist.all_reduce(torch.ones(99, 99) @ torch.ones(99, 99))\n")
    said(path, "--ranks", 2)
    _, out, _ = said(path, "--ranks", 2, "--slow", "1:4")
    runs = {run.experiment.slow: run for run in map(store.load_script, store.recent(tmp_path / "runs"))}
    slow, even = (units.seconds(runs[name].summary.seconds) for name in ("1:4", ""))
    assert f"rank 1, four times slower: the run takes {slow} instead of {even}" in " ".join(out.split())
    assert json.loads(said(path, "--ranks", 2, "--json")[1])["summary"]["step_seconds"] is None


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
        ((tmp_path / "missing.py",), "there is no script … check its name"),
        ((tmp_path,), "is a folder; give the path of a Python script"),
        ((good, "--slow", "9:2"), "there is no rank 9"),
        (
            (good, "--network", "carrier pigeon"),
            "no network preset 'carrier pigeon'; choose from ideal … latency:bandwidth",
        ),
        ((good, "--network", "40gbe clud"), "did you mean 40GbE cloud?"),
        ((good, "--device", "abacus"), "no device preset 'abacus'; choose from laptop … FLOP/s:bytes/s:overhead"),
        ((good, "--device", "a1000"), "did you mean A100?"),
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


def test_a_script_with_the_name_of_a_module_that_torch_imports_is_refused_in_one_sentence(script, said, tmp_path):
    path = tmp_path / "cuda.py"
    path.write_text(Path(script(TRAIN)).read_text("utf-8"), "utf-8")
    code, out, err = said(path)
    assert code == 2 and out == "" and "cuda.py has the name of the module cuda" in " ".join(err.split())
    with pytest.raises(ValueError, match=r"Rename it, e\.g\. to train_cuda\.py"):
        job_spec("print(1)", "cuda.py", {})


def test_a_script_may_declare_its_encoding_as_any_python_file_may(said, tmp_path):
    path = tmp_path / "train.py"
    path.write_bytes("# -*- coding: latin-1 -*-\nprint('d\u00e9j\u00e0 vu')\n".encode("latin-1"))
    code, out, err = said(path, "--ranks", 1)
    assert code == 0 and "rank 0: d\u00e9j\u00e0 vu" in out, err
    path.write_bytes("print('d\u00e9j\u00e0 vu')\n".encode("latin-1"))
    code, _, err = said(path)
    assert code == 2 and "is not a text file in UTF-8" in " ".join(err.split())


REFUSED = (
    ("import torch\ntorch.cuda.set_device(0)", "asks for CUDA (line 2 of train.py)"),
    ("import torch\ntorch.nn.Linear(2, 2).cuda()", "asks for CUDA (line 2 of train.py)"),
    ("import torch\nwith torch.cuda.device(0): pass", "asks for CUDA (line 2 of train.py)"),
    ("import torch\ntorch.cuda.Stream()", "asks for CUDA (line 2 of train.py)"),
    ("import torch.distributed.rpc as rpc\nrpc.init_rpc('a')", "uses torch.distributed.rpc (line 2 of train.py)"),
    ("import multiprocessing\nmultiprocessing.Pool(2)", "starts a process (line 2 of train.py)"),
    ("import os\nos.fork()", "calls os.fork (line 2 of train.py)"),
    ("import os\nos._exit(7)", "rank 0 exits with 7 (line 2 of train.py)"),
    ("import torch\ntorch.empty(10**15)", "rank 0 is out of memory (line 2 of train.py)"),
    (BEGIN + "dist.broadcast(x, 7)", "with root 7 (line 4 of train.py), but group 'default' has 2 ranks"),
    (BEGIN + "dist.all_reduce(x, dist._make_nccl_premul_sum(2.0))", "by PREMUL_SUM (line 4 of train.py)"),
    (BEGIN + "dist.recv(x, 1 - dist.get_rank())", "deadlock"),
)
FAILED = (
    (
        "import torch.multiprocessing as mp\nmp.spawn(print)\nraise KeyError(1)",
        "outside its ranks (line 3 of train.py)",
    ),
    ("import nothing_of_this_name", "rank 0 failed (line 1 of train.py): ModuleNotFoundError"),
    ("import torch\ntorch.ones(2, 3) @ torch.ones(2, 3)", "rank 0 failed (line 2 of train.py): RuntimeError"),
)
OTHERWISE = (
    (BEGIN + "dist.TCPStore('localhost', 1234, 2, dist.get_rank() == 0).set('a', 'b')", "a TCPStore is"),
    ("import torch\ntorch.compile(abs)(1)", "torch.compile does nothing here"),
    ("import torch.utils.data as d\nlist(d.DataLoader([1, 2], 1, False, None, None, 2))", "DataLoader workers"),
)


def test_what_is_not_simulated_is_one_sentence_and_no_traceback(script, said):
    for text, words in REFUSED:
        code, _, err = said(script(text), "--ranks", 2)
        assert code == 1 and words in " ".join(err.split()) and "Traceback" not in err, (text, err)


def test_a_failure_of_the_script_has_its_own_traceback_and_no_line_of_ours(script, said):
    for text, words in FAILED:
        code, _, err = said(script(text), "--ranks", 2)
        assert code == 1 and words in " ".join(err.split()), (text, err)
        assert "Traceback" in err and "cluster/" not in err and "experiments/" not in err, err


def test_a_logged_value_that_is_no_number_is_told_with_the_scripts_own_line(script, said):
    code, _, err = said(script("import lockstep\nlockstep.log(loss='low')\n"), "--ranks", 1)
    assert code == 1 and "rank 0 failed (line 2 of train.py)" in err and "lockstep.py" not in err, err


def test_a_script_without_torch_is_said_to_take_no_virtual_time(script, said):
    code, out, _ = said(script("print('loss 3')\n"), "--ranks", 1)
    assert code == 0 and "calls no torch operation" in " ".join(out.split()) and "printed   loss 3" in out


def test_what_runs_in_another_way_runs_with_a_note(script, said):
    for text, words in OTHERWISE:
        code, out, err = said(script(text), "--ranks", 2)
        assert code == 0 and words in out, (text, out, err)


def test_a_loader_that_pins_memory_warns_of_no_missing_gpu(script, said):
    loads = "import torch\nfrom torch.utils.data import DataLoader\nprint(*DataLoader(range(3), pin_memory=True))\n"
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*pin_memory")
        code, out, _ = said(script(loads), "--ranks", 1)
    assert code == 0 and "tensor([2])" in out
