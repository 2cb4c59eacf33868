"""A solution to the exercise on stochastic gradient descent: heavy ball, and later the mean of its models."""

import numpy as np

ROOT = 0.1  # of the smallest curvature; the largest is 1
RATE = 4 / (1 + ROOT) ** 2
MOMENTUM = ((1 - ROOT) / (1 + ROOT)) ** 2
ARRIVED = 150  # steps after which only noise is left, wherever training began


def step(w, g, memory):
    v, z, t = memory or [np.zeros_like(w), w, 0]
    v = MOMENTUM * v + g
    w = w - RATE * v
    z = ship(z, w, t)
    return w, z, [v, z, t + 1]


def ship(z, w, t):
    if t < ARRIVED:
        return w
    return z + (w - z) / (t - ARRIVED + 1)
