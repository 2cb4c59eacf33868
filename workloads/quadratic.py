"""Quadratic: the bowl in which every theorem is tried first, with an optimum that is known.

    f(w) = mean over samples j of 1/2 sum_i h_i (w_i - p_ji)^2          optimum: the mean of the points p_j

Made up, from a fixed seed: the same points in every run. The points' mean is 0. With `noise` 0 all points are 0 and
every mini-batch has the same gradient, h w; otherwise a mini-batch pulls towards the mean of its own points.
"""

from __future__ import annotations

import math

import numpy as np

import kernels
from knobs import Knobs, knob
from workloads.task import Evaluation


class Settings(Knobs):
    """The shape of the bowl, and where to start."""

    dimension: int = knob(10, "parameters", ge=1, le=10_000_000)
    condition: float = knob(10.0, "largest curvature over smallest; the largest is 1", ge=1, le=1e9)
    noise: float = knob(0.0, "how far the samples' own optima lie around the common one", ge=0, le=1e6)
    start: float = knob(1.0, "where every parameter starts", ge=-1e6, le=1e6)
    points: int = knob(4096, "samples", ge=1, le=10_000_000, unit="samples")


def build(settings: Settings, dtype=np.float32) -> Quadratic:
    """The workload."""
    if settings.dimension * settings.points > 10**8:
        raise ValueError(
            f"{settings.points} points in {settings.dimension} dimensions do not fit in memory; "
            f"use at most {10**8 // settings.dimension} points."
        )
    points = np.zeros((settings.points, settings.dimension))
    if settings.noise:
        points = settings.noise * np.random.default_rng(2).standard_normal(points.shape)
        points -= points.mean(0)
    curvature = np.geomspace(1, 1 / settings.condition, settings.dimension)
    return Quadratic(points, curvature, np.full(settings.dimension, settings.start), dtype=dtype)


class Quadratic:
    """The Workload of `points` (n, d) with `curvature` (d,), from `start` (d,)."""

    name, depth = "quadratic", 1

    def __init__(self, points, curvature, start, shuffle: bool = True, dtype=np.float64):
        self.points = np.ascontiguousarray(points, dtype)
        self.curvature = np.ascontiguousarray(curvature, dtype)
        self.origin = np.ascontiguousarray(start, dtype)
        self.shuffle, self.dtype = shuffle, np.dtype(dtype)
        self.samples, self.parameters = self.points.shape
        self.tensors = ((slice(0, self.parameters), (self.parameters,)),)
        self.optimum = self.points.mean(0)

    def start(self, seed: int = 0) -> np.ndarray:
        """The first parameters, whatever the seed."""
        return self.origin.copy()

    def batch(self, indices: np.ndarray) -> tuple:
        """The points of these samples."""
        return (self.points[indices],)

    def gradient(self, w, batch: tuple) -> tuple:
        """(loss, g): mean over the batch."""
        g = kernels.empty_like(w)
        curvature = self.curvature if isinstance(w, np.ndarray) else kernels.to_device(self.curvature, str(w.device))
        return kernels.quadratic(g, w, batch[0], curvature), g

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """How far above the optimum: f(w) - f(optimum), 0 at best. There is no accuracy."""
        return Evaluation(float(self.curvature @ np.square(w - self.optimum)) / 2, math.nan)

    def split(self, stages: int):
        """Refused: a bowl has no layers."""
        raise ValueError("a quadratic has no layers to cut in stages; use digits, spirals or mnist for a pipeline.")

    boundaries = split
