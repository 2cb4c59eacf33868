"""Quadratic: the simplest convex problem, with known curvature and optimum.

    f(w) = mean over samples j of 1/2 sum_i h_i (w_i - p_ji)^2          optimum: the mean of the points p_j

Synthetic, from a fixed seed: the points are the same in every run, and their mean is 0. With `noise` 0, all points are
0 and every mini-batch has the same gradient, h w; otherwise a mini-batch's gradient points to the mean of its points.

Samples can be of several `kinds`, for data that are not identically distributed over workers. Kind k has its points
around its own centre, at a distance `apart` from the next, and a curvature s_k h; `unequal` is the first s, which is 1,
divided by the last. The optimum is the mean of all points weighted by s. Samples are then not shuffled: batches of the
kinds alternate, so with as many workers as kinds, worker k sees only kind k.
"""

from __future__ import annotations

import math

import numpy as np

import kernels
from knobs import Refusal, knob
from workloads.workload import DataKnobs, Evaluation, Workload

ALIKE = {"kinds": (1,)}  # when the knobs about kinds have no effect


class Settings(DataKnobs):
    """The settings: the problem's curvature and noise, and the starting point."""

    dimension: int = knob(10, "parameters of the problem", ge=1, le=10_000_000)
    condition: float = knob(
        10.0, "condition number: largest curvature, which is 1, divided by the smallest", ge=1, le=1e9
    )
    noise: float = knob(0.0, "standard deviation of the samples' own optima around the common one", ge=0, le=1e6)
    start: float = knob(1.0, "initial value of every parameter; the optimum is at 0", ge=-1e6, le=1e6)
    points: int = knob(4096, "number of samples", ge=1, le=10_000_000, unit="samples")
    kinds: int = knob(1, "kinds of samples, one for each worker; above 1 nothing is shuffled", ge=1, le=4096)
    apart: float = knob(
        0.0, "distance between the centres of one kind of samples and the next", unless=ALIKE, ge=0, le=1e6
    )
    unequal: float = knob(
        1.0, "curvature of the first kind of samples divided by that of the last", unless=ALIKE, ge=1, le=1e6
    )
    stretch: int = knob(
        32, "samples of one kind in a row; must equal the batch size", unless=ALIKE, ge=1, le=65536, unit="samples"
    )

    @property
    def numbers(self) -> int:
        """The number of coordinates of all points."""
        return self.points * self.dimension


def build(settings: Settings, dtype=np.float32) -> Quadratic:
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
    start = np.full(settings.dimension, settings.start)
    if settings.kinds == 1:
        workload = Quadratic(points, curvature, start, dtype=dtype)
        if not settings.noise:
            workload.notes = (
                "With noise 0, every mini-batch has the same gradient, so workers that average take the steps of a "
                "single worker; use noise 1 to see the benefit of more samples.",
            )
        return workload
    return Kinds(points, curvature, start, settings, dtype)


class Quadratic(Workload):
    """The workload with `points` (n, d) and `curvature` (d,), which starts at `start` (d,)."""

    name = "quadratic"

    def __init__(self, points, curvature, start, shuffle: bool = True, dtype=np.float64):
        self.points = np.ascontiguousarray(points, dtype)
        self.curvature = np.ascontiguousarray(curvature, dtype)
        self.origin = np.ascontiguousarray(start, dtype)
        self.shuffle, self.dtype = shuffle, np.dtype(dtype)
        self.samples, self.parameters = self.points.shape
        self.tensors = ((slice(0, self.parameters), (self.parameters,)),)
        self.optimum = self.points.mean(0)

    def start(self, seed: int = 0) -> np.ndarray:
        """Return the initial parameters, whatever the seed."""
        return self.origin.copy()

    def batch(self, indices: np.ndarray) -> tuple:
        """Return (points, curvature) for these samples."""
        return self.points[indices], self.curvature

    def gradient(self, w, batch: tuple) -> tuple:
        g = kernels.empty_like(w)
        return kernels.quadratic(g, w, *batch), g

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """Return the excess loss, f(w) - f(optimum), which is at least 0. There is no accuracy."""
        return Evaluation(float(self.curvature @ np.square(w - self.optimum)) / 2, math.nan)


class Kinds(Quadratic):
    """A quadratic with samples of several kinds, whose batches alternate."""

    def __init__(self, points, curvature, start, settings: Settings, dtype):
        kinds, self.stretch = settings.kinds, settings.stretch
        rounds = len(points) // (kinds * self.stretch)
        if not rounds:
            raise ValueError(
                f"{len(points)} points are too few for {kinds} kinds with a stretch of {self.stretch}; "
                f"use at least {kinds * self.stretch} points."
            )
        kind = np.tile(np.repeat(np.arange(kinds), self.stretch), rounds)  # (n,)
        centres = settings.apart * (np.arange(kinds) - (kinds - 1) / 2)
        points = points[: len(kind)] + centres[kind, None]
        super().__init__(points, curvature, start, shuffle=False, dtype=dtype)
        self.scale = np.geomspace(1, 1 / settings.unequal, kinds)[kind]  # (n,)
        self.optimum = self.scale @ self.points / self.scale.sum()

    def batch(self, indices: np.ndarray) -> tuple:
        """Return (points, curvature) for these samples. Raise ValueError if there are more or fewer samples than in a
        stretch of one kind.
        """
        if len(indices) != self.stretch:
            raise Refusal(
                f"batch is {len(indices)}, but each stretch of one kind has {self.stretch} samples; "
                f"use batch {self.stretch}, or stretch {len(indices)}.",
                [self.stretch],
            )
        return self.points[indices], (self.scale[indices[0]] * self.curvature).astype(self.dtype)

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """Return the excess loss over the samples of all kinds."""
        return Evaluation(self.scale.mean() * super().evaluate(w).loss, math.nan)
