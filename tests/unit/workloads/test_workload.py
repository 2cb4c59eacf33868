"""The contract of all workloads: what one has not, it says by itself."""

import numpy as np
import pytest

from tests.quotes import quote
from workloads import digits, quadratic, sparse, spirals, text
from workloads.layers import Dense, Layer
from workloads.shared_memory import Samples
from workloads.workload import Workload

PLAIN = {
    "quadratic": lambda: quadratic.build(quadratic.Settings()),
    "sparse": lambda: sparse.build(sparse.Settings(rows=20, features=10)),
}
without_layers = pytest.mark.parametrize("name", PLAIN)


@without_layers
@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda workload: workload.split(2), "no layers … stages … digits"),
        (lambda workload: workload.boundaries((1, 1)), "no layers … stages … digits"),
        (lambda workload: workload.blocks(0, 2), "no layers … columns and rows … digits"),
        (lambda workload: workload.unit_blocks(workload.units), "no units … digits"),
    ],
    ids=["split", "boundaries", "blocks", "unit_blocks"],
)
def test_a_workload_without_layers_refuses_to_be_cut_and_names_those_that_can_be(name, ask, sentence):
    with pytest.raises(ValueError, match=quote(f"{name} … {sentence}")):
        ask(PLAIN[name]())


def test_only_sparse_rows_have_samples_of_their_own_kind():
    dense, rows = PLAIN["quadratic"](), PLAIN["sparse"]()
    assert dense.rows is None and dense.Samples is Samples
    assert len(rows.rows) == 5 and rows.Samples is sparse.SparseSamples


def test_a_workload_says_how_many_samples_its_accuracy_is_a_share_of():
    built = {
        "digits": digits.build(digits.Settings()),
        "spirals": spirals.build(spirals.Settings(points=500)),
        "sparse": sparse.build(sparse.Settings(rows=80, features=10)),
        "text": text.build(text.Settings()),  # characters
        "quadratic": PLAIN["quadratic"](),
    }
    counts = {name: workload.held_out_samples for name, workload in built.items()}
    assert counts == {"digits": 360, "spirals": 100, "sparse": 20, "text": 8192, "quadratic": 0}
    for name in ("digits", "spirals", "sparse", "text"):
        rights = built[name].evaluate(built[name].start(0)).accuracy * counts[name]
        assert rights == pytest.approx(round(rights), abs=1e-6), name


def test_a_workload_that_misses_a_part_of_the_contract_cannot_be_made():
    class NoGradient(Workload):
        def start(self, seed):
            return np.zeros(1)

        def batch(self, indices):
            return (indices,)

        def evaluate(self, w):
            return 0.0, 0.0

    with pytest.raises(TypeError, match="gradient"):
        NoGradient()


def test_outside_training_a_layer_computes_what_its_forward_does_unless_it_has_its_own():
    layer, x = Dense((3,), 2), np.ones((4, 3))
    parts = layer.start(np.random.default_rng(0))
    assert np.array_equal(layer.evaluate(parts, x), layer.forward(parts, x)[0])
    assert Dense.evaluate is Layer.evaluate
