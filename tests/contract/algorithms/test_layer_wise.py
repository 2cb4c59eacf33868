import numpy as np
import pytest

from cluster.network import Link, Network
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from tests.training import ScalarChain, train
from tracing import COMPUTE, HELD

SLOW_LINK = Link(0.5, float("inf"))  # s of latency; it takes no time to send anything


def stages(count, layers=4, steps=1, **where):
    """A run whose layers take 1 s forward and 2 s backward, but for the first, on ranks that compute 1 FLOP/s."""
    workload = ScalarChain(w=np.ones(layers), x=np.ones(8), flops=40e9)  # of the laptop's 40e9 a second
    return train("layer_wise", workload, count, steps=steps, **where).outcome.trace()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_step_takes_all_passes_one_after_the_other_and_the_way_there_and_back(count):
    trace = stages(count, network=Network(SLOW_LINK, SLOW_LINK))
    compute = trace.spans["kind"] == COMPUTE
    first, last = trace.spans["start"][compute].min(), trace.spans["end"][compute].max()
    work = (trace.spans["end"] - trace.spans["start"])[compute].sum()
    assert work == pytest.approx(4 * 3, rel=1e-6)
    assert last - first == pytest.approx(work + 2 * (count - 1) * 0.5, rel=1e-6)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_of_s_equal_stages_each_works_the_sth_part_of_the_time(count):
    trace = stages(count, steps=5)
    assert trace.busy()[:, COMPUTE] / trace.seconds() == pytest.approx(np.full(count, 1 / count), rel=1e-3)


def test_a_rank_holds_its_own_layers_and_their_activations():
    def held(workers):
        layers = {"model": "mlp", "hidden": "64,64,64", "batch": 16, "steps": 2, "evaluations": 1}
        return run(Experiment.of({"algorithm": "layer_wise", "workers": workers} | layers)).peaks()

    parameters, gradients, _, activations, _ = range(len(HELD))
    whole, cut = held(1), held(4)
    assert cut[:, parameters].tolist() == cut[:, gradients].tolist() == [4 * 65 * 64] * 3 + [4 * 65 * 10]
    assert cut[:, parameters].sum() == whole[0, parameters]
    assert cut[:, activations].tolist() == [4 * 16 * 128] * 3 + [4 * 16 * (64 + 10)]  # inputs and outputs


def test_more_stages_than_layers_are_refused():
    with pytest.raises(ValueError, match=r"9 stages .*8 layers.* 1 to 8"):
        run(Experiment.of({"algorithm": "layer_wise", "workers": 9}))
