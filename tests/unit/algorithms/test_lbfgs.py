import numpy as np
import pytest

from algorithms.parts.lbfgs import direction


class Here:
    """Vectors by name in this process, in `shards` pieces."""

    def __init__(self, vectors, shards=1):
        self.parts = {name: np.array_split(np.array(x, float), shards) for name, x in vectors.items()}

    def dot(self, x, y):
        return sum(float(a @ b) for a, b in zip(self.parts[x], self.parts[y], strict=True))

    def axpy(self, a, x, y):
        for part, other in zip(self.parts[y], self.parts[x], strict=True):
            part += a * other

    def scale(self, a, x):
        for part in self.parts[x]:
            part *= a

    def copy(self, x, y):
        self.parts[y] = [part.copy() for part in self.parts[x]]

    def __getitem__(self, name):
        return np.concatenate(self.parts[name])


def history(d, m, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((d, d))
    h = a @ a.T + np.eye(d)
    steps = rng.standard_normal((m, d))
    return rng.standard_normal(d), [(s, h @ s) for s in steps]


def dense(g, pairs):
    """The direction from the BFGS formula with whole matrices."""
    eye = np.eye(len(g))
    s, y = pairs[-1]
    inverse = (s @ y) / (y @ y) * eye
    for s, y in pairs:
        rho = 1 / (y @ s)
        v = eye - rho * np.outer(y, s)
        inverse = v.T @ inverse @ v + rho * np.outer(s, s)
    return -inverse @ g


@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("shards", [1, 3])
def test_the_recursion_is_the_bfgs_formula_without_its_matrices(m, shards):
    g, pairs = history(8, m)
    names = [(f"s{k}", f"y{k}") for k in range(m)]
    vectors = {
        "g": g,
        "p": g,
        **{n: x for two, pair in zip(names, pairs, strict=True) for n, x in zip(two, pair, strict=True)},
    }
    here = Here(vectors, shards)
    direction(here, "g", "p", names)
    assert np.allclose(here["p"], dense(g, pairs), rtol=1e-12, atol=1e-12)
    assert np.array_equal(here["g"], g)


def test_without_memory_it_is_steepest_descent():
    here = Here({"g": [1.0, -2.0], "p": [0.0, 0.0]})
    direction(here, "g", "p", [])
    assert here["p"].tolist() == [-1.0, 2.0]


def test_with_exact_line_search_a_quadratic_in_d_dimensions_is_done_in_d_steps():
    d = 6
    rng = np.random.default_rng(1)
    a = rng.standard_normal((d, d))
    h = a @ a.T + np.eye(d)
    w, pairs, vectors = rng.standard_normal(d), [], {}
    start = np.linalg.norm(h @ w)
    for step in range(d):
        g = h @ w
        here = Here({"g": g, "p": g, **vectors})
        direction(here, "g", "p", pairs)
        p = here["p"]
        s = -(g @ p) / (p @ h @ p) * p
        vectors |= {f"s{step}": s, f"y{step}": h @ s}
        pairs.append((f"s{step}", f"y{step}"))
        w = w + s
    assert np.linalg.norm(h @ w) < 1e-8 * start
