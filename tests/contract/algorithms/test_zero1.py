import numpy as np
import pytest

from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from tests.training import ScalarChain, train
from tracing import HELD


@pytest.mark.parametrize("workers", [1, 2, 3, 5, 8])
def test_every_rank_has_the_bits_of_synchronous_sgd_even_with_fewer_parameters_than_ranks(workers):
    settings = {"update": "adam", "learning_rate": 0.05}
    dealt, whole = (
        train(name, ScalarChain(dtype=np.float32), workers, settings, steps=9) for name in ("zero1", "sync_sgd")
    )
    for w in dealt.models:
        assert np.array_equal(w, whole.models[0])


@pytest.mark.parametrize(("update", "vectors"), [("sgd", 0), ("momentum", 1), ("adam", 2)])
def test_the_memory_of_the_rule_is_dealt_out(update, vectors):
    def state(workers):
        done = run(Experiment.of({"algorithm": "zero1", "update": update, "workers": workers, "steps": 2}))
        return done.peaks()[:, HELD.index("optimizer state")], len(done.parameters)

    (alone,), d = state(1)
    assert alone == 4 * vectors * d
    parts, _ = state(4)
    assert parts.sum() == alone
    assert parts.max() - parts.min() <= 4 * vectors  # shares differ by one number at most


def test_the_work_of_the_rule_is_dealt_out_too():
    def updating(name):
        trace = train(name, ScalarChain(np.ones(4000)), 4, {"update": "adam"}, steps=3).outcome.trace()
        return sum(
            trace.spans["end"][i] - trace.spans["start"][i]
            for i, label in enumerate(trace.spans["label"])
            if trace.labels[label] == "adam"
        )

    assert updating("zero1") < updating("sync_sgd") / 2
