"""The cost of one layer on P machines: why local receptive fields can use many machines, and dense layers cannot.

    seconds = FLOPs of a machine / its FLOP/s + bytes it receives / bandwidth + messages it receives * seconds for each

In a fully connected layer, a machine computes 1/P of the outputs from all inputs, and receives (P-1)/P of the inputs
from the others, in P - 1 messages. The first term falls, the second rises to a constant, the third keeps rising. If
the arithmetic takes a seconds, receiving all inputs b, and each message c, the minimum is at P = sqrt((a - b) / c).

In a locally connected layer, where a unit sees (2 r + 1)^2 pixels, a machine has a block of L x L pixels and receives
only its rim, (L + 2 r)^2 - L^2 pixels, from at most eight neighbours.
Source: Dean et al., Large Scale Distributed Deep Networks, NIPS 2012, sections 3 and 5.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """A machine that computes part of a layer."""

    flops: float  # FLOP/s
    bandwidth: float  # bytes/s that it can receive
    message: float  # s for each message that it receives


def dense_layer(inputs: int, outputs: int, batch: int, machines: int, on: Machine) -> float:
    """Return the time of the forward pass of a fully connected float32 layer on each of the `machines`, in s."""
    received = inputs * (machines - 1) / machines
    return (
        2 * inputs * outputs * batch / machines / on.flops
        + 4 * received * batch / on.bandwidth
        + (machines - 1) * on.message
    )


def local(side: int, features: int, radius: int, batch: int, machines: int, on: Machine) -> float:
    """Return the time of the forward pass of a locally connected layer of side x side pixels, in s.

    It has `features` features per pixel at its input, and as many at its output.
    """
    block = side / math.sqrt(machines)  # of pixels, on each machine
    rim = ((block + 2 * radius) ** 2 - block**2) * (machines > 1)
    return (
        2 * block**2 * (2 * radius + 1) ** 2 * features**2 * batch / on.flops
        + 4 * rim * features * batch / on.bandwidth
        + min(machines - 1, 8) * on.message
    )


def speed_up(seconds: Callable[[int], float], machines: int) -> float:
    """Return the speed-up of `machines` machines over one, if n machines take seconds(n)."""
    return seconds(1) / seconds(machines)
