"""Seeds: which runs differ in nothing else, and the mean and spread of their figures."""

import statistics
from dataclasses import replace

import pytest

from experiments.cli import show
from experiments.runs.compare import FIGURES, over_seeds
from experiments.runs.seeds import differ_in_seed, seed_figure, with_seeds
from experiments.specification.experiment import Experiment
from experiments.wording.units import plus_minus

E = Experiment


@pytest.fixture
def six(made):
    """Runs with 1 and 2 workers, by turns, and seeds 0, 1 and 2."""
    return [made(E(workers=workers, seed=seed)) for seed in range(3) for workers in (1, 2)]


def test_experiments_that_differ_only_in_their_seed_belong_together_and_others_do_not():
    some = [E(seed=3), E(workers=2), E(seed=5), E(batch=16), E(workers=2, seed=1), E(workers=2, batch=16)]
    assert differ_in_seed(some) == [[0, 2], [1, 4], [3], [5]]


@pytest.mark.parametrize(("own", "seeds"), [(0, [0, 1, 2, 3, 4]), (2, [2, 0, 1, 3, 4]), (9, [9, 0, 1, 2, 3])])
def test_more_seeds_begin_with_the_run_that_is_there(own, seeds):
    assert [one.seed for one in with_seeds(E(seed=own, workers=2), 5)] == seeds
    assert len(differ_in_seed(with_seeds(E(seed=own, workers=2), 5))) == 1


def test_a_figure_over_seeds_is_mean_and_standard_deviation_of_the_values_that_exist():
    values = [1.0, 2.0, 4.0, None]
    told = seed_figure(values)
    assert told.mean == pytest.approx(7 / 3) and told.std == pytest.approx(statistics.stdev(values[:3]))
    assert told.n == 3 and told.values == values
    assert seed_figure([5.0]) == (5.0, None, 1, [5.0]) and seed_figure([None]) == (None, None, 0, [None])


def test_runs_over_seeds_are_a_row_for_each_combination(six):
    rows = over_seeds(six)
    assert [(row["workers"], row["seeds"], row["status"]) for row in rows] == [
        (1, [0, 1, 2], "finished"),
        (2, [0, 1, 2], "finished"),
    ]
    losses = [run.summary["loss"] for run in six[::2]]
    assert rows[0]["loss"].values == losses and rows[0]["loss"].std == pytest.approx(statistics.stdev(losses))
    assert {*FIGURES} - {*rows[0]} == {"accuracy_error"} and "seed" not in rows[0]


def test_groups_of_other_seeds_are_not_told_apart_by_them(made):
    rows = over_seeds([made(E(seed=0)), made(E(seed=1)), made(E(workers=2, seed=7))])
    assert [list(row)[:2] for row in rows] == [["workers", "seeds"]] * 2


def test_a_run_that_diverged_is_counted_and_its_missing_figures_are_not(six):
    six[0] = replace(six[0], status="diverged", summary={**six[0].summary, "loss": None})
    row = over_seeds(six)[0]
    assert row["status"] == "1 diverged, 2 finished" and row["loss"].n == 2
    told = plus_minus(row["loss"].mean, row["loss"].std, show.number)
    assert f"{told} (2)" in show.table([row]) and show.table([row]).count("(2)") == 2  # and the held-out loss


def test_the_same_seed_twice_is_no_sample_on_the_simulated_cluster(made):
    with pytest.raises(ValueError, match="seed 4 of sync_sgd was given twice"):
        over_seeds([made(E(seed=4)), made(E(seed=4))])
    real = E(seed=4, cluster="processes")
    assert over_seeds([made(real), made(real)])[0]["seeds"] == [4, 4]


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.23761, 0.00123, "0.2376 ± 0.0012"),
        (93.333, 1.3147, "93.3 ± 1.3"),
        (456789.4, 1234.5, "456,789 ± 1,234"),
        (1.23456, None, "alone"),
        (1.23456, 0.0, "alone"),
        (1.23456, float("nan"), "alone"),
        (1.23456, 1e-9, "alone"),
        (3.2e-9, 1.1e-10, "3.2e-09 ± 1.1e-10"),
        (1.5e12, 2e10, "1.5e+12 ± 2e+10"),
    ],
)
def test_an_error_has_two_digits_and_the_value_as_many_decimals(value, error, text):
    assert plus_minus(value, error, lambda _: "alone") == text


def test_values_of_one_column_have_the_same_number_of_decimals_and_every_error_has_a_digit():
    rows = [{"accuracy": 0.961, "accuracy_error": 0.01021}, {"accuracy": 0.9639, "accuracy_error": 0.0098}]
    assert show.column(rows, "accuracy") == ["96.1 ± 1.0 %", "96.4 ± 1.0 %"]
    losses = [seed_figure(values) for values in ([0.1, 0.5], [0.2376, 0.2393], [0.25])]
    rows = [{"held_out_loss": one, "seeds": one.values} for one in losses]
    assert show.column(rows, "held_out_loss") == ["0.300 ± 0.283", "0.238 ± 0.001", "0.25"]
    assert show.column(rows[:1], "held_out_loss") == ["0.30 ± 0.28"]


def test_the_standard_error_of_an_accuracy_is_that_of_a_share_of_the_held_out_samples(made):
    one = made(E())
    assert one.standard_error(0.9) == pytest.approx((0.9 * 0.1 / one.held_out_samples) ** 0.5)
    assert one.summary["accuracy_error"] == pytest.approx(one.standard_error(one.summary["accuracy"]))
    assert made(E(), accuracy=False).summary["accuracy_error"] is None
    unknown = replace(one, held_out_samples=0)
    assert unknown.standard_error(0.9) != unknown.standard_error(0.9)  # NaN


@pytest.mark.parametrize("wide", [60, 80, 120])
def test_a_table_that_is_too_wide_goes_on_below_behind_its_keys(six, wide):
    rows = over_seeds(six) * show.TURNED
    told = show.table(rows, keys=2, wide=wide)
    folds = told.split("\n\n")
    assert len(folds) > 1 and max(map(len, told.splitlines())) <= wide
    assert all(fold.split()[:2] == ["workers", "seeds"] and len(fold.splitlines()) == 1 + len(rows) for fold in folds)
    heads = "  ".join(fold.splitlines()[0] for fold in folds)
    assert all(show.HEADS.get(name, name.replace("_", " ")) in heads for name in rows[0])
    assert "\n\n" not in show.table(rows, keys=2, wide=10_000)


def test_a_wide_table_of_few_rows_has_a_column_for_each(six):
    rows = over_seeds(six)
    lines = show.table(rows, keys=2, wide=60).splitlines()
    assert max(map(len, lines)) <= 60 and "" not in lines
    assert [line.split()[0] for line in lines[:2]] == ["workers", "seeds"]


def test_words_stay_to_the_left_and_numbers_to_the_right_where_a_table_goes_on_below():
    row = {"run": "a" * 27, "what": "b" * 40, "when": "3 Nov", "held_out_loss": 0.25}
    folds = show.table([row, row | {"when": "27 Nov 12:30"}] * show.TURNED, words=3, wide=80).split("\n\n")
    assert [fold.splitlines()[0].split() for fold in folds] == [["run", "what"], ["when", "held-out", "loss"]]
    assert folds[1].splitlines()[1] == "3 Nov                  0.25"


def test_keys_that_leave_no_room_are_not_repeated():
    rows = [{"run": "a" * 20, "period": 4, "synchronous": False, "momentum": 0.9, "loss": 0.25, "seconds": 1.5}] * 9
    folds = show.table(rows, keys=4, wide=48).split("\n\n")
    assert [fold.splitlines()[0].split() for fold in folds] == [
        ["run", "period", "synchronous"],
        ["run", "momentum", "training", "loss"],
        ["run", "time"],
    ]
