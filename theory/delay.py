"""The largest stable learning rate of gradient descent whose gradients are late by a fixed number of updates.

For curvature h, the step w <- w - lr g(w of t updates ago) has the characteristic polynomial

    z^(t+1) - z^t + lr h        stable, all |z| < 1, for lr h < 2 sin(pi / (4 t + 2)): 2, 1, 0.62 for t = 0, 1, 2

Source: Yang et al. 2021 (PipeMare).
"""

from math import pi, sin


def largest_rate(delay: int) -> float:
    """Return the largest stable learning rate, times the curvature, for gradients that are `delay` updates late."""
    return 2 * sin(pi / (4 * delay + 2))
