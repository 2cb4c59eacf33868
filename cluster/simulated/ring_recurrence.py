"""Ring all-reduce without messages: its sums, to the bit, and its times, by a recurrence over all ranks at once."""

from __future__ import annotations

import numpy as np
from numba import njit

import kernels


def ring_sum(vectors: list[np.ndarray], pieces: list[slice]) -> np.ndarray:
    """Return the sum of `vectors`, (n,) each, in the order of a ring: piece c starts on rank c + 1 and ends on rank c.

    Two passes over the ranks read every vector once, from front to back.
    """
    total, first, last = np.empty_like(vectors[0]), vectors[0], pieces[-1]
    for piece, x in zip(pieces, vectors[1:], strict=False):
        if piece.start:
            kernels.add(total[: piece.start], x[: piece.start])
        total[piece] = x[piece]
    total[last] = first[last]
    if last.start:
        kernels.add(total[: last.start], first[: last.start])
    for piece, x in zip(pieces[1:], vectors[1:], strict=True):
        if piece.start < len(total):
            kernels.add(total[piece.start :], x[piece.start :])
    return total


@njit(cache=True)
def ring_times(joined, out_free, in_free, link, nbytes, shorter, adds, scales):
    """Return when each rank of a ring has the sum, (P,) in s: the recurrence of send, receive, add, step by step.

    joined, out_free, in_free, nbytes (P,): when rank r joined; when the two ports of the link from r to r + 1 are free;
    the bytes of piece r. link (P, 3): latency, seconds per byte, overhead. adds, scales (P, 2): seconds to add or scale
    a shorter, a longer piece; `shorter` is the bytes of a shorter one. out_free and in_free are updated in place.
    """
    size = joined.size
    now = joined.copy()
    first_byte = np.empty(size)
    for step in range(2 * (size - 1)):
        summing = step < size - 1
        piece = size - 1 - step % size  # sent by rank 0; rank r sends the piece r further on
        for r in range(size):
            piece = piece if piece < size else piece - size
            now[r] += link[r, 2]
            leaves = max(now[r], out_free[r])
            out_free[r] = leaves + nbytes[piece] * link[r, 1]
            first_byte[r] = leaves + link[r, 0]
            piece += 1
        left = size - 1
        piece -= 1  # sent by the last rank and received by rank 0
        for r in range(size):
            received = nbytes[piece]
            in_free[left] = max(first_byte[left], in_free[left]) + received * link[left, 1]
            now[r] = max(now[r], in_free[left])
            if summing:
                now[r] += adds[r, 1 if received > shorter else 0]
            if step == size - 2:
                now[r] += scales[r, 1 if nbytes[r] > shorter else 0]
            left = r
            piece = piece + 1 if piece + 1 < size else 0
    return now
