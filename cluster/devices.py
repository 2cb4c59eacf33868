"""Devices: what a rank computes on, in the simulated cluster, and presets with their sources.

A kernel takes overhead + max(FLOPs / flops, bytes / bandwidth) seconds: the roofline, and the cost of a call.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """Sustained, not peak, rates."""

    flops: float  # FLOP/s
    bandwidth: float  # bytes/s of its memory
    overhead: float  # s per kernel call
    source: str = ""

    def seconds(self, flops: float, nbytes: float) -> float:
        """How long one kernel call takes."""
        return self.overhead + max(flops / self.flops, nbytes / self.bandwidth)


DEVICES: dict[str, Device] = {"laptop": Device(40e9, 15e9, 1e-6)}
