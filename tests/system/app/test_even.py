"""Switches that even out a comparison: each changes the run on the page, pins the other one, and can be undone."""

from app.comparison import even
from experiments.specification.experiment import Experiment

FOUR, EIGHT = Experiment(seed=81), Experiment(workers=8, seed=81)  # no other test of this session runs these


def compared(page, stored, before: Experiment, now: Experiment):
    """The page of a run, with the one before it in grey."""
    folder = stored(before)
    stored(now)
    opened = page(now.query())
    opened.session_state["before"] = str(folder)
    return opened.run(), folder


def switches(opened):
    return next((group for group in opened.get("button_group") if group.label == "Compare at"), None)


def test_equal_chunks_are_one_switch_that_pins_the_run_before_and_can_be_undone(page, stored):
    four, eight = Experiment(algorithm="gpipe", seed=81), Experiment(algorithm="zb_h1", seed=81)
    opened, folder = compared(page, stored, four, eight)
    stored(eight.change(chunks=4))
    assert switches(opened).options == [even.CHUNKS] and not switches(opened).value
    switches(opened).set_value([even.CHUNKS]).run()
    assert not opened.exception and opened.session_state.asked == eight.change(chunks=4)
    assert folder.name in str(opened.query_params["pin"])
    assert switches(opened).value == [even.CHUNKS]
    switches(opened).set_value([]).run()
    assert opened.session_state.asked == eight


def test_equal_work_is_offered_where_one_run_trained_on_more_samples(page, stored):
    opened, _ = compared(page, stored, FOUR, EIGHT)
    stored(EIGHT.change(steps=100))
    assert switches(opened).options == [even.WORK]
    switches(opened).set_value([even.WORK]).run()
    assert not opened.exception and opened.session_state.asked == EIGHT.change(steps=100)


def test_best_rates_change_the_other_run_too_where_it_has_not_its_best(page, stored):
    slow = FOUR.change(learning_rate=0.01)
    opened, _ = compared(page, stored, slow, EIGHT.change(steps=100))
    best = stored(FOUR)
    switches(opened).set_value([even.RATES]).run()
    assert not opened.exception and best.name in str(opened.query_params["pin"])


def test_nothing_is_offered_where_two_runs_are_even(page, stored):
    opened, _ = compared(page, stored, FOUR, FOUR.change(network="1GbE"))
    assert not opened.exception and switches(opened) is None
