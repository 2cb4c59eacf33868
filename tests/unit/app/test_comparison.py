"""What the page says of the run before and the run that took its place, with small real runs."""

import re
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest

from app.charts import Shown
from app.comparison import changes, difference, even, in_words, reference, table
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from experiments.wording import units
from tests.quotes import quote
from tracing import COMPUTE


@cache
def ran(**values):
    return run(Experiment.of({"workload": "quadratic", "steps": 20, "evaluations": 4, **values}))


def test_a_straggler_changes_the_clock_and_not_one_bit_of_the_model():
    before, now = ran(), ran(slow="1:200")
    assert re.search(quote("times as long … bit for bit"), difference.between(before, now))
    assert re.search(quote("times as fast … bit for bit"), difference.between(now, before))
    assert difference.only_the_clock(before, now)


def test_a_batch_that_is_shared_out_gives_the_same_model_to_rounding():
    one, four = ran(workload="digits", workers=1, batch=32), ran(workload="digits", workers=4, batch=8)
    assert "to rounding" in difference.between(one, four)


def test_a_run_that_ends_by_a_loss_is_not_called_faster():
    before = ran()
    lost = ran(crash=f"1:{before.summary['seconds'] / 2:.6g}")
    told = difference.between(before, lost)
    assert 0 < lost.summary["steps"] < 20
    assert f", after {lost.summary['steps']} steps, instead of" in told and ", after 20 steps" in told
    assert told.startswith("ends at ") and " instead of " in told
    assert not {"faster", "fewer", "traffic"} & {*told.replace(",", "").split()}


def test_another_rate_is_said_by_its_loss_and_not_by_the_clock():
    before, now = ran(), ran(learning_rate=0.001)
    told = difference.between(before, now)
    assert re.search(quote("the same time … loss"), told) and "instead of" in told
    assert not difference.only_the_clock(before, now)


def digits(seed=0, accuracy=0.95):
    record = ran(workload="digits", seed=seed)
    return replace(record, summary={**record.summary, "accuracy": accuracy, "accuracy_error": 0.01, "weights": None})


def test_of_accuracies_within_their_standard_errors_that_is_said_and_a_loss_is_not_judged_by_them():
    other = ran(workload="digits", learning_rate=0.01)
    near, far = (
        replace(other, summary={**digits(0, value).summary, "held_out_loss": 9.0, "digest": ""})
        for value in (0.96, 0.99)
    )
    loss = f"loss 9.00 instead of {digits().summary['held_out_loss']:#.3g}"
    assert re.search(quote(f"{loss} … standard errors"), difference.between(digits(), near))
    assert difference.between(digits(), far).endswith(f"{loss} (lower is better)")


def test_a_run_that_was_cut_short_is_not_praised_for_its_loss():
    lost = replace(digits(), status="failed", summary={**digits().summary, "held_out_loss": 0.01, "digest": ""})
    told = difference.between(digits(), lost)
    assert "loss 0.0100 instead of" in told and "lower is better" not in told


def test_one_seed_is_enough_where_accuracies_are_far_apart():
    other = ran(workload="digits", learning_rate=0.01)
    for accuracy, chance in ((0.94, True), (0.08, False)):
        apart = replace(other, summary={**digits(0, accuracy).summary, "held_out_loss": 2.3, "digest": ""})
        assert difference.may_be_chance(digits(), apart) == chance


def test_over_seeds_every_seed_is_compared_with_its_own_and_lower_losses_are_counted():
    worse = [ran(seed=seed, learning_rate=0.001 if seed else 0.05, slow="1:200") for seed in range(3)]
    better = [ran(seed=seed, learning_rate=0.02) for seed in range(3)]
    told = difference.over_seeds(list(zip(worse, better, strict=True)))
    lower = sum(b.summary["held_out_loss"] < w.summary["held_out_loss"] for w, b in zip(worse, better, strict=True))
    assert told.startswith("over 3 seeds ") and re.search(quote("times as fast … loss"), told)
    assert f" (lower is better), lower with {lower} of the seeds" in told and "±" in told
    assert ("do not agree" in told) == (0 < lower < 3)


def test_seeds_that_do_not_agree_on_which_loss_is_better_are_said_to():
    pairs = [[ran(seed=seed, learning_rate=rate) for rate in rates] for seed, rates in enumerate(((0.02, 0.001),) * 3)]
    mixed = [*pairs[:2], pairs[2][::-1]]
    assert any(f"lower with {n} of the seeds" in difference.over_seeds(pairs) for n in (0, 3))
    assert "do not agree" in difference.over_seeds(mixed) and "do not agree" not in difference.over_seeds(pairs)


def test_one_seed_is_said_to_tell_nothing_of_two_losses_that_differ_and_of_no_others(state):
    before, other = ran(), ran(learning_rate=0.001)
    assert "One seed cannot tell" in in_words._chance(before, other, "switch on 5 seeds")
    assert not in_words._chance(before, ran(slow="1:200"), "") and not in_words._chance(
        before, ran(workload="spirals"), ""
    )
    lost = ran(crash=f"1:{before.summary['seconds'] / 2:.6g}")
    assert not in_words._chance(before, lost, "")


def test_more_steps_take_longer_for_more_samples():
    assert re.search(quote("2 times as long … 2 times as many samples"), difference.between(ran(), ran(steps=40)))
    assert re.search(quote("2 times as fast … 50 % of the samples"), difference.between(ran(steps=40), ran()))


def test_less_traffic_is_said():
    assert " % of the traffic" in difference.between(ran(), ran(compression="top_k"))


def test_of_a_divergence_no_loss_is_said():
    fine, gone = ran(), ran(learning_rate=1000.0, steps=200)
    assert gone.status == "diverged"
    assert difference.between(fine, gone) == "diverges, but the previous run did not"
    assert difference.between(gone, fine, "the pinned one") == "does not diverge, but the pinned one did"
    assert (
        difference.between(gone, gone.__class__(**{**vars(gone), "summary": {}})) == "diverges, as the previous run did"
    )


def test_losses_on_other_data_are_not_compared():
    assert "losses cannot be compared" in difference.between(ran(), ran(workload="spirals"))


def test_the_same_run_again_is_the_same_clock_and_all():
    again = run(ran().experiment)
    assert difference.between(ran(), again) == "the same run, bit for bit, including all times"


@pytest.fixture
def state(monkeypatch):
    class State(SimpleNamespace):
        def get(self, name, default=None):
            return getattr(self, name, default)

    state = State(axis="step")
    monkeypatch.setattr(in_words.st, "session_state", state)
    return state


def shown(run):
    return Shown("the run before", run, 0, ghost=True)


def test_curves_are_drawn_against_time_while_only_the_clock_differs(state):
    in_words.settle_axis(shown(ran()), ran(slow="1:200"))
    assert state.axis == "seconds"
    in_words.settle_axis(shown(ran(slow="1:200")), ran(learning_rate=0.001))
    assert state.axis == "step"


def test_a_reader_who_has_chosen_the_axis_is_not_overruled(state):
    state.axis_chosen = True
    in_words.settle_axis(shown(ran()), ran(slow="1:200"))
    assert state.axis == "step"
    state.axis = "seconds"
    in_words.settle_axis(shown(ran()), ran(learning_rate=0.001))
    assert state.axis == "seconds"


def test_a_fault_that_is_gone_is_said_before_the_colon_as_what_the_run_is_without():
    was, now = Experiment.of({"crash": "2:0.04"}), Experiment.of({"slow": "3:4"})
    assert changes.between(was, now) == ["worker 3 four times slower", "without the loss of worker 2"]
    assert changes.between(now, Experiment()) == ["worker 3 as fast as usual"]


def test_what_is_said_of_another_algorithm_includes_the_settings_that_it_does_not_begin_with():
    was, now = Experiment(), Experiment.of({"algorithm": "easgd"})
    assert changes.between(was, now) == ["Synchronous SGD → EASGD"]
    fast = now.change(learning_rate=200, workers=8)
    assert set(changes.between(was, fast)) == {"Synchronous SGD → EASGD", "learning rate 200", "8 workers"}


def pipeline(name, **values):
    return run(Experiment.of({"algorithm": name, "steps": 4, "evaluations": 1, **values}))


def test_settings_that_two_algorithms_share_are_said_where_they_begin_otherwise():
    gpipe, zero_bubble = Experiment(algorithm="gpipe"), Experiment(algorithm="zb_h1")
    assert changes.between(gpipe, zero_bubble) == ["GPipe → ZB-H1", "chunks 4 → 8"]
    assert "model mlp → residual" in changes.between(Experiment(), gpipe)
    assert changes.between(Experiment(), Experiment(algorithm="sgd")) == ["Synchronous SGD → SGD", "workers 4 → 1"]


def test_a_pipeline_that_loses_to_another_says_on_what_it_spends_the_time():
    before, now = pipeline("gpipe"), pipeline("zb_h1")
    told, back = difference.between(before, now), difference.between(now, before)
    computes = [units.seconds(one.trace.busy()[:, COMPUTE].mean()) for one in (now, before)]
    passes = [int((one.trace.spans["kind"] == COMPUTE).sum()) for one in (now, before)]
    assert f"computes {computes[0]} instead of {computes[1]}" in told
    assert f"{passes[0]} passes instead of {passes[1]}" in told
    assert "on average" not in back.lower() and "as fast" in back


def test_names_of_runs_tell_a_setting_in_which_two_algorithms_differ():
    first, second = reference.name_runs([("a", pipeline("gpipe")), ("b", pipeline("zb_h1"))], colours={"a": 0, "b": 1})
    assert (first.name, second.name) == ("GPipe, chunks 4", "ZB-H1, chunks 8")


def test_plain_sgd_needs_no_mention_in_a_name_beside_another_update():
    runs = [(str(n), run(Experiment.of({"steps": 2, "evaluations": 1, **values}))) for n, values in enumerate(
        ({}, {"algorithm": "downpour"}, {"update": "momentum"}))]  # fmt: skip
    names = [one.name for one in reference.name_runs(runs, colours={"0": 0, "1": 1, "2": 2})]
    assert names == ["Synchronous SGD", "Downpour SGD, update adagrad", "Synchronous SGD, update momentum"]


def test_where_one_curve_hides_the_other_that_is_said_and_time_is_offered_if_it_parts_them(state):
    gpipe, other = pipeline("gpipe"), pipeline("zb_h1")
    assert not difference.same_model(gpipe, other), "equal up to rounding only"
    assert difference.learned_alike(gpipe, other) and "choose *time*" in in_words._covered(gpipe, other)
    assert not in_words._covered(gpipe, gpipe), "the same run, clock and all, as has been said"
    state.axis = "seconds"
    assert not in_words._covered(gpipe, other)
    assert not difference.learned_alike(ran(), ran(learning_rate=0.001))


def test_curves_that_coincide_on_any_axis_are_said_to(state):
    before, now = ran(), ran(slow="1:200")
    for axis, covered in (("step", True), ("samples", True), ("seconds", False)):
        state.axis = axis
        assert bool(in_words._covered(before, now)) == covered, axis


def test_another_learning_rate_is_named_also_where_the_algorithm_is_another():
    assert any("learning rate" in one for one in changes.between(Experiment(), Experiment(algorithm="adam", workers=4)))


def test_two_runs_are_evened_in_chunks_in_samples_and_in_their_best_rates():
    gpipe, other = pipeline("gpipe"), pipeline("zb_h1")
    assert even.find_changes(gpipe, other)[even.CHUNKS] == ({}, {"chunks": 4})
    four, eight = ran(), ran(workers=8)
    assert even.find_changes(four, eight)[even.WORK] == ({}, {"steps": 10})
    assert even.find_changes(four, four)[even.WORK] == ({}, {}), "even already"
    plain, slow = ran(workload="digits"), ran(workload="digits", learning_rate=0.01)
    best = {"learning_rate": plain.experiment.settings["learning_rate"]}
    assert even.find_changes(slow, plain)[even.RATES] == (best, {})
    assert even.CHUNKS not in even.find_changes(four, eight)


def test_a_switch_that_a_reset_page_took_back_changes_nothing(monkeypatch):
    monkeypatch.setattr(even.st, "session_state", SimpleNamespace(even=[even.RATES]))
    even._change(None, None, {}, [even.RATES])


def test_a_run_that_compresses_is_not_moved_to_the_rate_of_whole_gradients():
    plain, fewer = ran(workload="digits"), ran(workload="digits", compression="random_k", learning_rate=0.2)
    assert even.RATES not in even.find_changes(plain, fewer)


def test_the_reference_of_a_run_is_the_last_pinned_one_that_trained_for_the_same_task():
    own, first, last = (Shown(name, ran(seed=n), n, name) for n, name in enumerate(("own", "first", "last")))
    elsewhere = Shown("elsewhere", ran(workload="spirals"), 3, "elsewhere")
    assert reference.of(own, [first, last, elsewhere, own]) is last
    assert reference.of(own, [elsewhere, own]) is None


def test_the_run_before_is_a_ghost_unless_it_is_on_the_page_or_of_another_task(monkeypatch):
    run = ran()
    monkeypatch.setattr(reference.session, "before", lambda: "/runs/a")
    monkeypatch.setattr(reference.session, "load", lambda folder: run)
    assert reference.before(run.experiment, []).ghost
    assert reference.before(run.experiment, ["a"]) is None
    assert reference.before(Experiment.of({"workload": "spirals"}), []) is None


def test_what_counts_as_an_update_is_said_in_the_table():
    assert "Local steps are not counted" in table._explained("updates")
