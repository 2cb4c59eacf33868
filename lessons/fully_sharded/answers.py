"""Answers to the quiz on full sharding, computed by the simulator or by closed forms."""

from lessons.fully_sharded.experiments import (
    CONTEXT,
    MACHINE,
    NODES,
    SHARDS,
    between_nodes,
    layer_sizes,
    seconds,
    sharded_step,
)
from theory.overlap import Cost, StepCosts, prefetching

LAYERS = 12


def left(run, layers: int, ranks: int) -> float:
    """Return the memory of a fully sharded rank at its peak, as a percentage of the memory of a replica."""
    return 100 * (1 / ranks + (4 + 4) / 16 / layers)


def step_of(forward: float, gather: float, ahead: int, layers: int = LAYERS) -> float:
    """Return the time of a step of `layers` equal layers. `forward` and `gather` are times of one layer, and the result
    is in their unit.
    """
    costs = StepCosts([forward] * layers, [2 * forward] * layers, [1.0] * layers, Cost(0.0, gather))
    return prefetching(costs, ahead)


def one_ahead(run, gather: int) -> float:
    """Return the time of a step with one layer gathered ahead, in ms."""
    return step_of(2, gather, 1)


def deeper(run, gather: str) -> str:
    """Return whether a step is "shorter", "longer" or the "same" if four layers are gathered ahead instead of one."""
    part = {"a quarter as long": 0.25, "half as long": 0.5, "as long": 1.0, "twice as long": 2.0}[gather]
    ratio = step_of(1.0, part, 4) / step_of(1.0, part, 1)
    return "shorter" if ratio < 0.99 else "longer" if ratio > 1.01 else "same"


def tokens(run, tera: int, giga: int) -> float:
    """Return the number of tokens with which the forward pass of a dense layer takes as long as gathering its 16-bit
    weights.
    """
    return tera * 1e12 / (giga * 1e9)


def change(run, change: str) -> str:
    """Return whether the exposed share of the gather time becomes "less", "more" or stays the "same" after a change."""
    changed = {
        "the model is made twice as wide, with about four times as many weights": {"width": 64},
        "the processors become twice as fast": {"device": "4e11:1e15:0"},
        "the links become twice as fast": {"bandwidth": 2e9},
        "each rank gets twice as many tokens": {"batch": 8},
    }[change]
    before, after = (shown(run, **values) for values in ({}, changed))
    return "same" if abs(after - before) < 10 else "less" if after < before else "more"


def shown(run, **values) -> float:
    """Return the exposed share of the gather time, in percent. The defaults are 128 tokens and a width of 32."""
    values = {**MACHINE, "width": 32, "batch": 128 // CONTEXT, "workers": 4, **values}
    gathers = 2 * sum(layer_sizes(values["width"])) * 3 / 4 * 4 / values["bandwidth"]
    late, ahead = (seconds(sharded_step(run, prefetch=k, **values)) for k in (0, 1))
    return 100 * (1 - (late - ahead) / gathers)


def four_times(run, ranks: int, times: int) -> float:
    """Return the ratio of a layer's forward time to its gather time once four times as many ranks share the batch.

    With `ranks` ranks the ratio is `times`.
    """
    return times / 4 * (ranks - 1) / ranks / ((4 * ranks - 1) / (4 * ranks))


def leaves(run, nodes: int, ranks: int) -> float:
    """Return the traffic that leaves a node in a step, in MB. The gradient has 400 MB."""
    return 2 * (nodes - 1) / nodes * 400


def crosses(run, other: str) -> str:
    """Compare the traffic between nodes with one copy of the model per node to the traffic with another way.

    Return "less", "more" or "same".
    """
    named = {
        "replicas that sum node by node": "replicated",
        "ZeRO-1, with rings of all eight ranks": "ZeRO-1",
        "one copy that all eight ranks share": "one copy",
    }[other]
    mine, theirs = (
        between_nodes(run(**{**MACHINE, **SHARDS[name], **NODES, "batch": 1}), 4) for name in ("a copy per node", named)
    )
    return "less" if mine < 0.95 * theirs else "more" if mine > 1.05 * theirs else "same"


def kept(run, ranks: int) -> float:
    """Return the memory of a rank that keeps whole weights until the backward pass, as a multiple of the memory of a
    rank that keeps only its own pieces.
    """
    return (4 + 16 / ranks) / (16 / ranks)
