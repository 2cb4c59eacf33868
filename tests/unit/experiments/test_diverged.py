"""A loss that is not finite, or that is what a run diverged to: everywhere it is told as that, in a word."""

from dataclasses import replace

import pytest

from app.charts import Shown
from app.charts.sweep import outcome
from app.charts.words import figure_of
from app.guide import predict
from experiments.cli import show
from experiments.cli.comparison import side_by_side
from experiments.cli.progress_bar import Bar
from experiments.exports.report import report
from experiments.runs.evaluations import Evaluation
from experiments.runs.figures import run_figure_text
from experiments.runs.progress import Progress
from experiments.specification.experiment import Experiment
from experiments.wording import units
from workloads.recorder import Diverged

HUGE = 3.331e21  # a held-out loss of a run that went wild


@pytest.fixture
def gone(made):
    """A run that diverged: its last training loss is no number, its last held-out loss a meaningless one."""
    run = made(Experiment.of({"workers": 2, "learning_rate": 9.0, "seed": 1}), status="diverged", error="see above")
    rounded = "2.292 167 nan -inf 3.331e+21"
    return replace(run, summary={**run.summary, "loss": None, "held_out_loss": HUGE, "digest_to_rounding": rounded})


def test_a_run_that_diverged_ends_with_a_word_and_not_with_a_number(gone, monkeypatch):
    assert run_figure_text(gone, "held_out_loss") == run_figure_text(gone, "loss") == "diverged"
    assert run_figure_text(gone, "accuracy") != "diverged"
    text = show.text(gone)
    assert "e+21" not in text.replace("3.331e+21", "", 1) and "nan" not in text and "inf" not in text
    assert "held-out loss  diverged" in text and "2.292 167 diverged" in text


def test_a_run_that_diverged_is_told_as_one_beside_a_run_that_did_not(gone, made, tmp_path):
    other = made(Experiment(workers=2, seed=1))
    told = side_by_side([gone, other], [tmp_path / "one", tmp_path / "other"], False, False)
    assert told.count("diverged") == 3 and "e+21" not in told and "nan" not in told
    both = side_by_side([gone, gone], [tmp_path / "one", tmp_path / "other"], False, False)
    assert both.count("diverged") == 5  # the status of both stands below, once


def test_what_diverged_is_in_no_mean_over_seeds_but_counted(gone, made, tmp_path):
    others = [replace(gone, experiment=gone.experiment.change(seed=seed), status="finished") for seed in (2, 3)]
    others = [replace(one, summary={**one.summary, "held_out_loss": 0.25, "loss": 0.2}) for one in others]
    told = side_by_side([gone, *others], [tmp_path / str(n) for n in range(3)], True, False)
    assert "e+21" not in told and "0.25 (2)" in told and "1 diverged, 2 finished" in told
    one = Shown("SGD", others[0], 0, others=[gone, others[1]])
    assert figure_of(one, "held_out_loss") == "0.250 (2 of 3; 1 diverged)"
    assert figure_of(Shown("SGD", gone, 0, others=[gone]), "held_out_loss") == "diverged"


def test_a_picture_of_what_came_out_has_a_word_in_place_of_a_bar(gone, made):
    (bars,) = outcome(
        [Shown("a", made(Experiment()), 0), Shown("b", gone, 1)], ("1", "9"), "held_out_loss", "", ""
    ).data
    assert list(bars.text) == ["", "diverged"] and bars.y[1] == 0 and bars.customdata[1] == "diverged"


def test_who_predicted_a_higher_loss_is_right_if_the_run_diverges(gone, made):
    values = (predict.outcome(made(Experiment()), "held_out_loss"), predict.outcome(gone, "held_out_loss"))
    told = predict.verdict("held_out_loss", "higher", *values)
    assert "as predicted" in told and "diverged, compared with 0." in told and "not as" not in told


def test_a_loss_under_way_that_is_not_finite_is_told_in_a_word(monkeypatch, capsys):
    assert units.loss(float("nan")) == units.loss(float("inf")) == "diverged" and units.loss(0.25) == "0.250"
    nan, shown = float("nan"), []
    monkeypatch.setattr(Bar, "_show", lambda self, text, *_: shown.append(text))
    monkeypatch.setattr("experiments.cli.progress_bar.PATIENCE", 0.0)
    Bar("sgd")(Progress(0.5, 1.0, float("inf"), Evaluation(nan, nan), {}, {}))
    assert shown == ["sgd  1 s  loss diverged  held-out diverged"]


def test_what_ended_a_run_names_no_nan_and_a_report_has_none(gone):
    assert str(Diverged(float("nan"), 2, 7)) == "the loss was no longer finite at step 7 on rank 2"
    page = report([Shown("SGD", gone, 0)]).partition("<script")[0]
    assert "nan" not in page and "e21" not in page and ">diverged<" in page
