"""DualPipe feeds the pipeline from both ends, and overlaps a forward of one direction with a backward of the other.

Rank r of S holds stage r for the half of the micro-batches that enters at rank 0, and stage S-1-r for the half that
enters at the far end. The exchange of tokens that a mixture of experts waits for in F hides behind the computation of
B, and vice versa, so "2F3+0B1", the two done together, may take less time than one after the other. Towards the ends
the backward is split, and W fills the holes. Both ranks that hold a stage sum their gradients before they make the same
update:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    rank 0   F0 f2 F1 b2 f3+B0 b3 I1 W1
    rank 1   F2 f0 F3 b0 f1+B2 b1 I3 W3        (capitals: the first half of the stages, small letters: the second)

Price: idle (S/2-1)(f&b + b - 3w) if f = i = w, for two copies of the weights and S+1 micro-batches held on every rank:
2 batch a per step over each boundary, and 2d to sum the gradients of d parameters. Staleness: none.
Source: DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv:2412.19437, section 3.2.1; the steps are those of the
authors' code.
"""

from collections import deque

from algorithms.algorithm import Equivalence
from algorithms.parts.pipeline.executor import pipeline
from algorithms.parts.pipeline.ops import Op, Overlapped
from algorithms.parts.pipeline.settings import FlushSettings as Settings
from knobs import Refusal


def schedule(rank: int, ranks: int, chunks: int) -> list[Op]:
    """Return the ops of one mini-batch, half of which enters at each end."""
    if ranks % 2:
        raise Refusal(
            f"{ranks} rank{'s' * (ranks > 1)} cannot be paired; DualPipe needs an even number.", [ranks - 1, ranks + 1]
        )
    if chunks % 2 or chunks < 2 * ranks:
        raise Refusal(
            f"{chunks} micro-batches do not fill {ranks} ranks from both ends; use an even number, "
            f"{2 * ranks} or more.",
            [2 * ranks, chunks + 1],
        )
    down, up = (rank, 0), (ranks - 1 - rank, chunks // 2)
    near, far = (down, up) if rank < ranks // 2 else (up, down)
    return eight_steps(near, far, min(rank, ranks - 1 - rank), ranks // 2, chunks // 2)


def eight_steps(near, far, h, half, chunks):
    """Return the ops, in eight steps, of the rank at distance `h` from the end where `near` micro-batches enter and
    `far` ones leave.

    Both are (stage, first micro-batch); each direction has `chunks` micro-batches.
    """
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


ALGORITHM = pipeline(
    schedule,
    Settings,
    schedules={"dualpipe": schedule},
    equivalences=(Equivalence("two directions give SGD", to="sgd", exactness="RND", workers=4, batch=8),),
    example_workers=4,
)
