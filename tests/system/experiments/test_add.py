"""`add`: what is brought, what is said of it, and commands that do train."""

import gzip
import io
import os
import re
import shlex
import zipfile
from pathlib import Path

import numpy as np
import pytest

from experiments.cli.main import main
from experiments.execution.run import check
from experiments.jobs import upload
from experiments.runs import run_files, store, tables
from experiments.specification.experiment import Experiment
from tests import fabricated
from tests.quotes import quote
from workloads import own_module

EXPERIMENT = Experiment(algorithm="easgd", workers=3, seed=4)


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_TABLES", str(tmp_path / "tables"))
    monkeypatch.setenv("LOCKSTEP_MODULES", str(tmp_path / "nets"))
    monkeypatch.setenv("COLUMNS", "1000")


@pytest.fixture
def files(tmp_path_factory):
    """The files of a run, by name."""
    folder = tmp_path_factory.mktemp("run")
    run_files.write(fabricated.run(EXPERIMENT), folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def zipped(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


@pytest.fixture
def add(tmp_path, capsys):
    """add(name, content, *options) is (exit code, output, errors) of adding a file of this content."""

    def called(name, content, *options):
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        code = main(["add", str(tmp_path / name), *options])
        told = capsys.readouterr()
        return code, told.out, told.err

    return called


def command(out):
    """The arguments of the command that is printed."""
    return shlex.split(out.partition("\ntrain ")[2].partition("\n   ")[0])[1:]


def csv(header, row, rows=60):
    return "\n".join([header] * bool(header) + [",".join(map(str, row(n))) for n in range(rows)])


BROUGHT = {
    "adult": (
        csv("", lambda n: (20 + n, " Private" if n % 4 else "?", n * 7, " HS-grad", [" <=50K", " >50K"][n % 2])),
        (),
    ),
    "titanic": (
        csv(
            "PassengerId,Survived,Name,Age,Port",
            lambda n: (n + 1, n % 2, f'"D, {n}"', n if n % 3 == 0 else "", "S" * (n % 2)),
        ),
        ("--label", "Survived", "--missing", "mean"),
    ),
    "housing": (csv("income,age,value", lambda n: (n / 7, n % 50, n / 3 + 1)), ()),
    "abalone": (csv("", lambda n: ("MFI"[n % 3], n / 60, n % 29)), ()),
    "percent": (csv("rate,amount,class", lambda n: (f"{n}%", f'"{n + 1},850.50"', "ab"[n % 2])), ()),
    "sentinels": (csv("a,b,class", lambda n: (-9999 if n % 9 == 0 else n / 7, n, n % 2)), ()),
    "blanks": ("\n".join(f'{n}.0   {n % 5}   {n * 10}.  {n % 3}\t"car {n % 4}"' for n in range(60)), ()),
    "index": (csv(",x,kind", lambda n: (n, n % 7, "ab"[n % 2])), ()),
}  # fmt: skip
SAID = {
    "adult": ("60 rows", "column 2 … 2 columns", "column 5 … last column … 2 classes"),
    "titanic": ("60 rows", "40 missing cells of Age", "PassengerId was left out", "Port … 2 columns"),
    "housing": ("value … last column … regression … 60 different values", "--label"),
    "abalone": ("60 rows", "column 1 … 3 columns", "regression … 29 different values"),
    "percent": ("rate … %", "commas … thousands", "predicts class … name"),
    "sentinels": ("-9999 … 7 rows", "predicts class"),
    "blanks": ("60 rows", "column 5 … last column … 4 classes"),
    "index": ("only counts the rows", "1 column of numbers"),
}


@pytest.mark.parametrize("name", BROUGHT)
def test_a_table_that_people_bring_trains_by_the_command_that_is_printed(name, add, tmp_path, capsys):
    content, options = BROUGHT[name]
    code, out, err = add(f"{name}.csv", content, *options)
    assert code == 0, err
    for words in SAID[name]:
        assert re.search(quote(words), out), words
    assert main([*command(out), "--steps", "2", "--evaluations", "1", "--runs", str(tmp_path / "runs")]) == 0


def test_the_command_line_adds_runs_tables_and_networks(add, files, tmp_path, capsys):
    runs = "--runs", str(tmp_path / "runs")
    for name, content, options, words in (
        ("run.zip", zipped(files), runs, "kept    "),
        ("x.csv", csv("a,b", lambda n: (n, n % 2), 20), (), "20 rows; columns a, b"),
        ("net.py", own_module.EXAMPLE, (), "--workload own_module"),
    ):
        code, out, err = add(name, content, *options)
        assert code == 0 and words in out, err
    code, _, err = add("net.py", "net = 1")
    assert code == 2 and "does not define loss" in err
    folder = next((tmp_path / "runs").iterdir())
    assert main(["add", str(folder), *runs]) == 0
    assert store.load(folder).experiment == EXPERIMENT


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("net = nn.Sequential(", "net = nn.Sequential(nn.BatchNorm1d(3), "),
        lambda text: text.replace("nn.Linear(2, 32)", "nn.Linear(3, 32)"),
        lambda text: text.replace("nn.functional.cross_entropy", "lambda y, target: (y.sum() - y.sum()) / 0.0"),
    ],
)
def test_no_command_is_printed_for_a_network_that_does_not_train(add, change):
    code, out, err = add("net.py", change(own_module.EXAMPLE))
    assert code == 2 and "train" not in out and "own_module" in err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (csv("name,class", lambda n: (f"n{n}", n % 2)), "no column … class"),
        (csv("name,a,class", lambda n: (f"n{n}" * 9, "", n % 2), 150), "name … left out … more than 100"),
        (csv("a,b,class", lambda n: ("nan", "1e400", n % 2)), "number … 1e+100"),
        (csv("a,class", lambda n: (n, 7)), "class … same"),
        (csv("a,b", lambda n: (n % 2, n), 9), "at least 10"),
    ],
)
def test_no_command_is_printed_for_a_table_that_does_not_train_and_the_reason_is(add, text, words):
    code, out, err = add("x.csv", text)
    assert code == 2 and not out and re.search(quote(words), err)


def test_a_table_without_a_label_of_its_own_is_asked_for_one(add):
    code, _, err = add("x.csv", csv("a,b", lambda n: (n, n % 2)), "--label", "colour")
    assert code == 2 and re.search(quote("no column 'colour' … a, b"), err)


def test_what_is_predicted_is_always_said_and_a_named_label_is_taken(add):
    rows = csv("quality,colour,taste", lambda n: (3 + n % 6, "rw"[n % 2], n % 4))
    for options, words in (
        ((), "taste … last column … 4 classes … --label … --regression true"),
        (("--label", "quality"), "quality … 6 classes"),
        (("--label", "colour"), "colour … 2 classes … --label"),
    ):
        code, out, _ = add("x.csv", rows, *options)
        assert code == 0 and re.search(quote(words), out)
        assert ("--regression" in out) == (words != "colour … 2 classes … --label")


def test_missing_numbers_are_asked_for_and_repaired_as_the_reader_says(add):
    text = "a,b\n?,0\n" + csv("", lambda n: (n, n % 2), 20)
    code, out, err = add("x.csv", text)
    assert code == 2 and not out and "line 2: a is '?' there" in err and "add --missing rows, or --missing mean" in err
    for repair, rows in (("rows", 20), ("mean", 21)):
        code, out, _ = add("x.csv", text, "--missing", repair)
        assert code == 0 and f"{rows} rows; columns a, b" in out
        assert f"--missing {repair}" in out


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/proc/self/mem"])
def test_a_device_or_a_file_that_cannot_be_read_is_named(path, capsys):
    if not Path(path).exists():
        pytest.skip(f"there is no {path} here")
    assert main(["add", path]) == 2
    assert re.match(f"{path} (is a device|cannot be read)", capsys.readouterr().err)


def test_a_file_that_is_not_there_or_is_too_large_is_named(add, tmp_path, monkeypatch, capsys):
    assert main(["add", str(tmp_path / "gone.csv")]) == 2
    assert "No such file" in capsys.readouterr().err
    monkeypatch.setattr(upload, "MOST_UNPACKED", 10)
    code, _, err = add("large.csv", "a,b\n1,2\n3,4\n")
    assert code == 2 and re.search(quote("large.csv … 10 bytes"), err)


def test_a_small_table_trains_by_the_command_that_is_printed(add, tmp_path, capsys):
    rows = [f"{n % 7},{n % 5},{'pq'[n % 2]},{'abc'[n % 3]}" for n in range(150)]  # as many as Iris has
    code, out, _ = add("Iris.csv", "x,y,colour,kind\n" + "\n".join(rows))
    assert code == 0 and re.search(quote("4 columns of numbers … colour … 2 columns"), out)
    assert "--batch" in command(out) and re.search(quote("batch of 16 … 120 rows"), out)
    assert main([*command(out), "--steps", "4", "--evaluations", "1", "--runs", str(tmp_path / "runs")]) == 0
    assert "Synchronous SGD on the table “iris”" in capsys.readouterr().out


def test_a_regression_is_reported_by_r2_and_compared_by_it(add, tmp_path, capsys):
    _, out, _ = add("line.csv", csv("x,y", lambda n: (n % 17, 3.5 * (n % 17)), 200))
    runs = "--runs", str(tmp_path / "runs")
    assert main([*command(out), "--steps", "100", *runs]) == 0
    told = capsys.readouterr().out
    assert re.search(r"R²\s+0\.9\d+ ", told) and "accuracy" not in told
    swept = ["sweep", *command(out)[1:], "--steps", "20", "--workers", "1,2", *runs]
    assert main(swept) == 0
    told = capsys.readouterr().out
    assert "R²" in told and "accuracy" not in told


def test_options_of_one_kind_of_file_are_refused_for_others(add, tmp_path):
    for name, content, option, words in (
        ("net.py", "net = 1", ("--label", "kind"), "--label … tables … {} … network"),
        ("run.zip", b"PK\x03\x04", ("--missing", "mean"), "--missing … tables … {} … run"),
        ("x.csv", "a,b\n1,0\n", ("--runs", "runs"), "--runs … runs … {} … table"),
    ):
        code, _, err = add(name, content, *option)
        assert code == 2 and re.search(quote(words.format(tmp_path / name)), err)
    assert not (tmp_path / "nets").exists()


def test_files_of_other_formats_are_named_and_are_no_run(add):
    packed = io.BytesIO()
    np.savez(packed, x=np.ones(3), y=np.ones(3))
    for name, content, words in (
        ("x.xlsx", zipped({"[Content_Types].xml": b"", "xl/workbook.xml": bytes(range(256))}), "CSV UTF-8"),
        ("xy.npz", packed.getvalue(), "xy.npz … NumPy … (x, y) … CSV"),
        ("t.zip", zipped({"train.csv": b"1,2"}), "t.zip … zip with train.csv … add train.csv"),
        ("x.csv.gz", gzip.compress(b"a,b"), "x.csv.gz … unpack it"),
    ):
        code, _, err = add(name, content)
        assert code == 2 and re.search(quote(words), err)


def test_two_tables_are_refused(tmp_path):
    text = csv("a,b", lambda n: (n, n % 2)).encode()
    with pytest.raises(ValueError, match=quote("2 files … one CSV file … two IDX files")):
        tables.take([("train.csv", text), ("test.csv", text)])


@pytest.mark.parametrize("rows", [10, 11, 13, 20, 40, 59, 150, 1000])
def test_the_first_run_on_a_table_of_any_size_is_one_that_can_run(rows):
    name = tables.take([("x.csv", csv("a,b", lambda n: (n, n % 2), rows).encode())]).stem
    first = tables.first_run(name)
    check(first.experiment)
    assert ("1 worker, since" in first.why) == (first.experiment.workers == 1)


def test_a_command_needs_no_variable_to_train_a_network_and_leaves_none_behind(add, monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("LOCKSTEP_MODULES")
    monkeypatch.setenv("LOCKSTEP_RUNS", str(tmp_path / "runs"))
    assert main(["add", "--example"]) == 0
    code, out, err = add("mine.py", capsys.readouterr().out)
    assert code == 0, err
    assert [path.suffix for path in (tmp_path / "runs" / "modules").iterdir()] == [".py"]
    assert main([*command(out), "--steps", "2", "--workers", "2"]) == 0
    assert own_module.SETTING not in os.environ and own_module.folder() is None
    with pytest.raises(ValueError, match=r"disabled.*files"):  # as a page would ask for it
        own_module.build(own_module.Settings(net=command(out)[-1]))


def test_an_empty_variable_forbids_networks_on_the_command_line_too(add, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_MODULES", "")
    code, _, err = add("mine.py", own_module.EXAMPLE)
    assert code == 2 and "disabled" in err


def test_add_without_a_file_says_what_it_takes(capsys):
    assert main(["add"]) == 2 and "--example" in capsys.readouterr().err
