"""Timing a schedule: when each op runs if ops have these costs and links this latency. No model is needed.

A rank does its list in order. An op starts when the rank is free and everything it needs is done, plus the latency
for what was done on another rank. From the times follow the measures by which schedules are compared.

Source: the list simulation behind the tables of Qi et al., ICLR 2024; it reproduces their Table 5 to four digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from algorithms.pipelined.schedule import Op, needs


@dataclass(frozen=True)
class Times:
    """Start and end of every op, in the unit of the costs; `lists` is the schedule itself, by rank."""

    lists: Sequence[Sequence[Op]]
    start: dict[Op, float]
    end: dict[Op, float]

    @property
    def makespan(self) -> float:
        """From the start to the end of everything."""
        return max(self.end.values(), default=0.0)

    @property
    def busy(self) -> list[float]:
        """Time each rank works."""
        return [sum(self.end[op] - self.start[op] for op in ops) for ops in self.lists]

    @property
    def idle(self) -> list[float]:
        """Time each rank does not work, of the makespan."""
        return [self.makespan - busy for busy in self.busy]

    @property
    def span(self) -> list[float]:
        """From each rank's first start to its own last end."""
        return [self.end[ops[-1]] - self.start[ops[0]] if ops else 0.0 for ops in self.lists]

    @property
    def in_flight(self) -> list[int]:
        """Most micro-batches each rank holds activations of at one time, by stage held: F takes one, B or I frees."""
        peaks = []
        for ops in self.lists:
            held = peak = 0
            for kind, _, _ in ops:
                held += (kind == "F") - (kind == "B" or kind == "I")
                peak = max(peak, held)
            peaks.append(peak)
        return peaks


def bubble_of_total(times: Times) -> float:
    """Idle share of the whole step: (S-1)/(M+S-1) for GPipe. The convention of GPipe and Chimera."""
    return sum(times.idle) / (len(times.lists) * times.makespan)


def bubble_of_ideal(times: Times) -> float:
    """Idle time over working time: (S-1)/M for GPipe. The convention of Megatron-LM."""
    return sum(times.idle) / sum(times.busy)


def bubble_of_span(times: Times) -> float:
    """Idle share of the longest span of one rank. The convention of the zero-bubble paper."""
    longest = max(times.span)
    return (longest - max(times.busy)) / longest


def simulate(lists: Sequence[Sequence[Op]], costs: Mapping, latency: float = 0.0) -> Times:
    """When each op of `lists` (one list per rank) starts and ends.

    `costs` gives the time of a kind, costs["F"], or of a kind on a stage, costs["F", 2], which goes before; an
    update costs nothing unless it is named. `latency` is added wherever an op waits for one of another rank.
    ValueError if the lists cannot be carried out: it names who is stuck where.
    """
    where = {op: rank for rank, ops in enumerate(lists) for op in ops}
    last = max((op.stage for op in where), default=0)
    split = any(op.kind == "I" for op in where)
    price = {key: _price(costs, *key) for key in {op[:2] for op in where}}
    start: dict[Op, float] = {}
    end: dict[Op, float] = {}
    free, position = [0.0] * len(lists), [0] * len(lists)
    waiting: dict[Op, list[int]] = {}
    ready = list(range(len(lists)))
    while ready:
        rank = ready.pop()
        ops, at, now = lists[rank], position[rank], free[rank]
        while at < len(ops):
            op = ops[at]
            begin = now
            for need in needs(op, last, split):
                done = end.get(need)
                if done is None:
                    waiting.setdefault(need, []).append(rank)
                    break
                if where[need] != rank:
                    done += latency
                if done > begin:
                    begin = done
            else:
                start[op] = begin
                end[op] = now = begin + price[op[:2]]
                at += 1
                if op in waiting:
                    ready += waiting.pop(op)
                continue
            break
        position[rank], free[rank] = at, now
    stuck = [
        f"rank {rank} at {ops[at]}" for rank, (ops, at) in enumerate(zip(lists, position, strict=True)) if at < len(ops)
    ]
    if stuck:
        lacking = ", ".join(str(op) for op in list(waiting)[:8])
        raise ValueError(f"the schedule is stuck: {', '.join(stuck[:8])}; waiting for {lacking}.")
    return Times(lists, start, end)


def _price(costs: Mapping, kind: str, stage: int) -> float:
    for key in ((kind, stage), kind):
        if key in costs:
            return float(costs[key])
    if kind == "U":
        return 0.0
    raise ValueError(f"there is no cost of {kind}; give costs[{kind!r}] or costs[{kind!r}, {stage}].")
