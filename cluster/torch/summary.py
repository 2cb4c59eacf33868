"""A run of a script in numbers: virtual time per step, losses, waits, memory and traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cluster.script_summary import Summary, WaitFor, mean_by_step
from cluster.torch.memory import KINDS
from tracing import COMMUNICATE, COMPUTE, HELD, IDLE, UPDATE, WAIT

if TYPE_CHECKING:
    from cluster.torch.launch import Recorded


def summarize(recorded: Recorded) -> Summary:
    """Return the numbers of this run."""
    outcome = recorded.outcome
    trace, logs = outcome.trace(), outcome.event_logs
    busy = trace.busy()
    steps = max((log.step for log in logs), default=0)
    return Summary(
        ranks=len(logs),
        seconds=trace.seconds(),
        steps=max(0, steps),
        step_seconds=_step_seconds(trace),
        losses=_means([(log.rank, row[0], row[3]) for log in logs for row in log.losses], steps <= 0),
        logged=_logged(logs, steps <= 0),
        compute=busy[:, COMPUTE] + busy[:, UPDATE],
        communicate=busy[:, COMMUNICATE],
        wait=busy[:, WAIT],
        idle=busy[:, IDLE],
        memory={kind: np.array([log.held[HELD.index(kind)] for log in logs]) for kind in KINDS},
        sent=trace.traffic().sum(axis=1),
        messages=len(trace.messages["src"]),
        waits=tuple(_waits(recorded)),
    )


def _step_seconds(trace) -> float:
    """Return the median time between the ends of successive steps, on the rank that ends last."""
    steps = trace.spans["step"] + 1  # -1 before the first
    ended = np.full(int(steps.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(ended, steps, trace.spans["end"])
    ended = ended[np.isfinite(ended)]
    took = np.diff(ended)
    return float(np.median(took[1:] if len(took) > 2 else took)) if len(took) else float("nan")


def _means(rows: list[tuple[int, int, float]], is_stepless: bool) -> dict[int, float]:
    """Return the means by step of rows of rank, step and value."""
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


def _waits(recorded: Recorded) -> list[WaitFor]:
    seconds: dict[tuple[int, str, str], float] = {}
    ranks: dict[tuple[int, str, str], set[int]] = {}
    for one in recorded.waits:
        key = one.culprit, one.what, one.line
        seconds[key] = seconds.get(key, 0.0) + one.end - one.start
        ranks.setdefault(key, set()).add(one.rank)
    longest = sorted(seconds, key=lambda key: -seconds[key])
    return [WaitFor(*key, seconds=seconds[key], ranks=len(ranks[key])) for key in longest]
