"""Run folders: whole or not at all, and safe to open whoever wrote them."""

import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.runs import parquet, run_files, store
from experiments.runs.difference import difference
from experiments.specification.experiment import Experiment


def test_a_stored_run_is_read_back_bit_for_bit(small_run, stale_run, tmp_path):
    for run in (small_run, stale_run):
        again = store.load(store.save(run, tmp_path))
        assert difference(run, again) == ""
        assert (again.experiment, again.summary, again.environment) == (run.experiment, run.summary, run.environment)
        assert (again.notes, again.status, again.error) == (run.notes, run.status, run.error)
        assert (again.fatal_loss, again.gpus) == (run.fatal_loss, run.gpus)
        assert again.trace.labels == run.trace.labels and again.trace.ranks == run.trace.ranks
        for table in ("losses", "evaluations", "applied"):
            for name, column in getattr(run, table).items():
                assert getattr(again, table)[name].dtype == column.dtype


def test_what_ended_a_run_and_the_gpus_it_had_are_stored(small_run, tmp_path):
    run = replace(small_run, status="failed", fatal_loss=(2, 0.25), gpus=3)
    again = store.load(store.save(run, tmp_path))
    assert (again.fatal_loss, again.gpus) == ((2, 0.25), 3)


@pytest.mark.parametrize(
    ("error", "notes", "facts"),
    [
        ("rank 2 was lost at 0.001981 s (step 7); no rank is left", [], ("", (2, 0.001981), 3)),
        ("diverged: the loss was no longer finite", [], ("the loss was no longer finite", None, 3)),
        ("", ["a note", "no CUDA GPU was found; ran on the CPU over gloo"], ("", None, 0)),
        ("", ["2 ranks shared 1 GPU: their kernels took turns"], ("", None, 1)),
    ],
)
def test_a_run_that_was_stored_before_there_were_fields_for_it_is_read_with_what_its_sentences_say(
    error, notes, facts, small_run, tmp_path
):
    asked = small_run.experiment.change(cluster="gpus")
    folder = store.save(
        replace(small_run, experiment=asked, status="failed", error=error, notes=tuple(notes)), tmp_path
    )
    older = json.loads((folder / "run.json").read_text())
    del older["fatal_loss"], older["gpus"]
    (folder / "run.json").write_text(json.dumps(older))
    run = store.load(folder)
    message = facts[0] or error
    assert (run.error, run.fatal_loss, run.gpus) == (message, *facts[1:])


def test_a_run_without_parameters_is_stored(small_run, tmp_path):
    assert store.load(store.save(replace(small_run, parameters=None), tmp_path)).parameters is None


def test_the_folder_is_named_by_the_content_and_saving_twice_changes_nothing(small_run, tmp_path):
    first = store.save(small_run, tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in first.iterdir()}
    assert store.save(small_run, tmp_path) == first
    assert {path.name: path.stat().st_mtime_ns for path in first.iterdir()} == before
    assert first.name == f"{small_run.experiment.key()}-{small_run.environment['code']}"
    assert [path.name for path in tmp_path.iterdir()] == [first.name]


def test_another_result_of_the_same_experiment_is_kept_beside_the_first(small_run, tmp_path):
    first = store.save(replace(small_run, status="cancelled"), tmp_path)
    second = store.save(small_run, tmp_path)
    assert first != second and second.name == first.name + "-2"
    code = small_run.environment["code"]
    assert store.find_stored_run(small_run.experiment, code, tmp_path) == second
    assert store.find_stored_run(small_run.experiment, "00000000", tmp_path) is None


def test_runs_of_a_real_cluster_are_never_taken_for_the_same(small_run, tmp_path):
    real = replace(small_run, experiment=small_run.experiment.change(cluster="processes"))
    assert store.save(real, tmp_path) != store.save(real, tmp_path)
    assert store.find_stored_run(real.experiment, real.environment["code"], tmp_path) is None


@pytest.mark.parametrize("victim", ["losses.parquet", "messages.parquet", "parameters.npy", "run.json", "rename"])
def test_a_disk_that_fills_up_leaves_nothing_half_written_and_loses_nothing(victim, small_run, tmp_path, monkeypatch):
    full = OSError(errno.ENOSPC, "No space left on device")

    def failing(method):
        def write(*args, **kwargs):
            if any(str(tmp_path / "runs") in str(arg) and victim in str(arg) for arg in args):
                raise full
            return method(*args, **kwargs)

        return write

    monkeypatch.setattr(pq, "write_table", failing(pq.write_table))
    monkeypatch.setattr(np, "save", failing(np.save))
    monkeypatch.setattr(Path, "write_text", failing(Path.write_text))
    if victim == "rename":
        rename = Path.rename
        monkeypatch.setattr(
            Path, "rename", lambda a, b: (_ for _ in ()).throw(full) if "/runs/" in str(a) else rename(a, b)
        )
    with pytest.raises(OSError, match="No space left") as caught:
        store.save(small_run, tmp_path / "runs")
    assert str(tmp_path / "runs") in str(caught.value) and "\n" not in str(caught.value)
    assert list((tmp_path / "runs").iterdir()) == []

    folder, sentence = store.save_somewhere(small_run, tmp_path / "runs")
    assert difference(small_run, store.load(folder)) == "" and str(folder) in sentence and "No space" in sentence
    shutil.rmtree(folder.parent)


def test_a_folder_that_cannot_be_made_gives_one_sentence(small_run, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError) as caught:
        store.save(small_run, tmp_path / "file")
    assert "cannot be written" in str(caught.value) and "\n" not in str(caught.value)


def test_nobody_sees_a_run_that_is_being_written(small_run, tmp_path, monkeypatch):
    seen = []
    write = run_files.write
    monkeypatch.setattr(run_files, "write", lambda run, part: (write(run, part), seen.append(store.recent(tmp_path))))
    store.save(small_run, tmp_path)
    assert seen == [[]] and len(store.recent(tmp_path)) == 1


def test_find_takes_a_path_a_name_or_its_beginning(small_run, stale_run, tmp_path):
    a, b = store.save(small_run, tmp_path), store.save(stale_run, tmp_path)
    assert (
        store.find(str(a), tmp_path) == a
        and store.find(a.name, tmp_path) == a
        and store.find(b.name[:6], tmp_path) == b
    )
    assert set(store.recent(tmp_path)) == {a, b}
    for text in ("nothing", "../..", "x" * 5000, "\0"):
        with pytest.raises(ValueError, match="no run"):
            store.find(text, tmp_path)
    with pytest.raises(ValueError, match=f"which run.*{a.name}"):
        store.find("", tmp_path)
    assert store.recent(tmp_path / "nowhere") == []


def test_find_takes_an_exact_name_or_the_latest_run_of_the_one_experiment_that_begins_so(tmp_path):
    for number, name in enumerate(("5a1-c0de", "5b2-c0de", "5b2-c0de-2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").touch()
        os.utime(tmp_path / name, (number, number))
    with pytest.raises(ValueError, match=r"3 runs .*'5'.* 5b2-c0de-2"):
        store.find("5", tmp_path)
    assert store.find("5b", tmp_path).name == "5b2-c0de-2"
    assert store.find("5b2-c0de", tmp_path).name == "5b2-c0de"


def _spoil_json(**changes):
    def spoil(folder):
        values = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps({**values, **changes}))

    return spoil


def _spoil_table(table, **columns):
    def spoil(folder):
        data = pq.read_table(folder / f"{table}.parquet")
        for name, value in columns.items():
            place = data.column_names.index(name)
            data = data.set_column(place, name, pa.array([value] * len(data), data[name].type))
        pq.write_table(data, folder / f"{table}.parquet")

    return spoil


def _without(table, column):
    return lambda folder: pq.write_table(
        pq.read_table(folder / f"{table}.parquet").drop_columns([column]), folder / f"{table}.parquet"
    )


def _retyped(folder):
    data = pq.read_table(folder / "messages.parquet")
    texts = pa.array(["x"] * len(data))
    pq.write_table(data.set_column(data.column_names.index("tag"), "tag", texts), folder / "messages.parquet")


def _pickled(folder):
    np.save(folder / "parameters.npy", np.array([{"a": 1}], object), allow_pickle=True)


def _zipped(folder):
    np.savez(folder / "parameters.npz", np.zeros(3))
    (folder / "parameters.npz").rename(folder / "parameters.npy")


def _huge_header(folder):
    data = (folder / "parameters.npy").read_bytes()
    (folder / "parameters.npy").write_bytes(data.replace(b"'shape': (", b"'shape': (99999999", 1))


def _cut(name, share):
    def spoil(folder):
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: int(len(data) * share)])

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "run.json").unlink(),
        lambda folder: (folder / "run.json").write_text("{"),
        lambda folder: (folder / "run.json").write_text("[]"),
        lambda folder: (folder / "run.json").write_bytes(b"\xff\xfe\x00"),
        lambda folder: (folder / "run.json").write_text("[" * 200_000),
        lambda folder: (folder / "losses.parquet").unlink(),
        lambda folder: (folder / "losses.parquet").write_bytes(b"PAR1 no PAR1"),
        lambda folder: shutil.copy(folder / "spans.parquet", folder / "losses.parquet"),
        _cut("run.json", 0.5),
        _cut("spans.parquet", 0.5),
        _cut("messages.parquet", 0.9),
        _cut("parameters.npy", 0.5),
        _cut("parameters.npy", 0.0),
        _pickled,
        _huge_header,
        _zipped,
        lambda folder: np.save(folder / "parameters.npy", np.zeros((3, 3))),
        lambda folder: np.save(folder / "parameters.npy", np.zeros(3, int)),
        _spoil_json(format=1),
        _spoil_json(status="excellent"),
        _spoil_json(ranks=0),
        _spoil_json(ranks=10**9),
        _spoil_json(ranks="3"),
        _spoil_json(labels=[]),
        _spoil_json(labels=[1]),
        _spoil_json(summary={"loss": [1]}),
        _spoil_json(extra=1),
        _spoil_json(experiment={"algorithm": "nonsense"}),
        _spoil_json(experiment={"algorithm": "easgd", "settings": {"from_another_version": 1}}),
        _spoil_table("spans", rank=77),
        _spoil_table("spans", kind=-1),
        _spoil_table("spans", kind=5),
        _spoil_table("spans", label=1000),
        _spoil_table("messages", dst=-3),
        _spoil_table("losses", rank=3),
        _spoil_table("memory", rank=3),
        _spoil_table("memory", kind=5),
        _spoil_table("losses", loss=None),
        _without("losses", "step"),
        _retyped,
    ],
)
def test_a_damaged_or_hostile_folder_gives_one_sentence(spoil, small_run, tmp_path):
    folder = store.save(small_run, tmp_path)
    spoil(folder)
    with pytest.raises(ValueError) as caught:
        store.load(folder)
    text = str(caught.value)
    assert str(folder) in text and "\n" not in text and len(text) < 700


def test_a_file_that_is_cut_off_or_missing_is_named_and_is_of_no_other_version(small_run, tmp_path):
    folder = store.save(small_run, tmp_path)
    whole = (folder / "spans.parquet").read_bytes()
    (folder / "spans.parquet").unlink()
    with pytest.raises(ValueError, match=r" cannot be read as a run: spans\.parquet is missing\.$"):
        store.load(folder)
    (folder / "spans.parquet").write_bytes(whole)
    _cut("run.json", 0.5)(folder)
    with pytest.raises(ValueError, match=r"run\.json is damaged: Invalid JSON: EOF while parsing [^:]+\.$"):
        store.load(folder)


def test_rows_that_run_json_has_no_name_for_are_not_told_to_be_below_zero(small_run, tmp_path):
    folder = store.save(small_run, tmp_path)
    _spoil_json(labels=[])(folder)
    with pytest.raises(ValueError, match=r"spans.parquet: label is .*; run.json lists no label") as refused:
        store.load(folder)
    assert "0 to -1" not in str(refused.value)


def test_files_larger_than_any_run_are_not_read(small_run, tmp_path, monkeypatch):
    folder = store.save(small_run, tmp_path)
    for where, limit, most in (
        (run_files, "MAX_JSON", 100),
        (parquet, "MAX_ROWS", 3),
        (run_files, "MAX_PARAMETERS", 100),
    ):
        with monkeypatch.context() as patch, pytest.raises(ValueError, match=f"at most {most} are read"):
            patch.setattr(where, limit, most)
            store.load(folder)
    store.load(folder)


def test_an_experiment_is_read_without_the_tables(small_run, tmp_path):
    folder = store.save(small_run, tmp_path)
    (folder / "losses.parquet").unlink()
    assert store.experiment(folder) == small_run.experiment
    assert isinstance(store.experiment(folder), Experiment)


def test_every_file_that_decides_what_a_run_gives_is_there_and_what_run_imports_is_among_them():
    import ast

    from experiments.runs.summary import DECISIVE, ROOT

    files = {path for pattern in DECISIVE for path in ROOT.glob(pattern)}
    assert [pattern for pattern in DECISIVE if not any(ROOT.glob(pattern))] == []
    tree = ast.parse((ROOT / "experiments" / "execution" / "run.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules = {node.module for node in imports} | {
        f"{node.module}.{each.name}" for node in imports for each in node.names
    }
    own = {ROOT / f"{name.replace('.', '/')}.py" for name in modules if name.startswith("experiments.")}
    told = {"experiments/cli/notebook.py", "experiments/runs/divergence.py"}
    told |= {"experiments/wording/units.py", "experiments/runs/ending.py", "experiments/runs/progress.py"}  # of a run
    told |= {f"experiments/execution/{name}.py" for name in ("admission", "batch_norm", "room")}  # which only refuse
    assert {path for path in own if path.is_file()} <= files | {ROOT / path for path in told}
