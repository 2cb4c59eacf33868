"""Owners: every part meets at one rank, and every rank hears of every part."""

import numpy as np
import pytest

from algorithms.compression import attach, find
from algorithms.parts.reduce_scatter_codec import exchange_parts
from cluster import simulated
from tests.contract.compression.meetings import draw, layout, meet


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_what_owner_k_makes_of_all_messages_k_by_rank_comes_to_everybody_in_place_k(ranks):
    def program(comm):
        messages = [10 * comm.rank + part for part in range(comm.size)]
        return exchange_parts(comm, messages, lambda several: tuple(several))

    outcome = simulated.run(program, ranks)
    assert not outcome.error and not outcome.notes
    wanted = [tuple(10 * rank + part for rank in range(ranks)) for part in range(ranks)]
    assert outcome.results == [wanted] * ranks


CODES = [("bf16", {}), ("int8", {"block": 8}), ("one_bit", {}), ("sign", {"error_feedback": True})]
each_code = pytest.mark.parametrize(("name", "settings"), CODES, ids=[name for name, _ in CODES])


@each_code
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_all_results_and_what_senders_and_owners_keep_are_all_means_together(name, settings, ranks):
    tensors = layout((7, 5), (5,), (3, 2, 2, 2))
    given = np.array([[draw(100 * step + rank, 64) for step in range(30)] for rank in range(ranks)])
    met = meet(name, given, tensors, **{"error_feedback": True, **settings})
    np.testing.assert_allclose(met.means.sum(0) + met.kept.mean(0) + met.owed, given.mean(0).sum(0), atol=1e-12)
    assert np.abs(met.kept).max() > 0
    if ranks > 1:
        assert np.abs(met.owed).max() > 0


@each_code
def test_without_feedback_the_owner_keeps_nothing_either(name, settings):
    given = np.array([[draw(rank, 64)] for rank in range(3)])
    met = meet(name, given, layout((64,)), **{**settings, "error_feedback": False})
    assert met.owed is None and met.kept is None


@each_code
@pytest.mark.parametrize("ranks", [4, 7])
def test_there_may_be_more_ranks_than_numbers(name, settings, ranks):
    given = np.array([[draw(rank, 3)] for rank in range(ranks)])
    assert np.isfinite(meet(name, given, layout((3,)), **settings).means).all()


def test_other_messages_to_the_same_rank_are_not_mixed_up_with_parts():
    def program(comm):
        compressed = attach(comm, find("one_bit"), find("one_bit").Settings(), layout((64,)), 0)
        if comm.rank:
            compressed.send(float(comm.rank), 0)  # to a server's recv_any, say, that listens later
        compressed.all_reduce(draw(comm.rank, 64), op="mean")
        return sorted(comm.recv_any()[1] for _ in range(comm.size - 1)) if comm.rank == 0 else None

    outcome = simulated.run(program, 3)
    assert not outcome.error and not outcome.notes
    assert outcome.results[0] == [1.0, 2.0]
