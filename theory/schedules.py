"""Schedules by name: those of the pipelines in `algorithms/pipelined/`, and two that belong to no algorithm.

All have the same signature, schedule(rank, ranks, chunks), and return the ops of one of `ranks` ranks, in order. Most
are for a mini-batch of `chunks` micro-batches with one update at the end; the last four are for a stream of `chunks`
micro-batches with its stale updates. They raise ValueError if a schedule does not exist for these numbers. No model is
needed.
"""

from collections.abc import Callable

import algorithms
from algorithms.parts.pipeline import ops
from algorithms.parts.pipeline.ops import Op
from theory import schedule_naive, schedule_systolic


def declared_schedules(*names: str) -> dict[str, Callable]:
    """Return the schedules, by name, that the algorithms called `names` declare."""
    return {name: call for one in names for name, call in algorithms.find(one).schedules.items()}


SCHEDULES: dict[str, Callable] = {  # in teaching order
    "naive": schedule_naive.schedule,
    **declared_schedules("gpipe", "dapple", "interleaved", "looped_bfs", "chimera"),
    **declared_schedules(
        "zb_h1", "zb_h2", "zb_auto", "zb_interleaved", "zb_v", "v_half", "v_min", "dualpipe", "dualpipe_v"
    ),
    "systolic": schedule_systolic.schedule,
    **declared_schedules("pipemare", "pipedream", "pipedream_2bw"),
}
TITLES: dict[str, str] = {
    "naive": "Naive model parallelism",
    "gpipe": "GPipe",
    "gpipe_early": "GPipe that recomputes at once",
    "gpipe_late": "GPipe that recomputes late",
    "1f1b": "1F1B",
    "dapple_pb": "1F1B (DAPPLE) with policy PB",
    "interleaved": "Interleaved 1F1B",
    "looped_bfs": "Looped breadth-first",
    "chimera": "Chimera",
    "zb_h1": "ZB-H1",
    "zb_h2": "ZB-H2",
    "zb_1p": "ZB-1p",
    "zb_2p": "ZB-2p",
    "zb_interleaved": "Interleaved zero bubble",
    "zb_v": "ZB-V",
    "v_half": "V-Half",
    "v_min": "V-Min",
    "dualpipe": "DualPipe",
    "dualpipe_v": "DualPipeV",
    "systolic": "Systolic pipeline",
    "pipemare": "PipeMare",
    "pipedream": "PipeDream",
    "pipedream_2bw": "PipeDream-2BW",
}
"""The title of each schedule: its name in the literature."""
VARIANTS: dict[str, str] = {
    "gpipe_early": "GPipe that stores only inputs and repeats each forward while its gradient is still on its way.",
    "gpipe_late": "GPipe that stores only inputs and repeats each forward once its gradient has arrived.",
    "dapple_pb": "1F1B with policy PB (DAPPLE) sends almost twice as many micro-batches ahead to hide latency.",
    "zb_2p": "ZB-2p searches like ZB-1p but within twice the memory, until hardly any idle time is left.",
}
"""A one-sentence description of each schedule that shares its file with another."""


def lists(name: str, ranks: int, chunks: int, **options) -> list[list[Op]]:
    """Return the ops of every rank under the schedule `name`. Raise ValueError if there is none for these numbers."""
    if name not in SCHEDULES:
        raise ValueError(f"there is no schedule {name!r}; use one of {', '.join(SCHEDULES)}.")
    if ranks < 1 or chunks < 1:
        raise ValueError(
            f"a schedule needs micro-batches and ranks, not {chunks} micro-batches on {ranks} ranks; use at least 1 "
            "of each."
        )
    return ops.lists(SCHEDULES[name], ranks, chunks, **options)
