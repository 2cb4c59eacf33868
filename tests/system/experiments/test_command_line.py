"""The command line: what it prints, what it refuses, and its exit codes."""

import contextlib
import json
import os
import platform
import pty
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import threadpoolctl
from pyarrow import csv, feather, parquet

import algorithms
from algorithms.compression import COMPRESSIONS, find, module
from cluster.collectives import ALL_REDUCE, idea
from experiments.cli import main as command_line
from experiments.cli import progress_bar
from experiments.cli.main import cli
from experiments.cli.running import stoppable
from experiments.measure import roof
from experiments.runs import sealed, store
from experiments.runs.difference import difference
from experiments.specification.experiment import Experiment
from experiments.study import sweep
from experiments.wording import units
from experiments.wording.units import plus_minus
from tests.quotes import quote
from tests.tiers import slow_except

ROOT = Path(__file__).resolve().parents[3]
SMALL = ["--workers", "2", "--steps", "6", "--evaluations", "2"]


def process(*words, path=ROOT, room="experiments", **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), str(ROOT)])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen([sys.executable, "-m", room, *map(str, words)], env=environment, **pipes)


def test_run_prints_a_summary_stores_the_run_and_says_how_to_repeat_it(main, tmp_path):
    main("run", "easgd", *SMALL, "--runs", str(tmp_path / "compiled"))  # which says so where it compiles
    code, out, err = main("run", "easgd", *SMALL)
    assert code == 0 and err == ""
    (folder,) = store.recent(tmp_path / "runs")
    assert f"stored  {tmp_path / 'runs' / folder.name}\n" in out
    assert "EASGD on handwritten digits (easgd, digits): 2 workers and 1 server" in out
    assert re.search(r"training loss  \S+ [▁▂▃▄▅▆▇█]+ ", out) and re.search(r"time {11}█+[▓▒░·]*  ", out)
    assert f"open    http://localhost:8501/?run={folder.name}\n" in out
    again = next(line for line in out.splitlines() if line.startswith("again")).split(maxsplit=1)[1]
    first = store.load(folder)
    assert main(*shlex.split(again)[1:], "--runs", "other")[0] == 0
    assert difference(first, store.load(store.recent(tmp_path / "other")[0])) == ""


def test_run_without_a_name_runs_the_default(main, tmp_path):
    assert main("run", *SMALL)[0] == 0
    assert store.experiment(store.recent("runs")[0]).algorithm == Experiment().algorithm


def test_the_folder_of_runs_is_that_of_the_app(main, tmp_path, monkeypatch):
    expected = {str(tmp_path / "elsewhere"): tmp_path / "elsewhere", "": ROOT / "runs"}
    app = subprocess.run(
        [sys.executable, "-c", FOLDERS, *expected], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for (said, folder), shown in zip(expected.items(), app.stdout.splitlines(), strict=True):
        monkeypatch.setenv("LOCKSTEP_RUNS", said)
        assert store.home().resolve() == Path(shown) == folder.resolve()


FOLDERS = """
import importlib, os, sys
from app.session import session
for said in sys.argv[1:]:
    os.environ["LOCKSTEP_RUNS"] = said
    print(importlib.reload(session).ROOT)
"""


def test_runs_go_where_the_environment_says_and_runs_on_the_command_line_goes_before(main, tmp_path, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_RUNS", str(tmp_path / "elsewhere"))
    assert main("run", "easgd", *SMALL)[0] == 0
    (folder,) = store.recent(tmp_path / "elsewhere")
    assert main("run", "--from", folder.name, "--runs", tmp_path / "named")[0] == 2  # not there
    assert main("run", "--from", folder.name, "--seed", 1)[0] == 0  # found there, and stored there
    assert len(store.recent(tmp_path / "elsewhere")) == 2
    assert main("run", "easgd", *SMALL, "--runs", tmp_path / "named")[0] == 0
    assert len(store.recent(tmp_path / "named")) == 1 and len(store.recent(tmp_path / "elsewhere")) == 2
    assert not (tmp_path / "runs").exists()


def test_help_says_where_runs_are_stored(main):
    for command in ("run", "compare", "add"):
        _, out, _ = main(command, "--help")
        assert "[default: $LOCKSTEP_RUNS, or runs next to the source]" in " ".join(out.split()), command


def test_options_may_come_before_the_name(main):
    assert main("run", *SMALL, "easgd", "--period", 3)[0] == 0
    assert store.experiment(store.recent("runs")[0]).settings["period"] == 3


def test_json_is_for_machines(main):
    code, out, _ = main("run", "downpour", *SMALL, "--json")
    told = json.loads(out)
    assert code == 0 and told["status"] == "finished" and Path(told["folder"]).is_dir()
    assert Experiment.from_query(told["query"]).json() == json.dumps(told["experiment"], indent=1, sort_keys=True)
    assert told["summary"]["steps"] == 6


@pytest.mark.slow
@pytest.mark.parametrize("name", algorithms.names())
def test_help_of_an_algorithm_shows_its_theory_and_every_knob(main, name):
    code, out, _ = main("run", name, "--help")
    assert code == 0 and algorithms.idea(algorithms.module(name)) in out
    for knob, field in algorithms.find(name).Settings.model_fields.items():
        assert f"--{knob.replace('_', '-')} " in out and field.description.split()[0] in out
    workers = algorithms.find(name).defaults.get("workers", 4)
    assert "--workers INT" in out and f"1 to 4096; default {workers}" in " ".join(out.split()) and "--from" in out


def test_help_says_what_the_command_does_and_with_a_name_what_the_algorithm_does(main):
    for command in ("run", "sweep", "tune"):
        does = " ".join(cli.commands[command].help.split("\n\n")[0].split())
        idea = " ".join(algorithms.idea(algorithms.module("easgd")).split())
        for words, explained in (([], False), (["easgd"], True)):
            told = " ".join(main(command, *words, "--help")[1].split())
            assert does in told and (idea in told) == explained
            assert "Synchronous SGD averages" not in told
            assert not explained or told.index(does) < told.index(idea)
    assert "[NAME[,NAME]...]" in main("sweep", "--help")[1]


def test_help_lists_the_choices_of_an_option_once(main):
    told = " ".join(main("run", "--help")[1].split())
    assert told.count("mlp, residual, cnn or cnn_bn") == told.count("relu or tanh") == 1


def test_help_shows_the_knobs_of_the_chosen_workload(main):
    assert "--condition" in main("run", "--workload", "quadratic", "--help")[1]
    assert "--condition" not in main("run", "--help")[1]


def test_help_says_what_a_knob_is_read_with_and_which_model_a_pipeline_begins_with(main):
    told = {words: " ".join(main(*words, "--help")[1].split()) for words in (("run", "gpipe"), ("profile", "digits"))}
    assert "default 0.9; with --update momentum or nesterov]" in told["run", "gpipe"]
    for help_text in told.values():
        assert "default residual]" in help_text and "--model other than cnn or cnn_bn]" in help_text


@pytest.mark.parametrize("name", slow_except(3, COMPRESSIONS))
def test_help_shows_the_knobs_of_the_chosen_compression(main, name):
    code, out, _ = main("run", "--compression", name, "--help")
    assert code == 0 and f"Compression {name}:" in out and "Compression none" not in out
    section = out.split(f"Compression {name}:")[1].split("\nWorkload ")[0]
    for knob in find(name).Settings.model_fields:
        assert f"--{knob.replace('_', '-')} " in section
    assert "Compression" not in main("run", "--help")[1]


def test_list_shows_the_catalogue_by_family_the_compressions_and_the_all_reduces(main):
    code, out, _ = main("list")
    assert code == 0 and all(algorithms.idea(algorithms.module(name)) in out for name in algorithms.names())
    assert all(algorithms.idea(module(name)) in out for name in COMPRESSIONS)
    assert "\nAll-reduces\n" in out and "SGD. SGD takes" not in out, "it is called so once"
    assert "Priority scheduling (P3). Priority overlaps" in out, "its idea has less than its title"
    named = [entry["name"] for entry in json.loads(main("list", "--json")[1])]
    assert named == [*algorithms.names(), *COMPRESSIONS, *ALL_REDUCE]
    assert all(f"  {name} " in out and idea(name).endswith(".") and idea(name) in out for name in ALL_REDUCE)


def test_runs_lists_stored_runs_the_newest_first_with_the_name_that_finds_them(main):
    assert "no runs are stored" in main("runs")[1]
    for seed in (0, 3):
        main("run", "easgd", *SMALL, "--seed", seed)
    code, out, _ = main("runs")
    head, first, second, *_ = out.splitlines()
    newest, older = store.recent("runs")
    assert code == 0 and head.split() == ["run", "what", "when", "held-out", "loss"]
    assert newest.name.startswith(first.split()[0]) and older.name.startswith(second.split()[0])
    assert "easgd, " in first and ", seed 3" in first and "seed" not in second
    loss = store.load(newest).summary["held_out_loss"]
    assert first.endswith(f"{loss:.4g}") and main("compare", first.split()[0])[0] == 0
    (newest / "run.json").write_text("no")
    assert "unreadable" in main("runs", "--most", "1")[1] and "1 more" in main("runs", "--most", "1")[1]
    assert [row["run"] for row in json.loads(main("runs", "--json")[1])] == [one.name for one in store.recent("runs")]


def test_run_from_a_link_a_file_a_folder_and_a_name(main, tmp_path):
    e = Experiment.of({"algorithm": "easgd", "workers": 2, "steps": 6, "period": 2, "evaluations": 2})
    (tmp_path / "e.json").write_text(e.json())
    assert main("run", "--from", "https://lab.example/?" + e.query())[0] == 0
    (folder,) = store.recent("runs")
    for start in (e.query(), "e.json", folder, folder / "run.json", folder.name[:8]):
        assert main("run", "--from", start)[0] == 0
        assert store.recent("runs") == [folder]
    assert main("run", "--from", folder, "--period", 3)[0] == 0
    assert {store.experiment(path).settings["period"] for path in store.recent("runs")} == {2, 3}


WIDE = 80
COMMANDS = {
    "the first page": [],
    "list": ["list"],
    "help of an algorithm": ["run", "easgd", "--help"],
    **{f"help of {name}": [name, "--help"] for name in cli.commands},
    "help of a schedule": ["schedule", "zb_v", "--help"],
    "run": ["run", "asgd", *SMALL, "--crash", "1:0.0004", "--jitter", "cloud"],
    "sweep": ["sweep", "asgd", *SMALL[2:], "--workers", "1,2,3", "--jitter", "none,cloud"],
    "sweep over seeds": ["sweep", "easgd", *SMALL, "--seeds", "3", "--period", "1,2"],
    "compare": ["compare", "RUN", "RUN"],
    "runs": ["runs", "--runs", "runs"],
    "no run is named": ["compare"],
    "replay": ["replay", "RUN"],
    "schedules": ["schedule"],
    "schedule": ["schedule", "zb_v", "--ranks", "3", "--chunks", "4"],
    "comparison of schedules": ["schedule", "1f1b", "gpipe", "zb_h1", "zb_h2", "chimera"],
    "tune": ["tune", "sgd", "--steps", "3", "--seeds", "2"],
    "profile": ["profile", "digits", "--device", "V100", "--out", "profile.csv"],
    "partition": ["partition", "profile.csv", "--workers", "4"],
    "partition with its table": ["partition", "profile.csv", "--table"],
    "kernels": ["kernels", "sgd", "adam", "--size", "1000"],
    "mistake": ["run", "easgd", "--batch", "5000"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_output_is_wider_than_80_columns_and_no_word_is_broken(main, monkeypatch, name):
    monkeypatch.setattr(roof, "LARGEST", 2**16)  # bytes
    monkeypatch.setattr(roof, "SIDES", (32,))
    if "RUN" in COMMANDS[name]:
        main("run", "easgd", *SMALL)
    if "profile.csv" in COMMANDS[name]:
        main(*COMMANDS["profile"])
    words = [store.recent("runs")[0].name if word == "RUN" else word for word in COMMANDS[name]]
    _, out, err = main(*words)  # no terminal: as wide as it is
    if "compiling kernels" in err:
        _, out, err = main(*words)
    monkeypatch.setenv("COLUMNS", str(WIDE))
    _, narrow, complaint = main(*words)
    free = ("stored ", "open ")  # a path or a link, which must stay whole
    lines = [line for line in (narrow + complaint).splitlines() if not line.startswith(free)]
    assert lines and [line for line in lines if len(line) > WIDE] == []
    said = set(re.findall(r"[A-Za-z_-]{3,}", out + err))
    assert said - set(re.findall(r"[A-Za-z_-]{3,}", narrow + complaint)) == set()


def test_a_command_to_copy_is_parted_between_words_only(monkeypatch):
    from experiments.cli import console

    monkeypatch.setenv("COLUMNS", "60")
    words = Experiment.of({"algorithm": "easgd", "workers": 7, "slow": "1:2,2:3", "jitter": "noisy cloud"}).command()
    told = console.wrap_command(words, 8)
    assert all(8 + len(line) <= 60 for line in told.splitlines()[:1]) and max(map(len, told.splitlines())) <= 60
    assert shlex.split(told.replace("\\\n", "")) == shlex.split(words)


def test_a_terminal_has_styles_and_a_pipe_has_none(main):
    pty = pytest.importorskip("pty")
    main_end, other_end = pty.openpty()
    job = process("list", stdout=other_end, stderr=other_end, stdin=other_end)
    os.close(other_end)
    shown = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while part := os.read(main_end, 65536):
            shown += part
    job.wait()
    os.close(main_end)
    assert b"\x1b[" in shown
    assert "\x1b" not in main("list")[1]


def test_export_takes_a_file_and_its_ending_is_the_form():
    from experiments.cli.export import read

    assert read("csv") == ("csv", None) and read("html", "x.html") == ("html", "x.html")
    assert read("out/trace.json") == ("trace", "out/trace.json") and read("a.b/run.svg") == ("svg", "a.b/run.svg")
    assert read("mine.json") == ("json", "mine.json")
    with pytest.raises(ValueError, match="cannot tell the format"):
        read("mine.xlsx")
    with pytest.raises(ValueError, match="both name a file"):
        read("mine.csv", "other.csv")


def test_a_run_in_the_old_folder_is_said_where_it_is(main, tmp_path, monkeypatch):
    main("run", "easgd", *SMALL)
    (folder,) = store.recent("runs")
    monkeypatch.setenv("LOCKSTEP_RUNS", str(tmp_path / "new"))
    code, _, err = main("replay", folder.name)
    assert code == 2 and f"add --runs {tmp_path / 'runs'}." in err


def test_a_fit_has_a_verdict():
    from experiments.cli.fit import verdict

    good = [("add", 1.0, 8.0, 1.0, 1.1), ("dense", 1.0, 8.0, 1.0, 0.95), ("message", 0.0, 4096.0, 1.0, 3.0)]
    assert verdict(good).startswith("A good fit") and "message of 4,096 bytes, is 3 times too long" in verdict(good)
    assert "2 of 3 within a quarter" in verdict(good)
    poor = [(name, *rest, 3 * fitted) for name, *rest, fitted in good]
    assert verdict(poor).startswith("A poor fit") and "fit again" in verdict(poor)


def test_sweep_makes_a_table_and_stores_every_run(main):
    code, out, err = main("sweep", "easgd", "--workers", "1,2", "--period", "1,2", "--steps", 4, "--slow", "1:2,0:1.5")
    assert code == 0 and err == ""
    lines = out.splitlines()[:5]
    assert "workers" in lines[0] and "period" in lines[0] and "slow" not in lines[0]
    assert "\naccuracy ± its standard error" in out and all(" ± " in line for line in lines[1:])
    assert len(store.recent("runs")) == 4
    assert {store.experiment(path).slow.text for path in store.recent("runs")} == {"1:2,0:1.5"}


def test_a_sweep_does_not_run_again_what_is_stored_and_so_continues_an_interrupted_one(main, monkeypatch):
    words = ("sweep", "easgd", "--period", "1,2,4", "--steps", 4)
    _, whole, _ = main(*words)
    for folder in store.recent("runs")[:1]:
        shutil.rmtree(folder)
    made, run_one = [], sweep.run
    monkeypatch.setattr(sweep, "run", lambda one, *rest: made.append(one) or run_one(one, *rest))
    assert main(*words)[:2] == (0, whole) and len(made) == 1
    assert main(*words)[:2] == (0, whole) and len(made) == 1


def test_a_sweep_spreads_points_over_ranges_for_every_value_of_a_list(main):
    ranges = ("--learning-rate", "0.01..1", "--period", "1..32")
    code, out, _ = main("sweep", "easgd,local_sgd", *ranges, "--points", 3, "--steps", 4, "--json")
    rows = json.loads(out)
    assert code == 0 and [row["algorithm"] for row in rows] == ["easgd"] * 3 + ["local_sgd"] * 3
    assert len({row["learning_rate"] for row in rows[:3]}) == 3
    assert [row["period"] for row in rows[:3]] == [row["period"] for row in rows[3:]]


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
def test_a_sweep_writes_its_rows_to_a_file_with_settings_and_figures_in_columns(main, suffix, tmp_path):
    file = tmp_path / f"rows.{suffix}"
    assert main("sweep", "easgd,sync_sgd", "--workers", "1,2", "--steps", 4, "--table", file)[0] == 0
    read = {"parquet": parquet.read_table, "arrow": feather.read_table, "csv": csv.read_csv}[suffix]
    table = read(file).to_pydict()
    assert table["algorithm"] == ["easgd", "easgd", "sync_sgd", "sync_sgd"] and table["workers"] == [1, 2, 1, 2]
    assert table["seconds"] == [store.load(f"runs/{name}").summary["seconds"] for name in table["run"]]
    assert table["setting_steps"] == [4] * 4  # apart from the steps that a run has taken
    assert table["period"][2] in (None, "") and table["period"][0] == 4  # synchronous SGD has no period


def test_a_sweep_draws_its_losses_over_what_was_varied(main, tmp_path):
    assert main("sweep", "easgd", "--workers", "1,2,4", "--steps", 4, "--plot", tmp_path / "loss.svg")[0] == 0
    svg = (tmp_path / "loss.svg").read_text("utf-8")
    assert svg.count("<circle") == 3 and ">workers<" in svg and ">held-out loss<" in svg


def test_sweep_over_algorithms_and_by_giving_an_option_twice(main):
    code, out, _ = main("sweep", "one_shot,sync_sgd", "--slow", "0:2", "--slow", "0:3,1:2", "--steps", 3, "--json")
    rows = json.loads(out)
    assert code == 0 and [(row["algorithm"], row["slow"]) for row in rows] == [
        ("one_shot", "0:2"),
        ("one_shot", "0:3,1:2"),
        ("sync_sgd", "0:2"),
        ("sync_sgd", "0:3,1:2"),
    ]


def test_a_compressed_run_says_how_much_less_it_sent_and_is_replayed(main):
    code, out, _ = main("run", "--compression", "top_k", "--density", "0.05", "--steps", 6, "--evaluations", 2)
    assert code == 0 and "(sync_sgd, top_k, digits): 4 workers" in out
    # the ring: 2 (N-1) d numbers of 4 bytes; top-k: N (N-1) k words of 2 times 4 bytes, k = d/20
    assert "5 times fewer bytes than whole gradients" in out and "per step and worker" in out
    (folder,) = store.recent("runs")
    assert main("replay", folder.name)[1].startswith("identical, bit for bit")


def test_a_code_that_costs_more_than_it_saves_says_that_too(main):
    _, out, _ = main("run", "--compression", "top_k", "--density", "1", "--steps", 3, "--evaluations", 1)
    assert "4 times as many bytes as whole gradients" in out


def test_sweep_over_compressions_and_a_setting_they_share(main):
    words = ["--compression", "top_k,random_k", "--density", "0.1", "--steps", 3, "--evaluations", 1]
    rows = json.loads(main("sweep", *words, "--json")[1])
    assert [row["compression"] for row in rows] == ["top_k", "random_k"]
    assert {store.experiment(path).coding["density"] for path in store.recent("runs")} == {0.1}


def test_what_a_method_measures_is_in_its_summary(main):
    _, out, _ = main("run", "noise_scale", "--steps", 5, "--evaluations", 1)
    (folder,) = store.recent("runs")
    last = store.load(folder).measurements("signal")["value"][-1]
    assert f"  signal         {units.number(last):<14} estimate of the squared norm of the true gradient" in out


def test_compare_shows_what_differs_and_the_work_that_was_done(main):
    for workers in (1, 2):
        main("run", "easgd", *SMALL, "--workers", workers)
    code, out, _ = main("compare", *[path.name for path in store.recent("runs")])
    assert code == 0 and "workers" in out.splitlines()[0] and len(out.splitlines()) == 6
    assert {"samples", "updates", "computed", "traffic", "time", "workers"} <= {*out.split()}, "as in a summary"
    assert all(f"{head}  " in out for head in ("held-out loss", "training loss")), "they name a figure"


def test_compare_says_whether_runs_are_one_training_to_rounding_or_where_they_part(main):
    for words in (["--batch", 64, "--workers", 1], ["--batch", 32], ["--batch", 32, "--learning-rate", 0.1]):
        main("run", "sync_sgd", *SMALL, *words)
    other, shared, alone = [path.name for path in store.recent("runs")]
    _, out, _ = main("compare", alone, shared, other)
    same, parted = out.splitlines()[-2:]
    assert shared[:8] in same and "the same training" in same and "which is rounding" in same
    assert other[:8] in parted and "equal up to rounding before update 2, different from then on" in parted
    first, *rows = json.loads(main("compare", alone, shared, other, "--json")[1])
    assert "agreement" not in first and [row["agreement"]["same"] for row in rows] == [True, False]


def test_a_comparison_tells_what_is_none_from_what_a_run_does_not_have(main, monkeypatch):
    main("run", "easgd", *SMALL, "--slow", "1:2")
    main("run", "asgd", *SMALL)
    monkeypatch.setenv("COLUMNS", "80")  # so that a run is a column
    out = main("compare", *(path.name for path in store.recent("runs")))[1]
    assert "\n–: the run has no such setting or figure\n" in out
    rows = {words[0]: words[1:] for line in out.splitlines() if len(words := re.split(r" {2,}", line)) == 3}
    told = {name: dict(zip(rows["algorithm"], rows[name], strict=True)) for name in ("slow", "pull", "period")}
    assert told["slow"] == {"easgd": "1:2", "asgd": "none"}
    assert told["pull"] == {"easgd": "0.9 / workers", "asgd": "–"}, "what the default stands for, and no such setting"
    assert told["period"]["asgd"] == "–"


def test_a_comparison_separates_settings_from_figures_and_says_what_all_runs_share(main, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = main("sweep", "easgd,sync_sgd", *SMALL, "--slow", "1:4")[1]
    settings, figures = (re.findall(r"(?m)^(\S+(?: \S+)*)  ", part) for part in out.split("\n\n"))
    assert {"algorithm", "optimizer", "period"} <= {*settings} and "update" not in settings
    assert {"held-out loss", "accuracy", "virtual time", "traffic"} <= {*figures}
    shared = " ".join(out[out.index("the same in all runs: ") :].split())
    words = ("handwritten digits", "model mlp", "2 workers", "simulated: 10GbE, laptop devices", "slow 1:4", "batch 32")
    assert all(f"{one}, " in shared for one in words)
    assert "learning rate" in main("sweep", "sync_sgd", *SMALL, "--network", "1GbE,10GbE")[1].partition("same in")[2]
    alone = main("sweep", "sync_sgd", "--steps", 2, "--evaluations", 1, "--workers", "1,2")[1]
    assert "simulated: 10GbE, laptop devices" in " ".join(alone.split()), "though one worker has no network"
    rates = main("sweep", "sync_sgd", *SMALL, "--learning-rate", "0.1,0.2")[1]
    assert "learning rate" in rates.partition("\n\n")[0] and "learning rate" not in rates.partition("\n\n")[2]
    monkeypatch.delenv("COLUMNS")
    real = main("sweep", "sync_sgd", *SMALL, "--cluster", "simulated,threads")[1]
    assert "  time  " in real and "virtual time" not in real, "one of them has a clock of its own"


def test_runs_that_part_are_called_another_training_only_where_one_claims_to_be_the_other(main):
    for words in (["sync_sgd"], ["easgd"], ["local_sgd", "--period", 1, "--seed", 1], ["local_sgd", "--period", 3]):
        main("run", *words, *SMALL, "--learning-rate", 0.1)
    longer, claims, easgd, sync = [path.name for path in store.recent("runs")]
    told = {name: main("compare", sync, name)[1] for name in (longer, claims, easgd)}
    assert {name: "not the same training" in out for name, out in told.items()} == {
        longer: False,
        claims: True,  # but for its seed, it would be
        easgd: False,
    }


def test_a_sweep_over_seeds_shows_mean_and_standard_deviation_of_each_combination(main, monkeypatch):
    words = ["sweep", "easgd", "--workers", "1,2", "--steps", 4, "--evaluations", 2, "--seeds", 3]
    rows = json.loads(main(*words, "--json")[1])
    assert [(row["workers"], row["seeds"], len(row["runs"])) for row in rows] == [(1, [0, 1, 2], 3), (2, [0, 1, 2], 3)]
    for row in rows:
        values = [store.load(store.find(name, "runs")).summary["held_out_loss"] for name in row["runs"]]
        told = row["held_out_loss"]
        assert told["values"] == values and told["n"] == 3
        assert told["mean"] == pytest.approx(statistics.mean(values))
        assert told["std"] == pytest.approx(statistics.stdev(values))
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = main(*words)
    assert code == 0 and max(map(len, out.splitlines())) <= 80
    assert out.splitlines()[-1] == "mean ± standard deviation over seeds, with n - 1 in its denominator"
    loss = rows[1]["held_out_loss"]
    assert plus_minus(loss["mean"], loss["std"], str) in out


def test_compare_says_when_runs_differ_only_in_their_seed_and_takes_them_together(main):
    for seed in (0, 1):
        main("run", "easgd", *SMALL, "--seed", seed)
    names = [path.name for path in store.recent("runs")]
    code, out, _ = main("compare", *names)
    assert code == 0 and "some of these runs differ only in their seed; compare --seeds" in out
    (row,) = json.loads(main("compare", *names, "--seeds", "--json")[1])
    assert sorted(row["seeds"]) == [0, 1] and row["runs"] == names
    assert len(main("compare", *names, "--seeds")[1].splitlines()) == 3  # heads, a row, what ± means
    code, _, err = main("compare", "--seeds", "5", *names)
    assert code == 2 and "takes no number, but 5 was given" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("sweep", "--seeds", "x"), "Invalid value for '--seeds': 'x' is not a whole number; allowed: 1 to 1000."),
        (("runs", "--most", "1.5"), "'1.5' is not a whole number; allowed: at least 1."),
        (("run", "--timeout", "soon"), "'soon' is not a number; allowed: above 0."),
    ],
)
def test_what_is_no_number_is_told_which_are_allowed(main, words, told):
    code, _, err = main(*words)
    assert code == 2 and told in " ".join(err.split())


def test_the_same_run_twice_is_no_other_seed(main):
    axes = ("--update", "sgd,momentum", "--momentum", "0.5,0.9")
    code, out, _ = main("sweep", "sync_sgd", *axes, "--workers", 1, "--steps", 2)
    assert code == 0 and "differ only in their seed" not in out


def test_a_replay_says_identical_bit_for_bit_or_what_differs(main):
    main("run", "downpour", *SMALL, "--jitter", "cloud")
    (folder,) = store.recent("runs")
    code, out, _ = main("replay", folder.name[:10])
    assert code == 0 and "identical, bit for bit" in out

    import numpy as np

    w = np.load(folder / "parameters.npy")
    w[5] = np.nextafter(w[5], 9, dtype=w.dtype)
    np.save(folder / "parameters.npy", w)
    record = json.loads((folder / "run.json").read_text())
    record["environment"]["numpy"] = "0.1"
    (folder / "run.json").write_text(json.dumps(record))
    sealed.seal(folder)
    code, out, _ = main("replay", folder.name)
    assert code == 0 and out.startswith("other NumPy: 0.1 then") and "equal up to rounding" in out
    record["environment"]["numpy"] = np.__version__
    (folder / "run.json").write_text(json.dumps(record))
    code, out, _ = main("replay", folder.name)
    assert code == 1 and "different: the final parameters: 1 of" in out  # where nothing computes differently
    w[5] += 0.1
    np.save(folder / "parameters.npy", w)
    record["environment"]["numpy"] = "0.1"
    (folder / "run.json").write_text(json.dumps(record))
    code, out, _ = main("replay", folder.name)
    assert code == 1 and "\nother NumPy: 0.1 then" in out and "final parameters: 1 of" in out
    assert "equal up to rounding in the first 12 of 12 losses; after these" in " ".join(out.split())
    assert "different" not in out


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="OpenBLAS has Nehalem's kernels on x86-64 only"
)
def test_a_replay_with_other_blas_kernels_says_so_and_is_equal_to_rounding(main, tmp_path, monkeypatch):
    main("run", "sync_sgd", *SMALL, "--learning-rate", 0.1)
    (folder,) = store.recent("runs")
    kernels = {library.get("architecture") for library in threadpoolctl.threadpool_info()}
    if kernels <= {None, "Nehalem"}:
        pytest.skip("NumPy and SciPy have Nehalem's kernels here, or no OpenBLAS")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Nehalem")
    again = process("replay", folder.resolve(), "--runs", tmp_path)
    out, err = again.communicate()
    assert again.returncode == 0, err
    assert re.match(
        r"other BLAS kernels: \w+ then, Nehalem here; equal up to rounding: the largest difference is \de-\d", out
    )


def test_a_replay_on_a_real_cluster_is_judged_by_the_weights(main, monkeypatch):
    from dataclasses import replace

    from experiments.execution import run as module

    main("run", "easgd", *SMALL)
    (simulated,) = store.recent("runs")
    done = store.load(simulated)
    real = replace(done, experiment=done.experiment.change(cluster="processes"))
    folder = store.save(real, "runs")
    later = replace(real, losses={**real.losses, "seconds": real.losses["seconds"] + 1})
    monkeypatch.setattr(module, "run", lambda *_: later)
    code, out, _ = main("replay", folder.name)
    assert code == 0 and "the same weights, bit for bit" in out
    other = replace(later, summary={**later.summary, "weights": "0"})
    monkeypatch.setattr(module, "run", lambda *_: other)
    code, out, _ = main("replay", folder.name)
    assert code == 1 and "order of arrival" in out


def test_a_record_that_was_altered_is_never_called_identical(main):
    main("run", "easgd", *SMALL)
    (folder,) = store.recent("runs")
    text = (folder / "run.json").read_text()
    values = json.loads(text)
    summary, environment = values["summary"], values["environment"]
    for change in (
        {"summary": {**summary, "accuracy": 0.99}},
        {"summary": {**summary, "wall_seconds": 1.0}},
        {"environment": {**environment, "cpus": 4096}},
        {"labels": values["labels"][::-1]},
        {"notes": ["all is well"]},
        {"error": "all is well"},
    ):
        (folder / "run.json").write_text(json.dumps({**values, **change}))
        code, out, _ = main("replay", folder.name)
        assert code == 1 and "altered since it was stored, according to its SHA256SUMS: run.json." in out, change
    (folder / "run.json").write_text(text)
    assert main("replay", folder.name)[0] == 0
    (folder / "SHA256SUMS").unlink()
    code, out, _ = main("replay", folder.name)
    assert code == 0 and "cannot tell" in out and "identical" in out


def test_export_writes_the_file(main, tmp_path):
    main("run", "easgd", *SMALL)
    (folder,) = store.recent("runs")
    code, out, _ = main("export", folder.name, "--to", "trace")
    assert code == 0 and json.loads(Path(out.strip()).read_text())["traceEvents"]
    assert main("export", folder.name, "--to", "csv", "--out", tmp_path / "x" / "table.csv")[0] == 0
    assert (tmp_path / "x" / "table-losses.csv").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "sync_sgd", "--momentum", "0.9"], "momentum has no effect"),
        (["sweep", "sync_sgd", "--momentum", "0.9", "--workers", "1,2"], "momentum has no effect"),
        (["profile", "digits", "--hidden", "128,128"], "hidden has no effect … model mlp"),
        (["run", "easgdd"], "did you mean easgd?"),
        (["run", "DGC"], "dgc … compression … sync_sgd --compression dgc"),
        (["run", "--pull", "0.3"], "--pull … easgd … sync_sgd"),
        (["run", "--noise-scale", "0.3"], "No such option '--noise-scale'"),
        (["run", "--density", "0.1"], "--density … top_k, ef21, random_k, dgc … --compression … sync_sgd"),
        (["run", "easgd", "--perod", "3"], "--period"),
        (["run", "easgd", "--workers", "0"], "1 to 4096"),
        (["run", "easgd", "--workers", "many"], "workers … 'many'"),
        (["run", "easgd", "--workers"], "requires an argument"),
        (["run", "easgd", "--network", "10 GbE"], "10GbE"),
        (["sweep", "easgd", "--workers", "1..8"], "--points … --workers 1,2,4,8"),
        (["sweep", "easgd", "--workers", "1..8,16", "--points", "3"], "one or the other"),
        (["sweep", "easgd", "--workers", "1,8", "--points", "3"], "--points needs a range"),
        (["sweep", "easgd", "--workers", "1..8", "--points", "3", "--table", "rows.xlsx"], ".parquet, .arrow or .csv"),
        (["sweep", "easgd", "--workers", "1,2", "--plot", "loss.png"], "should end in .svg"),
        (["sweep", "easgd", "--workers", "1,2", "--pool", "local:none"], "local:4"),
        (["sweep", "easgd", "--workers", "1,2", "--array", "3"], "add --to slurm"),
        (["sweep", "easgd", "--cluster", "threads", "--to", "slurm"], "simulated … run --to slurm"),
        (["sweep", "easgd", "--workers", "1,", "2"], "1, 2 … space"),
        (["sweep", "sync_sgd", "--workers", "1,3", "--global-batch", "64"], "a global batch of 63 or 66"),
        (["sweep", "sync_sgd", "--batch", "8", "--global-batch", "64"], "--batch and --global-batch"),
        (["run", "easgd", "--workload", "digit"], "did you mean digits?"),
        (["run", "easgd", "extra"], "unexpected extra argument"),
        (["run", "easgd", "asgd"], "one algorithm … sweep easgd,asgd"),
        (["sweep", "sync_sgd", "easgd"], "write sync_sgd,easgd"),
        (["run", "easgd", "--batch", "5000"], "shard"),
        (["run", "gpipe", "--workers", "64"], "64 stages"),
        (["run", "--from", "nowhere"], "no run 'nowhere'"),
        (["run", "--from", "http://x/?workers=1000000000"], "workers"),
        (["run", "--from", "http://x/?workers=%"], "workers"),
        (["run", "--runs", "/dev/null/x", *SMALL], "choose another folder"),
        (["sweep", "easgd", "--workers", "1,2,x"], "workers … 'x'"),
        (["sweep", "easgd", "--seed", ",".join(map(str, range(12000)))], "at most 10,000"),
        (["sweep", "easgd", "--seeds", "3", "--seed", "1"], "--seed and --seeds"),
        (["sweep", "easgd", "--seeds", "0"], "--seeds"),
        (["compare", "nothing"], "no run 'nothing'"),
        (["compare"], "which run?"),
        (["replay"], "which run?"),
        (["export", "--to", "csv"], "which run?"),
        (["replay", "nothing"], "no run"),
        (["export", "nothing", "--to", "csv"], "no run"),
        (["nonsense"], "No such command"),
        (["run", "--workers", "2", "--steps", ""], "no budget"),
    ],
)
def test_a_mistake_gives_one_sentence_and_exit_code_2(main, words, sentence, tmp_path):
    code, out, err = main(*words)
    assert code == 2 and out == "" and re.search(quote(sentence), err)
    assert err.count("\n") == 1 and "Traceback" not in err
    assert not store.recent(tmp_path / "runs")


def test_an_unreadable_file_is_named(main, tmp_path):
    (tmp_path / "bad.json").write_text("{")
    code, _, err = main("run", "--from", "bad.json")
    assert code == 2 and err.startswith("bad.json: ") and err.count("\n") == 1


def test_a_diverged_run_keeps_its_record_and_exits_with_1(main):
    code, _, err = main("run", "sgd", "--workload", "quadratic", "--learning-rate", 999, "--workers", 1)
    (folder,) = store.recent("runs")
    assert code == 1 and "no longer finite" in err and folder.name in err
    assert err.count("\n") == 1 + err.startswith("compiling kernels")
    assert store.load(folder).status == "diverged"


def test_a_lost_rank_is_named_and_exits_with_1(main):
    code, _, err = main("run", "sync_sgd", *SMALL, "--steps", 100, "--crash", "1:0.001")
    (folder,) = store.recent("runs")
    assert code == 1 and "worker 1" in err and folder.name in err
    assert store.load(folder).status == "failed"


def test_a_disk_that_fills_up_during_the_run_does_not_lose_it(main, monkeypatch, tmp_path):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    place = store._place

    def full(run, part, root):
        if root.name == "runs":
            raise OSError(28, "No space left on device")
        return place(run, part, root)

    monkeypatch.setattr(store, "_place", full)
    code, _, err = main("run", "easgd", *SMALL)
    assert code == 2 and "No space left" in err and err.count("\n") == 1
    kept = Path(err.split("saved in ")[1].split(" instead")[0])
    assert store.load(kept).status == "finished" and str(kept) in main("kept")[1]
    monkeypatch.setattr(store, "_place", place)
    assert main("kept", "--move", "--runs", tmp_path / "later")[0] == 0
    assert not kept.exists() and store.load(tmp_path / "later" / kept.name).status == "finished"


def heed_hang_ups():
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where these tests themselves run under nohup


def in_terminal(end):
    heed_hang_ups()
    os.login_tty(end)


# of a hang-up: the test after this one; of SIGTERM: tests/unit/experiments/test_entry.py
@pytest.mark.parametrize(
    "number", slow_except((signal.SIGINT,), (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)), ids=str
)
def test_interrupted_it_keeps_what_was_recorded_and_exits_with_130(tmp_path, number):
    command = ("run", "easgd", "--steps", 10_000_000, "--runs", tmp_path, "--evaluations", 3)
    job = process(*command, preexec_fn=heed_hang_ups)
    try:
        while "loss" not in (told := job.stderr.readline()):  # it tells how far it is, and trains
            assert told, "it has ended"
        job.send_signal(number)
        _, err = job.communicate()
    finally:
        job.kill()
    (folder,) = store.recent(tmp_path)
    assert job.returncode == 130 and "Traceback" not in err and folder.name in err
    stopped = store.load(folder)
    assert stopped.status == "cancelled" and len(stopped.losses["loss"]) > 0


def test_a_terminal_that_is_closed_ends_a_run_of_real_ranks_and_its_record_is_kept(tmp_path):
    terminal, end = pty.openpty()
    command = ("run", "easgd", "--workers", 2, "--steps", 10_000_000, "--cluster", "processes", "--runs", tmp_path)
    job = process(*command, stdin=end, stdout=end, stderr=end, preexec_fn=partial(in_terminal, end))
    try:
        os.close(end)
        told = b""
        while b"loss" not in told:  # it trains
            told += os.read(terminal, 4096)
        os.close(terminal)  # the kernel tells the run and all of its ranks
        job.send_signal(signal.SIGHUP)  # and so does the shell
        assert job.wait() == 130
    finally:
        job.kill()
    (folder,) = store.recent(tmp_path)
    stopped = store.load(folder)
    assert stopped.status == "cancelled" and len(stopped.losses["loss"]) > 0


def test_a_run_that_nobody_reads_about_goes_on_and_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(progress_bar, "PATIENCE", 0.0)
    monkeypatch.setattr(progress_bar, "EVERY", 0.0)
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as unread:
        monkeypatch.setattr(sys, "stderr", unread)
        assert command_line.main(["run", "easgd", *SMALL, "--runs", str(tmp_path)]) == 0
        code = command_line.main(["run", "sync_sgd", *SMALL, "--crash", "1:0.0001", "--runs", str(tmp_path)])
    assert code == 1  # that it failed is told nobody, but by this
    assert sorted(store.load(folder).status for folder in store.recent(tmp_path)) == ["failed", "finished"]


def test_a_disk_without_room_for_what_is_printed_gives_one_sentence(tmp_path):
    for room in ("experiments", "lessons"):
        with open("/dev/full", "w") as full:
            job = process("list", room=room, stdout=full)
            _, err = job.communicate()
        assert job.returncode == 2 and "No space left" in err and err.count("\n") == 1, err


def test_interrupted_before_its_first_step_it_says_that_it_was_stopped(main, monkeypatch):
    monkeypatch.setattr("cluster.real.signals.catch_signals", lambda *_: contextlib.nullcontext(lambda: True))
    code, out, err = main("run", "easgd", *SMALL, "--cluster", "processes")
    assert code == 130 and "Stopped before its first step" in err and "0 steps" in out


def test_ctrl_c_while_the_record_is_written_does_not_lose_it(main, monkeypatch):
    place = store._place

    def interrupted(*args):
        signal.raise_signal(signal.SIGINT)
        return place(*args)

    monkeypatch.setattr(store, "_place", interrupted)
    assert main("run", "easgd", *SMALL)[0] == 0
    assert [store.load(folder).status for folder in store.recent("runs")] == ["finished"]


def test_ctrl_c_while_it_loads_ends_it_without_a_traceback(tmp_path):
    for name in ("click", "pydantic"):
        (tmp_path / f"{name}.py").write_text("import signal; signal.raise_signal(signal.SIGINT); print('goes on')")
    in_a_terminal = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    for room in ("experiments", "algorithms", "lessons"):
        job = process("list", room=room, preexec_fn=in_a_terminal, path=tmp_path)
        assert (*job.communicate(), job.returncode) == ("", "", -signal.SIGINT), room


def test_ctrl_c_at_any_moment_of_the_first_ones_handling_does_not_wait_for_it():
    moment = again = 0

    def trace(frame, event, arg):
        nonlocal again
        again += 1
        if again == moment:
            signal.raise_signal(signal.SIGINT)
        return trace

    while again >= moment:  # there may be later moments
        moment, again = moment + 1, 0
        before = sys.gettrace()
        with stoppable() as asked, contextlib.suppress(KeyboardInterrupt):
            sys.settrace(trace)
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                sys.settrace(before)
        assert asked()
    assert moment > 3


def test_a_closed_pipe_ends_it_quietly(tmp_path):
    for words in (["list"], ["run", "easgd", "--help"], ["run", "easgd", *SMALL, "--runs", tmp_path]):
        read, write = os.pipe()
        os.close(read)
        job = process(*words, stdout=write)
        os.close(write)
        _, err = job.communicate()
        assert err == "" and job.returncode == 0, words
    assert len(store.recent(tmp_path)) == 1


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """What a process has imported after a list and a help, and after a run."""
    code = (
        "import sys; from experiments.cli.main import main; main(['list']); main(['run', 'easgd', '--help']);"
        "print(); print(*sys.modules); main(['run', '--steps', '2', '--runs', sys.argv[1]]);"
        "print(); print(*sys.modules)"
    )
    words = [sys.executable, "-c", code, str(tmp_path_factory.mktemp("runs"))]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [{*line.split()} for line in done.stdout.splitlines() if line.startswith("sys ")]
    assert len(lines) == 2 and "experiments.cli.main" in lines[0]
    return lines


def test_nothing_heavy_is_imported_for_help_and_list(imported):
    heavy = {"numba", "torch", "pyarrow", "plotly", "pandas", "rich", "scipy", "streamlit"}
    assert not heavy & imported[0]


def test_a_run_imports_neither_torch_nor_pandas_nor_a_plotting_library(imported):
    heavy = {"torch", "plotly", "pandas", "rich", "streamlit", "sklearn"}
    assert "numba" in imported[1] and not heavy & imported[1]
