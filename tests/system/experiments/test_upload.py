"""Uploads of strangers: a run is opened, or one sentence says why not; and nothing else ever happens."""

import copy
import gzip
import io
import json
import re
import zipfile

import numpy as np
import pytest

from app import charts
from app.charts import Shown
from experiments.jobs import upload
from experiments.jobs.pool import Pool
from experiments.jobs.spec import JobSpec
from experiments.jobs.upload import check_run, take_run
from experiments.runs import run_files, sealed, store, tables
from experiments.specification.experiment import Experiment
from experiments.viewer.bars import html
from experiments.viewer.canvases import curve, timeline
from tests import fabricated
from tests.patience import wait_until
from tests.quotes import quote

EXPERIMENT = Experiment(algorithm="easgd", workers=3, seed=4)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The files of a run, by name."""
    folder = tmp_path_factory.mktemp("run")
    run_files.write(fabricated.run(EXPERIMENT, quantities=("signal",)), folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def zipped(files, prefix=""):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(prefix + name, content)
    return packed.getvalue()


def is_a_sentence(error):
    text = str(error)
    return "\n" not in text and 10 < len(text) < 700 and "/tmp" not in text


@pytest.mark.parametrize("prefix", ["", "c895f2b316a915e0-925801cf/", "../../../etc/", "/var/", "C:\\runs\\"])
def test_a_zip_of_a_run_is_opened_wherever_its_names_point(files, tmp_path, prefix):
    folder = take_run([("run.zip", zipped(files, prefix))], tmp_path / "runs")
    assert store.load(folder).experiment == EXPERIMENT
    assert folder.parent == tmp_path / "runs" and upload.is_uploaded(folder.name)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_the_files_of_a_run_are_opened_without_a_zip(files, tmp_path):
    folder = take_run(list(files.items()), tmp_path)
    again = store.load(folder)
    run = fabricated.run(EXPERIMENT, quantities=("signal",))
    assert (again.status, again.quantities, again.notes) == (run.status, run.quantities, run.notes)
    assert again.summary == {**run.summary, "wall_seconds": 0.5}
    np.testing.assert_array_equal(again.parameters, run.parameters)


def test_an_uploaded_run_is_not_taken_for_one_that_was_done_here(files, tmp_path):
    take_run(list(files.items()), tmp_path)
    code = json.loads(files["run.json"])["environment"]["code"]
    assert store.find_stored_run(EXPERIMENT, code, tmp_path) is None
    assert not upload.is_uploaded(store.name(EXPERIMENT, code))


def test_what_is_not_of_a_run_is_left_out(files, tmp_path):
    folder = take_run([("x.zip", zipped({**files, "evil.py": b"1/0", "run.json.py": b""}))], tmp_path)
    assert {path.name for path in folder.iterdir()} == {*files, sealed.SUMS}


def test_figures_of_the_summary_are_summed_up_anew_and_not_believed(files, tmp_path):
    told = json.loads(files["run.json"])
    told["summary"] = {"held_out_loss": "<b>0</b>", "accuracy": "best", "wall_seconds": "long"}
    folder = take_run(list({**files, "run.json": json.dumps(told).encode()}.items()), tmp_path)
    assert store.load(folder).summary["accuracy"] == pytest.approx(1 - 0.9 * np.exp(-3))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: {}, "no run.json … nothing"),
        (lambda f: {"train.csv": b"1,2"}, "run.zip … zip with train.csv … add train.csv"),
        (lambda f: {"readme.txt": b"hello"}, "no run.json … readme.txt"),
        (lambda f: {**f, "run.json": b"{}"}, "run.json … version"),
        (lambda f: {**f, "run.json": b"[1, 2"}, "run.json … damaged … Invalid JSON"),
        (lambda f: {**f, "run.json": b"\x80\x04\x95"}, "run.json"),
        (lambda f: {**f, "run.json": _told(f, flops=[1.0])}, "run.json … FLOPs of 1 ranks"),
        (lambda f: {**f, "run.json": _told(f, flops=[-1.0])}, "run.json … version"),
        (lambda f: {**f, "run.json": _told(f, updates=-1)}, "run.json … version"),
        (lambda f: {**f, "spans.parquet": b"not a table"}, "spans.parquet"),
        (lambda f: {**f, "spans.parquet": f["losses.parquet"]}, "spans.parquet … columns rank"),
        (lambda f: {n: c for n, c in f.items() if n != "losses.parquet"}, "losses.parquet"),
        (lambda f: {**f, "parameters.npy": b"\x93NUMPY\x01\x00"}, "cannot be read"),
        (lambda f: {**f, "parameters.npy": _pickled()}, "cannot be read"),
    ],
)
def test_files_that_are_no_run_are_refused_in_a_sentence(files, tmp_path, change, words):
    with pytest.raises(ValueError) as refused:
        take_run([("run.zip", zipped(change(files)))], tmp_path)
    assert re.search(quote(words), str(refused.value)) and is_a_sentence(refused.value), refused.value
    assert list(tmp_path.iterdir()) == []


def _told(files, **values):
    return json.dumps(json.loads(files["run.json"]) | values).encode()


def _pickled():
    packed = io.BytesIO()
    np.save(packed, np.array([{}], object), allow_pickle=True)
    return packed.getvalue()


def test_a_zip_bomb_is_not_unpacked(files, tmp_path, monkeypatch):
    monkeypatch.setattr(upload, "MOST_UNPACKED", 1_000_000)
    bomb = zipped({**files, "memory.parquet": b"\0" * 5_000_000})
    assert len(bomb) < 300_000
    with pytest.raises(ValueError, match=quote("run.zip … more than 1,000,000 bytes")):
        take_run([("run.zip", bomb)], tmp_path)


def test_a_zip_of_too_many_files_is_refused(tmp_path):
    with pytest.raises(ValueError, match=quote("50 files … at most 40")):
        take_run([("run.zip", zipped({str(n): b"" for n in range(50)}))], tmp_path)


@pytest.mark.parametrize(
    ("table", "column", "value", "words"),
    [
        ("spans", "start", np.nan, "spans.parquet: start … nan"),
        ("spans", "start", -1.0, "spans.parquet: start … -1"),
        ("spans", "end", 0.0, "span … ends before"),
        ("spans", "end", 1e300, "end is"),
        ("messages", "arrived", 0.0, "message … arrives before"),
        ("messages", "arrived", np.nan, "message … arrives before"),
        ("messages", "bytes", -5, "bytes is -5"),
        ("messages", "bytes", 2**62, "0 to 1e+12"),
        ("losses", "seconds", np.inf, "seconds is"),
        ("applied", "staleness", -3, "staleness is -3"),
        ("evaluations", "samples", -1, "samples is -1"),
    ],
)
def test_numbers_that_cannot_have_happened_are_refused(table, column, value, words):
    run = fabricated.run(EXPERIMENT)
    columns = getattr(run.trace, table) if table in ("spans", "messages") else getattr(run, table)
    columns[column][3] = value
    with pytest.raises(ValueError) as refused:
        check_run(run)
    assert re.search(quote(words), str(refused.value))


def test_a_run_of_too_many_ranks_rows_or_words_is_refused(monkeypatch):
    run = fabricated.run(EXPERIMENT, quantities=tuple(f"q{n}" for n in range(40)))
    with pytest.raises(ValueError, match=quote("too many labels, quantities")):
        check_run(run)
    monkeypatch.setattr(upload, "MOST_RANKS", 3)
    with pytest.raises(ValueError, match=quote("4 ranks … at most 3")):
        check_run(fabricated.run(EXPERIMENT))
    monkeypatch.setattr(upload, "MOST_ROWS", 10)
    with pytest.raises(ValueError, match=quote("rows … at most 10")):
        check_run(fabricated.run(EXPERIMENT))


def test_rows_in_any_order_are_put_in_order():
    run = fabricated.run(EXPERIMENT)
    for columns in (run.trace.spans, run.losses):
        for name in columns:
            columns[name] = columns[name][::-1]
    sound = check_run(run)
    assert (np.diff(sound.trace.spans["start"]) >= 0).all() and (np.diff(sound.losses["seconds"]) >= 0).all()


def drawn(run):
    """All pictures of a run, as a page has them."""
    shown = [Shown("it", run, 0, "it")]
    pictures = [charts.loss(shown, "samples"), charts.accuracy(shown, "seconds"), charts.loss(shown, "step", log=True)]
    for picture in (*pictures, *(charts.measurements(shown, quantity) for quantity in run.quantities)):
        curve.frame(picture, "it")
    html(charts.shares(shown), "it")
    charts.staleness(shown), timeline.frame(run, "it"), timeline.describe(run)
    if len(run.trace.messages["bytes"]):
        charts.traffic(shown)


@pytest.mark.slow
def test_five_hundred_runs_with_other_numbers_are_drawn_or_refused_in_a_sentence():
    draw = np.random.default_rng(1)
    odd = [0, -1, 1, 7, 2**31 - 1, -(2**31), 2**62, np.nan, np.inf, -np.inf, 1e300, -0.0, 1e-300, 1e9, 0.5]
    bases = [fabricated.run(EXPERIMENT, quantities=("signal",) * n, stale=n > 0) for n in (0, 1)]
    opened = 0
    for case in range(500):
        run = copy.deepcopy(bases[case % 2])
        tables = [run.losses, run.evaluations, run.applied, run.measures, run.trace.spans, run.trace.messages]
        for _ in range(1 + case % 3):
            columns = tables[draw.integers(len(tables))]
            name = [*columns][draw.integers(len(columns))]
            if name in ("rank", "src", "dst", "kind", "label", "quantity"):
                continue  # record.read has looked at these
            column = columns[name].copy()
            where = draw.random(len(column)) < draw.choice([0.02, 0.5, 1.0])
            with np.errstate(all="ignore"):
                column[where] = np.array(odd[draw.integers(len(odd))]).astype(column.dtype)
            columns[name] = column
        if case % 7 == 0:
            for columns in tables[case % 6 :: 6]:
                columns.update({name: column[:0] for name, column in columns.items()})
        try:
            with np.errstate(all="ignore"):
                sound = check_run(run)
        except ValueError as error:
            assert is_a_sentence(error), error
            continue
        opened += 1
        if opened % 12 == 0:
            with np.errstate(all="ignore"):
                drawn(sound)
    assert 100 < opened < 450


@pytest.mark.slow
def test_five_hundred_damaged_folders_are_opened_or_refused_in_a_sentence(files, tmp_path):
    draw = np.random.default_rng(2)
    values = [None, -1, 0, 10**30, 1.5, "", "x" * 3000, "../..", [], {}, [None], True, "<script>", "\ud800", 1e999]
    opened = 0
    for case in range(500):
        changed = dict(files)
        if case % 2:
            told = json.loads(changed["run.json"])
            where = told
            for _ in range(3):
                name = [*where][draw.integers(len(where))]
                if not isinstance(where[name], dict) or not where[name] or draw.random() < 0.3:
                    break
                where = where[name]
            where[name] = values[draw.integers(len(values))]
            if draw.random() < 0.2:
                where["more"] = values[draw.integers(len(values))]
            changed["run.json"] = json.dumps(told).encode()
        else:
            name = [*changed][draw.integers(len(changed))]
            content = bytearray(changed[name])
            for _ in range(draw.integers(1, 5)):
                at = int(draw.integers(len(content)))
                content[at : at + int(draw.integers(0, 3))] = bytes(
                    draw.integers(0, 256, draw.integers(0, 3)).astype("u1")
                )
            changed[name] = bytes(content)
        given = [("run.zip", zipped(changed))] if case % 5 == 0 else list(changed.items())
        if case % 5 == 0 and case % 2:
            at = int(draw.integers(len(given[0][1])))
            given = [("run.zip", given[0][1][:at] + b"\xff" + given[0][1][at + 1 :])]
        try:
            with np.errstate(all="ignore"):
                folder = take_run(given, tmp_path)
                store.load(folder)
            opened += 1
        except ValueError as error:
            assert is_a_sentence(error), error
    assert 20 < opened < 480


def test_three_hundred_damaged_tables_are_kept_or_refused_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_TABLES", str(tmp_path))
    draw = np.random.default_rng(3)
    csv = ("a,b,kind\n" + "".join(f"{n},{n % 7},{'even' if n % 2 else 'odd'}\n" for n in range(40))).encode()
    images = b"\0\0\x08\x03" + (np.array([20, 3, 3], ">u4").tobytes()) + bytes(range(180))
    labels = b"\0\0\x08\x01" + (np.array([20], ">u4").tobytes()) + bytes(range(10)) * 2
    odd = [b"", b"\0", b",", b"\n", b'"', b"nan", b"1e999", b"\xff\xfe", b"\r", "🍰".encode(), b"9" * 400, b"\x1f\x8b"]
    kept = 0
    for case in range(300):
        files = [[("x.csv", csv)], [("images", images), ("labels", labels)], [("x.gz", gzip.compress(images))]][
            case % 3
        ]
        damaged = []
        for name, content in files:
            for _ in range(draw.integers(0, 3)):
                at = int(draw.integers(len(content) + 1))
                content = content[:at] + odd[draw.integers(len(odd))] + content[at + int(draw.integers(0, 4)) :]
            damaged.append((name, content))
        try:
            kept += tables.take(damaged).is_file()
        except ValueError as error:
            assert is_a_sentence(error), error
    assert 20 < kept < 280


def test_the_pool_opens_an_upload_and_leaves_nothing_of_it_unread(files, tmp_path):
    pool = Pool(tmp_path, 1)
    try:
        for given, status in ((list(files.items()), "finished"), ([("x.zip", b"PK no zip")], "failed")):
            job_spec = upload.job_spec("run", given)
            upload.put(tmp_path, given)
            job = pool.submit("ada", job_spec)
            state = wait_until(lambda job=job: not (state := pool.state(job)).active and state)
            assert state.status == status, state.message
            assert status == "failed" or store.load(state.folder).experiment == EXPERIMENT
            assert list((tmp_path / ".incoming").iterdir()) == []
        assert "cannot be unpacked" in state.message
    finally:
        pool.close()


def test_an_upload_that_is_gone_says_so(tmp_path):
    job_spec = upload.job_spec("run", [("a", b"b")])
    with pytest.raises(ValueError, match=quote("upload is gone")):
        job_spec.perform(tmp_path)


def test_too_much_is_not_taken(monkeypatch):
    monkeypatch.setattr(upload, "MOST_BYTES", 10)
    with pytest.raises(ValueError, match=quote("12 bytes … at most 10")):
        upload.job_spec("run", [("a", b"123456"), ("b", b"123456")])
    with pytest.raises(ValueError, match="there are 0 files"):
        upload.job_spec("run", [])
    assert isinstance(upload.job_spec("table", [("a" * 500, b"1")]), JobSpec)


def test_a_table_brought_as_a_run_and_a_run_as_a_table_are_told_where_they_go(files, tmp_path):
    for name, content in (("pets.csv", b"a,b"), ("images", b"\0\0\x08\x03")):
        with pytest.raises(ValueError, match=quote("not a run … “Train on a table”")):
            take_run([(name, content)], tmp_path)
    with pytest.raises(ValueError, match=r"run.zip is not a table.*“Open a run”"):
        tables.take([("run.zip", zipped(files))])
    with pytest.raises(ValueError, match=r"x.npy is a NumPy array"):
        take_run([("x.npy", b"\x93NUMPY")], tmp_path)
