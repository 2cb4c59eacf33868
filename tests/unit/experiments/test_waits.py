import re

import numpy as np
import pytest

from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from experiments.study.schedules import Plan, study
from experiments.viewer import waits
from experiments.viewer.canvases import schedule, timeline
from experiments.viewer.column_codec import unpack
from experiments.viewer.lanes import lane_names
from experiments.wording import units
from tracing import WAIT


@pytest.fixture(scope="module")
def slowed():
    return run(Experiment.of({"algorithm": "sync_sgd", "slow": "2:5", "steps": 12}))


def test_a_wait_is_told_in_a_sentence_with_its_cause_and_what_the_step_would_take_without_it(slowed):
    part, row = waits.add_causes(slowed.trace, slowed.causes), np.flatnonzero(slowed.trace.spans["kind"] == WAIT)[0]
    assert waits.sentence(part, row, lane_names(slowed)) == (
        "waits 517 µs for worker 2, whose gradient takes 5 times as long as usual; "
        "with worker 2 as fast as usual, the step would take 428 µs"
    )


def test_that_a_server_has_nothing_to_do_is_no_waiting_and_that_ranks_wait_for_a_lost_one_is():
    served = run(Experiment.of({"algorithm": "easgd", "network": "ideal", "steps": 20}))
    assert served.causes.totals.sum() > 0.1 * served.trace.busy().sum()  # of the server, nearly all
    assert "caused by" not in waits.totals(served)
    stopped = run(Experiment.of({"algorithm": "sync_sgd", "crash": "2:0.002", "steps": 20}))
    assert waits.totals(stopped) == "At the end the others wait for worker 2, which stopped."


def test_the_first_wait_of_a_pipelines_stage_is_for_its_fill_and_not_for_the_network():
    done = run(Experiment.of({"algorithm": "gpipe", "steps": 2}))
    part, names = waits.add_causes(done.trace, done.causes), lane_names(done)
    spans = part.spans
    for stage in (1, 2, 3):
        row = np.flatnonzero((spans["rank"] == stage) & (spans["kind"] == WAIT))
        first, *others = (waits.sentence(part, n, names) for n in row)
        assert f"for its first input, which comes through stage {stage - 1} (the pipeline fills)" in first
        assert others and not any("fills" in one for one in others)
    assert waits.FILL not in spans["how"][spans["rank"] == 0]


def test_ranks_that_compute_before_they_meet_are_said_to_fill_no_pipeline(slowed):
    for done in (slowed, run(Experiment.of({"algorithm": "asgd", "steps": 5}))):
        assert waits.FILL not in waits.add_causes(done.trace, done.causes).spans["how"]


def test_who_caused_most_waiting_is_told_in_a_sentence(slowed):
    assert waits.totals(slowed) == "Workers waited 43.7 % of their time, all of that wait caused by worker 2."
    assert waits.totals(run(Experiment.of({"algorithm": "sync_sgd", "steps": 5}))) == ""  # nobody waits worth a word


def test_how_much_was_waited_is_one_number_on_the_page(slowed):
    for done in (slowed, run(Experiment.of({"algorithm": "easgd", "slow": "2:5", "steps": 20, "network": "1GbE"}))):
        share = units.percent(done.summary["share_wait"])
        assert f" waited {share} of their time" in waits.totals(done)
        assert f" {share} wait" in timeline.describe(done)


def columns(frame):
    return unpack(unpack(frame)[1]["why"].tobytes())[1]


def test_a_frame_of_a_long_run_has_the_causes_of_its_window_alone(slowed):
    whole, part = (columns(timeline.frame(slowed, "name", (0.0, 0.002), most=most)) for most in (None, 60))
    assert 0 < len(part["row"]) < len(whole["row"])
    assert len(part["critical"]) <= 60
    assert set(part["culprit"][part["how"] == waits.HOW.index("slow")]) == {2}


def test_the_passes_of_a_pipeline_have_the_colours_of_a_schedule():
    done = run(Experiment.of({"algorithm": "zb_h1", "workers": 3, "steps": 2}))
    header, _ = unpack(timeline.frame(done, "name"))
    other, _ = unpack(schedule.frame(study(Plan.of(schedule="zb_h1", ranks=3, chunks=4))))
    for kind in ("forward", "backward of inputs", "backward of weights"):
        assert header["look"][kind] == other["look"][kind]


@pytest.mark.parametrize(
    "values",
    [
        {"algorithm": "gpipe"},
        {"algorithm": "easgd", "workers": 16},
        {"algorithm": "asgd"},
        {"algorithm": "easgd", "steps": 200},
    ],
)
def test_the_shares_of_what_ranks_waited_for_add_up(values):
    told = waits.totals(run(Experiment.of({"steps": 20, **values})))
    shares = [float(one) for one in re.findall(r"([\d.]+) % (?!of their|each)", told)]
    assert len(shares) > 1 and sum(shares) == 100


def test_a_rank_that_alone_is_behind_a_reason_is_named_among_the_rest():
    assert waits.totals(run(Experiment.of({"algorithm": "asgd", "steps": 20}))).endswith(
        "79 % of that wait for the network, 16 % caused by server 0, 5 % in the queue at server 0."
    )


def test_an_idle_slot_of_a_schedule_is_told_as_a_wait_of_a_run_is():
    found = study(Plan.of(schedule="1f1b", ranks=3, chunks=4, latency=0.5))
    header, outer = unpack(schedule.frame(found))
    text, spans = unpack(outer["timeline"].tobytes())
    why_of = columns(schedule.frame(found))
    for place, by, how, what in zip(*(why_of[name] for name in ("row", "by", "how", "what")), strict=True):
        said = text["labels"][spans["label"][place]]
        assert header["kinds"][spans["kind"][place]] == "idle"
        assert f"waits for {text['labels'][what]} " in said and said.endswith(f"rank {by}")
        assert (waits.HOW[how] == "network") == ("over the link" in said)


def test_what_a_rank_is_at_work_on_is_its_gradient_and_an_op_of_a_pipeline_has_a_name():
    for algorithm, said in (("sync_sgd", r"is at work on its gradient$"), ("gpipe", r"is at work on [FB]\d$")):
        done = run(Experiment.of({"algorithm": algorithm, "workers": 3, "steps": 4}))
        part = waits.add_causes(done.trace, done.causes)
        rows = np.flatnonzero((part.spans["kind"] == WAIT) & (part.spans["how"] == waits.AT_WORK))
        told = [waits.sentence(part, row, lane_names(done)) for row in rows]
        assert any(re.search(said, one) for one in told), told


def test_a_few_ranks_that_cause_waiting_alike_are_named():
    told = waits.totals(run(Experiment.of({"algorithm": "gpipe", "steps": 20})))
    assert re.search(r"caused by stages \d to \d, \d+ to \d+ % each", told), told
    assert waits._several(["worker 1", "worker 2", "worker 4"]) == "workers 1, 2 and 4"
    assert waits._several([f"worker {n}" for n in range(9)]) == "9 workers"
    assert waits._several(["server 0", "worker 1", "worker 2"]) == "3 ranks"


def test_a_server_and_a_worker_that_cause_the_rest_of_the_waiting_are_called_ranks():
    totals = np.zeros((2, 1 + max(waits.NETWORK, waits.QUEUE, waits.STOPPED, waits.UNKNOWN, waits.WORK)))
    totals[0, waits.NETWORK], totals[:, waits.WORK] = 6, (3, 1)
    shares = {"for the network": 6.0, "caused by server 0": 3.0, "caused by worker 2": 1.0}
    assert waits._rest(totals, shares, ["for the network"])["caused by 2 ranks, 10 to 30 % each"] == 4


def test_waiting_that_many_ranks_cause_alike_is_told_with_what_each_of_them_caused():
    told = waits.totals(run(Experiment.of({"workers": 16, "jitter": "cloud", "steps": 200})))
    assert re.search(r"caused by 1\d workers, \d+ to \d+ % each", told) and "caused by others" not in told
    one = waits.totals(run(Experiment.of({"workers": 16, "jitter": "pareto", "steps": 60})))
    assert re.search(r"caused by worker \d+, \d+ % caused by 1\d others, \d+ to \d+ % each", one)
