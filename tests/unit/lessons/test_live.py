"""What a book needs to compute in the browser: its files, its form fields, its engine and its small pydantic."""

import ast
import gzip
import hashlib
import importlib.util
import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import lessons
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from kernels import compiler
from lessons import markup
from lessons.grading import grader
from lessons.live import archive, bytecode, distribution, fields, tries
from tests.sources import ROOT

PYTHON = ROOT / "lessons" / "live" / "python"
QUERIES = (
    "algorithm=easgd&workers=4&period=8&slow=2:3,3:1.5&learning_rate=0.1",
    "algorithm=sync_sgd&hidden=64,32&compression=top_k&density=0.1&update=adam&epochs=2",
    "algorithm=zb_h1&model=residual&depth=8&width=16&workers=4",
    "algorithm=sync_sgd&crash=1:0.1-0.2&jitter=cloud&latency=1e-4&bandwidth=1e9&steps=",
    "workers=0",
    "workers=4.5",
    "algorithm=easgd&period=often",
    "learning_rate=nan",
    "slow=9:2",
    "sync_batch_norm=perhaps",
    "collective=fastest",
    "workload=text&steps=2",
    "workload=table&label=" + 200 * "x",
    "workloud=digits",
)
REPORT = """
import json, sys
from experiments.specification.experiment import Experiment
found = []
for query in json.loads(sys.stdin.read()):
    try:
        one = Experiment.from_query(query)
        found.append([one.query(), one.model_dump(mode="json"), one.in_force()])
    except ValueError as error:
        found.append([type(error).__name__, str(error), list(getattr(error, "remedies", ()))])
print(json.dumps(found))
"""


def python(program: str, *places: Path, given: str = "") -> str:
    """Return what a Python prints that finds modules in `places` first."""
    where = os.pathsep.join(map(str, places))
    command, here = [sys.executable, "-c", program], {**os.environ, "PYTHONPATH": where, "PYTHONSAFEPATH": "1"}
    done = subprocess.run(command, input=given, capture_output=True, encoding="utf-8", env=here, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def engine():
    """Return the module that answers a page."""
    spec = importlib.util.spec_from_file_location("engine", PYTHON / "engine.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pydantic_of_the_browser_reads_settings_as_pydantic_does():
    queries = [*QUERIES, *(f"algorithm={name}" for name in __import__("algorithms").names())]
    ours = python(REPORT, PYTHON, ROOT, given=json.dumps(queries))
    assert json.loads(ours) == json.loads(python(REPORT, ROOT, given=json.dumps(queries)))


def test_a_run_needs_no_module_of_ours_that_is_not_in_the_archive(tmp_path):
    for path in archive.sources():
        to = tmp_path / path.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(path.read_bytes())
    program = (
        "import json, engine, knobs, pydantic\nassert 'Numba' in engine.start()\n"
        "found = engine.answer(json.dumps({'do': 'run', 'query': 'workload=quadratic&steps=3&workers=2'}))\n"
        "assert len(found) == 3, found; print(json.dumps([found[0], knobs.__file__, pydantic.__file__]))"
    )
    answer, knobs_file, pydantic_file = json.loads(python(program, PYTHON, tmp_path))
    assert json.loads(answer)["seconds"] > 0 and "takes" in json.loads(answer)["words"]
    assert knobs_file == str(tmp_path / "knobs.py") and pydantic_file == str(PYTHON / "pydantic.py")


def test_the_archive_holds_every_file_and_is_cut_into_scripts(tmp_path):
    content = {"a.js": b"one", "python/b.py": b"", "c.wasm": bytes(range(256))}
    packed = archive.pack(content)
    plain = gzip.decompress(packed)
    (length,) = struct.unpack("<I", plain[:4])
    index = json.loads(plain[4 : 4 + length])
    assert {name: plain[4 + length :][start:end] for name, (start, end) in index.items()} == content
    count = archive.write(bytes(2 * archive.PART + 1), tmp_path)
    assert count == 3 == len(list(tmp_path.glob("*.js")))
    assert (tmp_path / "2.js").read_text("utf-8") == 'lockstep.live.take(2, "AA==");\n'


def test_all_that_checks_figures_and_answers_import_is_in_the_archive_and_no_other_solution():
    there = {path.relative_to(ROOT).as_posix() for path in archive.sources()}
    chapters = [name for name in there if name.startswith("lessons/") and name.count("/") > 1]
    for name in chapters:
        for node in ast.walk(ast.parse((ROOT / name).read_text("utf-8"))):
            module = getattr(node, "module", None) or "" if isinstance(node, ast.ImportFrom) else ""
            if module.startswith("lessons.") and name.split("/")[1] in lessons.CHAPTERS:
                place = module.replace(".", "/")
                found = f"{place}.py" in there or any(one.startswith(f"{place}/") for one in there)
                assert found, f"{name} imports {module}"
    assert [name for name in chapters if name.endswith("solution.py")] == ["lessons/model_parallel/solution.py"]


def zipped(*names: str) -> bytes:
    with io.BytesIO() as made:
        with zipfile.ZipFile(made, "w") as packed:
            for name in names:
                packed.writestr(name, f"name = {name!r}")
        return made.getvalue()


def test_bytecode_replaces_what_nobody_reads_and_lies_next_to_our_own_sources(tmp_path):
    release = {archive.LIBRARY: zipped("json.py", "xml/dom.py"), distribution.NUMPY: zipped("numpy/one.py", "a.so")}
    found = archive.files(release, sys.executable)
    library = zipfile.ZipFile(io.BytesIO(found[archive.LIBRARY]))
    assert library.namelist() == ["json.pyc"] and {"python/numpy/one.pyc", "python/a.so"} <= found.keys()
    assert {"python/knobs.py", "python/__pycache__/knobs.cpython-312.pyc", "python/engine.py"} <= found.keys()
    (tmp_path / "one.pyc").write_bytes(found["python/numpy/one.pyc"])
    assert python("import one; print(one.name)", tmp_path).strip() == "numpy/one.py"
    assert not [name for name in archive.files(release, None) if name.endswith(".pyc")]


def test_only_a_python_whose_bytecode_the_browser_reads_compiles_it(monkeypatch):
    monkeypatch.setattr(bytecode.shutil, "which", lambda name: None)
    monkeypatch.setattr(bytecode, "MAGIC", importlib.util.MAGIC_NUMBER)
    assert bytecode.interpreter() == sys.executable
    monkeypatch.setattr(bytecode, "MAGIC", b"another")
    assert bytecode.interpreter() is None


def test_an_answer_says_how_far_a_run_is_from_the_recorded_one():
    words, recorded = engine().words, {"seconds": 0.02, "loss": 0.5}
    assert words({"seconds": 0.02, "loss": 0.50001}, recorded).count("as recorded") == 2
    assert "1.5 times as long as recorded" in words({"seconds": 0.03, "loss": 0.5}, recorded)
    assert "0.1 above the recorded one" in words({"seconds": 0.02, "loss": 0.6}, recorded)
    assert "diverged, and 0.5 was recorded" in words({"seconds": 0.02, "loss": float("inf")}, recorded)
    assert "recorded" not in words(recorded, None)


def test_that_kernels_are_not_compiled_is_said_of_the_page_and_not_of_each_run(monkeypatch):
    monkeypatch.setattr(compiler, "COMPILES", False)
    query = "workload=quadratic&steps=3&workers=2"
    assert any("Numba" in note for note in run(Experiment.from_query(query)).notes)
    answer, *_ = engine().run(query)
    assert "Numba" not in json.loads(answer)["words"]


def test_a_figure_with_other_settings_says_how_far_its_numbers_are_from_the_recorded_ones():
    name, names = "compression.latency_floor", ("workers", "latency")
    recorded = tries.figure_trial(lessons.recorded_figure(name), names)["recorded"]
    same, frame = engine().figure(name, {}, recorded)
    assert "within" in json.loads(same)["words"] and len(frame) > 100
    quick, _ = engine().figure(name, {"latency": "0.0001"}, recorded)
    assert "times what was recorded" in json.loads(quick)["words"]
    assert engine().distance([{"s": 1.0}, {"s": 3.0}], [{"s": 1.0}, {"s": 2.0}], ("s",)).count("1 to 1.5 times") == 1


def test_the_runs_of_a_figure_agree_on_each_setting_that_its_author_lets_readers_try():
    tried = [
        (block.figure, block.tries)
        for chapter in lessons.written_chapters()
        for block in chapter.blocks()
        for block in (block.blocks if isinstance(block, markup.Fold) else [block])
        if isinstance(block, markup.LiveFigure) and block.tries
    ]
    assert len(tried) >= 5
    for name, settings in tried:
        trial = tries.figure_trial(lessons.recorded_figure(name), settings)
        assert 2 <= len(trial["fields"]) <= 4 and trial["recorded"]
    with pytest.raises(ValueError, match="agree on compression"):
        tries.figure_trial(lessons.recorded_figure("compression.latency_floor"), ("compression",))


def test_the_page_answers_a_question_as_the_book_does():
    chapter = lessons.chapter("stragglers")
    item = chapter.item("elsewhere")
    parameters = item.prediction(0)
    assert item.live
    (answer,) = engine().predict("stragglers", item.answer, parameters)
    assert json.loads(answer)["answer"] == chapter.golden.answer("elsewhere", parameters)


def test_a_mistake_is_answered_with_its_sentence():
    (answer,) = engine().answer(json.dumps({"do": "run", "query": "workers=0"}))
    assert "1 to 4096" in json.loads(answer)["refused"]


def test_a_form_has_a_field_for_each_setting_that_an_author_names():
    timeline = markup.MOVEMENTS["timeline"]
    block = timeline("algorithm=easgd workers=4 period=4 jitter=cloud slow=1:2 try=workers,period,jitter,slow")
    workers, period, jitter, slow = fields.fields(block.experiment, block.tries)
    assert (workers.kind, workers.least, workers.most, workers.value, workers.whole) == ("number", 1, 32, 4, True)
    assert (period.kind, period.label, period.value) == ("number", "Period (steps)", 4)
    assert (jitter.kind, jitter.value) == ("choice", "cloud") and ("hpc", "hpc") in jitter.options
    assert (slow.kind, slow.value, slow.label) == ("text", "1:2", "Slow ranks")
    with pytest.raises(ValueError, match="did you mean period"):
        timeline("algorithm=easgd try=perod")


@pytest.fixture
def release(monkeypatch, tmp_path):
    """A release of two small files, and an empty cache."""
    files = {"pyodide.js": b"one", distribution.NUMPY: b"two"}
    monkeypatch.setattr(distribution, "FILES", {k: hashlib.sha256(v).hexdigest() for k, v in files.items()})
    monkeypatch.setenv("LOCKSTEP_PYODIDE", str(tmp_path / "cache"))
    return files


def test_the_release_is_downloaded_once_and_kept(release):
    asked = []

    def fetch(address):
        asked.append(address)
        return release[address.rpartition("/")[2]]

    assert distribution.load(fetch=fetch) == distribution.load(fetch=fetch) == release
    assert len(asked) == 2 and all(f"v{distribution.RELEASE}/" in one for one in asked)


def test_a_file_that_is_not_the_published_one_is_refused(release, tmp_path):
    with pytest.raises(ValueError, match="not the file that was published"):
        distribution.load(fetch=lambda address: b"other")
    assert not list(tmp_path.rglob("pyodide.js"))
    (tmp_path / "pyodide.js").write_bytes(b"other")
    with pytest.raises(ValueError, match="unpack that release"):
        distribution.load(tmp_path)


def test_without_a_network_or_a_file_one_sentence_says_what_to_do(release, tmp_path):
    def fetch(address):
        raise OSError("no network")

    with pytest.raises(ValueError, match="--pyodide"):
        distribution.load(fetch=fetch)
    with pytest.raises(ValueError, match="is missing; name a folder"):
        distribution.load(tmp_path)


def graded(chapter: str, source: str) -> dict:
    (report,) = engine().answer(json.dumps({"do": "check", "chapter": chapter, "source": source, "seed": 1}))
    return json.loads(report)


def test_a_right_solution_earns_every_mark_in_the_page_and_a_start_file_none():
    report = graded("stragglers", (ROOT / "lessons/stragglers/solution.py").read_text("utf-8"))
    assert report["score"] == 100 and not report["error"]
    assert any("not measured on this system" in mark["observed"] for mark in report["marks"])
    begun = graded("stragglers", (ROOT / "lessons/stragglers/exercise.py").read_text("utf-8"))
    assert begun["score"] == 0 and "unmodified start file" in begun["error"]


WRONG = {
    "no function": "def serve(comm, task, s):\n    return None\n",
    "not Python": "def server(comm, task, s)\n    return None\n",
    "an error": "def server(comm, task, s):\n    return s.backup\n",
    "misuse": "def server(comm, task, s):\n    comm.send(1, 'two')\n",
    "waits forever": "def server(comm, task, s):\n    comm.recv(1)\n    comm.recv(1)\n    comm.recv(1)\n",
    "too early": "def server(comm, task, s):\n    return task.start()\n",
}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines a process")
@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_told_in_the_page_as_by_the_command(mistake):
    chapter = lessons.chapter("stragglers")
    command = grader.grade(chapter, WRONG[mistake], seed=1).plain()
    page = graded("stragglers", WRONG[mistake])
    assert page["score"] == command["score"] < 100
    assert page["error"] == command["error"]
