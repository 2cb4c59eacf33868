import numpy as np
import pytest

from algorithms.parts.module_chain import ModuleChain
from cluster import simulated
from tests.rows import CHAIN, digits
from tests.training import ScalarChain, train
from workloads.budget import Budget
from workloads.task import Task


@pytest.mark.parametrize("labels", [True, False])
def test_features_go_up_and_labels_with_them_where_they_are_asked_for(labels):
    workload, got = digits(shuffle=False), {}

    def program(comm):
        chain = ModuleChain(comm, Task(workload, comm, budget=Budget(steps=3), batch=8), labels)
        for t, x, target in chain.batches():
            got[comm.rank, t] = target
            if chain.modules_above:
                chain.send_up(x, target, t)

    outcome = simulated.run(program, 3)
    assert outcome.error is None and not outcome.notes
    for (rank, t), target in got.items():
        known = labels or rank in (0, 2)  # module 0 has the data, and the last one looks its targets up
        assert (target is not None) == known
        assert not known or np.array_equal(target, workload.target[8 * t : 8 * t + 8])
    assert len(got) == 9


def test_steps_after_the_end_have_no_features():
    def program(comm):
        chain = ModuleChain(comm, Task(CHAIN, comm, budget=Budget(steps=2), batch=1))
        return [(t, x is None) for t, x, _ in chain.batches(more=2)]

    assert simulated.run(program, 1).results == [[(0, False), (1, False), (2, True), (3, True)]]


METHODS = [("ddg", {}), ("features_replay", {}), ("dni", {}), ("greedy", {"head_width": 4}), ("feedback_alignment", {})]
METHODS += [("feedback_alignment", {"direct": False}), ("dni", {"mix": 1.0}), ("ddg", {"barrier": False})]


@pytest.mark.parametrize(("name", "settings"), METHODS, ids=str)
def test_module_0_soon_hears_that_the_target_loss_is_reached(name, settings):
    workload = ScalarChain(w=(0.9, 0.9, 1.0, 1.0), x=np.ones(8))
    run = train(name, workload, 4, settings, budget={"target_loss": 1e-3, "steps": 500})
    losses = np.array([row[3] for row in run.outcome.event_logs[3].losses])
    means = np.convolve(losses, np.ones(20) / 20, "valid")
    reached = 20 + int(np.argmax(means <= 1e-3))
    assert means.min() <= 1e-3
    assert reached <= len(losses) <= reached + 10
