import numpy as np
import pytest

from tests.contract.algorithms.test_overlap import SLOW, passes, residual
from tests.training import train


def run(order="priority", slice=64, steps=2, collective="stream", workers=2):
    settings = {"order": order, "slice": slice}
    return train("priority", residual(), workers, settings, steps=steps, batch=4, network=SLOW, collective=collective)


def begins(order, collective):
    """When the second forward pass begins, and when the last gradient of the first step has come."""
    done = run(order, collective=collective)
    first = [row for row in done.outcome.event_logs[1].messages if row[3] < passes(done, "F")[6][1]]
    return passes(done, "F")[6][1], max(row[4] for row in first)


@pytest.mark.parametrize("collective", ["stream", "recursive_doubling", "ring"])
def test_the_next_forward_begins_while_later_layers_are_still_on_their_way(collective):
    begun, all_there = begins("priority", collective)
    assert begun < all_there
    begun, all_there = begins("fifo", collective)
    assert begun > all_there


@pytest.mark.parametrize("collective", ["stream", "recursive_doubling", "ring"])
def test_no_layer_comes_later_than_first_come_first_served(collective):
    urgent, fifo = (passes(run(order, collective=collective), "F")[6:] for order in ("priority", "fifo"))
    assert all(a[1] <= b[1] * (1 + 1e-12) for a, b in zip(urgent, fifo, strict=True))
    assert urgent[0][1] < 0.7 * fifo[0][1]


def test_gradients_travel_in_slices():
    done = run(slice=100, steps=3)
    lengths = [row[2] // 8 for row in done.outcome.event_logs[0].messages]
    assert max(lengths) == 100 and sum(lengths) == 3 * done.parameters
    assert len(lengths) == 3 * sum(-(-part.parameters // 100) for part in residual().split(6))


def test_the_last_update_is_not_forgotten():
    done = train("priority", residual(), 2, {"learning_rate": 0.1}, steps=1, batch=4)
    same = train("sync_sgd", residual(), 2, {"learning_rate": 0.1}, steps=1, batch=4)
    assert np.array_equal(done.models[0], same.models[0])
    assert np.array_equal(done.shipped, same.shipped)
