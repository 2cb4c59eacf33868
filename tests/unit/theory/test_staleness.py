"""Delays, gaps and versions, counted along the lists, against the formulas of the papers."""

import pytest

from algorithms.parts.pipeline.one_f_one_b import one_f_one_b
from algorithms.parts.pipeline.ops import parse
from algorithms.pipelined import pipedream_2bw
from theory import schedules
from theory.staleness import count

FLUSH = [
    "naive",
    "gpipe",
    "gpipe_early",
    "1f1b",
    "dapple_pb",
    "interleaved",
    "looped_bfs",
    "chimera",
    "zb_h1",
    "zb_h2",
    "zb_interleaved",
    "zb_v",
    "v_half",
    "v_min",
    "dualpipe",
]


def steady(name, what, stages=4, chunks=20, **options):
    """The measure of every stage once the pipeline is full."""
    counted = [count(ops, **options)[stage] for stage, ops in enumerate(schedules.lists(name, stages, chunks))]
    return [v.alive if what == "alive" else getattr(v, what)[-1] for v in counted]


@pytest.mark.parametrize("name", FLUSH)
def test_with_a_flush_nothing_is_stale_and_one_version_is_enough(name):
    for ops in schedules.lists(name, 4, 8):
        for v in count(ops).values():
            assert (v.delay, v.gap, v.alive) == ([0], [0], 1)


def test_the_delays_of_the_book():
    assert steady("pipedream", "delay") == [3, 2, 1, 0]
    assert steady("systolic", "delay", stash=False) == [6, 4, 2, 0]
    assert steady("pipemare", "delay", stash=False) == [7, 5, 3, 1]
    assert steady("pipedream", "delay", policy=lambda b: max(0, b - 3)) == [3, 3, 3, 3]  # vertical sync
    assert steady("pipedream_2bw", "delay", policy=lambda z: pipedream_2bw.version(z, 4, 4)) == [1, 1, 1, 1]


@pytest.mark.parametrize("stages", [1, 2, 3, 5, 8])
def test_stashing_keeps_a_version_per_stage_still_to_come_and_backward_reads_what_forward_read(stages):
    assert steady("pipedream", "delay", stages) == [stages - 1 - s for s in range(stages)]
    assert steady("pipedream", "alive", stages) == [stages - s for s in range(stages)]
    assert steady("pipedream", "gap", stages) == [0] * stages


def test_without_stashing_backward_reads_weights_that_forward_never_saw():
    assert steady("pipedream", "gap", stash=False) == [3, 2, 1, 0]
    assert steady("pipedream", "alive", stash=False) == [1, 1, 1, 1]
    assert steady("systolic", "gap", stash=False) == [6, 4, 2, 0]
    assert steady("systolic", "alive", stash=False) == [1, 1, 1, 1]


def test_vertical_sync_keeps_as_many_versions_on_every_stage():
    assert steady("pipedream", "alive", policy=lambda b: max(0, b - 3)) == [4, 4, 4, 4]


def test_a_policy_says_what_both_passes_read():
    assert steady("pipedream", "gap", policy=lambda b: max(0, b - 3), stash=False) == [0, 0, 0, 0]


def test_the_pipeline_fills_with_growing_delay():
    (v,) = count(schedules.lists("pipedream", 4, 8)[0]).values()
    assert v.delay == [0, 1, 2, 3, 3, 3, 3, 3]  # v_F(b) = max(0, b - 3)


@pytest.mark.parametrize("stages", [1, 2, 4, 6])
@pytest.mark.parametrize("per_update", [3, 5, 8])
def test_2bw_has_a_delay_of_one_and_two_versions_on_every_stage(stages, per_update):
    if per_update < stages - 1:
        return
    for rank in range(stages):
        ops = pipedream_2bw.schedule(rank, stages, 5 * per_update, per_update)
        (v,) = count(ops, policy=lambda z: pipedream_2bw.version(z, per_update, stages)).values()
        alone = stages == 1
        assert v.delay == ([0] * 5 if alone else [0, 1, 1, 1, 1])
        assert v.gap == [0] * 5
        assert v.alive == (1 if alone else 2)


def test_2bw_with_too_few_micro_batches_asks_for_a_version_that_is_not_there():
    def counted(per_update):
        return count(
            one_f_one_b(0, 3, per_update, 6 * per_update), policy=lambda z: pipedream_2bw.version(z, per_update, 4)
        )

    assert counted(3)[0].alive == 2
    with pytest.raises(ValueError, match="0F4 must read version 1, but the newest of stage 0 is 0"):
        counted(2)


def test_the_stalest_micro_batch_of_an_update_counts():
    v = count(parse("0F0 0F1 0B0 0U0 0F2 0B1 0B2 0U1"))[0]
    assert v.delay == [0, 1]
