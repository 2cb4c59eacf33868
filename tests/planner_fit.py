"""The fit of the planner's constants to published throughput.

Errors are logarithms of predicted over published tokens per second; large ones count by their size and not by its
square, so that no single row decides.
"""

from typing import NamedTuple

import numpy as np

from theory.planner.constants import HIGHEST, LOWEST, Constants
from theory.planner.published import PublishedRows, predict

START = Constants(0.8, 0.7, 0.7, 2.0, 0.4, 0.3, 0.7, 0.5, 0.5, 3e-6)
SCALE = 0.03  # error above which a row counts by its size


class Calibration(NamedTuple):
    """Fitted constants, and their standard errors from the Jacobian with a robust scale of the residuals."""

    constants: Constants
    standard_errors: Constants


def fit(rows: PublishedRows, start: Constants = START) -> Calibration:
    """Fit all constants to these rows."""
    from scipy.optimize import least_squares  # takes a second

    low, high = np.array(LOWEST), np.array(HIGHEST)
    unit = np.array(start)

    def off(values: np.ndarray) -> np.ndarray:
        return np.log(predict(rows, Constants(*(values * unit))) / rows.rates)

    found = least_squares(off, np.ones(len(unit)), bounds=(low / unit, high / unit), loss="soft_l1", f_scale=SCALE)
    residuals = off(found.x)
    spread = 1.4826 * np.median(np.abs(residuals))
    slopes = np.array([(off(found.x + step) - off(found.x - step)) / 2e-4 for step in 1e-4 * np.eye(len(unit))]).T
    variances = spread**2 * np.diag(np.linalg.pinv(slopes.T @ slopes, hermitian=True)).clip(0)
    return Calibration(Constants(*(found.x * unit).tolist()), Constants(*(np.sqrt(variances) * unit).tolist()))
