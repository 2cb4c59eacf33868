"""Fisher: rows of numbers, such as the inputs of a layer or its errors, without what they have in common.

F is the mean of x x^T over rows x with D numbers. Of it r directions are kept, the orthonormal rows of R, and a rest:

    F = R^T diag(d) R + rho I        G = F + (alpha / D) tr(F) I

The rows X (n, D) of a mini-batch are multiplied by the inverse of G, and made as long together as they were:

    e = d / (d + beta)                beta = rho (1 + alpha) + (alpha / D) sum(d)
    Y = X - (X R^T) diag(e) R         X <- Y |X| / |Y|

Every few mini-batches F moves a part of the way to S = X^T X / n, as far as r directions can tell: one step of the
power method, with f for `forget`.

    Z = f R S + (1-f) diag(d + rho) R        Z Z^T = U C U^T        R <- C^(-1/2) U^T Z
    rho <- (f tr(S) + (1-f) tr(F) - tr(C^(1/2))) / (D - r)        d <- C^(1/2) - rho

An entry of d is negative, and its direction made longer, while R still has one that matters less than the rest.

Price: 4 n D r FLOPs for the rows, 4 n D r + 4 D r^2 for an update; the decomposition of (r, r) is not charged.
Source: Povey, Zhang & Khudanpur, arXiv:1410.7455; formulas as in Kaldi's natural-gradient-online.h.
"""

import numpy as np

import kernels
from kernels.arrays import beside

LEAST = 1e-10  # of rho


class Fisher:
    """F, of rows like the first ones: R (r, D), d (r,), rho. It begins as the multiple of I that has their trace."""

    def __init__(self, directions: int, smoothing: float, forget: float, refresh: int):
        self.directions, self.alpha, self.forget, self.refresh = directions, smoothing, forget, refresh
        self.R, self.seen = None, 0

    def precondition(self, X):
        """X (n, D) times the inverse of G, and as long as X: a new array. Then F may learn from X."""
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
        """Learn from the rows X (n, D); on the CPU and in float64, since C has the squares of what is sought."""
        X = np.ascontiguousarray(kernels.to_numpy(X), np.float64)
        (n, D), r, keep = X.shape, len(self.R), 1 - self.forget
        common, Z, C, R = np.empty((n, r)), np.empty((r, D)), np.empty((r, r)), np.empty((r, D))
        kernels.matmul(common, X, self.R.T)
        kernels.matmul(Z, common.T, X)
        Z = self.forget / n * Z + keep * (self.d + self.rho)[:, None] * self.R
        kernels.matmul(C, Z, Z.T)
        eigenvalues, U = np.linalg.eigh(C)
        root = np.sqrt(np.maximum(eigenvalues[::-1], (keep * self.rho) ** 2))  # the largest first
        kernels.matmul(R, (U[:, ::-1] / root).T, Z)
        trace = self.forget * kernels.squared_norm(X) / n + keep * self.trace()
        self.R = orthonormal(R)
        self.rho = max((trace - root.sum()) / (D - r), LEAST)
        self.d = root - self.rho
        self._place()

    def trace(self) -> float:
        """tr(F)."""
        return self.R.shape[1] * self.rho + self.d.sum()

    def _begin(self, X) -> None:
        D = X.shape[1]
        r = min(self.directions, D // 2)
        places = np.arange(D) % max(r, 1) == np.arange(r)[:, None]  # a direction for every r-th place
        self.R = orthonormal(places.astype(float))
        self.d, self.rho = np.zeros(r), max(kernels.squared_norm(X) / (len(X) * D), LEAST)
        self.here, self.weighed = kernels.empty((r, D), X), kernels.empty((r, D), X)
        self._place()

    def _place(self) -> None:
        """R and diag(e) R where the rows are, and of their type."""
        beta = self.rho * (1 + self.alpha) + self.alpha / self.R.shape[1] * self.d.sum()
        self.here[:] = beside(self.R, self.here)
        self.weighed[:] = beside((self.d / (self.d + beta))[:, None] * self.R, self.here)


def orthonormal(R):
    """R (r, D) if its rows are orthonormal; otherwise rows that are and span the same, the first the most faithful."""
    if np.abs(R @ R.T - np.eye(len(R))).max(initial=0) < 1e-9:
        return R
    return np.ascontiguousarray(np.linalg.qr(R.T)[0].T)
