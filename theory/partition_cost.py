"""What it costs to compute a layer on P machines: why networks that see neighbourhoods can use many, and others cannot.

    seconds = FLOPs of a machine / its FLOP/s + bytes it hears / bandwidth + messages it hears * seconds for each

Of a fully connected layer a machine computes 1/P of the outputs from all inputs, and hears of the others (P-1)/P of
them, in P - 1 messages. The first term falls, the second rises to a constant, the third goes on rising: with a and b
seconds of arithmetic and of hearing all inputs and c for each message, the time is least at P = sqrt((a - b) / c).

Where a unit sees a square of (2 r + 1)^2 pixels, a machine has a block of L x L pixels and hears only of the rim,
(L + 2 r)^2 - L^2 pixels, from eight neighbours at most.
Source: Dean et al., Large Scale Distributed Deep Networks, NIPS 2012, sections 3 and 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """What a layer is computed on."""

    flops: float  # FLOP/s
    bandwidth: float  # bytes/s that it can hear
    message: float  # s for each message that it hears


def connected(inputs: int, outputs: int, batch: int, machines: int, on: Machine) -> float:
    """Seconds of a fully connected layer of float32 numbers, forward."""
    heard = inputs * (machines - 1) / machines
    return (
        2 * inputs * outputs * batch / machines / on.flops
        + 4 * heard * batch / on.bandwidth
        + (machines - 1) * on.message
    )


def local(side: int, features: int, radius: int, batch: int, machines: int, on: Machine) -> float:
    """Seconds of a locally connected layer of side x side pixels with so many features in and out."""
    block = side / math.sqrt(machines)  # of pixels, on each machine
    rim = ((block + 2 * radius) ** 2 - block**2) * (machines > 1)
    return (
        2 * block**2 * (2 * radius + 1) ** 2 * features**2 * batch / on.flops
        + 4 * rim * features * batch / on.bandwidth
        + min(machines - 1, 8) * on.message
    )


def speed_up(seconds: Callable[[int], float], machines: int) -> float:
    """How many times faster `machines` are than one, if n take seconds(n)."""
    return seconds(1) / seconds(machines)
