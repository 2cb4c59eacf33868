"""Comparing runs of scripts: the same numbers or not, where they part, and what takes longer."""

import re
import textwrap
from dataclasses import replace

import numpy as np
import pytest

from experiments.execution.script import run
from experiments.runs.script_comparison import BACKWARD, compare_numbers, longer_waits, printed_difference
from experiments.runs.script_verdict import difference, numbers, verdict
from experiments.specification.script import ScriptExperiment
from tests.quotes import quote

TRAIN = """
    import sys, torch, torch.distributed as dist
    import lockstep
    dist.init_process_group()
    w = torch.ones(1000, requires_grad=True)
    optimizer = torch.optim.SGD([w], 0.1)
    for _ in range(int(sys.argv[1])):
        optimizer.zero_grad()
        loss = (w * (dist.get_rank() + 1)).square().mean()
        loss.backward()
        dist.all_reduce(w.grad)
        lockstep.log(norm=w.grad.norm())
        optimizer.step()
    print("weight", w[0].item())
"""


def trained(steps=3, text=TRAIN, **settings):
    source = textwrap.dedent(text)
    return run(ScriptExperiment(source, "train.py", (str(steps),), **{"ranks": 3, **settings}))


@pytest.fixture(scope="module")
def base():
    return trained()


def has(words, sentences):
    return any(re.search(quote(words), one) for one in sentences)


def test_a_repetition_is_the_same_run(base):
    again = trained()
    assert verdict(base, again) == ["the same run, bit for bit, times included"] and difference(base, again) == ""


def test_a_slow_rank_changes_when_and_not_what(base):
    slow = trained(slow="1:50")
    found = compare_numbers(base, slow)
    assert (found.compared, found.longer, found.missing, found.first) == (18, False, (), None)
    told = verdict(base, slow)
    assert has("the same numbers: 18 … bit for bit", told) and has("times as long", told)
    assert has("more for rank 1 in all_reduce at line 11 of train.py", told), told
    assert has("their times first differ in step 1: all ranks together wait for", told)
    longest = longer_waits(base, slow)[0]
    assert (longest.culprit, longest.what, longest.ranks) == (1, "all_reduce", 2) and longest.seconds > 0
    assert has("less for rank 1", verdict(slow, base)) and has("a step is … times as fast", verdict(slow, base))
    assert "the numbers are the same, but the times differ" in difference(base, slow)


def test_another_rule_parts_at_the_first_number_that_it_changes(base):
    other = trained(text=TRAIN.replace("0.1)", "0.1001)"))
    first = compare_numbers(base, other).first
    assert (first.name, first.rank, first.step) == (BACKWARD, 0, 1)
    values = [one.losses["loss"][(one.losses["rank"] == 0) & (one.losses["step"] == 1)][0] for one in (base, other)]
    assert first.values == tuple(values) and values[0] != values[1] and 0 < first.apart <= first.most
    assert has("the scripts differ from line 6 on", verdict(base, other))
    assert has("the numbers first differ in step 1: loss of backward() on rank 0", verdict(base, other))


def test_one_bit_in_one_logged_value_of_one_rank_is_found(base):
    value = base.measures["value"].copy()
    row = int(np.flatnonzero((base.measures["rank"] == 2) & (base.measures["step"] == 2))[0])
    value[row] = np.nextafter(value[row], np.inf)
    first = compare_numbers(base, replace(base, measures={**base.measures, "value": value})).first
    assert (first.name, first.rank, first.step) == ("norm", 2, 2) and first.most < 1e-15


def test_runs_of_different_length_are_compared_as_far_as_both_go(base):
    longer = trained(steps=5)
    found = compare_numbers(base, longer)
    assert (found.compared, found.longer, found.first) == (18, True, None)
    assert "as far as both runs go: 18" in numbers(base, longer)
    assert "as far as both runs go" in difference(base, longer)


def test_what_only_one_has_is_named_and_the_rest_is_compared(base):
    silent = trained(text=TRAIN.replace("lockstep.log(norm=w.grad.norm())", "pass"))
    found = compare_numbers(base, silent)
    assert (found.compared, found.missing) == (9, ("norm",)) and "not in both: norm" in numbers(base, silent)
    mute = """
        print("nothing")
    """
    assert "no numbers to compare" in numbers(trained(text=mute), trained(text=mute))


def test_other_numbers_of_ranks_are_not_compared_rank_by_rank(base):
    assert "different numbers of ranks" in numbers(base, trained(ranks=2))


def test_printed_lines_are_compared_rank_by_rank_whatever_the_order(base):
    assert printed_difference(base, replace(base, printed=base.printed[::-1])) is None
    other = (*base.printed[:-1], (base.printed[-1][0], "weight 7"))
    rank, _, line = printed_difference(base, replace(base, printed=other))
    assert (rank, line) == (base.printed[-1][0], "weight 7")
    assert "printed" in difference(base, replace(base, printed=other, digest="other"))
    assert printed_difference(base, replace(base, printed=base.printed[:-1]))[2] is None


def test_a_run_that_failed_differs_from_one_that_did_not(base):
    failed = replace(base, status="failed", error="rank 0 failed.", digest="other")
    assert re.search(quote("one finished; the other failed: rank 0 failed"), difference(base, failed))
