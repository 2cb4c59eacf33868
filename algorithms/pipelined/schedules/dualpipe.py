"""DualPipe: Chimera's two directions, and a forward of one overlapped with a backward of the other.

What a mixture of experts waits for in F, the exchange of tokens, hides behind the work of B and the other way round,
so "2F3+0B1", the two done together, may take less than one after the other. Of P ranks, r holds stage r for the
micro-batches that enter at rank 0 and stage P-1-r for those that enter at the far end, N/2 each:

    rank 0   F0 f2 F1 b2 f3+B0 b3 I1 W1
    rank 1   F2 f0 F3 b0 f1+B2 b1 I3 W3

(capitals: the first half of the stages, small letters: the second). Towards the ends of the pipeline backward is
split, and W fills the holes. Idle (P/2 - 1)(f&b + b - 3w) if f = i = w, for two copies of the weights and P+1
micro-batches held on every rank.

DualPipeV cuts that in half: P/2 ranks, the second direction being the way back of the first, as in ZB-V, and one copy
of the weights.

Source: DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv:2412.19437; the steps are those of the authors' code.
"""

from collections import deque

from algorithms.parts.pipeline.ops import Op, Overlapped


def schedule(rank: int, ranks: int, chunks: int) -> list[Op]:
    """One mini-batch, half of it from each end."""
    if ranks % 2:
        raise ValueError(f"{ranks} rank{'s' * (ranks > 1)} cannot be paired; DualPipe needs an even number.")
    if chunks % 2 or chunks < 2 * ranks:
        raise ValueError(
            f"{chunks} micro-batches do not fill {ranks} ranks from both ends; use an even number, {2 * ranks} or more."
        )
    down, up = (rank, 0), (ranks - 1 - rank, chunks // 2)
    near, far = (down, up) if rank < ranks // 2 else (up, down)
    return _steps(near, far, min(rank, ranks - 1 - rank), ranks // 2, chunks // 2)


def v(rank: int, ranks: int, chunks: int) -> list[Op]:
    """DualPipeV: one mini-batch on two stages per rank, down and back up, with one copy of the weights."""
    if chunks < 2 * ranks:
        raise ValueError(f"{chunks} micro-batches do not fill {ranks} ranks with two stages; use {2 * ranks} or more.")
    return _steps((rank, 0), (2 * ranks - 1 - rank, 0), rank, ranks, chunks)


def _steps(near, far, h, half, chunks):
    """The eight steps of a rank `h` from the end where `near` micro-batches enter; both are (stage, first chunk)."""
    ops, late = [], deque()
    turn = {}

    def do(kind, side, joined=False):
        stage, first = side
        number = turn[kind in "BI", side] = turn.get((kind in "BI", side), first - 1) + 1
        ops.append((Overlapped if joined else Op)(kind, stage, number))
        if kind == "I":
            late.append(Op("W", stage, number))

    def overlap(forward, backward, joined=True):
        do("F", forward, joined)
        do("B", backward)

    for _ in range(2 * (half - h - 1)):
        do("F", near)
    for _ in range(h + 1):
        do("F", near)
        do("F", far)
    for _ in range(half - h - 1):
        do("I", far)
        ops.append(late.popleft())
        do("F", far)
    for i in range(chunks - 2 * half + h + 1):
        overlap(near, far, joined=i > 0 or h < half - 1)  # the middle ranks begin one after the other: a smaller bubble
        overlap(far, near)
    for _ in range(half - h - 1):
        do("B", far)
        overlap(far, near)
    for i in range(2 * (h + 1)):
        do("B" if i <= h else "I", near if i % 2 else far)
    for _ in range(half - h - 1):
        ops.append(late.popleft())
        do("I", near)
    return [*ops, *late, *(Op("U", stage, 0) for stage in sorted((near[0], far[0])))]
