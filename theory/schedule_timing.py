"""List simulator: when each op of a schedule runs, given the costs of ops and the latency of links. No model is needed.

A rank executes its list in order. An op starts when the rank is free and everything it needs is done, plus the latency
if that was done on another rank. The measures for comparing schedules follow from the times.

Source: the list simulation behind the tables of Qi et al., ICLR 2024; it reproduces their Table 5 to four digits.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from algorithms.parts.pipeline.ops import Op, Overlapped, needs
from theory.op_graph import Graph, gradients

_Track = tuple[list[float | None], dict[int, int], dict[int, list[int]]]


@dataclass(frozen=True)
class Times:
    """The start and end of every op: start[rank][n] is the start of lists[rank][n], in the unit of the costs."""

    lists: Sequence[Sequence[Op]]
    start: list[list[float]]
    end: list[list[float]]
    latency: float = 0.0

    @cached_property
    def makespan(self) -> float:
        """The time from the first start to the last end."""
        return max((ends[-1] for ends in self.end if ends), default=0.0)

    @cached_property
    def busy(self) -> list[float]:
        """The time each rank works; overlapped ops count once."""
        return [
            sum(end - start for op, start, end in zip(*rank, strict=True) if type(op) is not Overlapped)
            for rank in zip(self.lists, self.start, self.end, strict=True)
        ]

    @property
    def idle(self) -> list[float]:
        """The time within the makespan in which each rank does not work."""
        return [self.makespan - busy for busy in self.busy]

    @property
    def span(self) -> list[float]:
        """The time from each rank's first start to its last end."""
        return [ends[-1] - starts[0] if ends else 0.0 for starts, ends in zip(self.start, self.end, strict=True)]

    @property
    def throughput(self) -> float:
        """The number of micro-batches per unit of time."""
        return sum(kind == "F" and stage == 0 for ops in self.lists for kind, stage, _ in ops) / self.makespan


def bubble_of_total(times: Times) -> float:
    """Return the idle share of the whole step: (S-1)/(M+S-1) for GPipe. GPipe and Chimera use this convention."""
    return sum(times.idle) / (len(times.lists) * times.makespan)


def bubble_of_ideal(times: Times) -> float:
    """Return the idle time divided by the working time: (S-1)/M for GPipe. Megatron-LM uses this convention."""
    return sum(times.idle) / sum(times.busy)


def bubble_of_span(times: Times) -> float:
    """Return the idle share of the longest span of a rank. The zero-bubble paper uses this convention."""
    longest = max(times.span)
    return (longest - max(times.busy)) / longest


def simulate(lists: Sequence[Sequence[Op]], costs: Mapping, latency: float = 0.0) -> Times:
    """Return when each op of `lists` (one list per rank) starts and ends.

    `costs` has the time of all ops of a kind, such as costs["F"], of those on one stage, costs["F", 2], or of a single
    op, costs["F", 2, 0]; the most specific entry applies. An update without an entry costs nothing. Overlapped ops cost
    their sum, unless there is an entry for them together, costs["F+B"]. `latency` is added whenever an op waits for an
    op of another rank. Raise ScheduleError, which names the ranks and ops, if the lists deadlock.
    """
    kinds = [{op[:2] for op in ops} for ops in lists]
    final = {op: update for update, ops in gradients(lists).items() for op in ops}
    exact = any(isinstance(key, tuple) and len(key) == 3 for key in costs)
    numbers = 1 + max((op[2] for ops in lists for op in ops), default=0)
    if numbers > sum(map(len, lists)) + 1:
        raise ValueError(
            f"a schedule of {sum(map(len, lists))} ops cannot have a micro-batch {numbers - 1}; number them from 0."
        )
    tracks: defaultdict[tuple, _Track] = defaultdict(lambda: ([None] * numbers, {}, {}))
    plan = _plan(kinds, costs, tracks)
    start: list[list[float]] = [[] for _ in lists]
    end: list[list[float]] = [[] for _ in lists]
    ready = list(range(len(lists)))
    while ready:
        rank = ready.pop()
        ops, starts, ends = lists[rank], start[rank], end[rank]
        begin, n = ends[-1] if ends else 0.0, len(ends)
        while n < len(ops):
            kind, stage, chunk = op = ops[n]
            cost, (done, by, line), before = plan[kind, stage]
            for theirs, by_whom, queue in before:
                at = theirs[chunk]
                if at is None:
                    queue.setdefault(chunk, []).append(rank)
                    break
                if latency and by_whom[chunk] != rank:
                    at += latency
                if at > begin:
                    begin = at
            else:  # everything it needs is done
                n += 1
                if type(op) is Overlapped:
                    continue  # with the op that it overlaps
                joined = ops[len(ends) : n - 1] if n - 1 > len(ends) else ()
                if joined or exact:
                    cost = _together(costs, [*joined, op])
                starts.append(begin)
                begin += cost
                ends.append(begin)
                done[chunk] = begin
                if latency:
                    by[chunk] = rank
                if line:
                    ready += line.pop(chunk, ())
                for other in joined:
                    starts.append(starts[-1])
                    ends.append(begin)
                    ready += _finish(tracks[_track(*other)], other.chunk, begin, rank)
                for other in (*joined, op) if final else ():
                    if other in final:
                        ready += _finish(tracks["U", other.stage, rank], final[other].chunk, begin, rank)
                continue
            break
    if any(len(ends) < len(ops) for ops, ends in zip(lists, end, strict=True)):
        raise Graph(lists).stuck([len(ends) for ends in end])
    return Times(lists, start, end, latency)


def _plan(kinds: Sequence[set], costs: Mapping, tracks: Mapping) -> dict[tuple, tuple]:
    """Return, by kind and stage, the properties that all chunks share: the cost, the op's track, and the tracks it
    needs.

    A track records, for a kind on a stage and by chunk: when it was done, by which rank, and which ranks wait for it.
    """
    last = max((stage for mine in kinds for _, stage in mine), default=0)
    plan = {}
    for kind, stage in set().union(*kinds):
        before: list[tuple] = [_track(*need) for need in needs(Op(kind, stage, 0), last)]
        if kind == "U":
            holders = [rank for rank, mine in enumerate(kinds) if (kind, stage) in mine]
            before = [(kind, stage, rank) for rank in holders] if len(holders) > 1 else []
        plan[kind, stage] = _price(costs, kind, stage), tracks[_track(kind, stage)], [tracks[key] for key in before]
    return plan


def _track(kind: str, stage: int, chunk: int = 0) -> tuple[str, int]:
    """Return the key of an op's track. B and I share one, since the stage before waits for either."""
    return "B" if kind == "I" else kind, stage


def _finish(track: _Track, chunk: int, when: float, rank: int) -> list[int]:
    """Record that a chunk is done. Return the ranks that waited for it."""
    done, by, line = track
    done[chunk], by[chunk] = when, rank
    return line.pop(chunk, [])


def _price(costs: Mapping, kind: str, stage: int) -> float:
    for key in ((kind, stage), kind):
        if key in costs:
            return float(costs[key])
    if kind == "U":
        return 0.0
    raise ValueError(f"{kind} has no cost; give costs[{kind!r}] or costs[{kind!r}, {stage}].")


def _together(costs: Mapping, ops: Sequence[Op]) -> float:
    name = "+".join(op.kind for op in ops)
    if len(ops) > 1 and name in costs:
        return float(costs[name])
    return sum(float(costs[op]) if op in costs else _price(costs, op.kind, op.stage) for op in ops)
