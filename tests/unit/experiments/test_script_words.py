"""A run of a script in a sentence, and what changed since another one."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cluster.script_summary import Summary, WaitFor
from experiments.cli import progress_bar
from experiments.execution.script import run as run_script
from experiments.runs.progress import Progress
from experiments.specification.script import ScriptExperiment
from experiments.viewer import script_pictures, script_words
from experiments.viewer.column_codec import unpack
from experiments.wording.script_summary import lines, position, share_of_time

HERE = "line 31 of train.py"


def summary(ranks=4, seconds=1.0, steps=10, waits=(), wait=0.0, messages=9):
    each = np.full(ranks, seconds)
    return Summary(
        ranks=ranks, seconds=seconds, steps=steps, step_seconds=0.1 if steps else float("nan"), losses={},
        logged={}, compute=(1 - wait) * each, communicate=0 * each, wait=wait * each, idle=0 * each, memory={},
        sent=each, messages=messages, waits=tuple(waits), waits_over=seconds,
    )  # fmt: skip


def run(status="finished", **numbers):
    return SimpleNamespace(status=status, summary=summary(**numbers))


def test_the_sentence_names_the_rank_that_others_wait_for_with_their_share_and_the_line():
    one = WaitFor(2, "all_reduce", HERE, 1.5, 3)
    assert script_words.headline(run(waits=[one])) == (
        "A step takes 100 ms; rank 2 makes the others wait 50.0 % of the time after the first step, "
        f"in all_reduce at {HERE}."
    )
    other = WaitFor(2, "broadcast", "", 0.5, 3)
    assert f"wait 66.7 % of the time after the first step, mostly in all_reduce at {HERE}." in script_words.headline(
        run(waits=[one, other])
    )


def test_of_two_ranks_the_one_that_waits_is_named():
    one = WaitFor(1, "receive", "", 0.5, 1)
    assert "rank 1 makes rank 0 wait 50.0 %" in script_words.headline(run(ranks=2, waits=[one]))


def test_if_no_rank_causes_most_of_the_waiting_the_sentence_says_how_much_all_wait():
    waits = [WaitFor(rank, "send", HERE, seconds, 1) for rank, seconds in enumerate((0.4, 0.5, 0.4, 0.4))]
    said = script_words.headline(run(waits=waits, wait=0.425))
    assert said.endswith(
        f"ranks wait for one another 42.5 % of the time after the first step, longest for rank 1, in send at {HERE}."
    )


def test_a_summary_whose_waits_have_several_lines_says_first_who_causes_most_of_them():
    def first(*waits):
        return [text for _, text in lines(summary(waits=waits, wait=0.5))][3]

    late, later = WaitFor(2, "send", HERE, 0.6, 3), WaitFor(1, "receive", HERE, 0.4, 3)
    assert first(late, later) == "after the first step, rank 2 causes 60.0 % of all waiting:"
    assert "rank 2 causes 42.9 % of all waiting, more than any other" in first(late, later, replace(later, culprit=3))
    assert "the network causes 60.0 % of all waiting" in first(replace(late, culprit=-1), later)
    assert first(late) == "after the first step:"


def test_a_summary_says_which_rank_computes_longest_what_its_waits_cost_and_no_share_of_nothing():
    one = summary(waits=[WaitFor(2, "all_reduce", HERE, 1.5, 3)], wait=0.5)
    one = replace(one, compute=np.array([0.1, 0.1, 0.4, 0.1]), idle=np.full(4, 1e-5))
    said = [text for _, text in lines(one)]
    assert "rank 2 computes longest: 4 times as long as the median rank" in said
    assert any(
        text.endswith(f"for rank 2 in all_reduce at {HERE}: 55.6 ms per step on average, 50.0 % of the time")
        for text in said
    )
    assert not any(
        "idle or blocked" in text or "longest" in text for _, text in lines(replace(one, compute=np.full(4, 0.5)))
    )


def test_a_rank_that_waits_alone_is_named_unless_an_older_version_stored_the_run():
    for waiter, words in (
        (3, "rank 3 waits for rank 2 in send: 55.6 ms per step, 50.0 % of the time"),
        (-1, "1 rank waits for"),
    ):
        one = summary(waits=[WaitFor(2, "send", "", 0.5, 1, waiter)], wait=0.5)
        assert any(text.startswith(words) for _, text in lines(one))


def test_a_summary_says_how_many_waits_it_leaves_out_and_that_most_were_at_the_start():
    waits = [WaitFor(rank, "send", "", 0.4, 1, 0) for rank in range(1, 7)]
    said = [text for _, text in lines(summary(ranks=7, waits=waits, wait=0.4))]
    assert said.count("and 2 more") == 1 and not any("start-up and in" in text for text in said)
    said = [text for _, text in lines(summary(ranks=7, waits=waits[:3], wait=0.4))]
    assert any(text.endswith("40.0 % of the whole run, mostly at start-up and in the first step") for text in said)
    assert not any(text.startswith("and ") for text in said)


def test_shares_of_a_single_rank_are_no_average():
    for ranks, words in ((1, "computing 100.0 % of the whole run"), (2, "of the whole run on average")):
        assert share_of_time(summary(ranks=ranks)).endswith(words)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"ranks": 1}, "A step takes 100 ms; a single rank waits for nobody."),
        ({"messages": 0}, "A step takes 100 ms; no rank sends anything, so each works alone."),
        ({"steps": 0}, "The run takes 1 s; no rank keeps the others waiting"),
        ({"waits": [WaitFor(0, "send", "", 0.01, 1)]}, "no rank keeps the others waiting"),
        ({"seconds": 0.0}, "it calls no torch operation"),
        ({"status": "failed"}, "The script failed after 10 steps."),
        ({"status": "failed", "steps": 0}, "The script failed after 1 s of virtual time."),
        ({"status": "cancelled", "steps": 1}, "The script was stopped after 1 step."),
    ],
)
def test_other_runs_have_a_sentence_too(numbers, words):
    assert words in script_words.headline(run(**numbers))


def test_changes_are_named_as_a_reader_would_say_them():
    one = ScriptExperiment("pass", "train.py", ranks=8)
    for changed, words in (
        ({"slow": "5:4"}, ["rank 5 four times slower"]),
        ({"ranks": 16, "network": "1GbE"}, ["ranks 8 → 16", "network 10GbE → 1GbE"]),
        ({"steps": 5}, ["steps none → 5"]),
        ({"source": "print()"}, ["the script edited"]),
        ({"source": "print()", "path": "other.py"}, ["another script"]),
        ({}, []),
    ):
        assert script_words.changes(one, replace(one, **changed)) == words
    assert script_words.changes(replace(one, slow="5:4"), one) == ["rank 5 as fast as usual"]


def test_progress_without_a_known_end_has_no_percentage_and_names_its_time(monkeypatch, capsys):
    monkeypatch.setattr(progress_bar, "PATIENCE", 0.0)
    monkeypatch.setattr(progress_bar, "EVERY", 0.0)
    for fraction, step, words in ((0.0, -1, "train.py  2 ms of virtual"), (0.5, 3, " 50 %  train.py  step 3, 2 ms of")):
        with progress_bar.Bar("train.py") as bar:
            bar(Progress(fraction, 0.002, float("nan"), None, {}, {}, position(step, 0.002)))
        assert capsys.readouterr().err.startswith(words)


def test_a_timeline_names_no_step_of_a_script_whose_optimizer_takes_none():
    lines = (
        "import torch, torch.distributed as dist\ndist.init_process_group()\nmodel = torch.nn.Linear(64, 64)\n"
        "model(torch.ones(64, 64)).sum().backward()\n"
    )
    for optimizer, steps in (("", False), ("torch.optim.SGD(model.parameters(), 0.1).step()\n", True)):
        made = run_script(
            ScriptExperiment(f"{lines}dist.all_reduce(model.weight.grad)\n{optimizer}", "sum.py", ranks=2, slow="1:8")
        )
        _, columns = unpack(script_pictures.timeline_frame(made, "it"))
        _, why = unpack(columns["why"].tobytes())
        _, spans = unpack(columns["timeline"].tobytes())
        assert bool((spans["step"] >= 0).any()) == steps
        assert steps or not why["without"].any()
