"""A run of a script in numbers: virtual time per step, losses, waits, memory and traffic."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from cluster.script_summary import Summary, WaitFor
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
        losses=_means((row[0], row[3]) for log in logs for row in log.losses),
        logged=_logged(logs),
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
    steps, ends = trace.spans["step"], trace.spans["end"]
    last = int(steps.max()) if len(steps) else -1
    ended = np.array([ends[steps == step].max() for step in range(-1, last + 1) if (steps == step).any()])
    took = np.diff(ended)
    return float(np.median(took[1:] if len(took) > 2 else took)) if len(took) else float("nan")


def _means(rows: Iterable[tuple[int, float]]) -> dict[int, float]:
    """Return the mean of (step, value) by step."""
    by_step: dict[int, list[float]] = {}
    for step, value in rows:
        by_step.setdefault(step, []).append(value)
    return {step: float(np.mean(values)) for step, values in sorted(by_step.items())}


def _logged(logs) -> dict[str, dict[int, float]]:
    rows: dict[str, list[tuple[int, float]]] = {}
    for log in logs:
        for step, _, name, value in log.measures:
            rows.setdefault(name, []).append((step, value))
    return {name: _means(values) for name, values in rows.items()}


def _waits(recorded: Recorded) -> list[WaitFor]:
    seconds: dict[tuple[int, str, str], float] = {}
    ranks: dict[tuple[int, str, str], set[int]] = {}
    for one in recorded.waits:
        key = one.culprit, one.what, one.line
        seconds[key] = seconds.get(key, 0.0) + one.end - one.start
        ranks.setdefault(key, set()).add(one.rank)
    longest = sorted(seconds, key=lambda key: -seconds[key])
    return [WaitFor(*key, seconds=seconds[key], ranks=len(ranks[key])) for key in longest]
