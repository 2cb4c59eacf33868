"""A ring all-reduce computed without sending messages: its sums, bit for bit, and its times, from a recurrence."""

import numpy as np

import kernels
from kernels.compiled import on_disk


def ring_sum(vectors: list[np.ndarray], pieces: list[slice]) -> np.ndarray:
    """Return the sum of `vectors`, (n,) each, in the order of a ring: piece c starts on rank c + 1 and ends on rank c.

    Together, two passes over the ranks read every vector once, from front to back.
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


@on_disk(error_model="numpy")
def ring_times(joined, out_free, in_free, link, nbytes, shorter, adds, scales, first=0, stop=-1):
    """Return when each rank of a ring has the sum, (P,) in s, from the recurrence of send, receive and add.

    joined, out_free, in_free, nbytes (P,): when rank r joined; when the two ports of the link from r to r + 1 become
    free; the bytes of piece r. link (3, P): latency, seconds per byte, overhead. adds, scales (P, 2): seconds to add or
    scale a shorter and a longer piece; `shorter` is the bytes of a shorter one. out_free and in_free are updated in
    place. A ring of P ranks takes 2 (P - 1) steps. Steps first:stop are taken (-1: all of them): up to P - 1 they are a
    reduce-scatter, and from then on an all-gather.
    """
    size = joined.size
    now, first_byte = joined.copy(), np.empty(size)
    latency, beta, overhead = link
    pieces = np.concatenate((nbytes, nbytes))  # rank r sends the piece r places after that of rank 0, without wrapping
    add_shorter, add_longer = adds[:, 0].copy(), adds[:, 1].copy()
    for step in range(first, 2 * (size - 1) if stop < 0 else stop):
        sent = pieces[size - 1 - step % size :]  # by rank
        for r in range(size):  # loops without branches, so a processor overlaps their iterations
            now[r] += overhead[r]
            leaves = now[r] if now[r] > out_free[r] else out_free[r]
            out_free[r] = leaves + sent[r] * beta[r]
            first_byte[r] = leaves + latency[r]
        for r in range(size):
            begins = first_byte[r] if first_byte[r] > in_free[r] else in_free[r]
            in_free[r] = begins + sent[r] * beta[r]
        now[0] = max(now[0], in_free[size - 1])
        for r in range(1, size):
            now[r] = now[r] if now[r] > in_free[r - 1] else in_free[r - 1]
        if step < size - 1:
            now[0] += add_longer[0] if sent[size - 1] > shorter else add_shorter[0]
            for r in range(1, size):
                now[r] += add_longer[r] if sent[r - 1] > shorter else add_shorter[r]
        if step == size - 2:
            for r in range(size):
                now[r] += scales[r, 1 if nbytes[r] > shorter else 0]
    return now


def ring_joiners(joined: np.ndarray, extra: np.ndarray, steps: int) -> np.ndarray:
    """Return, for each rank r of a ring, the rank whose arrival decided when r finished, (P,).

    joined, extra (P,): when rank r joined, in s; how much longer a step takes if it passes a delay on from r to r + 1
    than if r only sends its next piece. The arrival of rank r - d thus reaches rank r after the extra time of d links.
    d is at most the number of `steps`, which is at least P - 1.
    """
    size = joined.size
    before = np.concatenate(([0.0], np.cumsum(np.tile(extra, 2))[:-1]))  # from place 0, unrolled, to each place
    value = (np.tile(joined, 2) - before)[::-1]
    best = np.maximum.accumulate(value)
    place = 2 * size - 1 - np.maximum.accumulate(np.where(value >= best, np.arange(2 * size), 0))
    return np.roll(place[::-1][:size] % size, steps % size)
