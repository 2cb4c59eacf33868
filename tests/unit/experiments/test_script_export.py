"""What a run of a script is exported as, and what it cannot be."""

import csv
import json
import textwrap
import xml.etree.ElementTree as ET

import pytest

from experiments.execution.script import run
from experiments.exports.script_export import export
from experiments.specification.script import ScriptExperiment

TRAIN = """
    import torch, torch.distributed as dist
    import lockstep
    dist.init_process_group()
    w = torch.ones(1000, requires_grad=True)
    optimizer = torch.optim.SGD([w], 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        w.square().mean().backward()
        dist.all_reduce(w.grad)
        lockstep.log(accuracy=0.5)
        optimizer.step()
    print("done, with a comma")
"""


def ran(text=TRAIN):
    return run(ScriptExperiment(textwrap.dedent(text), "train.py", ranks=3, slow="1:9"))


@pytest.fixture(scope="module")
def one():
    return ran()


def test_tables_have_every_row_and_all_digits(one, tmp_path):
    files = export(one, "csv", tmp_path / "run.csv")
    tables = {}
    for file in files:
        with file.open(encoding="utf-8", newline="") as stream:
            tables[file.stem.removeprefix("run-")] = [*csv.DictReader(stream)]
    assert [float(row["loss"]) for row in tables["losses"]] == one.losses["loss"].tolist()
    assert {(row["quantity"], row["value"]) for row in tables["logged"]} == {("accuracy", "0.5")}
    assert {row["kind"] for row in tables["memory"]} >= {"parameters", "gradients"}
    assert [(int(row["rank"]), row["line"]) for row in tables["printed"]] == [*one.printed]
    assert [(row["line"], float(row["end"])) for row in tables["waits"]] == [(w.line, w.end) for w in one.waits]
    assert one.waits


def test_the_timeline_has_a_lane_per_rank_and_the_curves_a_picture_per_value(one, tmp_path):
    for form, words in (("timeline", ("rank 0", "rank 2", "all_reduce", "train.py")), ("svg", ("Loss", "Accuracy"))):
        (file,) = export(one, form, tmp_path / f"{form}.svg")
        told = " ".join(ET.parse(file).getroot().itertext())
        assert all(word in told for word in words), told


def test_in_perfetto_ranks_of_a_script_have_no_roles(one, tmp_path):
    (file,) = export(one, "trace", tmp_path / "t.json")
    text = file.read_text("utf-8")
    tracks = [e["args"]["name"] for e in json.loads(text)["traceEvents"] if e["name"] == "thread_name"]
    assert tracks == ["rank 0", "rank 1", "rank 2"] and "worker" not in text


def test_the_settings_make_the_same_experiment(one, tmp_path):
    (file,) = export(one, "json", tmp_path / "s.json")
    assert ScriptExperiment(**json.loads(file.read_text("utf-8"))) == one.experiment


def test_what_a_script_does_not_have_is_refused_in_one_sentence(one, tmp_path):
    for form in ("html", "learning", "png", "docx"):
        with pytest.raises(ValueError, match=f"cannot be exported as {form}; choose csv, trace"):
            export(one, form, tmp_path / "x")
    silent = ran("print(1)")
    for form, words in (("svg", "no losses and logged nothing"), ("timeline", "nothing in this run took virtual time")):
        with pytest.raises(ValueError, match=words):
            export(silent, form, tmp_path / "x")
    for form in ("csv", "trace", "json"):
        assert export(silent, form, tmp_path / "x")
