import numpy as np
import pytest

from algorithms.pipelined import chimera, dualpipe, interleaved, zb_h2, zb_v
from tests.training import ScalarChain, train

CHAIN = ScalarChain(w=np.linspace(0.7, 1, 8), x=np.linspace(0.6, 1.2, 48))


@pytest.mark.parametrize(("name", "ranks", "copies"), [("chimera", 4, 2), ("dualpipe", 4, 2)])
def test_both_ranks_that_hold_a_stage_end_with_the_same_weights(name, ranks, copies):
    run = train(name, CHAIN, ranks, {"chunks": 8}, batch=24, steps=4)
    parts = {}
    for event_log in run.outcome.event_logs:
        for _, _, start, stop, w in event_log.reports[-copies:]:
            parts.setdefault((start, stop), []).append(w)
    assert all(len(held) == 2 and np.array_equal(*held) for held in parts.values())


@pytest.mark.parametrize(
    ("module", "workers", "chunks", "sentence"),
    [
        (interleaved, 3, 7, "7 micro-batches do not go through 3 ranks in 2 equal groups; use 6 or 8"),
        (chimera, 3, 6, "3 ranks cannot be paired; Chimera needs an even number"),
        (chimera, 4, 6, "4 ranks do not divide 6 micro-batches; use a multiple of 4, or fewer"),
        (dualpipe, 3, 8, "3 ranks cannot be paired; DualPipe needs an even number"),
        (dualpipe, 4, 6, "6 micro-batches do not fill 4 ranks from both ends; use an even number, 8 or more"),
        (zb_h2, 4, 6, "6 micro-batches do not fill 4 ranks in ZB-H2; use 7 or more"),
    ],
)
def test_numbers_for_which_there_is_no_such_schedule_are_refused(module, workers, chunks, sentence):
    with pytest.raises(ValueError, match=sentence):
        module.ALGORITHM.check(workers, 24, CHAIN, module.Settings(chunks=chunks))


def test_more_thin_stages_than_layers_are_refused_with_what_is_possible():
    with pytest.raises(ValueError, match="12 stages are too many for 8 layers; use at most 8"):
        zb_v.ALGORITHM.check(6, 24, CHAIN, zb_v.Settings())


def test_a_v_sends_nothing_where_it_turns_around():
    straight = train("dapple", CHAIN, 8, {"chunks": 8}, batch=24, steps=3).outcome.trace().traffic().sum()
    folded = train("zb_v", CHAIN, 4, {"chunks": 8}, batch=24, steps=3).outcome.trace().traffic().sum()
    assert folded / straight == pytest.approx(6 / 7)
