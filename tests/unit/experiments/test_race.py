"""Races of two small real runs."""

import math
import re
from functools import cache

import numpy as np
import pytest

from experiments.experiment import Experiment
from experiments.plots import race
from experiments.plots.canvases import curve
from experiments.plots.column_codec import unpack
from experiments.plots.pictures import Shown
from experiments.run import run


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
    assert race.verdict(pair(gone, ran()), target).endswith("A never does.")


def test_who_is_first_wins_by_the_time_between_both():
    fast, slow = ran(), ran(slow="1:200")
    told = race.verdict(pair(slow, fast), race.finish([fast, slow]))
    assert re.fullmatch(
        r"B wins: it reaches a held-out loss of \S+ after \S+ .s of virtual time\. "
        r"A gets there \S+ .s later: it takes \S+ times as long\.",
        told,
    )
    assert race.verdict(pair(fast, fast), 1.0).startswith("A dead heat")
    assert race.verdict(pair(fast, slow), 0.0).startswith("Neither reaches")


def test_both_timelines_keep_their_spans_one_below_the_other():
    three, two = ran(workers=3).trace, ran(workers=2).trace
    whole = race.stacked([three, two])
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
