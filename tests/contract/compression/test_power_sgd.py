"""PowerSGD: low-rank matrices as they are, others by their largest directions, sums on the way."""

import numpy as np
import pytest

from algorithms.compression import attach, find
from algorithms.parts.error_feedback import ErrorFeedback
from cluster import simulated
from cluster.comm import nbytes
from tests.contract.compression.meetings import codec, draw, layout, meet, told

ROWS, COLUMNS = 40, 50
MATRIX = layout((ROWS, COLUMNS))


def low_rank(seed, rank, rows=ROWS, columns=COLUMNS):
    return (draw(seed, rows * rank).reshape(rows, rank) @ draw(seed + 1, rank * columns).reshape(rank, columns)).ravel()


@pytest.mark.parametrize(("directions", "rank"), [(1, 1), (2, 1), (2, 2), (4, 3), (4, 4)])
def test_a_matrix_of_no_higher_rank_comes_through_exactly_in_one_step(directions, rank):
    v = low_rank(0, rank)
    q = told(codec("power_sgd", MATRIX, directions=directions), v)
    np.testing.assert_allclose(q, v, atol=4e-14 * np.abs(v).max())


def test_so_does_one_with_a_single_row_of_numbers():
    v = np.zeros((ROWS, COLUMNS))
    v[7] = draw(1, COLUMNS)
    q = told(codec("power_sgd", MATRIX, directions=3), v.ravel()).reshape(ROWS, COLUMNS)
    np.testing.assert_allclose(q, v, atol=1e-14)


def test_what_is_left_is_perpendicular_to_the_directions_that_were_sent():
    v = draw(2, ROWS * COLUMNS)
    one, q = codec("power_sgd", MATRIX), np.empty(ROWS * COLUMNS)
    p, message = (message := one.encode(v))[0], message
    one.decode(message, q)
    columns, left = p.reshape(ROWS, 2), (v - q).reshape(ROWS, COLUMNS)
    np.testing.assert_allclose(columns.T @ columns, np.eye(2), atol=1e-14)
    np.testing.assert_allclose(columns.T @ left, 0, atol=1e-13)


def test_what_the_workers_keep_is_perpendicular_to_them_in_the_mean():
    given = np.array([[draw(rank, ROWS * COLUMNS)] for rank in range(4)])
    met = meet("power_sgd", given, MATRIX)
    left, sent = met.kept.mean(0).reshape(ROWS, COLUMNS), met.means[0].reshape(ROWS, COLUMNS)
    np.testing.assert_allclose(sent.T @ left, 0, atol=1e-11)  # the columns of what was sent span those of P
    assert np.linalg.matrix_rank(sent) == 2


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_the_mean_of_many_workers_is_what_one_with_the_mean_gradient_sends(ranks):
    given = np.array([[draw(10 * step + rank, ROWS * COLUMNS) for step in range(5)] for rank in range(ranks)])
    many, one = meet("power_sgd", given, MATRIX), meet("power_sgd", given.mean(0, keepdims=True), MATRIX)
    np.testing.assert_allclose(many.means, one.means, atol=1e-11)


def test_nothing_is_lost_over_many_steps_among_many_workers():
    tensors = layout((20, 30), (30,), (8, 3, 3, 3))
    given = np.array([[draw(10 * step + rank, 846) for step in range(20)] for rank in range(3)])
    met = meet("power_sgd", given, tensors)
    np.testing.assert_allclose(met.means.sum(0) + met.kept.mean(0), given.mean(0).sum(0), atol=1e-11)
    biases = slice(600, 630)
    np.testing.assert_allclose(met.means[:, biases], given.mean(0)[:, biases], atol=1e-14)
    np.testing.assert_allclose(met.kept[:, biases], 0, atol=1e-14)


@pytest.mark.parametrize(("directions", "ratio"), [(2, 230), (4, 115)])
def test_a_large_matrix_becomes_so_much_smaller(directions, ratio):
    v = np.ones(512 * 4608, np.float32)
    message = codec("power_sgd", layout((512, 512, 3, 3)), directions=directions).encode(v)
    assert v.nbytes / nbytes(message) == 512 * 4608 / (directions * (512 + 4608))
    assert round(v.nbytes / nbytes(message)) == ratio


def test_a_matrix_that_would_not_become_smaller_goes_as_it_is():
    v = draw(3, 10 * 12)
    np.testing.assert_array_equal(told(codec("power_sgd", layout((10, 12)), directions=3), v), v)
    assert not np.allclose(told(codec("power_sgd", layout((10, 12)), directions=2), v), v)
    close = codec("power_sgd", layout((10, 12)), directions=2, least_compression=3)
    np.testing.assert_array_equal(told(close, v), v)


def test_it_takes_two_all_reduces_and_their_bytes():
    tensors = layout((ROWS, COLUMNS), (COLUMNS,))
    calls = []

    def program(comm):
        compressed = attach(comm, find("power_sgd"), find("power_sgd").Settings(), tensors, 0)
        all_reduce = comm.all_reduce
        comm.all_reduce = lambda x, **options: (calls.append(len(x)), all_reduce(x, **options))[1]
        compressed.all_reduce(draw(comm.rank, 2050, np.float32), op="mean")

    outcome = simulated.run(program, 2, collective="ring")
    assert not outcome.error
    assert sorted(calls) == [2 * COLUMNS] * 2 + [2 * ROWS + COLUMNS] * 2
    assert outcome.trace().traffic().sum() == 2 * 4 * (2 * COLUMNS + 2 * ROWS + COLUMNS)


def test_warm_starts_follow_the_largest_directions_and_random_ones_never_find_them():
    v = low_rank(4, 3) + 0.3 * draw(9, ROWS * COLUMNS)
    sizes = np.linalg.svd(v.reshape(ROWS, COLUMNS), compute_uv=False)
    best = np.square(sizes[2:]).sum()

    def left(warm):
        one = codec("power_sgd", MATRIX, warm_start=warm)
        return [np.square(v - told(one, v)).sum() / best for _ in range(30)]

    assert left(True)[-1] < 1 + 1e-9
    assert min(left(False)) > 1.001


def test_a_direction_that_had_nothing_to_say_speaks_up_when_it_has():
    one = codec("power_sgd", MATRIX)
    told(one, np.zeros(ROWS * COLUMNS))
    row = np.zeros((ROWS, COLUMNS))
    row[3] = 1.0
    told(one, row.ravel())  # one direction is enough
    v = low_rank(5, 2)
    np.testing.assert_allclose(told(one, v), v, atol=1e-12)


def test_with_feedback_all_directions_have_their_turn():
    exchange, v = ErrorFeedback(codec("power_sgd", MATRIX, directions=1), combine="codec"), draw(6, ROWS * COLUMNS)
    total = np.zeros_like(v)
    for _ in range(400):
        q = np.empty_like(v)
        exchange.codec.decode(exchange.encode(v), q)
        total += q
    assert np.linalg.norm(total / 400 - v) < 0.1 * np.linalg.norm(v)
    stuck = told(codec("power_sgd", MATRIX, directions=1), v)
    assert np.linalg.norm(stuck - v) > 0.9 * np.linalg.norm(v)
