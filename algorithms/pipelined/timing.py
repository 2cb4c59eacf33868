"""Timing a schedule: when each op runs if ops have these costs and links this latency. No model is needed.

A rank does its list in order. An op starts when the rank is free and everything it needs is done, plus the latency
for what was done on another rank. From the times follow the measures by which schedules are compared.

Source: the list simulation behind the tables of Qi et al., ICLR 2024; it reproduces their Table 5 to four digits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from algorithms.pipelined.schedule import Op, needs


@dataclass(frozen=True)
class Times:
    """When the ops of `lists` start and end: start[rank][n] is that of lists[rank][n], in the unit of the costs."""

    lists: Sequence[Sequence[Op]]
    start: list[list[float]]
    end: list[list[float]]

    @property
    def makespan(self) -> float:
        """From the start to the end of everything."""
        return max((ends[-1] for ends in self.end if ends), default=0.0)

    @property
    def busy(self) -> list[float]:
        """Time each rank works."""
        return [sum(ends) - sum(starts) for starts, ends in zip(self.start, self.end, strict=True)]

    @property
    def idle(self) -> list[float]:
        """Time each rank does not work, of the makespan."""
        return [self.makespan - busy for busy in self.busy]

    @property
    def span(self) -> list[float]:
        """From each rank's first start to its own last end."""
        return [ends[-1] - starts[0] if ends else 0.0 for starts, ends in zip(self.start, self.end, strict=True)]

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
    price = {key: _price(costs, *key) for key in {op[:2] for ops in lists for op in ops}}
    last = max((stage for _, stage in price), default=0)
    where = {op: rank for rank, ops in enumerate(lists) for op in ops} if latency else {}
    done: defaultdict[tuple, dict[int, float]] = defaultdict(dict)  # (kind, stage) -> chunk -> when
    start: list[list[float]] = [[] for _ in lists]
    end: list[list[float]] = [[] for _ in lists]
    waiting: defaultdict[tuple, list[int]] = defaultdict(list)
    ready = list(range(len(lists)))
    while ready:
        rank = ready.pop()
        ops, starts, ends = lists[rank], start[rank], end[rank]
        begin = ends[-1] if ends else 0.0
        while len(ends) < len(ops):
            kind, stage, chunk = op = ops[len(ends)]
            for need in needs(op, last):
                at = done[need[:2]].get(need[2])
                if at is None:
                    waiting[need].append(rank)
                    break
                if latency and where[need] != rank:
                    at += latency
                if at > begin:
                    begin = at
            else:
                starts.append(begin)
                begin += price[kind, stage]
                ends.append(begin)
                done[kind, stage][chunk] = begin
                ready += waiting.pop(op, ())
                if kind == "I":  # the stage before waits for the gradient of the inputs, by whatever name
                    done["B", stage][chunk] = begin
                    where["B", stage, chunk] = rank
                    ready += waiting.pop(("B", stage, chunk), ())
                continue
            break
    stuck = [
        f"rank {r} at {ops[len(ends)]}"
        for r, (ops, ends) in enumerate(zip(lists, end, strict=True))
        if len(ends) < len(ops)
    ]
    if stuck:
        lacking = ", ".join(str(Op(*need)) for need in list(waiting)[:8])
        raise ValueError(f"the schedule is stuck: {', '.join(stuck[:8])}; waiting for {lacking}.")
    return Times(lists, start, end)


def _price(costs: Mapping, kind: str, stage: int) -> float:
    for key in ((kind, stage), kind):
        if key in costs:
            return float(costs[key])
    if kind == "U":
        return 0.0
    raise ValueError(f"there is no cost of {kind}; give costs[{kind!r}] or costs[{kind!r}, {stage}].")
