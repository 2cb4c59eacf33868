from dataclasses import replace

import numpy as np
import pytest

from experiments.specification.experiment import Experiment
from experiments.viewer.canvases import timeline
from experiments.viewer.column_codec import unpack
from experiments.viewer.lanes import troubles
from experiments.viewer.story import LOST, PAUSED, aftermath, end_times, story
from experiments.wording import naming
from tests.fabricated import STEPS
from tracing import COMMUNICATE, COMPUTE, IDLE, WAIT, Trace

NAMES = ["worker 0", "worker 1", "worker 2"]
STEP = 1e-3  # s


def trace(*idle: tuple[int, float, float, str], wait: float = 0.0, steps: int = STEPS, ends: int = STEPS) -> Trace:
    """Three ranks that compute and communicate; `idle` spans (rank, start, end, label) take the place of others.

    In step 20 rank 0 waits for so many s, by which all that follows is later. Rank 1 has only the steps up to `ends`.
    """
    labels = ("gradient", "all-reduce", *dict.fromkeys(label for *_, label in idle))
    rows = [(rank, IDLE, start, end, -1, labels.index(label)) for rank, start, end, label in idle]
    for rank in range(3):
        for step in range(min(steps, ends) if rank == 1 else steps):
            at = step * STEP + (wait if step > 20 else 0)
            if any(rank == other and start <= at < end for other, start, end, _ in idle):
                continue
            rows += [
                (rank, COMPUTE, at, at + 0.6 * STEP, step, 0),
                (rank, COMMUNICATE, at + 0.6 * STEP, at + STEP, step, 1),
            ]
            if step == 20 and rank == 0 and wait:
                rows.append((rank, WAIT, at + STEP, at + STEP + wait, step, 1))
    rows.sort(key=lambda row: row[2])
    names, types = ("rank", "kind", "start", "end", "step", "label"), ("i4", "i1", "f8", "f8", "i4", "i4")
    spans = {
        name: np.array(column, kind) for name, kind, column in zip(names, types, zip(*rows, strict=True), strict=True)
    }
    empty = {"src": "i4", "dst": "i4", "tag": "i4", "bytes": "i8", "sent": "f8", "arrived": "f8", "collective": "?"}
    return Trace(3, spans, {name: np.zeros(0, kind) for name, kind in empty.items()}, labels)


@pytest.fixture
def told(made):
    """told(trace, **record) is the story of a run with that trace."""
    run = made(Experiment(workers=3))
    losses = {**run.losses, "seconds": (run.losses["step"] + 1) * STEP}
    return lambda trace, **record: story(replace(run, trace=trace, losses=losses, **record), NAMES)


def holds(window, at: float) -> bool:
    return window[0] <= at <= window[1]


def test_a_run_without_events_opens_at_a_typical_step_in_its_middle(told):
    start, end = told(trace()).opening
    assert 0.3 * STEPS * STEP < start < end < 0.7 * STEPS * STEP
    assert 2 * STEP <= end - start < 10 * STEP


def test_a_run_opens_while_all_of_its_ranks_train_although_one_waits_long_when_another_has_ended(told):
    for wait in (0.0, 5 * STEP):
        seen = told(trace(wait=wait, ends=10))
        assert 0.3 * 10 * STEP < seen.opening[0] < 10 * STEP
        assert [chip.text for chip in seen.chips if chip.start > 10 * STEP] == ["longest wait"] * (wait > 0) + ["end"]


def test_a_run_that_loses_a_rank_opens_where_it_is_lost_and_says_when(told):
    seen = told(trace((1, 0.03, 0.04, LOST)))
    assert holds(seen.opening, 0.03)
    assert seen.flags == ((0.03, 1, "lost"),)
    assert [chip.text for chip in seen.chips] == ["start", "typical step", "worker 1 lost at 30 ms", "end"]


def test_a_rank_that_comes_back_has_a_flag_for_that_too(told):
    seen = told(trace((1, 0.01, 0.02, LOST)))
    assert [(flag.at, flag.text) for flag in seen.flags] == [(0.01, "lost"), (0.02, "back")]


def test_a_run_in_which_a_rank_pauses_opens_there(told):
    assert holds(told(trace((2, 0.015, 0.018, PAUSED))).opening, 0.015)


def test_a_pause_and_a_loss_are_told_as_in_the_headline_with_how_long_the_pause_is(made):
    paused, lost = trace((2, 0.015, 0.018, PAUSED)), trace((1, 0.0298, 0.04, LOST))
    for done, values in ((paused, {"pause": "2:0.0146-0.018"}), (lost, {"crash": "1:0.03"})):
        experiment = Experiment.of({"workers": 3, **values})
        ((_, words),) = naming.faults(experiment)
        assert words in [chip.text for chip in story(replace(made(experiment), trace=done), NAMES).chips]
    assert words == "worker 1 lost at 30 ms"
    plain = replace(made(Experiment(workers=3)), trace=paused)
    assert "worker 2 pauses at 15 ms for 3 ms" in [chip.text for chip in story(plain, NAMES).chips]


def test_a_run_that_diverges_opens_at_its_first_loss_that_is_not_finite(told, made):
    losses = made(Experiment(workers=3)).losses
    losses = {**losses, "seconds": (losses["step"] + 1) * STEP, "loss": np.where(losses["step"] >= 32, np.nan, 1.0)}
    run = replace(made(Experiment(workers=3)), trace=trace(), losses=losses, status="diverged")
    assert holds(story(run, NAMES).opening, 33 * STEP)


def test_a_run_opens_at_a_wait_far_longer_than_a_step_and_only_offers_a_shorter_one(told):
    for wait, opens in ((5 * STEP, True), (0.5 * STEP, False)):
        seen = told(trace(wait=wait))
        (chip,) = (chip for chip in seen.chips if chip.text == "longest wait")
        assert holds(chip[1:], 21 * STEP) and holds(chip[1:], 21 * STEP + wait)
        assert (seen.opening == chip[1:]) is opens


def test_a_run_that_can_be_read_as_a_whole_is_shown_as_a_whole(told):
    seen = told(trace(steps=5))
    assert seen.opening is None and not seen.chips


def test_every_window_lies_in_the_run(told):
    for one in (trace(), trace((0, 0.0, 0.001, LOST)), trace((1, 0.039, 0.04, LOST))):
        seen = told(one)
        assert all(0 <= chip.start < chip.end <= one.seconds() + 1e-12 for chip in seen.chips)


def test_ranks_that_cannot_go_on_without_a_lost_one_wait_beyond_the_end_of_the_run(made):
    lost = trace((1, 0.03, 0.0304, LOST), steps=30)
    run = replace(made(Experiment(workers=3)), trace=lost, status="failed")
    after = aftermath(run, NAMES)
    last = {int(rank): n for n, rank in enumerate(after.spans["rank"])}
    assert after.seconds() > run.trace.seconds()
    for rank, kind in ((0, WAIT), (1, IDLE), (2, WAIT)):
        n = last[rank]
        assert after.spans["kind"][n] == kind and after.spans["end"][n] == after.seconds()
    assert after.labels[after.spans["label"][last[0]]] == "waits for worker 1, lost"
    assert unpack(timeline.frame(run, "a"))[0]["end"] == pytest.approx(run.trace.seconds())


def test_a_run_whose_survivors_go_on_has_nothing_after_its_end(made):
    run = replace(made(Experiment(workers=3)), trace=trace((1, 0.03, 0.04, LOST)), status="finished")
    assert aftermath(run, NAMES) is run.trace


def test_below_the_name_of_a_lane_stands_what_was_done_to_its_rank(made):
    run = made(Experiment.of({"workers": 3, "slow": "1:5", "crash": "0:9,2:0.04"}))
    run = replace(run, trace=trace((2, 0.04, STEPS * STEP, LOST)))  # rank 0 had finished before it was to be lost
    header = unpack(timeline.frame(run, "a"))[0]
    assert header["lanes"] == ["worker 0", "worker 1", "worker 2"]
    assert header["notes"] == troubles(run) == ["", "5× slower", "lost"]


def test_of_a_finished_run_each_rank_that_lived_is_done_with_its_last_span(made):
    run = made(Experiment(workers=3))
    early = replace(run, trace=trace(ends=10))
    assert end_times(early) == pytest.approx([STEPS * STEP, 10 * STEP, STEPS * STEP])
    lost = replace(run, trace=trace((1, 10 * STEP, STEPS * STEP, LOST)))
    assert end_times(lost)[1] is None and end_times(replace(early, status="diverged")) == [None] * 3
