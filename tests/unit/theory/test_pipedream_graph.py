"""PipeDream's graph.txt: layers in the order of its edges, and nothing that is no chain."""

import pytest

from theory.profile import Profile, read

COSTS = "forward_compute_time=1.0, backward_compute_time=2.0, activation_size={}, parameter_size=8.0"


def nodes(*names, size="4.0"):
    return [f"node{n} -- {name} -- {COSTS.format(size)}" for n, name in enumerate(names)]


def edges(*pairs):
    return [f"\tnode{a} -- node{b}" for a, b in pairs]


def test_layers_come_in_the_order_of_the_edges_in_seconds_and_without_the_input():
    lines = [*nodes("Linear(8, 4)", "Input0", "ReLU", size="[3.0; 1.0]"), *edges((0, 2), (1, 0))]
    assert read(lines) == Profile((0.001,) * 2, (0.002,) * 2, (4,) * 2, (8,) * 2, ("Linear(8, 4)", "ReLU"))
    assert read([line + "\r\n" for line in lines]) == read([*lines[:3], *lines[:2:-1]]) == read(lines)
    assert read([f"{line} -- stage_id=0" for line in lines[:3]] + lines[3:]) == read(lines)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([*nodes("a", "b", "c"), *edges((0, 1), (0, 2))], r"^node0 \(a\) .*node1 and node2.*chain"),
        ([*nodes("a", "b", "c"), *edges((0, 2), (1, 2))], r"^node2 \(c\) .*node0 and node1.*chain"),
        ([*nodes("a", "b", "c"), *edges((1, 2))], "node0 and node1 begin"),
        ([*nodes("a", "b"), *edges((0, 1), (1, 0))], "it is a cycle"),
        ([*nodes("a", "b", "c"), *edges((1, 2), (2, 1))], r"^node1 \(b\) .*node0"),
        ([*nodes("a", "b"), *edges((0, 7))], "node7"),
        ([*nodes("a"), "node1 -- b"], "'node1 -- b' .*node.*edge"),
        (["node0 -- a -- forward_compute_time=1.0"], "node0 .*backward_compute_time"),
        (nodes("a", size="4 kB"), "activation_size .*node0 .*'4 kB'"),
        (nodes("a", size="-4"), "activations of layer a is -4.0"),
        (nodes("Input"), "no layers"),
    ],
)
def test_what_is_no_chain_of_layers_is_refused_by_name(lines, sentence):
    with pytest.raises(ValueError, match=sentence):
        read(lines)
