"""Numbers of an independent program in float64, and what orthogonalising means."""

import numpy as np
import pytest

from algorithms.synchronous.muon import divide, orthogonal
from tests.training import Springs, train
from workloads.workload import Evaluation

G = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
WHOLE = {"all_matrices": True, "scale": "jordan", "learning_rate": 0.1}


class Steady(Springs):
    """One matrix, (2, 3), of ones, and a vector of 2; a constant gradient for both."""

    def __init__(self):
        super().__init__([0.0] * 64, parameters=8)
        self.tensors = ((slice(0, 6), (2, 3)), (slice(6, 8), (2,)))

    def start(self, seed):
        return np.ones(8)

    def gradient(self, w, batch):
        return 0.0, np.append(G, [1.0, -1.0])

    def evaluate(self, w):
        return Evaluation(0.0, np.nan)


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (np.diag([3.0, 2, 1, 0.5]), np.diag([1.109934859173, 0.687011642077, 0.687815706949, 0.696009195255])),
        (np.diag([1, 0.01]), np.diag([0.696487898214, 0.698894634331])),
        (
            G,
            [
                [-0.5682900920894468, 0.05774194327350807, 0.6837739786364625],
                [0.5633546843416668, 0.4056128235639833, 0.24787096278629894],
            ],
        ),
    ],
    ids=["diagonal", "two scales", "2 x 3"],
)
def test_it_orthogonalises_as_an_independent_program_does(matrix, expected):
    assert np.allclose(orthogonal(matrix), expected, atol=2e-6)  # which adds no 1e-7 to the norm
    assert np.allclose(orthogonal(np.ascontiguousarray(matrix.T)), np.transpose(expected), atol=2e-6)


@pytest.mark.parametrize("workers", [1, 3])
def test_two_steps_of_a_matrix_are_those_of_an_independent_program(workers):
    w = train("muon", Steady(), workers, WHOLE, steps=2).models[0]
    expected = [1.113658019977, 0.988451611359, 0.863245202741, 0.887329061995, 0.918877434642, 0.95042580729]
    assert w[:6] == pytest.approx(expected, abs=1e-9)
    assert w[6:] == pytest.approx([0.8, 1.2], abs=1e-6)  # Adam's steps, of the rate each


def test_singular_values_come_close_to_one_if_they_were_not_tiny():
    rng = np.random.default_rng(0)
    for rows, columns in ((4, 4), (3, 9), (9, 3)):
        values = np.linalg.svd(orthogonal(rng.standard_normal((rows, columns))))[1]
        assert values.min() > 0.67 and values.max() < 1.14


def test_it_neither_sees_the_length_of_a_gradient_nor_the_axes_it_is_written_in():
    rng = np.random.default_rng(1)
    g = rng.standard_normal((4, 6))
    p, q = (np.linalg.qr(rng.standard_normal((n, n)))[0] for n in (4, 6))
    assert np.allclose(orthogonal(1000 * g), orthogonal(g), atol=1e-6)
    assert np.allclose(orthogonal(np.ascontiguousarray(p @ g @ q)), p @ orthogonal(g) @ q, atol=1e-9)


def test_a_part_of_a_matrix_is_not_a_part_of_its_orthogonal_one():
    g = np.random.default_rng(2).standard_normal((4, 6))
    assert not np.allclose(orthogonal(np.ascontiguousarray(g[:2])), orthogonal(g)[:2], atol=0.05)


def test_the_largest_matrices_are_dealt_first_each_to_the_rank_with_the_least_work():
    shapes = [(8, 8), (2, 2), (4, 4), (5,), (6, 6), (3, 3)]
    ends = np.cumsum([np.prod(shape) for shape in shapes]).tolist()
    tensors = tuple((slice(end - int(np.prod(shape)), end), shape) for end, shape in zip(ends, shapes, strict=True))
    owned, others = divide(tensors, 2, all_matrices=True)
    assert [[shape for _, shape in one] for one in owned] == [[(8, 8)], [(6, 6), (4, 4), (3, 3), (2, 2)]]
    assert others == [tensors[3][0]]
    owned, others = divide(tensors, 4, all_matrices=False)
    assert [len(one) for one in owned] == [1, 1, 1, 0] and len(others) == 3
