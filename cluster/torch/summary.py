"""A run of a script in numbers: virtual time per step, losses, waits, memory and traffic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cluster.torch.memory import KINDS
from tracing import COMMUNICATE, COMPUTE, HELD, IDLE, UPDATE, WAIT

if TYPE_CHECKING:
    from cluster.torch.launch import Recorded


@dataclass(frozen=True)
class WaitFor:
    """How long ranks waited for `culprit` in `what`, at `line` of the script: the sum over ranks, in s."""

    culprit: int
    what: str
    line: str
    seconds: float
    ranks: int  # that waited for it


@dataclass(frozen=True)
class Summary:
    """Numbers of a run. Seconds are of the run's clock; arrays have one element per rank.

    `step_seconds` is the median time of a step, the first left out if there are others; NaN without an optimizer.
    `losses` is the mean over the ranks that call backward of a scalar, by step.
    """

    ranks: int
    seconds: float
    steps: int
    step_seconds: float
    losses: dict[int, float]
    compute: np.ndarray  # s, with updates
    communicate: np.ndarray  # s
    wait: np.ndarray  # s
    idle: np.ndarray  # s
    memory: dict[str, np.ndarray]  # bytes in the last optimizer step, by kind of memory.KINDS
    sent: np.ndarray  # bytes
    messages: int
    waits: tuple[WaitFor, ...]  # the longest first

    @property
    def waiting_share(self) -> float:
        """The largest share of the run that any rank spends waiting, from 0 to 1."""
        return float(self.wait.max() / self.seconds) if self.seconds else 0.0


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
        losses=_losses(logs),
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


def _losses(logs) -> dict[int, float]:
    by_step: dict[int, list[float]] = {}
    for log in logs:
        for step, _, _, loss in log.losses:
            by_step.setdefault(step, []).append(loss)
    return {step: float(np.mean(losses)) for step, losses in sorted(by_step.items())}


def _waits(recorded: Recorded) -> list[WaitFor]:
    seconds: dict[tuple[int, str, str], float] = {}
    ranks: dict[tuple[int, str, str], set[int]] = {}
    for one in recorded.waits:
        key = one.culprit, one.what, one.line
        seconds[key] = seconds.get(key, 0.0) + one.end - one.start
        ranks.setdefault(key, set()).add(one.rank)
    longest = sorted(seconds, key=lambda key: -seconds[key])
    return [WaitFor(*key, seconds=seconds[key], ranks=len(ranks[key])) for key in longest]
