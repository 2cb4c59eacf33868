"""Digits: 1,797 images of handwritten digits, 8 x 8 pixels, in `digits.npz`.

They are the test part of "Optical Recognition of Handwritten Digits": forms filled in by 43 writers, scanned, and
reduced to the number of dark points, 0 to 16, in each of 8 x 8 fields; here scaled to 0 to 1. A fixed shuffle selects
1,437 images for training and 360 for evaluation, the same ones in every run.
Source: Alpaydin & Kaynak, UCI Machine Learning Repository, 1998, doi:10.24432/C50P49 (CC BY 4.0). The
file has the images in the order of scikit-learn's copy, one byte per number.
"""

from functools import cache
from pathlib import Path

import numpy as np

from workloads import models
from workloads.supervised import Supervised

TRAIN = 1437


class Settings(models.ModelKnobs):
    """The settings of the model that classifies the digits."""


def build(settings: Settings, dtype=np.float32) -> Supervised:
    x, target = digits()
    order = np.random.default_rng(1797).permutation(len(x))
    train, test = order[:TRAIN], order[TRAIN:]
    model = models.build(settings, (1, 8, 8), 10, dtype)
    return Supervised("digits", model, (x[train] / 16, target[train]), (x[test] / 16, target[test]), image=(8, 8))


@cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return (images, digits), shapes (1797, 64) and (1797,). Pixels have their original values, 0 to 16."""
    with np.load(Path(__file__).with_name("digits.npz")) as file:
        return file["x"].astype(float), file["target"].astype(np.int64)
