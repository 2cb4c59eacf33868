"""A script's run in numbers: virtual time per step, losses, waits, memory and traffic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cluster.script_summary import Summary, Waited, WaitFor, counted_spans, mean_by_step
from cluster.torch.memory import KINDS
from cluster.waiting.causes import Causes, causes
from cluster.waiting.pieces import STOPPED, WORK
from tracing import COMMUNICATE, COMPUTE, HELD, IDLE, UPDATE, WAIT, Trace

if TYPE_CHECKING:
    from cluster.torch.launch import Recorded


def summarize(recorded: Recorded) -> Summary:
    """Return the summary of a recorded run."""
    outcome = recorded.outcome
    trace, logs = outcome.trace(), outcome.event_logs
    busy, took = trace.busy(), trace.spans["end"] - trace.spans["start"]
    steps = max((log.step for log in logs), default=0)
    counted = counted_spans(trace, steps)
    return Summary(
        ranks=len(logs),
        seconds=trace.seconds(),
        steps=max(0, steps),
        step_seconds=_step_seconds(trace) if steps > 0 else float("nan"),
        losses=_means([(log.rank, row[0], row[3]) for log in logs for row in log.losses], steps <= 0),
        logged=_logged(logs, steps <= 0),
        compute=busy[:, COMPUTE] + busy[:, UPDATE],
        communicate=busy[:, COMMUNICATE],
        wait=busy[:, WAIT],
        idle=np.maximum(trace.seconds() - busy.sum(axis=1) + busy[:, IDLE], 0.0),
        memory={kind: np.array([log.held[HELD.index(kind)] for log in logs]) for kind in KINDS},
        sent=trace.traffic().sum(axis=1),
        messages=len(trace.messages["src"]),
        waits=tuple(_waits(trace, causes(trace, recorded.waits), recorded.waits, counted)),
        waits_over=float(took[counted].sum()) / len(logs),
    )


def _step_seconds(trace) -> float:
    """Return the median time between the ends of successive steps.

    If there are more than two such times, the first is left out. A step ends when its last rank ends it.
    """
    steps = trace.spans["step"] + 1  # -1 before the first
    ended = np.full(int(steps.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(ended, steps, trace.spans["end"])
    ended = ended[np.isfinite(ended)]
    took = np.diff(ended)
    return float(np.median(took[1:] if len(took) > 2 else took)) if len(took) else float("nan")


def _means(rows: list[tuple[int, int, float]], is_stepless: bool) -> dict[int, float]:
    """Return the mean value of each step, given rows of (rank, step, value)."""
    if not rows:
        return {}
    ranks, steps, values = zip(*rows, strict=True)
    return mean_by_step(ranks, steps, values, is_stepless)


def _logged(logs, is_stepless: bool) -> dict[str, dict[int, float]]:
    rows: dict[str, list[tuple[int, int, float]]] = {}
    for log in logs:
        for step, _, name, value in log.measures:
            rows.setdefault(name, []).append((log.rank, step, value))
    return {name: _means(values, is_stepless) for name, values in rows.items()}


def _waits(trace: Trace, why: Causes, recorded: Sequence[Waited], counted: np.ndarray) -> list[WaitFor]:
    """Return whom ranks waited for in the `counted` spans, and how long, the longest first."""
    spans, lines = trace.spans, {(one.rank, one.end): one.line for one in recorded}
    seconds: dict[tuple[int, str, str], float] = {}
    ranks: dict[tuple[int, str, str], set[int]] = {}
    for wait, rank, reason, length in zip(*(column.tolist() for column in why.pieces), strict=True):
        if counted[wait]:
            waits = int(spans["rank"][wait])
            line = lines.get((waits, float(spans["end"][wait])), "")
            late = reason in (WORK, STOPPED) and rank != waits  # a rank's own delay comes back over the network
            key = rank if late else -1, trace.labels[spans["label"][wait]], line
            seconds[key] = seconds.get(key, 0.0) + length
            ranks.setdefault(key, set()).add(waits)
    longest = sorted(seconds, key=lambda key: -seconds[key])
    return [
        WaitFor(*key, seconds[key], len(ranks[key]), min(ranks[key]) if len(ranks[key]) == 1 else -1) for key in longest
    ]
