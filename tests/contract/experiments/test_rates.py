"""Rates are searched for, kept in a table, and where experiments begin."""

import json
import math
import re
from multiprocessing import dummy as threads

import numpy as np
import pytest
from click.testing import CliRunner

import algorithms
from algorithms import rates as tables
from algorithms.rates import Rate
from experiments.cli.main import cli, main
from experiments.execution.run import workload_of
from experiments.specification.experiment import Experiment, default_rate
from experiments.study import rate_table, rates
from experiments.study.rates import Search, rung
from tests.quotes import quote

TABLE = {
    "digits-mlp": {"asgd": Rate(0.2, 0.09, 0.2, 0.05), "sync_sgd": Rate(0.5, 0.1, 0.25, 0.25)},
    "digits-cnn": {"asgd": Rate(0.02, 0.09, 0.02, 0.01)},
    "sparse": {"asgd": Rate(50.0, 0.6, 50.0, 50.0)},
}


@pytest.fixture
def table(monkeypatch):
    monkeypatch.setattr(tables, "table", lambda: TABLE)


@pytest.fixture
def bowl(monkeypatch):
    """Runs whose loss is a bowl over the logarithm of the rate, lowest at 5, and which diverge beyond 100."""
    ran = []

    def end(experiment, *_):
        rate = experiment.settings["learning_rate"]
        ran.append((rate, experiment.seed))
        return math.inf if rate > 100 else 1 + math.log(rate / 5) ** 2 + experiment.seed / 100

    monkeypatch.setattr(rates, "end", end)
    monkeypatch.setattr(rate_table, "end", end)
    return ran


@pytest.fixture
def ends(monkeypatch):
    """ends(end) lets every search find a best rate of 1, and every other run end at the loss of `end`."""

    def patched(end):
        monkeypatch.setattr(rates, "end", lambda e, *_: abs(math.log(e.settings["learning_rate"])))
        monkeypatch.setattr(rate_table, "end", end)

    return patched


@pytest.mark.parametrize("start", [0.001, 0.1, 5, 80, 1000])
def test_the_best_rate_is_interior_wherever_the_search_begins(bowl, start):
    search = Search(Experiment.of({"learning_rate": start}))
    best = search.best(rates.nearest(start))
    assert rung(best) == 5 and search.interior(best)
    assert search.loss(best) == pytest.approx(1.01)  # the mean over the seeds 0, 1 and 2
    assert len(bowl) == len(set(bowl))  # nothing is run twice


def test_a_rate_at_which_one_seed_diverges_is_worse_than_every_other(monkeypatch):
    losses = {0.1: 1.0, 0.2: 0.9, 0.5: 0.5, 1.0: 2.0}

    def unlucky(experiment, *_):
        rate = experiment.settings["learning_rate"]
        return math.inf if (rate, experiment.seed) == (0.5, 2) else losses.get(rate, 9)

    monkeypatch.setattr(rates, "end", unlucky)
    search = Search(Experiment())
    assert rung(search.best(rates.nearest(0.1))) == 0.2


def decided(monkeypatch, losses, seeds=(0, 1, 2)):
    """Return the rate found and the seeds that decided; `losses` by rate, one for each seed in turn, 9 elsewhere."""

    def end(experiment, *_):
        known = losses.get(experiment.settings["learning_rate"], [9.0])
        return known[experiment.seed % len(known)]

    monkeypatch.setattr(rates, "end", end)
    search = Search(Experiment(), seeds)
    return rung(search.best(rates.nearest(0.2))), tuple(search.seeds)


def test_where_three_seeds_cannot_tell_two_rates_apart_eight_decide(monkeypatch):
    lower, higher = [0.29, 0.27, 0.23, 0.28, 0.5, 0.21, 0.2, 0.3], [0.35, 0.22, 0.33, 0.29, 0.22, 0.15, 0.2, 0.2]
    assert decided(monkeypatch, {0.2: lower, 0.5: higher}) == (0.5, rates.SECOND_LOOK)


def test_three_seeds_decide_where_a_rate_leads_by_far_or_another_would_be_as_good(monkeypatch):
    far = {0.2: [0.2, 0.3, 0.4], 0.5: [0.5, 0.7, 0.6]}
    near = {0.2: [0.30, 0.31, 0.32], 0.5: [0.33, 0.30, 0.32]}
    lost = {0.2: [0.2, 0.3, 0.4], 0.1: [0.2, 0.3, math.inf]}
    for losses in (far, near, lost):
        assert decided(monkeypatch, losses) == (0.2, (0, 1, 2))


def test_a_search_with_one_seed_or_with_eight_stays_with_these(monkeypatch):
    for seeds in ((0,), tuple(range(9))):
        assert decided(monkeypatch, {0.2: [0.2, 0.9], 0.5: [0.9, 0.2]}, seeds)[1] == seeds


def test_the_default_is_the_part_of_the_best_that_fewer_and_more_workers_bear(ends):
    bears = {1: 0.7, 2: 0.9, 3: 0.9, 4: 1.2, 6: 0.4, 8: 0.4, 16: 0.2}
    ends(lambda e: 0.0 if e.settings["learning_rate"] <= bears[e.workers] else math.inf)
    assert rate_table.line(Experiment()) == Rate(best=1.0, loss=0.0, rate=0.5, many=0.125)


def test_numbers_between_count_too_where_they_bear_less_than_the_fewest_and_the_most(ends):
    bears = {1: 1.2, 2: 1.2, 3: 0.7, 4: 1.2, 6: 0.2, 8: 0.7, 16: 0.7}
    ends(lambda e: 0.0 if e.settings["learning_rate"] <= bears[e.workers] else math.inf)
    assert rate_table.line(Experiment()) == Rate(best=1.0, loss=0.0, rate=0.5, many=0.125)


def test_a_pipeline_that_cannot_have_sixteen_stages_is_tried_with_every_number_above_four(ends):
    tried = set()

    def end(e):
        tried.add(e.workers)
        return 0.0 if e.settings["learning_rate"] <= {6: 0.3}.get(e.workers, 1.2) else math.inf

    ends(end)
    line = rate_table.line(Experiment.of({"algorithm": "dni", "model": "residual"}))
    assert line == Rate(best=1.0, loss=0.0, rate=1.0, many=0.25)
    assert tried == {1, 2, 3, 4, 5, 6, 7, 8}


def test_where_sixteen_workers_bear_no_part_of_it_the_one_whose_worst_seed_ends_lowest_is_taken_and_said(
    ends, monkeypatch
):
    def end(e):
        rate = e.settings["learning_rate"]
        return 0.0 if e.workers < 4 else 1 + abs(math.log(rate / 0.25)) + e.seed / 10

    ends(end)
    line = rate_table.line(Experiment(), seeds=(0, 1, 2))
    assert line == Rate(best=1.0, loss=0.0, rate=1.0, many=0.25, many_loss=1.2)
    monkeypatch.setattr(tables, "table", lambda: {"digits-mlp": {"sync_sgd": line}})
    few, many, long = (
        Experiment.of({"algorithm": "sync_sgd", **v}).notes for v in ({}, {"workers": 5}, {"workers": 5, "steps": 201})
    )
    assert "up to 1.2 after 200 steps at every rate tried" in many[0] and not few and not long


def test_where_the_fewest_workers_bear_neither_the_best_rate_nor_its_half_the_loss_they_end_at_is_said(
    ends, monkeypatch
):
    def end(e):
        bears = {2: 0.4}.get(e.workers, 0.5)  # 1 cannot: 2 are the fewest
        return 0.0 if e.settings["learning_rate"] <= bears else 2 * e.settings["learning_rate"] + e.seed / 10

    ends(end)
    line = rate_table.line(Experiment.of({"algorithm": "noise_scale"}), seeds=(0, 1, 2))
    assert line == Rate(best=1.0, loss=0.0, rate=1.0, many=0.5, few_loss=2.2)
    monkeypatch.setattr(tables, "table", lambda: {"digits-mlp": {"noise_scale": line}})
    few, four, many = (Experiment.of({"algorithm": "noise_scale", "workers": n}).notes for n in (3, 4, 16))
    assert "held-out loss at the default rate is up to 2.2 after 200 steps" in few[0] and not four and not many


def test_where_numbers_between_bear_no_part_the_fewest_decide_and_the_loss_is_said(ends):
    bears = {1: 0.7, 2: 0.1}
    ends(lambda e: 9.0 * (e.settings["learning_rate"] > bears.get(e.workers, 1.2)) * e.workers)
    assert rate_table.line(Experiment()) == Rate(best=1.0, loss=0.0, rate=0.5, many=0.5, few_loss=18.0)


def test_half_a_rate_that_four_workers_do_not_bear_is_not_taken_for_the_sake_of_fewer(ends):
    def end(e):
        half = e.settings["learning_rate"] <= 0.5
        return {2: 0.0 if half else 9.0, 4: 9.0 if half else 0.0}.get(e.workers, 0.0)

    ends(end)
    assert rate_table.line(Experiment()) == Rate(best=1.0, loss=0.0, rate=1.0, many=1.0, few_loss=9.0)


def test_of_parts_that_end_as_low_as_each_other_the_largest_is_taken(monkeypatch):
    monkeypatch.setattr(rate_table, "end", lambda e, *_: 2.0 - 0.1 * (e.settings["learning_rate"] < 1))
    assert rate_table.largest_rate([Experiment()], 1.0, (1, 2, 4), 0.5, (0,)) == (1.0, 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("part", tables.table())
def test_each_part_of_the_table_has_a_line_for_every_algorithm_that_can_train_there(part):
    workload, _, model = part.partition("-")
    trainable = {name for name in algorithms.names() if rate_table.experiment_of(name, workload, model)}
    assert trainable == set(tables.table()[part])


def test_algorithms_that_compute_the_same_are_one_search():
    names = ["sgd", "gpipe", "zb_h1", "pipedream"]
    begun = {name: rate_table._begin((name, "digits", "residual")) for name in names}
    begun["sgd"] = rate_table.Beginning(**{**vars(begun["sgd"]), "curve": begun["sgd"].curve[:-1]})
    assert rate_table.alike(begun) == [["sgd"], ["gpipe", "zb_h1"], ["pipedream"]]


def test_an_experiment_begins_at_the_rate_of_its_algorithm_workload_model_and_workers(table):
    def begins(**values):
        return Experiment.of({"algorithm": "asgd", **values}).settings["learning_rate"]

    assert [begins(), begins(workers=5), begins(model="cnn"), begins(model="cnn", workers=16)] == [
        0.2,
        0.05,
        0.02,
        0.01,
    ]
    assert begins(workload="sparse") == 50
    assert begins(workload="mnist", model="cnn") == 0.02  # images of digits, too
    assert begins(learning_rate=0.3) == 0.3
    own = algorithms.find("asgd").Settings().learning_rate
    assert begins(workload="quadratic") == own and default_rate("asgd", "quadratic", {}, 4) == {}


def test_what_a_link_leaves_out_is_the_default_where_it_leads(table):
    experiment = Experiment.of({"algorithm": "asgd"})
    assert "learning_rate" not in experiment.flat()
    assert Experiment.from_query(experiment.query()) == experiment
    assert experiment.change(workload="sparse").settings["learning_rate"] == 50
    chosen = experiment.change(learning_rate=0.05)
    assert chosen.flat()["learning_rate"] == 0.05 and chosen.change(workers=16).settings["learning_rate"] == 0.05
    assert Experiment.from_query(chosen.change(workers=16).query()) == chosen.change(workers=16)


def test_help_says_the_default_of_the_workload_that_is_asked_for(table):
    def default(*words):
        said = CliRunner().invoke(cli, ["run", "asgd", *words, "--help"], terminal_width=200).output
        return (
            next(line for line in said.splitlines() if "--learning-rate" in line).rpartition("default ")[2].strip("]")
        )

    assert [default(), default("--workload", "sparse"), default("--workers", "16")] == ["0.2", "50.0", "0.05"]


def test_at_its_best_rate_is_the_tables_where_that_is_the_experiment_and_searched_for_elsewhere(table, bowl, tmp_path):
    plain = Experiment.of({"algorithm": "sync_sgd"})
    best, source = rates.at_best(plain.change(learning_rate=0.01, seed=3), tmp_path)
    assert (best.settings["learning_rate"], best.seed, bowl) == (0.5, 3, []) and "table" in source
    best, source = rates.at_best(plain.change(batch=8), tmp_path)
    assert best.settings["learning_rate"] == 5 and "seeds 0 to 2" in source and bowl
    bowl.clear()
    assert rates.at_best(plain.change(batch=8), tmp_path)[0] == best and not bowl  # it is kept


def test_a_search_that_only_diverges_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(rates, "end", lambda experiment, *_: math.inf)
    with pytest.raises(ValueError, match="diverged"):
        rates.at_best(Experiment.of({"batch": 8}), tmp_path)


def test_the_command_line_runs_and_sweeps_at_the_best_rates(bowl, tmp_path, capsys):
    words = ["--steps", "3", "--learning-rate", "best", "--runs", str(tmp_path)]
    assert main(["run", "easgd", *words, "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["experiment"]["settings"]["learning_rate"] == 5
    first, *rest = told.err.splitlines()
    assert first == "easgd: best learning rate 5, searched for with seeds 0 to 2"
    assert all(line.startswith("compiling kernels") for line in rest), "where they have not been compiled yet"
    assert main(["sweep", "easgd,slowmo", *words, "--batch", "4,8", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 4


def test_tune_lists_what_it_tried_and_says_which_is_best(bowl, capsys):
    assert main(["tune", "easgd", "--seeds", "2"]) == 0
    head, names, *lines = capsys.readouterr().out.splitlines()
    assert re.search(quote("EASGD on handwritten digits … held-out loss … by seed"), head)
    assert names.split() == ["learning", "rate", "seed", "0", "seed", "1"]
    end = next(number for number, line in enumerate(lines) if line.startswith("The best rate"))
    rows, told = lines[:end], " ".join(lines[end:])
    assert [line.split()[1] for line in rows if line.split()[:1] == ["best"]] == ["5"]
    assert {len(line.split()) for line in rows if line[:13].strip()} >= {2, 4}, "some rates have the first seed only"
    assert re.search(quote("best rate … 5 … mean … 2 seeds … default … 0.5 … first seed"), told)
    assert main(["tune", "--table", "--pairs", "digits-cnm"]) == 2
    assert "choose one of digits-mlp" in capsys.readouterr().err


def test_tune_reports_each_line_of_the_table_in_words(monkeypatch, capsys):
    monkeypatch.setattr(rate_table, "_line", lambda begun: Rate(0.5, 0.112, 0.5, 0.25))
    monkeypatch.setattr(rate_table, "_begin", lambda words: rate_table.Beginning(Experiment(), np.ones(3), 1.0, 0.1))
    monkeypatch.setattr(rate_table, "get_context", lambda method: threads)
    monkeypatch.setattr(rate_table, "_one_thread", lambda: None)
    told: list[str] = []
    assert len(list(rate_table.lines(("digits", "mlp"), ["sgd"], 1, told.append))) == 1
    assert (
        re.search(quote("sgd: best rate 0.5 … 0.112 … more than 4 workers 0.25"), told[-1]) and "Rate(" not in told[-1]
    )


def test_a_search_that_is_repeated_reads_its_runs_and_draws_their_losses(monkeypatch, tmp_path, capsys):
    words = [
        "tune",
        "sgd",
        "--steps",
        "3",
        "--seeds",
        "2",
        "--runs",
        str(tmp_path),
        "--plot",
        str(tmp_path / "rates.svg"),
    ]
    assert main(words) == 0
    told, drawn = capsys.readouterr().out, (tmp_path / "rates.svg").read_text("utf-8")
    assert "learning rate" in drawn and "held-out loss" in drawn
    monkeypatch.setattr("experiments.study.sweep.run", lambda *_: pytest.fail("a stored run is made again"))
    monkeypatch.setattr("experiments.runs.summary.glob", lambda *_, **__: pytest.fail("the source is read again"))
    assert main(words) == 0
    assert capsys.readouterr().out == told and (tmp_path / "rates.svg").read_text("utf-8") == drawn


def test_tune_refuses_what_it_varies_itself(bowl, capsys):
    for option, told in (
        ("--learning-rate", "--learning-rate 3 has no effect"),
        ("--seed", "--seed 3 has no effect"),
    ):
        assert main(["tune", "easgd", option, "3"]) == 2
        assert told in capsys.readouterr().err and not bowl


def test_tune_says_that_all_rates_diverged(monkeypatch, capsys):
    monkeypatch.setattr(rates, "end", lambda experiment, *_: math.inf)
    assert main(["tune", "easgd"]) == 0
    told = capsys.readouterr().out
    assert re.search(quote("diverged … every rate … default … 0.5"), told) and "best" not in told.lower()


def test_a_table_is_read_as_it_was_written(tmp_path, monkeypatch):
    said = Rate(1, 2.4, 0.5, 0.5, many_loss=2.5, few_loss=2.6, note="It says why.")
    lines = {"sparse": {"asgd": Rate(50, 0.61, 50, 25)}, "text": {"ssp": said}}
    monkeypatch.setattr(tables, "PATH", tmp_path / "rates.toml")
    tables.write(lines, tables.PATH)
    assert tables.table() == lines
    tables.table.cache_clear()


def test_what_stays_far_above_the_lowest_loss_at_its_best_rate_is_noted_while_the_run_is_as_short(monkeypatch):
    lines = {"asgd": Rate(0.2, 0.1, 0.2, 0.05), "ssp": Rate(0.2, 1.5, 0.2, 0.2)}  # of 2.5 before training
    noted = rate_table.add_notes(lines, workload_of(Experiment()))
    assert not noted["asgd"].note and re.search(quote("1.5 … best rate … lowest … 0.1"), noted["ssp"].note)
    monkeypatch.setattr(tables, "table", lambda: {"digits-mlp": noted})
    assert noted["ssp"].note in Experiment.of({"algorithm": "ssp"}).notes
    for other in ({"steps": 201}, {"workload": "mnist"}, {"model": "cnn"}, {"algorithm": "asgd"}):
        assert noted["ssp"].note not in Experiment.of({"algorithm": "ssp", **other}).notes


def test_a_method_that_begins_with_fewer_steps_is_noted_with_these():
    lines = {"asgd": Rate(0.2, 0.1, 0.2, 0.05), "sandblaster": Rate(1, 1.5, 1, 1)}
    noted = rate_table.add_notes(lines, workload_of(Experiment()))
    assert re.search(quote("20 steps … loss … 1.5"), noted["sandblaster"].note)


def test_algorithms_that_do_not_move_where_searches_begin_are_not_taken_for_one():
    begun = {name: rate_table._begin((name, "sparse", "")) for name in ("sync_sgd", "one_shot")}
    assert rate_table.alike(begun) == [["sync_sgd"], ["one_shot"]]
