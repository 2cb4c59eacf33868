"""Races of two small real runs."""

import math
import re
from functools import cache

import numpy as np
import pytest

from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from experiments.viewer import curves, race, waits
from experiments.viewer.canvases import curve, timeline
from experiments.viewer.column_codec import unpack
from experiments.viewer.pictures import Shown
from experiments.wording import units


@cache
def ran(**values):
    return run(Experiment.of({"workload": "quadratic", "steps": 20, "evaluations": 20, **values}))


def pair(*runs):
    return [Shown(name, one, number) for number, (name, one) in enumerate(zip("AB", runs, strict=True))]


def test_the_finish_is_the_worse_of_both_ends_so_that_both_arrive():
    near, far = ran(), ran(learning_rate=0.1)
    target = race.finish([near, far])
    assert target == far.summary["held_out_loss"] > near.summary["held_out_loss"]
    assert not any(math.isnan(one.seconds) for one in race.arrivals(pair(near, far), target))


def test_a_run_that_diverged_sets_no_finish_and_never_arrives():
    gone = ran(learning_rate=1000.0, steps=200)
    target = race.finish([gone, ran()])
    assert gone.status == "diverged" and target == ran().summary["held_out_loss"]
    assert "With seed 0 B is first" in race.verdict(pair(gone, ran()), target)
    assert "A never does." in race.verdict(pair(gone, ran()), target)


def test_of_one_seed_who_is_first_is_told_with_the_seed_and_is_called_no_win():
    fast, slow = ran(), ran(slow="1:200")
    told = race.verdict(pair(slow, fast), race.finish([fast, slow]))
    assert re.fullmatch(
        r"With seed 0 B is first: it reaches a held-out loss of \S+ after \S+ .s of virtual time\. "
        r"A gets there \S+ .s later: it takes \S+ times as long\. With one seed, this may be chance\.",
        told,
    )
    assert race.verdict(pair(fast, fast), 1.0).startswith("With seed 0 it is a dead heat")
    assert race.verdict(pair(fast, slow), 0.0).startswith("Neither reaches")
    assert race.verdict(pair(fast, ran(slow="1:200", seed=3)), 1.0).startswith("In one run of each")


def seeded(name, number, runs):
    return Shown(f"{name}, {len(runs)} seeds", runs[0], number, others=tuple(runs[1:]))


def test_over_seeds_times_are_the_mean_of_each_seeds_own_arrival_and_a_win_is_said_of_all():
    slow = seeded("A", 0, [ran(slow="1:200", seed=seed) for seed in range(3)])
    fast = seeded("B", 1, [ran(seed=seed) for seed in (1, 0, 2)])  # heats are put together by seed
    target = race.finish([*slow.runs, *fast.runs])
    first, second = race.arrivals([slow, fast], target)
    for arrival, one in ((first, fast), (second, slow)):
        assert arrival.seconds == pytest.approx(np.mean([curves.time_to_loss(run, target) for run in one.runs]))
    told = race.verdict([slow, fast], target)
    assert re.fullmatch(
        r"B wins in all 3 seeds\. To a held-out loss of \S+ B takes \S+( ± \S+)? .s of virtual time, "
        r"A takes \S+( ± \S+)? .s, \S+( to \S+)? times as long, seed by seed\.",
        told,
    )
    assert units.seconds(first.seconds).split()[0][:2] in told


def test_a_win_that_one_seed_breaks_is_counted_and_is_no_win():
    one = seeded("A", 0, [ran(seed=0), ran(seed=1), ran(seed=2, slow="1:200")])
    other = seeded("B", 1, [ran(seed=0, slow="1:200"), ran(seed=1, slow="1:200"), ran(seed=2)])
    told = race.verdict([one, other], race.finish([*one.runs, *other.runs]))
    assert told.startswith("No winner: A is first in 2 of 3 seeds, B in 1. To a held-out loss of ")


def test_a_seed_that_never_arrives_leaves_no_mean_and_is_counted():
    far = seeded("A", 0, [ran(seed=0), ran(seed=1, learning_rate=1e-6)])
    near = seeded("B", 1, [ran(seed=0), ran(seed=1)])
    target = race.finish(near.runs)
    assert math.isnan(race.arrivals([far, near], target)[1].seconds)
    assert "A gets there in only 1 of 2 seeds" in race.verdict([far, near], target)


def test_what_both_timelines_say_of_waiting_is_told_of_each_run_by_itself():
    shown = pair(ran(slow="1:200"), ran(workers=2, slow="1:200"))
    header, _ = unpack(race.lanes(shown, "name", race.finish([one.run for one in shown])))
    for one in shown:
        said = waits.totals(one.run)
        assert said and f"{one.name}: {said[0].lower()}{said[1:]}" in header["told"]


def test_both_timelines_keep_their_spans_one_below_the_other():
    three, two = ran(workers=3).trace, ran(workers=2).trace
    whole = timeline.stack_traces([three, two])
    assert whole.ranks == 5
    for below, trace in ((0, three), (3, two)):
        for rank in range(trace.ranks):
            lane, own = (t.spans["rank"] == r for t, r in ((whole, rank + below), (trace, rank)))
            np.testing.assert_array_equal(whole.spans["start"][lane], trace.spans["start"][own])
            labels = [[t.labels[n] for n in t.spans["label"][s]] for t, s in ((whole, lane), (trace, own))]
            assert labels[0] == labels[1]
    assert set(whole.messages["src"][whole.messages["src"] >= 3]) <= {3, 4}


def test_lanes_carry_the_mark_and_the_colour_of_their_run():
    shown = pair(ran(workers=3), ran(workers=2))
    header, _ = unpack(race.lanes(shown, "name", race.finish([one.run for one in shown])))
    assert header["lanes"] == [f"● worker {n}" for n in range(3)] + [f"■ worker {n}" for n in range(2)]
    assert header["colours"] == [one.line.colour for one in shown for _ in range(one.run.trace.ranks)]
    assert header["clock"] and [flag["lane"] for flag in header["flags"]] == [0, 3]


def test_the_finish_lies_across_the_curves_where_each_run_arrives():
    shown = pair(ran(), ran(slow="1:200"))
    target = race.finish([one.run for one in shown])
    header, _ = unpack(curve.frame(race.picture(shown, target), ""))
    finish = header["finish"]
    assert finish["target"] == target and finish["until"] == finish["arrivals"][1]["seconds"]
    assert header["x"]["most"] * finish["unit"] == pytest.approx(shown[1].run.summary["seconds"])


def test_of_runs_of_which_one_ends_where_both_began_nobody_wins():
    worse, good = ran(learning_rate=2.2, noise=1, steps=60), ran(steps=60, noise=1)
    target = race.finish([worse, good])
    assert target >= float(good.evaluations["loss"][0])
    assert race.verdict(pair(worse, good), target).startswith("No race: both start at or below a held-out loss of ")
