"""Predictions: offered, sealed when the run begins, and compared with what came of it."""

import pytest

from app.guide import predict
from experiments.specification.experiment import Experiment


@pytest.mark.parametrize(
    ("before", "after", "answer", "words"),
    [
        (100, 200, "more", "as predicted] Samples per second: more. 200, compared with 100"),
        (100, 104, "more", "not as predicted] Samples per second: as many, you predicted more"),
        (100, 96, "as many", "check: as predicted"),
        (100, 90, "fewer", "check: as predicted"),
    ],
)
def test_a_verdict_says_what_was_predicted_and_what_is(before, after, answer, words):
    assert words in predict.verdict("samples_per_second", answer, before, after)


def test_nothing_is_said_of_a_figure_that_a_run_has_not():
    assert predict.verdict("held_out_loss", "lower", None, 0.1) == ""


def test_a_prediction_is_offered_when_something_changed_and_shown_beside_the_result(page, stored):
    stored(Experiment()), stored(Experiment(workers=8))
    opened = page()
    assert not [g for g in opened.button_group if str(g.key).startswith("predict")]
    opened.select_slider("workers").set_value(8).run()
    opened.button_group("predict-samples_per_second").set_value("fewer").run()
    opened.button("run").click().run()
    assert not opened.exception
    (line,) = [element.value for element in opened.markdown if "predicted]" in element.value]
    assert "not as predicted] Samples per second: more, you predicted fewer" in line
    opened.button("reset").click().run()
    assert not [element for element in opened.markdown if "predicted]" in element.value]


def test_nothing_is_to_be_predicted_of_what_cannot_run(page, stored):
    stored(Experiment())
    opened = page()
    opened.select_slider("workers").set_value(256).run()
    assert any("This cannot run" in one.value for one in opened.warning)
    assert not [g for g in opened.button_group if str(g.key).startswith("predict")]


def test_who_predicts_nothing_is_told_nothing(page, stored):
    stored(Experiment()), stored(Experiment(workers=8))
    opened = page()
    opened.select_slider("workers").set_value(8).run()
    opened.button("run").click().run()
    assert not opened.exception and not [element for element in opened.markdown if "predicted]" in element.value]


def test_the_pinned_run_is_what_the_next_one_is_compared_with(page, stored):
    pinned, now = stored(Experiment(seed=3)), Experiment(seed=4)
    stored(now)
    opened = page(f"{now.query()}&pin={pinned.name}")
    opened.select_slider("workers").set_value(8).run()
    assert any("the pinned run" in caption.value for caption in opened.caption)
    assert any("seed 3 → 4" in caption.value for caption in opened.caption)
