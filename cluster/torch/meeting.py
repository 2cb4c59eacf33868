"""A collective in progress. It is computed once, for all of its ranks, when the last one arrives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils._python_dispatch import _disable_current_modes

from cluster.comm import ClusterError
from cluster.torch.durations import Members
from cluster.torch.process import at_line

if TYPE_CHECKING:
    from cluster.simulated.actor import Actor
    from cluster.torch.group import Group


@dataclass(frozen=True)
class Call:
    """A rank's call of a collective, which must be the same on all ranks of the group."""

    name: str
    tensors: tuple[tuple[int, Any], ...] = ()  # numbers and data type of each
    op: str = ""
    root: int | None = None

    def __str__(self) -> str:
        numbers = sum(count for count, _ in self.tensors)
        types = ", ".join(sorted({str(dtype).removeprefix("torch.") for _, dtype in self.tensors}))
        of = f" of {numbers:,} numbers ({types})" * bool(self.tensors)
        many = f" in {len(self.tensors)} tensors" * (len(self.tensors) > 1)
        return f"{self.name}{of}{many}{f' by {self.op}' * bool(self.op)}" + (
            f" with root {self.root}" if self.root is not None else ""
        )


def kinds(tensors: Sequence[torch.Tensor]) -> tuple[tuple[int, Any], ...]:
    """Return the (length, data type) of each tensor, which must be the same on all ranks."""
    return tuple((x.numel(), x.dtype) for x in tensors)


class Joined(NamedTuple):
    """One rank's part: its arrival time and its tensors."""

    time: float
    payload: Any
    group: Group
    line: str


class Meeting:
    """One collective of a group. `ends` are the times at which its ranks are done, known once all have arrived."""

    def __init__(self, group: Group, call: Call):
        self.call, self._group, self.size = call, group, group.size()
        self.joined: dict[int, Joined] = {}
        self.ends: list[float] | None = None
        self.awaited: list[
            tuple[int, float]
        ] = []  # by place: the rank for which it waits, and when that one came, in s
        self.begins, self.busy = math.inf, 0.0  # when messages begin, and how long each processor works on them
        self.waiters: list[tuple[int, Actor]] = []

    def join(self, group: Group, call: Call, payload: Any, time: float) -> bool:
        """Add a rank. Return True if all have arrived. Raise ClusterError if the rank calls something else."""
        process = group.process
        if call != self.call:
            other, theirs = next(iter(self.joined.items()))
            raise ClusterError(
                f"rank {process.rank.number} calls {call}{at_line(process)}, but rank {group.members[other]} calls "
                f"{self.call}{f' ({theirs.line})' * bool(theirs.line)}: collective {group.calls} of {group.describe()} "
                "must be the same on all of its ranks."
            )
        self.joined[group.rank()] = Joined(time, payload, group, process.line)
        return len(self.joined) == self.size

    def finish(self, durations: Callable[[Members], list[float]], work: Callable[[list], None]) -> None:
        """Compute the result, and wake the waiting ranks. If a rank is lost before the end, no rank gets the result."""
        arrivals = [self.joined[place] for place in range(self.size)]
        groups = [arrival.group for arrival in arrivals]
        joined = [arrival.time for arrival in arrivals]
        payloads = [arrival.payload for arrival in arrivals]
        members = Members(groups, joined, payloads)
        ends = durations(members) if self.size > 1 else joined
        self.begins, self.busy = members.begins, members.busy
        ends = [max(end, *joined) for end in ends]
        self.awaited = [(groups[place].world_rank, joined[place]) for place in members.joiners]
        if min(group.process.rank.crash_time for group in groups) < max(ends):
            return
        self.ends = ends
        try:
            with torch.no_grad(), _disable_current_modes():  # an operation then takes a tenth of the real time
                work(payloads)
        except RuntimeError as error:
            raise ClusterError(f"{self.call} of {self._group.describe()}: {error}") from error
        self.joined = {}  # the tensors of all ranks
        queue = self._group.process.sim.queue
        for place, actor in self.waiters:
            queue.push(max(ends[place], actor.now, queue.now), actor)

    def missing(self) -> Iterator[str]:
        """Yield sentences about the ranks that have not arrived, one for each place where some of them are."""
        group = self._group
        found: dict[str, list[int]] = {}
        for place, number in enumerate(group.members):
            if place not in self.joined:
                rank = group.process.sim.ranks[number]
                at = "ended" if rank.done else f"in {rank.collective}" if rank.collective else "elsewhere"
                found.setdefault(at, []).append(number)
        for at, ranks in found.items():
            are, they, have = ("are", "they", "have") if len(ranks) > 1 else ("is", "it", "has")
            yield (
                f"For {self.call.name} of {group.describe()} {spell_ranks(ranks)} {are} missing: {they} "
                f"{have if at == 'ended' else are} {at}."
            )


def spell_ranks(numbers: Iterable[int]) -> str:
    """Return these ranks in words, such as "rank 3" or "ranks 0, 1 and 4 to 7"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words = [word for a, b in runs for word in ([f"{a} to {b}"] if b > a + 1 else map(str, range(a, b + 1)))]
    if len(words) == 1:
        return f"rank{'s' * (runs[0][0] < runs[0][1])} {words[0]}"
    return f"ranks {', '.join(words[:-1])} and {words[-1]}"
