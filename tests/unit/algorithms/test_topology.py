import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.parts.topology import (
    bipartite_subgraph,
    bipartition,
    complete,
    components,
    custom,
    exponential,
    mixing,
    neighbours,
    random,
    ring,
    spectral_gap,
    star,
    torus,
)
from tests.quotes import quote

GRAPHS = {f.__name__: f for f in (ring, torus, exponential, complete, star, random)}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())


@every_graph
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 9, 12, 16, 17])
@pytest.mark.parametrize("lazy", [False, True])
def test_mixing_is_symmetric_and_doubly_stochastic_on_the_edges_and_connects_all(graph, size, lazy):
    found = graph(size)
    w = mixing(found, lazy)
    assert np.array_equal(w, w.T) and (w >= -1e-15).all()
    assert np.allclose(w.sum(0), 1, rtol=1e-15) and np.allclose(w.sum(1), 1, rtol=1e-15)
    for rank in range(size):
        assert rank not in found[rank]
        assert set(np.flatnonzero(w[rank])) - {rank} == set(found[rank])
    assert len(components(found)) == 1 and (spectral_gap(w) > 0 or not lazy)
    assert not lazy or np.linalg.eigvalsh(w).min() > -1e-12


@pytest.mark.parametrize(("size", "gap"), [(4, 0.667), (8, 0.195), (16, 0.0507), (32, 0.0128), (64, 0.0032)])
def test_the_gap_of_a_ring_falls_with_the_square_of_its_length(size, gap):
    assert spectral_gap(mixing(ring(size))) == pytest.approx(gap, abs=0.5 * 10 ** -(len(str(gap)) - 2))


@pytest.mark.parametrize(("graph", "gap"), [(ring, 0.051), (torus, 0.4), (exponential, 0.5), (complete, 1)])
def test_the_gaps_of_16_ranks_are_those_that_the_text_names(graph, gap):
    assert spectral_gap(mixing(graph(16))) == pytest.approx(gap, abs=5e-4)


def test_the_gap_of_a_star_falls_with_its_size_alone():
    assert spectral_gap(mixing(star(16))) == pytest.approx(1 / 16)  # leaves differ, and only rank 0 can tell them


@pytest.mark.parametrize("graph", [torus, exponential, complete])
def test_more_edges_agree_sooner_than_a_ring(graph):
    assert spectral_gap(mixing(graph(16))) > 5 * spectral_gap(mixing(ring(16)))


def test_a_complete_graph_agrees_at_once():
    assert spectral_gap(mixing(complete(7))) == pytest.approx(1)
    assert np.allclose(mixing(complete(7)), 1 / 7)


def test_a_torus_is_as_nearly_square_as_can_be():
    assert torus(16)[5] == [1, 4, 6, 9]
    assert torus(12)[0] == [1, 3, 4, 8]  # 3 rows of 4
    assert torus(7) == ring(7)


@given(st.integers(1, 24), st.integers(0, 10))
def test_a_random_graph_hangs_together_whatever_the_seed(size, seed):
    graph = random(size, 3, seed)
    assert len(components(graph)) == 1
    assert graph == random(size, 3, seed)


@every_graph
def test_edges_between_the_two_sides_join_all(graph):
    for size in range(1, 26):
        found = graph(size)
        side = bipartition(found)
        assert side[0] == 0 and len(components(bipartite_subgraph(found, side))) == 1


def test_sides_are_even_and_odd_ranks_where_that_will_do_and_a_chessboard_on_a_torus():
    assert bipartition(ring(6)) == bipartition(complete(6)) == [0, 1, 0, 1, 0, 1]
    assert bipartition(torus(16)) == [0, 1, 0, 1, 1, 0, 1, 0] * 2
    assert bipartite_subgraph(torus(16), bipartition(torus(16))) == torus(16)
    assert bipartition(star(4)) == [0, 1, 1, 1]


def test_edges_of_ones_own_are_read():
    assert custom(4, "0-1, 1-2,2 - 3") == [[1], [0, 2], [1, 3], [2]]
    assert neighbours("star", 3, "0-1,1-2") == [[1], [0, 2], [1]]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("0-1,2-3", "workers 2, 3 … worker 0 … add … 0-2"),
        ("0-1,1-4", "edges … worker 4 … 0 to 3"),
        ("0:1", "pairs of workers … 0-1"),
    ],
)
def test_edges_that_make_no_graph_are_refused_in_one_sentence(text, complaint):
    with pytest.raises(ValueError, match=quote(complaint)):
        custom(4, text)
