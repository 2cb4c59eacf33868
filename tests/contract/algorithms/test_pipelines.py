import numpy as np
import pytest

from algorithms.pipelined import chimera, dualpipe, interleaved, zb_h2, zb_v
from tests.quotes import quote
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
        (interleaved, 3, 7, "7 micro-batches … 3 ranks … 2 equal groups … 6 or 8"),
        (chimera, 3, 6, "3 ranks … Chimera … even number"),
        (chimera, 4, 6, "4 ranks … 6 micro-batches … multiple of 4"),
        (dualpipe, 3, 8, "3 ranks … DualPipe … even number"),
        (dualpipe, 4, 6, "6 micro-batches … 4 ranks … even number, 8 or more"),
        (zb_h2, 4, 6, "6 micro-batches … 4 ranks … ZB-H2 … 7 or more"),
    ],
)
def test_numbers_for_which_there_is_no_such_schedule_are_refused(module, workers, chunks, sentence):
    with pytest.raises(ValueError, match=quote(sentence)):
        module.ALGORITHM.check(workers, 24, CHAIN, module.Settings(chunks=chunks))


def test_more_thin_stages_than_layers_are_refused_with_what_is_possible():
    with pytest.raises(ValueError, match=quote("12 stages … 8 layers … at most 8")):
        zb_v.ALGORITHM.check(6, 24, CHAIN, zb_v.Settings())


def test_a_v_sends_nothing_where_it_turns_around():
    straight = train("dapple", CHAIN, 8, {"chunks": 8}, batch=24, steps=3).outcome.trace().traffic().sum()
    folded = train("zb_v", CHAIN, 4, {"chunks": 8}, batch=24, steps=3).outcome.trace().traffic().sum()
    assert folded / straight == pytest.approx(6 / 7)
