"""The schedules of the literature: each a small pure function from a rank to the ops it does, in order.

All are called alike, schedule(rank, ranks, chunks): what one of `ranks` ranks does for a mini-batch of `chunks`
micro-batches, with one update at the end; or, in the last four, for a stream of `chunks` with its stale updates.
ValueError, in one sentence, where a schedule does not exist for these numbers.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial

from algorithms.parts.pipeline.ops import Op
from algorithms.pipelined.schedules import (
    chimera,
    dualpipe,
    gpipe,
    interleaved,
    naive,
    one_f_one_b,
    pipedream_2bw,
    systolic,
    zero_bubble,
    zero_bubble_auto,
    zero_bubble_v,
)

SCHEDULES: dict[str, Callable] = {  # in teaching order
    "naive": naive.schedule,
    "gpipe": gpipe.schedule,
    "gpipe_early": partial(gpipe.schedule, recompute=True),
    "gpipe_late": partial(gpipe.schedule, recompute=True, late=True),
    "1f1b": one_f_one_b.schedule,
    "dapple_pb": partial(one_f_one_b.schedule, policy="PB"),
    "interleaved": interleaved.schedule,
    "chimera": chimera.schedule,
    "zb_h1": zero_bubble.h1,
    "zb_h2": zero_bubble.h2,
    "zb_1p": zero_bubble_auto.schedule,
    "zb_2p": partial(zero_bubble_auto.schedule, limit=2),
    "zb_v": zero_bubble_v.schedule,
    "dualpipe": dualpipe.schedule,
    "dualpipe_v": dualpipe.v,
    "systolic": systolic.schedule,
    "pipemare": partial(systolic.schedule, fused=False),
    "pipedream": one_f_one_b.without_flush,
    "pipedream_2bw": pipedream_2bw.schedule,
}


def lists(name: str, ranks: int, chunks: int, **options) -> list[list[Op]]:
    """The ops of every rank by the schedule of that name."""
    if name not in SCHEDULES:
        raise ValueError(f"there is no schedule {name!r}; there are {', '.join(SCHEDULES)}.")
    if ranks < 1 or chunks < 1:
        raise ValueError(f"{chunks} micro-batches on {ranks} ranks are no schedule; use at least 1 of each.")
    collects = gc.isenabled()
    gc.disable()  # ops are many and never cyclic: looking through them again and again takes as long as making them
    try:
        return [list(SCHEDULES[name](rank, ranks, chunks, **options)) for rank in range(ranks)]
    finally:
        if collects:
            gc.enable()
