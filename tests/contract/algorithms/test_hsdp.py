"""What leaves a node, what prefetching hides, and what it holds."""

import numpy as np
import pytest

from algorithms.synchronous.hsdp import ALGORITHM
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from knobs import Refusal
from tracing import HELD

SMALL = {"algorithm": "hsdp", "workers": 4, "steps": 3, "hidden": "32,16", "batch": 4, "evaluations": 1, "seed": 3}
D = 64 * 32 + 32 + 32 * 16 + 16 + 16 * 10 + 10


def sent(**settings):
    """Return the elements sent in one step: in all, and between nodes of two ranks."""
    done = run(Experiment.of(SMALL | {"per_node": 2, "collective": "ring"} | settings))
    traffic = done.trace.traffic() / 4 / SMALL["steps"]
    node = np.arange(4) // 2
    return traffic.sum(), traffic[node[:, None] != node].sum()


def test_with_a_group_per_node_only_the_sum_of_its_pieces_leaves_the_node():
    whole, outside = sent(groups=2)
    assert whole == pytest.approx(3 * 1 * 2 * D + 2 * 1 * D)
    assert outside == pytest.approx(2 * 1 * D)


def test_pieces_enter_another_node_once_for_each_rank_there_and_a_note_says_so():
    piece, ranks_there = D / 4, 2
    assert sent(groups=1)[1] - sent(algorithm="zero3")[1] == pytest.approx(
        2 * (4 * ranks_there * piece - 2 * 3 * piece)  # two gathers: 4 pieces, and a ring of which 2 of 4 links leave
    )
    for settings, said in (({}, 1), ({"groups": 2}, 0), ({"groups": 2, "secondary": True}, 0), ({"per_node": 1}, 0)):
        e = Experiment.of(SMALL | {"per_node": 2} | settings)
        assert len([note for note in ALGORITHM.notes(e) if "enters another node" in note]) == said


def test_in_one_group_every_layer_is_gathered_twice_and_summed_once_over_all_ranks():
    whole, outside = sent(groups=1)
    assert whole == pytest.approx(3 * 3 * D) and outside > 2 * D


def test_second_pieces_let_backward_gather_inside_the_node():
    whole, outside = sent(groups=2, secondary=True)
    assert whole == pytest.approx(2 * 3 * D + 1 * 2 * D)
    assert outside < sent(groups=1)[1]


def seconds(**settings):
    slow = {"network": "0.0001:1e9:1e-6", "device": "laptop"}
    return run(Experiment.of(SMALL | {"hidden": "64,64,64,64"} | slow | settings)).summary["seconds"]


def test_prefetching_takes_less_time_and_a_second_layer_of_memory():
    waits, hides = seconds(prefetch=0), seconds(prefetch=1)
    assert hides < 0.95 * waits and seconds(prefetch=2) <= hides
    held = {
        ahead: run(Experiment.of(SMALL | {"hidden": "32,32", "prefetch": ahead})).peak_memory()[0]
        for ahead in (0, 1, 2)
    }
    parameters = [float(held[ahead][HELD.index("parameters")]) for ahead in (0, 1, 2)]
    second, third = 4 * (32 * 32 + 32), 4 * (32 * 10 + 10)
    assert parameters[1] - parameters[0] == pytest.approx(second, rel=0.02)
    assert parameters[2] - parameters[1] == pytest.approx(third, rel=0.02)


def test_the_mean_is_over_all_workers_and_not_over_those_of_a_group():
    ends = [run(Experiment.of(SMALL | {"groups": groups, "update": "sgd"})).parameters for groups in (1, 2)]
    assert np.allclose(*ends, atol=1e-6)


def test_groups_that_do_not_divide_the_workers_are_refused_with_those_that_do():
    with pytest.raises(
        (ValueError, Refusal), match=r"4 workers cannot form 3 groups of equal size; use 1, 2 or 4 groups"
    ):
        run(Experiment.of(SMALL | {"groups": 3}))
