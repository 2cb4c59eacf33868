import numpy as np
import pytest

from algorithms.parts.pipeline.plan import Flush
from algorithms.pipelined import dapple
from tests.training import ScalarChain, train
from theory import schedule_timing

CHAIN = ScalarChain(w=np.linspace(0.7, 1, 8), x=np.linspace(0.6, 1.2, 48))


@pytest.mark.parametrize(("workers", "copies"), [(2, 2), (4, 2), (6, 3), (8, 4)])
def test_copies_of_the_pipeline_end_with_the_same_weights_and_are_sgd(workers, copies):
    run = train("dapple", CHAIN, workers, {"chunks": 12, "copies": copies}, batch=24, steps=4)
    (sgd,) = train("sgd", CHAIN, 1, {"learning_rate": 0.1}, batch=24, steps=4).models
    assert np.allclose(run.shipped, sgd, rtol=1e-12, atol=0)
    stages = workers // copies
    for rank, w in enumerate(run.outcome.results):
        assert np.array_equal(w, run.outcome.results[rank % stages])


def test_twice_the_copies_halve_the_time_of_a_step_but_for_the_bubble():
    one = schedule_timing.simulate(Flush.of(dapple.schedule, 4, 16).ops, {"F": 1, "B": 2})
    two = schedule_timing.simulate(Flush.of(dapple.schedule, 8, 16, copies=2).ops, {"F": 1, "B": 2})
    assert (one.makespan, two.makespan) == (16 * 3 + 9, 8 * 3 + 9)


def test_copies_that_divide_neither_workers_nor_micro_batches_are_refused():
    with pytest.raises(ValueError, match=r"3 copies .*4 workers.* 1"):
        dapple.ALGORITHM.check(4, 12, CHAIN, dapple.Settings(chunks=12, copies=3))
    with pytest.raises(ValueError, match=r"2 copies .*5 micro-batches"):
        dapple.ALGORITHM.check(4, 10, CHAIN, dapple.Settings(chunks=5, copies=2))
