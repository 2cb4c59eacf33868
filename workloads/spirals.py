"""Spirals: intertwined arms, one class each, which no straight line can separate.

    r = uniform in (0, 1)    angle = 2 pi (turns r + class / classes)    point = r (cos, sin) + noise

Synthetic, from a fixed seed: the points are the same in every run. A fifth of them is held out.
Source: the two spirals are Alexis Wieland's benchmark, unpublished, 1988 at the latest; see Lang & Witbrock, Learning
to Tell Two Spirals Apart, 1988.
"""

import numpy as np

from knobs import knob
from workloads import models
from workloads.supervised import Supervised


class Settings(models.ModelKnobs):
    """The settings: the difficulty of the spirals, and the model that separates them."""

    classes: int = knob(3, "spiral arms, one class each", ge=2, le=20)
    turns: float = knob(1.0, "times an arm goes around", gt=0, le=5, unit="turns")
    noise: float = knob(0.02, "standard deviation of points around their arm; arms are 1 long", ge=0, le=1)
    points: int = knob(5000, "total number of points; a fifth is held out", ge=100, le=1_000_000, unit="points")

    @property
    def numbers(self) -> int:
        """The number of coordinates of all points, plus one number for the arm of each."""
        return 3 * self.points


def build(settings: Settings, dtype=np.float32) -> Supervised:
    generator = np.random.default_rng(1988)
    target = generator.integers(0, settings.classes, settings.points)
    r = generator.random(settings.points)
    angle = 2 * np.pi * (settings.turns * r + target / settings.classes)
    x = r[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    x += settings.noise * generator.standard_normal(x.shape)
    train = settings.points - settings.points // 5
    model = models.build(settings, (2,), settings.classes, dtype)
    return Supervised("spirals", model, (x[:train], target[:train]), (x[train:], target[train:]))
