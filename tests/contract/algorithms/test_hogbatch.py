"""HogBatch: alone it is mini-batch SGD with sums, it loses nothing if atomic, and it writes less."""

import numpy as np
import pytest

from tests.contract.algorithms.test_hogwild import Pull, problem
from tests.training import train


@pytest.mark.parametrize("per_write", [2, 8])
def test_one_thread_is_mini_batch_sgd_with_the_sum_of_gradients_on_sparse_rows_bit_for_bit(run, per_write):
    settings = {"learning_rate": 0.25, "per_write": per_write}
    mine = train("hogbatch", problem(np.float32), 1, settings, batch=8, steps=384 // 8, run=run)
    sgd = train(
        "sgd", problem(np.float32), 1, {"learning_rate": 0.25 * per_write}, batch=per_write, steps=384 // per_write
    )
    assert np.array_equal(mine.models[0], sgd.models[0]) and mine.models[0].any()


def test_with_one_sample_to_a_write_it_is_hogwild_on_sparse_rows_bit_for_bit():
    settings = {"learning_rate": 0.5}
    mine = train("hogbatch", problem(), 4, settings | {"per_write": 1}, batch=8, steps=24)
    hogwild = train("hogwild", problem(), 4, settings, batch=8, steps=24)
    assert all(np.array_equal(a, b) for a, b in zip(mine.models, hogwild.models, strict=True))
    assert mine.staleness == hogwild.staleness


@pytest.mark.parametrize("per_write", [3, 0])
def test_all_that_was_computed_is_added(run, per_write):
    done = train("hogbatch", Pull(), 4, {"learning_rate": 0.5, "per_write": per_write, "atomic": True}, batch=8,
                 steps=15, run=run)  # fmt: skip
    assert all(w.tolist() == [0.5 * 480] * 6 for w in done.models)


def test_coordinates_that_samples_share_are_written_once_for_all():
    def seconds(per_write):
        workload = problem(skew=1.0, rows=1024)
        done = train("hogbatch", workload, 4, {"per_write": per_write}, batch=32, steps=8)
        return done.outcome.trace().seconds()

    assert seconds(32) < 0.8 * seconds(1)
