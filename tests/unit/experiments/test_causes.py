import numpy as np
import pytest

from cluster.waiting.causes import causes
from cluster.waiting.pieces import NETWORK, QUEUE, STOPPED, WORK
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from experiments.study.schedules import Plan, study
from tests.schedule_trace import traced
from tracing import COMMUNICATE, COMPUTE, IDLE, MESSAGES, SPANS, UPDATE, WAIT, Trace

LABELS = ("gradient", "receive", "lost", "sgd")
GRADIENT, RECEIVE, LOST, SGD = range(len(LABELS))


def waited(trace):
    waits = trace.spans["kind"] == WAIT
    return (trace.spans["end"] - trace.spans["start"])[waits].sum()


def ran(algorithm, steps=20, workload="quadratic", **more):
    return run(Experiment.of({"algorithm": algorithm, "workload": workload, "steps": steps, **more}))


def made(ranks, spans, messages=()):
    """A trace of (rank, kind, start, end, label) and (src, dst, bytes, sent, arrived)."""
    spans = [(rank, kind, start, end, 0, label) for rank, kind, start, end, label in sorted(spans, key=lambda s: s[2])]
    messages = [(src, dst, 0, size, sent, arrived, False) for src, dst, size, sent, arrived in messages]
    columns = (
        {name: np.array([row[n] for row in rows], float if name in ("start", "end", "sent", "arrived") else int)
         for n, name in enumerate(names)}
        for rows, names in ((spans, SPANS), (messages, MESSAGES))
    )  # fmt: skip
    spans, messages = columns
    return Trace(ranks, spans, messages | {"collective": messages["collective"] > 0}, LABELS)


@pytest.mark.parametrize(
    "how",
    [
        {"algorithm": "sync_sgd", "jitter": "cloud", "slow": "1:3"},
        {"algorithm": "sync_sgd", "jitter": "cloud", "collective": "ring"},
        {"algorithm": "overlap", "jitter": "cloud"},
        {"algorithm": "easgd", "jitter": "cloud"},
        {"algorithm": "ssp", "slow": "2:4"},
        {"algorithm": "adpsgd", "slow": "2:4"},
        {"algorithm": "local_sgd", "jitter": "exponential"},
        {"algorithm": "dpsgd", "crash": "2:0.002"},
    ],
    ids=lambda how: how["algorithm"],
)
def test_what_is_attributed_adds_up_to_all_waiting(how):
    trace = ran(**how).trace
    found = causes(trace)
    assert found.totals.sum() == pytest.approx(waited(trace))
    assert ((found.reason >= 0) == (trace.spans["kind"] == WAIT)).all()


@pytest.mark.parametrize("collective", ["fast", "ring", "tree"])
def test_a_straggler_is_the_cause_of_nearly_all_waiting_for_a_collective(collective):
    found = ran("sync_sgd", workload="digits", slow="2:5", collective=collective, network="ideal").causes
    assert found.totals[2, WORK] > 0.8 * found.totals.sum()


def test_how_much_longer_the_straggler_takes_and_what_the_step_would_be_without_it_is_told():
    slow, even = (ran("sync_sgd", workload="digits", slow=how) for how in ("2:5", ""))
    waits = np.flatnonzero(slow.causes.rank == 2)
    assert slow.causes.factor[waits] == pytest.approx(5)
    assert slow.causes.without[waits][3:] == pytest.approx(even.trace.seconds() / 20, rel=0.01)


def test_without_jitter_and_straggler_nobody_is_blamed_but_the_network():
    for collective in ("fast", "ring"):
        totals = ran("sync_sgd", collective=collective).causes.totals
        assert totals[:, NETWORK].sum() == pytest.approx(totals.sum(), rel=1e-3, abs=1e-12)


def test_a_rank_that_began_late_is_not_blamed_for_doing_what_others_do():
    late = [(0, COMPUTE, 0, 1, GRADIENT), (1, COMMUNICATE, 0, 3, RECEIVE), (1, COMPUTE, 3, 4, GRADIENT)]
    trace = made(2, [*late, (0, WAIT, 1, 4, RECEIVE)], [(1, 0, 8, 4, 4.5)])
    found = causes(trace)
    assert found.totals[:, WORK].sum() == 0
    assert found.totals[:, NETWORK].sum() == 3


def test_workers_that_come_at_once_wait_for_their_turn_at_the_server():
    found = ran("asgd", workers=8, steps=30).causes
    assert found.totals[0, QUEUE] > 0.3 * found.totals.sum()
    assert found.totals[1:, QUEUE].sum() < 0.02 * found.totals.sum()


def test_a_server_that_works_for_others_first_is_waited_for_in_a_queue():
    serves = [(0, WAIT, 0, 1, RECEIVE), (0, UPDATE, 1, 4, SGD), (0, UPDATE, 4, 7, SGD)]
    works = [(rank, COMPUTE, 0, 1, GRADIENT) for rank in (1, 2)]
    trace = made(
        3, [*serves, *works, (1, WAIT, 1, 4, RECEIVE), (2, WAIT, 1, 7, RECEIVE)],
        [(1, 0, 8, 1, 1), (2, 0, 8, 1, 1), (0, 1, 8, 4, 4), (0, 2, 8, 7, 7)],
    )  # fmt: skip
    found = causes(trace)
    assert (found.totals[0, WORK], found.totals[0, QUEUE]) == (6, 3)  # 3 s of work for each, and 3 s in the queue


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "zb_h1"])
def test_every_idle_slot_of_a_schedule_is_blamed_on_the_rank_that_its_study_names(name):
    found = study(Plan.of(schedule=name, ranks=4, chunks=6, latency=0.25))
    trace, slots = traced(found), found.idle["reason"] == 0
    why = causes(trace)
    waits = np.flatnonzero(trace.spans["kind"] == WAIT)
    named = {(rank, start): found.ops["rank"][need] for rank, start, need in
             zip(*(found.idle[column][slots] for column in ("rank", "start", "need")), strict=True)}  # fmt: skip
    assert {(trace.spans["rank"][n], trace.spans["start"][n]): why.by[n] for n in waits} == named


def test_the_bubble_of_gpipe_is_its_closed_form_and_every_stage_waits_for_its_neighbour():
    ranks, chunks = 4, 6
    found = study(Plan.of(schedule="gpipe", ranks=ranks, chunks=chunks))
    trace = traced(found)
    why = causes(trace)
    over = found.idle["reason"] == 2
    left = (found.idle["end"] - found.idle["start"])[over].sum()
    assert why.totals.sum() + left == ranks * (ranks - 1) * 3  # F takes 1 and B takes 2
    waits = trace.spans["kind"] == WAIT
    assert (np.abs(why.by - trace.spans["rank"])[waits] == 1).all()


@pytest.mark.parametrize("name", ["gpipe", "1f1b"])
def test_the_critical_path_of_a_trace_is_as_long_as_that_of_the_schedule(name):
    found = study(Plan.of(schedule=name, ranks=4, chunks=6))
    trace = traced(found)
    took = (trace.spans["end"] - trace.spans["start"])[causes(trace).critical]
    assert took.sum() == found.summary["makespan"]


def test_whoever_waits_for_a_lost_worker_to_the_end_blames_it():
    run = ran("dpsgd", workers=3, steps=2000, crash="2:0.002")
    spans, found = run.trace.spans, run.causes
    assert run.status == "failed"
    last = np.flatnonzero(spans["rank"] == 0)[-1]
    assert spans["kind"][last] == WAIT and spans["start"][last] > 0.002
    assert (found.by[last], found.rank[last], found.reason[last]) == (2, 2, STOPPED)


def test_a_pause_is_what_the_others_wait_for():
    found = ran("sync_sgd", workers=3, pause="1:0.0002-0.05").causes
    assert found.totals[1, STOPPED] > 0.9 * found.totals.sum()


def test_clocks_that_differ_a_little_leave_every_wait_a_cause():
    spans = [(1, COMPUTE, 0, 5, GRADIENT), (0, WAIT, 0, 5.002, RECEIVE), (0, COMMUNICATE, 5.002, 5.003, RECEIVE)]
    found = causes(made(2, spans, [(1, 0, 8, 5.004, 5.0025)]))  # sent, by the other's clock, after it arrived
    assert found.totals[1, WORK] == pytest.approx(5.002)


def test_a_trace_without_waits_or_messages_has_no_causes():
    assert causes(made(1, [(0, COMPUTE, 0, 1, GRADIENT), (0, IDLE, 1, 2, LOST)])).totals.sum() == 0
    assert causes(made(1, [])).totals.sum() == 0


def test_a_message_that_others_keep_from_a_port_is_waited_for_in_a_queue():
    serves = [(0, WAIT, 0, 1, RECEIVE), (0, COMMUNICATE, 1, 2, RECEIVE), (0, COMMUNICATE, 2, 4, RECEIVE)]
    works = [(1, COMPUTE, 0, 1, GRADIENT), (2, COMPUTE, 0, 1, GRADIENT), (2, WAIT, 1, 4, RECEIVE)]
    found = causes(made(3, serves + works, [(1, 0, 8, 1, 2), (2, 0, 8, 1, 4), (0, 2, 8, 4, 4.1)]))
    assert found.totals[0, QUEUE] == pytest.approx(1)  # until the other has passed
    assert found.totals[2, NETWORK] == pytest.approx(2)


def test_a_wait_that_never_ends_is_for_the_lost_rank_whenever_the_log_of_that_ended():
    spans = [
        (0, COMPUTE, 0, 1, GRADIENT),
        (0, WAIT, 1, 9, RECEIVE),
        (1, COMPUTE, 0, 2, GRADIENT),
        (1, IDLE, 2, 6, LOST),
    ]
    found = causes(made(2, spans))
    assert (found.totals[1, STOPPED], found.totals.sum()) == (8, 8)


def test_a_rank_that_waits_for_nobody_in_a_trace_without_messages_has_no_cause():
    trace = made(1, [(0, COMPUTE, 0, 1, GRADIENT), (0, WAIT, 1, 2, RECEIVE)])
    trace.messages["collective"] = np.zeros(0)
    assert causes(trace).reason.tolist() == [-1, 4]
