"""Low-rank Fisher matrix for the natural gradient: preconditions rows, such as a layer's inputs or its errors.

F approximates the mean of x x^T over rows x with D elements, by r directions, the orthonormal rows of R, and a multiple
of the identity:

    F = R^T diag(d) R + rho I        G = F + (alpha / D) tr(F) I

The rows X (n, D) of a mini-batch are multiplied by the inverse of G, and rescaled to their former norm:

    e = d / (d + beta)                beta = rho (1 + alpha) + (alpha / D) sum(d)
    Y = X - (X R^T) diag(e) R         X <- Y |X| / |Y|

Every few mini-batches F moves towards S = X^T X / n, within r directions: one step of the power method, with f for
`forget`.

    Z = f R S + (1-f) diag(d + rho) R        Z Z^T = U C U^T        R <- C^(-1/2) U^T Z
    rho <- (f tr(S) + (1-f) tr(F) - tr(C^(1/2))) / (D - r)        d <- C^(1/2) - rho

An entry of d is negative, and its direction amplified, while R still has a direction below the mean of the rest.

Price: 4 n D r FLOPs for the rows, 4 n D r + 4 D r^2 for an update; the decomposition of (r, r) is not charged.
Source: Povey, Zhang & Khudanpur, arXiv:1410.7455; formulas as in Kaldi's natural-gradient-online.h.
"""

from typing import Any

import numpy as np

import kernels
from kernels.arrays import beside

LEAST = 1e-10  # smallest rho


class Fisher:
    """The Fisher matrix F, stored as R (r, D), d (r,) and rho. It starts as a multiple of I with the trace of the first
    rows.
    """

    d: np.ndarray
    rho: float

    def __init__(self, directions: int, smoothing: float, forget: float, refresh: int):
        self.directions, self.alpha, self.forget, self.refresh = directions, smoothing, forget, refresh
        self.R: Any = None
        self.seen = 0

    def precondition(self, X):
        """Return X (n, D) times the inverse of G, scaled to the norm of X, as a new array. Update F with X at every
        `refresh`-th call.
        """
        if self.R is None:
            self._begin(X)
        Y, common, along = kernels.copy(X), kernels.empty((len(X), len(self.R)), X), kernels.empty_like(X)
        kernels.matmul(common, X, self.here.T)
        kernels.matmul(along, common, self.weighed)
        kernels.sgd(Y.reshape(-1), along.reshape(-1), 1.0)
        long, short = kernels.squared_norm(X), kernels.squared_norm(Y)
        if short > 0:
            kernels.scale(Y.reshape(-1), (long / short) ** 0.5)
        if self.seen % self.refresh == 0:
            self.update(X)
        self.seen += 1
        return Y

    def update(self, X) -> None:
        """Update F with the rows X (n, D), on the CPU and in float64, since C has the squares of the eigenvalues.

        Rows that are not all finite do not change F.
        """
        X = np.ascontiguousarray(kernels.to_numpy(X), np.float64)
        if not np.isfinite(X).all():  # an overflow, which the caller's step reports; NaN has no eigenvalues
            return
        (n, D), r, keep = X.shape, len(self.R), 1 - self.forget
        common, Z, C, R = np.empty((n, r)), np.empty((r, D)), np.empty((r, r)), np.empty((r, D))
        kernels.matmul(common, X, self.R.T)
        kernels.matmul(Z, common.T, X)
        Z = self.forget / n * Z + keep * (self.d + self.rho)[:, None] * self.R
        kernels.matmul(C, Z, Z.T)
        eigenvalues, U = np.linalg.eigh(C)
        root = np.sqrt(np.maximum(eigenvalues[::-1], (keep * self.rho) ** 2))  # descending
        kernels.matmul(R, (U[:, ::-1] / root).T, Z)
        trace = self.forget * kernels.squared_norm(X) / n + keep * self.trace()
        self.R = orthonormal(R)
        self.rho = max((trace - root.sum()) / (D - r), LEAST)
        self.d = root - self.rho
        self._place()

    def trace(self) -> float:
        """Return tr(F)."""
        return self.R.shape[1] * self.rho + self.d.sum()

    def _begin(self, X) -> None:
        D = X.shape[1]
        r = min(self.directions, D // 2)
        places = np.arange(D) % max(r, 1) == np.arange(r)[:, None]  # a direction for every r-th element
        self.R = kernels.keep(orthonormal(places.astype(float)))
        self.d, self.rho = np.zeros(r), max(kernels.squared_norm(X) / (len(X) * D), LEAST)
        self.here, self.weighed = kernels.keep(kernels.empty((r, D), X)), kernels.keep(kernels.empty((r, D), X))
        self._place()

    def _place(self) -> None:
        """Copy R and diag(e) R to the device and dtype of the rows."""
        beta = self.rho * (1 + self.alpha) + self.alpha / self.R.shape[1] * self.d.sum()
        self.here[:] = beside(self.R, self.here)
        self.weighed[:] = beside((self.d / (self.d + beta))[:, None] * self.R, self.here)


def orthonormal(R):
    """Return R (r, D) with its rows orthonormalised in order, or R itself if they already are."""
    if np.abs(R @ R.T - np.eye(len(R))).max(initial=0) < 1e-9:
        return R
    return np.ascontiguousarray(np.linalg.qr(R.T)[0].T)
