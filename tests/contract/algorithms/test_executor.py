"""The executor, held against the list simulator: two independent ways from a schedule to its times."""

import re

import numpy as np
import pytest

from algorithms.parts.pipeline.ops import rematerialise
from algorithms.parts.pipeline.plan import Flush
from algorithms.parts.pipeline.stage_state import StageState
from algorithms.pipelined import dapple, gpipe
from cluster.devices import Device
from cluster.network import Link, Network
from tests.training import ScalarChain, train
from theory import schedule_timing, schedules
from tracing import HELD
from workloads.budget import Budget

FLUSHED = [  # algorithm, its settings, the schedule it carries out and its options, ranks
    ("gpipe", {}, "gpipe", {}, 4),
    ("gpipe", {"recompute": "early"}, "gpipe_early", {}, 4),
    ("gpipe", {"recompute": "late"}, "gpipe_late", {}, 4),
    ("gpipe", {"recompute": "late", "except_last": True}, "gpipe_late", {"except_last": True}, 4),
    ("dapple", {}, "1f1b", {}, 4),
    ("dapple", {"policy": "PB"}, "dapple_pb", {}, 4),
    ("interleaved", {}, "interleaved", {}, 4),
    ("interleaved", {"pieces": 4}, "interleaved", {"pieces": 4}, 2),
    ("looped_bfs", {}, "looped_bfs", {}, 4),
    ("chimera", {}, "chimera", {}, 4),
    ("chimera", {"pipes": 2}, "chimera", {"pipes": 2}, 8),
    ("chimera", {"doubling": True}, "chimera", {"doubling": True}, 4),
    ("zb_h1", {}, "zb_h1", {}, 4),
    ("zb_h2", {}, "zb_h2", {}, 4),
    ("zb_auto", {"limit": 1}, "zb_1p", {}, 4),
    ("zb_auto", {"time_w": 0.5}, "zb_2p", {"weights": 0.5}, 4),
    ("zb_interleaved", {}, "zb_interleaved", {}, 4),
    ("zb_v", {}, "zb_v", {}, 4),
    ("v_half", {}, "v_half", {}, 4),
    ("v_min", {}, "v_min", {}, 4),
    ("dualpipe", {}, "dualpipe", {}, 4),
    ("dualpipe_v", {}, "dualpipe_v", {}, 4),
]
STREAMED = [
    ("petrowski", {}, "systolic", {}),
    ("chen", {}, "systolic", {}),
    ("pipedream", {}, "pipedream", {}),
    ("pipedream", {"weights": "vertical"}, "pipedream", {}),
    ("pipedream_2bw", {"chunks": 4}, "pipedream_2bw", {"per_update": 4}),
    ("pipemare", {"correct": False}, "pipemare", {}),
]
CHUNKS = 8
BARE = Device(40e9, float("inf"), 0.0)  # on which adding up a few numbers costs next to nothing
OPS = re.compile(r"\d*[FRBIW]\d+")


def network(latency):
    return Network(Link(latency, float("inf")), Link(latency, float("inf")))


def passes(run):
    """By rank, the spans of forwards and backwards, (start, end, kind)."""
    rows = [[row for row in event_log.spans if OPS.fullmatch(row[4])] for event_log in run.outcome.event_logs]
    return [[(row[1], row[2], re.search("[A-Z]", row[4])[0]) for row in mine] for mine in rows]


def costs(spans):
    """What each kind of op takes; stages are alike."""
    return {kind: end - start for mine in spans for start, end, kind in mine}


def agree(spans, times):
    for mine, ops, starts, ends in zip(spans, times.lists, times.start, times.end, strict=True):
        passing = [at for at, op in enumerate(ops) if op.kind != "U"]
        joined = {at for at in passing if at and type(ops[at - 1]).__name__ == "Overlapped"}
        joined |= {at for at in passing if type(ops[at]).__name__ == "Overlapped"}
        assert [kind for _, _, kind in mine] == [ops[at].kind for at in passing]
        for at, (start, end, _) in zip(passing, mine, strict=True):
            if at in joined:  # joined ops start and end together there, and one after the other here
                assert starts[at] - 1e-9 <= start * (1 + 1e-6) and end * (1 - 1e-6) <= ends[at] + 1e-9
            else:
                assert (start, end) == pytest.approx((starts[at], ends[at]), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("latency", [0.0, 3e-4])
@pytest.mark.parametrize("case", FLUSHED, ids=str)
def test_a_step_of_every_schedule_takes_as_long_as_the_list_simulator_says(case, latency):
    name, settings, schedule, options, ranks = case
    chain = ScalarChain(w=(0.9,) * 8, x=np.ones(16))
    settings = {"chunks": CHUNKS} | settings
    run = train(name, chain, ranks, settings, batch=16, steps=1, network=network(latency), device=BARE)
    spans = passes(run)
    lists = schedules.lists(schedule, ranks, CHUNKS, **options)
    agree(spans, schedule_timing.simulate(lists, costs(spans), latency))


@pytest.mark.parametrize("latency", [0.0, 3e-4])
@pytest.mark.parametrize("case", STREAMED, ids=str)
def test_every_stream_takes_as_long_as_the_list_simulator_says(case, latency):
    name, settings, schedule, options = case
    chain = ScalarChain(w=(0.9,) * 8, x=np.ones(16))
    per_update = options.get("per_update", 1)
    steps = 12 // per_update
    run = train(name, chain, 4, settings, batch=8, steps=steps, network=network(latency), device=BARE)
    spans = passes(run)
    updates = [row for row in run.outcome.event_logs[0].spans if row[0] == 1]
    update = sum(row[2] - row[1] for row in updates) / steps
    lists = schedules.lists(schedule, 4, 12, **options)
    agree(spans, schedule_timing.simulate(lists, costs(spans) | {"U": update}, latency))


@pytest.mark.parametrize("name", ["zb_h2", "zb_v", "interleaved", "chimera", "dualpipe"])
def test_ranks_go_on_with_the_next_mini_batch_when_they_are_done_with_theirs(name):
    chain = ScalarChain(w=(0.9,) * 8, x=np.ones(16))
    ends = [event_log.spans[-1][2] for event_log in _steps(name, chain, 1).outcome.event_logs]
    starts = [min(row[1] for row in j.spans if row[3] == 1) for j in _steps(name, chain, 2).outcome.event_logs]
    assert min(starts) < max(ends)


def _steps(name, chain, steps):
    return train(name, chain, 4, {"chunks": CHUNKS}, batch=8, steps=steps, network=network(3e-4))


@pytest.mark.parametrize("case", FLUSHED, ids=str)
def test_messages_between_two_ranks_are_taken_in_the_order_in_which_they_are_sent(case):
    _, _, schedule, options, ranks = case
    plan = Flush.of(schedules.SCHEDULES[schedule], ranks, CHUNKS, **options)
    for kinds, step in (("F", 1), ("BI", -1)):
        for stage in range(plan.stages):
            if not 0 <= stage + step < plan.stages:
                continue
            for source in range(ranks):
                for target in range(ranks):
                    sent = [
                        op.chunk
                        for op in plan.ops[source]
                        if op.kind in kinds and op.stage == stage and plan.rank_of(stage + step, op.chunk) == target
                    ]
                    taken = [
                        op.chunk
                        for op in plan.ops[target]
                        if op.kind in kinds and op.stage == stage + step and plan.rank_of(stage, op.chunk) == source
                    ]
                    assert sent == taken


def test_flush_schedules_that_add_in_the_same_order_give_the_same_weights_bit_for_bit():
    chain = ScalarChain(w=np.linspace(0.7, 1, 8), x=np.linspace(0.6, 1.2, 48))
    settings = {"chunks": CHUNKS, "learning_rate": 0.3}
    (expected,) = train("dapple", chain, 4, settings, batch=24, steps=6).models
    for name in ("interleaved", "zb_h1", "zb_h2", "zb_auto", "zb_interleaved", "zb_v", "v_half", "v_min", "dualpipe_v"):
        assert np.array_equal(train(name, chain, 4, settings, batch=24, steps=6).shipped, expected), name
    for name in ("gpipe", "looped_bfs", "chimera", "dualpipe"):  # backwards; and two ranks, each adding its half first
        assert np.allclose(train(name, chain, 4, settings, batch=24, steps=6).shipped, expected, rtol=1e-12, atol=0)


def test_every_flush_schedule_has_the_same_gradients_of_every_micro_batch_bit_for_bit(monkeypatch):
    chain = ScalarChain(w=np.linspace(0.7, 1, 8), x=np.linspace(0.6, 1.2, 24))

    def gradients(name, ranks, settings):
        found = {}

        def remember(state, chunk, accumulate=StageState.accumulate):
            found[chunk, state.stage.index] = state.g.copy()
            accumulate(state, chunk)

        with monkeypatch.context() as patch:
            patch.setattr(StageState, "sum", lambda state: (None, False))  # every gradient by itself
            patch.setattr(StageState, "accumulate", remember)
            train(name, chain, ranks, {"chunks": CHUNKS} | settings, batch=24, steps=1)
        stages = 1 + max(stage for _, stage in found)
        return np.array([np.concatenate([found[chunk, s] for s in range(stages)]) for chunk in range(CHUNKS)])

    alone = gradients("gpipe", 1, {})
    assert np.unique(alone, axis=0).shape == (CHUNKS, 8)
    for name, settings, *_, ranks in FLUSHED:
        assert np.array_equal(gradients(name, ranks, settings), alone), (name, settings)


def test_a_rank_holds_one_sum_of_gradients_and_the_activations_of_what_is_in_flight():
    chain = ScalarChain(w=np.linspace(0.7, 1, 8), x=np.linspace(0.6, 1.2, 48))

    def most(name, kind, **settings):
        run = train(name, chain, 4, {"chunks": CHUNKS} | settings, batch=8, steps=3)
        rows = [[row[3] for row in log.memory if row[2] == HELD.index(kind)] for log in run.outcome.event_logs]
        return [max(mine) for mine in rows]

    one = 2 * 8  # two layers, each of which keeps a float64 for the one sample of a micro-batch
    assert most("gpipe", "activations") == [8 * one] * 4
    assert most("dapple", "activations") == [4 * one, 3 * one, 2 * one, one]
    assert most("gpipe", "activations", recompute="early") == [7 * 8 + one] * 4
    assert most("gpipe", "activations", recompute="early", except_last=True) == [7 * 8 + one] * 4
    assert most("gpipe", "gradients") == most("zb_v", "gradients") == [2 * 8] * 4
    assert most("gpipe", "parameters") == [2 * 8] * 4
    assert most("chimera", "parameters") == [4 * 8] * 4
    assert most("pipedream_2bw", "parameters") == [4 * 8] * 4


def test_going_forward_once_more_may_be_asked_of_any_schedule():
    early = Flush.of(dapple.schedule, 3, 4, rematerialised="early").ops
    assert early == [list(rematerialise(ops)) for ops in schedules.lists("1f1b", 3, 4)]
    assert Flush.of(dapple.schedule, 3, 4).ops == schedules.lists("1f1b", 3, 4)


@pytest.mark.parametrize("name", ["gpipe", "zb_v", "chimera", "pipedream", "pipedream_2bw", "xpipe"])
def test_stages_may_be_cut_by_hand(name):
    chain = ScalarChain(w=np.linspace(0.7, 1, 8), x=np.linspace(0.6, 1.2, 48))
    cuts = "1,1,2,1,1,2" if name == "zb_v" else "2,5,1" if name != "chimera" else "2,6"
    ranks = 2 if name == "chimera" else 3
    run = train(name, chain, ranks, {"cuts": cuts}, batch=8, steps=3)
    lengths = {row[2]: row[3] - row[2] for event_log in run.outcome.event_logs for row in event_log.reports}
    assert [lengths[start] for start in sorted(lengths)] == [int(count) for count in cuts.split(",")]


def test_cuts_for_another_number_of_stages_are_refused():
    chain = ScalarChain(w=np.linspace(0.7, 1, 8))
    s = gpipe.Settings(cuts="4,4")
    with pytest.raises(ValueError, match=r"cuts .*2 stages.* 3"):
        gpipe.ALGORITHM.check(3, 8, chain, s)
    with pytest.raises(ValueError, match="3,3,2"):
        gpipe.Settings(cuts="4,x")


def test_a_target_loss_ends_a_flush_schedule_on_all_ranks_at_the_same_step():
    chain = ScalarChain(w=np.linspace(0.7, 1, 8), x=np.ones(48))
    budget = Budget(target_loss=1e-3).model_dump(exclude_none=True)
    run = train("zb_v", chain, 2, {"chunks": 4}, batch=4, budget=budget)
    steps = {len({row[0] for row in event_log.reports if row[2] == 0}) for event_log in run.outcome.event_logs[:1]}
    assert len(run.outcome.event_logs[0].losses) in steps and len(run.outcome.event_logs[0].losses) >= 20
