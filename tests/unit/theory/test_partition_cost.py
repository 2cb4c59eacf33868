import math
from functools import partial

import numpy as np
import pytest

from theory.partition_cost import Machine, dense_layer, local, speed_up

XEON = Machine(flops=50e9, bandwidth=1.17e9, message=50e-6)
MACHINES = np.arange(1, 257)


def dense(machines):
    return dense_layer(2048, 2048, 64, machines, XEON)


def vision(machines):
    return local(200, 8, 5, 64, machines, XEON)


def test_a_fully_connected_layer_is_fastest_on_some_machines_and_slower_on_more():
    speeds = [speed_up(dense, machines) for machines in MACHINES]
    best = int(MACHINES[np.argmax(speeds)])
    assert 1 < best < 64
    assert np.all(np.diff(speeds[:best]) > 0) and np.all(np.diff(speeds[best - 1 :]) < 0)


def test_its_best_number_of_machines_is_that_of_the_formula():
    a, b = 2 * 2048 * 2048 * 64 / XEON.flops, 4 * 2048 * 64 / XEON.bandwidth
    expected = math.sqrt((a - b) / XEON.message)
    best = min(MACHINES, key=dense)
    assert abs(best - expected) <= 1


def test_where_units_see_a_neighbourhood_more_machines_go_on_helping():
    speeds = [speed_up(vision, machines) for machines in (1, 4, 9, 16, 36, 64, 144, 256)]
    assert speeds == sorted(speeds)
    assert speed_up(vision, 64) > 2 * max(speed_up(dense, machines) for machines in MACHINES)


@pytest.mark.parametrize("layer", [dense, vision])
def test_a_machine_alone_hears_nothing(layer):
    deaf = {dense: partial(dense_layer, 2048, 2048, 64, on=Machine(50e9, 1.0, 1e9)),
            vision: partial(local, 200, 8, 5, 64, on=Machine(50e9, 1.0, 1e9))}[layer]  # fmt: skip
    assert deaf(machines=1) == layer(1)
    assert speed_up(layer, 1) == 1


def test_a_machine_hears_of_the_rim_around_its_block():
    only_hearing = Machine(flops=math.inf, bandwidth=4.0, message=0.0)  # a number a second
    assert local(side=8, features=3, radius=1, batch=5, machines=4, on=only_hearing) == (6 * 6 - 4 * 4) * 3 * 5
    assert dense_layer(inputs=8, outputs=2, batch=5, machines=4, on=only_hearing) == 8 * 3 / 4 * 5
