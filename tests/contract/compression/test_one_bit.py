"""1-bit SGD: two means per node, one bit per number, and errors kept on both ways."""

import math

import numpy as np
import pytest

from algorithms.parts.error_feedback import ErrorFeedback
from cluster.comm import nbytes
from tests.contract.compression.meetings import codec, descend, draw, layout, meet, told


def lost(v, tensors):
    """The share of |v|^2 that a message leaves out."""
    return np.square(v - told(codec("one_bit", tensors), v)).sum() / np.square(v).sum()


def test_of_normal_numbers_a_bit_and_two_means_lose_one_minus_two_over_pi():
    shares = [lost(draw(seed, 1000), layout((1000,))) for seed in range(100)]
    assert abs(np.mean(shares) - (1 - 2 / math.pi)) < 4 * np.std(shares) / 10 + 2 / 1000  # 1/d, of two fitted means
    assert 1 - 2 / math.pi == pytest.approx(0.3634, abs=5e-5)


def test_every_number_becomes_the_mean_of_those_of_its_node_with_its_sign():
    w = np.array([[0.0, -8.0], [0.125, -2.0], [-5.0, 6.0]])  # 3 inputs, 2 units: a column is a node
    b = np.array([1.0, -0.125, 3.0])
    v = np.concatenate([w.ravel(), b])
    q = told(codec("one_bit", layout((3, 2), (3,))), v)
    np.testing.assert_array_equal(q[:6].reshape(3, 2), [[0.0625, -5], [0.0625, -5], [-5, 6]])
    np.testing.assert_array_equal(q[6:], [2, -0.125, 2])


def test_a_filter_of_a_convolution_is_a_node():
    filters = np.array([[1.0, 3.0, -2.0, -2.0], [8.0, 8.0, 10.0, 10.0]]).reshape(2, 1, 2, 2)
    q = told(codec("one_bit", layout((2, 1, 2, 2))), filters.ravel())
    assert q.tolist() == [2, 2, -2, -2, 9, 9, 9, 9]


def test_nodes_of_unequal_size_need_numbers_of_their_own():
    w = draw(1, 100 * 20).reshape(100, 20) * np.logspace(0, 3, 20)
    by_node, by_tensor = lost(w.ravel(), layout((100, 20))), lost(w.ravel(), layout((2000,)))
    assert by_node < 0.4 < 0.6 < by_tensor
    small = slice(0, 100)  # what is lost of the smallest node is nothing to all, and all to the node
    q = told(codec("one_bit", layout((2000,))), w.ravel()).reshape(100, 20)
    assert np.square(q - w)[:, 0].sum() > 100 * np.square(w[small, 0]).sum()


def test_the_longer_the_columns_the_nearer_it_comes_to_a_thirty_second_of_the_bytes():
    ratios = []
    for rows in (64, 512, 4096, 32768):
        v = draw(0, 8 * rows, np.float32)
        ratios.append(v.nbytes / nbytes(codec("one_bit", layout((rows, 8))).encode(v)))
    assert ratios == [32 / (1 + 64 / rows) for rows in (64, 512, 4096, 32768)]
    assert ratios[-1] > 31.9


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_each_rank_sends_its_code_twice_but_for_its_own_part(ranks):
    rows, columns = 96, 12  # columns divide among the ranks, so that none is cut
    given = np.array([[draw(rank, rows * columns, np.float32)] for rank in range(ranks)])
    met = meet("one_bit", given, layout((rows, columns)))
    code = columns * (rows // 8 + 8)
    assert met.sent.tolist() == [2 * (ranks - 1) * code // ranks] * ranks


def test_a_gradient_of_zeros_stays_zeros():
    assert not told(codec("one_bit", layout((4, 4))), np.zeros(16)).any()


def test_with_feedback_the_errors_stay_bounded_and_the_mean_comes_through():
    exchange, g = ErrorFeedback(codec("one_bit", layout((50,))), combine="codec"), draw(3, 50)
    sizes, total = [], np.zeros(50)
    for _ in range(400):
        q = np.empty(50)
        exchange.codec.decode(exchange.encode(g), q)
        total += q
        sizes.append(np.abs(exchange.error).max())
    assert max(sizes[200:]) <= 1.5 * max(sizes[:200])
    np.testing.assert_allclose(total / 400, g, atol=max(sizes) / 400 + 1e-12)


def test_where_workers_disagree_it_goes_astray_without_feedback_and_not_with_it():
    centres = np.random.default_rng(4).lognormal(0, 1.5, (3, 40))
    astray, right = (
        np.linalg.norm(descend("one_bit", centres, 400, 0.02, error_feedback=kept) - centres.mean(0))
        for kept in (False, True)
    )
    assert right < 0.1 * astray
