from types import SimpleNamespace

import numpy as np
import pytest

from algorithms.parts.sharded_vectors import COMMAND, G0, W0, G, P, ShardedVectors, W, serve_shard
from cluster import simulated

START = np.array([3.0, -1.0, 0.5, 2.0, -4.0, 1.0, 7.0])  # what every vector is at first


def told(shards, *commands):
    """(answers, W) when the coordinator has said these commands to so many shards."""

    def program(comm):
        if comm.rank:
            return serve_shard(comm, SimpleNamespace(start=START.copy), SimpleNamespace(shards=shards, memory=0))
        vectors = ShardedVectors(comm, range(1, 1 + shards))
        answers = [getattr(vectors, name)(*numbers) for name, *numbers in commands]
        for rank in vectors.shards:
            comm.send(None, rank, COMMAND)
        return answers

    outcome = simulated.run(program, 1 + shards)
    assert not outcome.error and not outcome.notes
    return outcome.results[0], np.concatenate(outcome.results[1:])


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_every_operation_on_shards_is_that_on_whole_vectors(shards):
    answers, w = told(
        shards,
        ("scale", -0.5, G),
        ("axpy", 2.0, W, P),
        ("dot", G, P),
        ("copy", P, W0),
        ("axpy", 1.0, G, W0),
        ("scale", 3.0, G0),
        ("dot", W0, G0),
        ("copy", W0, W),
    )
    g, p = -0.5 * START, 3 * START
    assert answers[2] == pytest.approx(g @ p, rel=1e-14)
    assert answers[6] == pytest.approx((p + g) @ (3 * START), rel=1e-14)
    assert np.array_equal(w, p + g)
