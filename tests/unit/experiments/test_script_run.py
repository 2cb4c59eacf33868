"""Runs of scripts: recorded as far as they came, stored once, and safe to open whoever wrote them."""

import json
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pyarrow.parquet
import pytest

from experiments.execution.script import run
from experiments.runs import sealed, store
from experiments.runs.script_files import plain_summary
from experiments.runs.script_run import digest
from experiments.specification.script import ScriptExperiment
from tests.quotes import quote

TRAIN = """
    import torch, torch.distributed as dist
    import lockstep
    from rates import RATE
    dist.init_process_group()
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], RATE)
    for _ in range(3):
        optimizer.zero_grad()
        (w * (dist.get_rank() + 1)).square().sum().backward()
        lockstep.log(share=[1e16, 1, -1e16, 1, 3][dist.get_rank()])  # the mean depends on the order of the ranks
        dist.all_reduce(w.grad)
        optimizer.step()
    print("done", w.tolist())
"""
DEADLOCK = """
    import torch, torch.distributed as dist
    dist.init_process_group()
    print("before")
    if dist.get_rank() == 0:
        dist.recv(torch.ones(1), 1)
    dist.barrier()
"""
ERROR = """
    import torch.distributed as dist
    dist.init_process_group()
    dist.barrier()
    if dist.get_rank() == 1:
        raise KeyError("nowhere")
    dist.barrier()
"""
OUTSIDE = """
    import torch.multiprocessing as mp
    print("here")
    mp.spawn(print)
    raise KeyError(1)
"""


@pytest.fixture
def script(tmp_path):
    def write(text, **settings):
        (tmp_path / "rates.py").write_text("RATE = 0.1\n", "utf-8")
        path = tmp_path / "train.py"
        path.write_text(textwrap.dedent(text), "utf-8")
        return ScriptExperiment.read(path, **{"ranks": 2, **settings})

    return write


def test_a_stored_run_of_a_script_is_read_back_bit_for_bit(script, tmp_path):
    one = run(script(TRAIN, slow="1:3", ranks=5))
    again = store.load_script(store.save(one, tmp_path / "runs"))
    assert (again.digest, digest(again)) == (one.digest, one.digest)
    assert plain_summary(again.summary) == plain_summary(one.summary) and again.summary.waiting_share > 0
    for name in ("experiment", "status", "error", "traceback", "notes", "printed", "waits", "environment", "files"):
        assert getattr(again, name) == getattr(one, name), name
    for table, columns in one.tables.items():
        for name, column in columns.items():
            assert np.array_equal(again.tables[table][name], column, equal_nan=column.dtype.kind == "f"), name
    assert [*one.files] == ["rates.py"] and one.waits and len(one.printed) == 5


def test_a_run_stored_before_waits_said_when_a_rank_was_ready_can_still_be_read(script, tmp_path):
    one = run(script(TRAIN, slow="1:3", ranks=3))
    folder = store.save(one, tmp_path / "runs")
    table = pyarrow.parquet.read_table(folder / "waits.parquet")
    pyarrow.parquet.write_table(table.drop_columns("ready"), folder / "waits.parquet")
    again = store.load_script(folder)
    assert again.waits and [wait.ready for wait in again.waits] == [wait.start for wait in one.waits]


def test_printed_values_without_an_optimizer_are_read_back_one_after_the_other(script, tmp_path):
    one = run(script("for number in range(3):\n    print('loss', number)\n"))
    again = store.load_script(store.save(one, tmp_path / "runs"))
    assert again.summary.logged == one.summary.logged == {"printed loss": {0: 0.0, 1: 1.0, 2: 2.0}}


def test_the_same_script_and_settings_are_stored_once_and_others_next_to_them(script, tmp_path):
    root = tmp_path / "runs"
    folder = store.save(run(script(TRAIN)), root)
    assert store.save(run(script(TRAIN)), root) == folder
    assert store.find_stored_run(script(TRAIN), folder.name[17:], root) == folder
    other = store.save(run(script(TRAIN, network="1GbE")), root)
    assert store.find(other.name[:8], root) == other and {*store.recent(root)} == {folder, other}
    experiment = script(TRAIN)
    (tmp_path / "rates.py").write_text("RATE = 0.2\n", "utf-8")  # the same script, and another result
    assert store.save(run(experiment), root).name == f"{folder.name}-2"


def test_a_module_changed_within_the_same_second_is_imported_as_it_is_now(script, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    digests = set()
    for rate in (0.1, 0.2):
        experiment = script(TRAIN)
        (tmp_path / "rates.py").write_text(f"RATE = {rate}\n", "utf-8")
        os.utime(tmp_path / "rates.py", (0, 0))  # Python takes a .pyc for current if second and size are
        digests.add(run(experiment).digest)
    assert len(digests) == 2


def test_a_script_that_fails_is_stored_as_far_as_it_came(script, tmp_path):
    for text, error, printed in (
        (DEADLOCK, "line 6 of train.py", ((0, "before"), (1, "before"))),
        (ERROR, "rank 1 failed … KeyError", ()),
        (OUTSIDE, "failed outside its ranks", ()),
    ):
        one = run(script(text))
        again = store.load_script(store.save(one, tmp_path / "runs"))
        assert again.status == "failed" and again.printed[: len(printed)] == printed
        assert re.search(quote(error), again.error), again.error
        assert ("KeyError" in again.traceback) == (text != DEADLOCK) and "cluster/torch" not in again.traceback
    assert len(store.recent(tmp_path / "runs")) == 3


def test_a_run_that_is_stopped_is_stored_as_cancelled(script, tmp_path):
    one = run(script(TRAIN.replace("range(3)", "range(10**9)")), stop=lambda: True)
    assert store.load_script(store.save(one, tmp_path)).status == "cancelled"


def test_runs_of_either_kind_are_listed_and_each_function_refuses_the_other(script, small_run, tmp_path):
    ours, theirs = store.save(run(script(TRAIN)), tmp_path / "runs"), store.save(small_run, tmp_path / "runs")
    assert {*store.recent(tmp_path / "runs")} == {ours, theirs}
    assert store.header(ours).status == store.header(theirs).status == "finished"
    for read in (store.load, store.experiment):
        with pytest.raises(ValueError, match="is a run of a script, not of an experiment"):
            read(ours)
    with pytest.raises(ValueError, match="is a run of an experiment, not of a script"):
        store.load_script(theirs)
    assert store.load_any(theirs).experiment == small_run.experiment


def test_a_damaged_folder_is_refused_in_one_sentence(script, tmp_path):
    one = run(script(TRAIN, slow="1:3"))

    def damage(number, **changes):
        folder = store.save(replace(one, digest=f"{number}"), tmp_path / f"{number}")
        values = json.loads((folder / "script.json").read_text("utf-8"))
        (folder / "script.json").write_text(json.dumps({**values, **changes}), "utf-8")
        assert sealed.altered_files(folder) == ["script.json"]
        return folder

    for number, changes in enumerate(
        ({"ranks": 1}, {"labels": []}, {"words": []}, {"status": "fine"}, {"summary": {}}, {"format": 2})
    ):
        with pytest.raises(ValueError, match=r"cannot be read|not of this version"):
            store.load_script(damage(number, **changes))
    folder = damage(99)
    (folder / "waits.parquet").unlink()
    with pytest.raises(ValueError, match=r"waits.parquet is missing"):
        store.load_script(folder)


def test_what_determines_a_run_is_in_its_key_and_the_folder_of_the_script_is_not(script, tmp_path):
    one = script(TRAIN)
    assert replace(one, path="/elsewhere/train.py").key() == one.key()
    assert replace(one, network="10gbe", slow=" ").key() == one.key()
    others = [
        replace(one, **change)
        for change in (
            {"source": one.source + "\n"},
            {"path": "other.py"},
            {"arguments": ("1",)},
            {"ranks": 3},
            {"network": "1GbE"},
            {"slow": "1:2"},
            {"steps": 2},
        )
    ]
    assert len({one.key(), *(other.key() for other in others)}) == 8


def test_a_setting_that_is_invalid_is_refused_before_torch_is_imported(tmp_path):
    for settings, words in (
        ({"ranks": 0}, "ranks: 0"),
        ({"slow": "9:2"}, "there is no rank 9"),
        ({"network": "pigeon"}, "network"),
        ({"device": "abacus"}, "device"),
        ({"jitter": "wild"}, "jitter: there is no 'wild'"),
        ({"crash": "1:0.1-0.2"}, "cannot restart"),
        ({"clock": "sundial"}, "roofline or measured"),
        ({"steps": 0}, "steps"),
    ):
        with pytest.raises(ValueError, match=words):
            ScriptExperiment("", "train.py", **settings)
    code = "import sys; from experiments.runs import store; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_a_command_line_repeats_the_settings():
    one = ScriptExperiment("", "a b.py", ("--epochs", "3"), ranks=8, slow="5:4", steps=7)
    assert one.command() == "lockstep script 'a b.py' --ranks 8 --slow 5:4 --steps 7 -- --epochs 3"
