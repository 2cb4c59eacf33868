"""`runs`, `show`, `compare` and `replay` of runs of scripts, on the command line."""

import json
import re
import shutil
import tempfile

import pytest

from experiments.runs import store
from tests.quotes import quote

TRAIN = """
import torch, torch.distributed as dist
from rates import RATE
import lockstep
dist.init_process_group()
w = torch.ones(1000, requires_grad=True)
optimizer = torch.optim.SGD([w], RATE)
for _ in range(3):
    optimizer.zero_grad()
    w.square().mean().backward()
    dist.all_reduce(w.grad)
    lockstep.log(accuracy=0.5)
    optimizer.step()
print("loss: 7")
"""
DEADLOCK = """
import torch, torch.distributed as dist
dist.init_process_group()
print("before")
dist.recv(torch.ones(1), 1 - dist.get_rank())
"""


@pytest.fixture
def script(main, tmp_path):
    """Run `lockstep script` of a text with these options: its exit code, and the folder of its run."""

    def call(text, *options):
        (tmp_path / "rates.py").write_text("RATE = 0.1\n", "utf-8")
        (tmp_path / "train.py").write_text(text, "utf-8")
        code, out, err = main("script", "train.py", "--ranks", 2, *options)
        return code, store.find(re.search(r"stored +(\S+)", out)[1], "."), err

    return call


def same(words, text):
    return re.search(quote(words), " ".join(text.split()))


def test_a_script_is_stored_once_and_listed_and_its_summary_is_printed_again(main, script):
    _, folder, _ = script(TRAIN)
    _, again, _ = script(TRAIN, "--network", "10gbe")
    assert folder == again and len(store.recent("runs")) == 1
    _, other, _ = script(TRAIN, "--slow", "1:9")
    main("run", "easgd", "--workers", 2, "--steps", 2, "--evaluations", 1)
    _, out, _ = main("runs")
    assert "train.py, 2 ranks, slow 1:9" in out and "easgd, 2 workers" in out
    rows = {row["run"]: row for row in json.loads(main("runs", "--json")[1])}
    assert rows[other.name]["slow"] == "1:9" and rows[folder.name]["step_seconds"] > 0
    _, first, _ = main("script", "train.py", "--ranks", 2, "--output", "none")
    code, shown, _ = main("show", folder.name[:8])
    assert (code, shown) == (0, first)
    assert "logged    accuracy 0.5 at first, 0.5 at the end\n" in shown and "printed   loss 7\n" in shown
    assert json.loads(main("show", folder.name, "--json")[1])["summary"]["steps"] == 3


def test_at_80_columns_runs_of_scripts_with_many_settings_are_listed_in_one_table(main, script, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    script("print()", "--slow", "1:9", "--network", "1GbE", "--device", "A100", "--jitter", "cloud")
    script("raise KeyError", "--slow", "1:9", "--network", "1GbE", "--device", "A100", "--jitter", "cloud")
    _, out, _ = main("runs")
    table = out.split("\n\n")[0].splitlines()
    assert len(table) == 3 and max(map(len, table)) <= 80
    assert "train.py, 2 ranks, failed" in out and "train.py, 2 ranks, network 1GbE" in out


def test_a_run_of_an_experiment_is_shown_again_as_it_was(main):
    _, first, _ = main("run", "easgd", "--workers", 2, "--steps", 2, "--evaluations", 1)
    assert main("show", store.recent("runs")[0].name)[1] == first


def test_a_script_that_fails_is_kept_and_shown_with_its_reason(main, script):
    code, folder, err = script(DEADLOCK)
    assert code == 1 and "deadlock" in err
    code, out, again = main("show", folder.name)
    assert code == 0 and again == err and "stored" in out
    assert json.loads(main("show", folder.name, "--json")[1])["printed"] == [[0, "before"], [1, "before"]]
    assert "failed" in main("runs")[1]
    code, out, _ = main("replay", folder.name)
    assert code == 0 and same(f"it failed again in the same way; identical, bit for bit: {folder.name}, digest", out)


def test_runs_of_scripts_are_compared_with_each_other_and_not_with_experiments(main, script):
    _, one, _ = script(TRAIN)
    _, other, _ = script(TRAIN, "--slow", "1:9")
    code, out, _ = main("compare", one.name, other.name)
    assert code == 0 and same("slow … none … 1:9", out) and same("the same numbers … times as long … for rank 1", out)
    first, second = json.loads(main("compare", one.name, other.name, "--json")[1])
    assert "verdict" not in first and any("the same numbers" in words for words in second["verdict"])
    main("run", "easgd", "--workers", 2, "--steps", 2, "--evaluations", 1)
    for words, told in (
        ((one.name, store.recent("runs")[0].name), "run of a script … one of an experiment … compare runs of one kind"),
        ((one.name, other.name, "--seeds"), "--seeds groups runs of experiments"),
    ):
        code, out, err = main("compare", *words)
        assert (code, out) == (2, "") and same(told, err), err


def test_a_replay_runs_the_stored_source_and_names_what_has_changed(main, script, tmp_path):
    _, folder, _ = script(TRAIN)
    (tmp_path / "train.py").write_text("raise SystemExit(1)\n", "utf-8")
    code, out, _ = main("replay", folder.name)
    assert code == 0 and same(f"identical, bit for bit: {folder.name}", out)
    (tmp_path / "rates.py").write_text("RATE = 0.1  # the same\n", "utf-8")
    code, out, _ = main("replay", folder.name)
    assert code == 0 and same("rates.py, which the script reads, has changed since", out)
    (tmp_path / "rates.py").write_text("import more\nRATE = 0.1\n", "utf-8")
    (tmp_path / "more.py").touch()
    code, out, _ = main("replay", folder.name)
    assert same("more.py, which the script now reads from … was not there when the run was stored", out)
    (tmp_path / "rates.py").write_text("RATE = 0.2\n", "utf-8")
    code, out, _ = main("replay", folder.name)
    assert code == 1 and same("different: the numbers first differ in step 1 … has changed since", out)
    (tmp_path / "rates.py").unlink()
    code, out, _ = main("replay", folder.name)
    assert code == 1 and same("the other failed … is not in … any more", out)


def test_a_replay_names_data_that_has_changed(main, script, tmp_path):
    data = tmp_path / "data.txt"
    data.write_text("7", "utf-8")
    _, folder, _ = script(TRAIN + "print(open('data.txt').read())\n")
    data.write_text("8", "utf-8")
    code, out, _ = main("replay", folder.name)
    assert code == 1 and same("rank 0 printed '7', and now '8' … data.txt, which the script reads, has changed", out)


def test_a_run_that_is_never_the_same_twice_is_not_replayed(main, script):
    _, folder, _ = script(TRAIN, "--clock", "measured")
    code, out, err = main("replay", folder.name)
    assert (code, out) == (2, "") and same("--clock measured … never the same twice", err)
    _, other, _ = script(TRAIN, "--clock", "measured")
    assert other.name == f"{folder.name}-2"


def test_an_altered_run_is_named_when_it_is_replayed(main, script):
    _, folder, _ = script(TRAIN)
    with (folder / "script.py").open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    code, out, _ = main("replay", folder.name)
    assert code == 1 and "altered since it was stored" in out and "script.py" in out


def test_commands_that_need_an_experiment_refuse_a_run_of_a_script_in_one_sentence(main, script):
    _, folder, _ = script(TRAIN)
    code, out, err = main("run", "--from", folder.name)
    assert (code, out) == (2, "") and same("is a run of a script, not of an experiment", err)


def test_a_run_of_a_script_is_copied_and_not_added(main, script):
    _, folder, _ = script(TRAIN)
    for what in (folder, shutil.make_archive("run", "zip", folder)):
        code, out, err = main("add", what)
        assert (code, out) == (2, "") and same("a run of a script … next to the other runs", err), err


def test_a_run_for_which_there_was_no_room_is_moved_to_the_others(main, script, tmp_path, monkeypatch):
    _, folder, _ = script(TRAIN)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary" / f"{store.ELSEWHERE}x").mkdir(parents=True)
    folder.rename(tmp_path / "temporary" / f"{store.ELSEWHERE}x" / folder.name)
    assert main("kept", "--move")[:2] == (0, f"{folder.resolve()}\n")
    assert main("show", folder.name)[0] == 0
