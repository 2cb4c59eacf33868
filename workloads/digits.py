"""Digits: 1,797 images of handwritten digits, 8 x 8 pixels, included in scikit-learn.

They are the test part of "Optical Recognition of Handwritten Digits": forms filled in by 43 writers, scanned, and
reduced to the number of dark points, 0 to 16, in each of 8 x 8 fields; here scaled to 0 to 1. A fixed shuffle selects
1,437 images for training and 360 for evaluation, the same ones in every run.
Source: Alpaydin & Kaynak, UCI Machine Learning Repository, 1998, doi:10.24432/C50P49 (CC BY 4.0).
"""

import importlib.util
from functools import cache
from pathlib import Path

import numpy as np

from workloads import models
from workloads.supervised import Supervised

TRAIN = 1437


class Settings(models.ModelKnobs):
    """The model that classifies the digits."""


def build(settings: Settings, dtype=np.float32) -> Supervised:
    """Return the workload. Raise ValueError if scikit-learn is not installed."""
    x, target = digits()
    order = np.random.default_rng(1797).permutation(len(x))
    train, test = order[:TRAIN], order[TRAIN:]
    model = models.build(settings, (1, 8, 8), 10, dtype)
    return Supervised("digits", model, (x[train] / 16, target[train]), (x[test] / 16, target[test]))


@cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return (x, target): all images, unscaled, (1797, 64) of 0 to 16, and their digits, (1797,).

    The file is read from scikit-learn's folder, since importing scikit-learn itself takes a second.
    """
    spec = importlib.util.find_spec("sklearn")
    if spec is None:
        raise ValueError("digits: the data are part of scikit-learn, which is missing; run: pip install scikit-learn")
    file = Path(spec.submodule_search_locations[0]) / "datasets" / "data" / "digits.csv.gz"
    if file.exists():
        table = np.loadtxt(file, delimiter=",")  # (1797, 65)
        return table[:, :-1], table[:, -1].astype(np.int64)
    from sklearn.datasets import load_digits  # the file has moved

    return load_digits(return_X_y=True)
