"""A script's deadlock in words: groups of ranks that wait at the same line, and who is missing where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cluster.comm import Deadlock
from cluster.torch.meeting import Meeting, spell_ranks
from cluster.waits import Wait

if TYPE_CHECKING:
    from cluster.simulated.simulation import Simulation
    from cluster.torch.process import Process

MOST = 8  # groups of ranks that a message describes; the rest are only counted


def explain(error: Deadlock, sim: Simulation, processes: dict[int, Process]) -> Deadlock:
    """Return this deadlock with a message that names the script lines at which ranks wait, and who is missing."""
    groups: dict[tuple[str, str], list[Wait]] = {}
    for wait in error.waits:
        line = "" if wait.collective else processes[wait.rank].line  # a collective itself names its line
        groups.setdefault((wait.collective, line), []).append(wait)
    told = [_describe(waits, line, len(processes)) for (_, line), waits in groups.items()]
    more = [f"and {len(told) - MOST} more groups of ranks"] if len(told) > MOST else []
    missing = [line for one in sim.pending.values() if isinstance(one, Meeting) for line in one.missing()]
    text = f"deadlock, no message is on its way: {'; '.join([*told[:MOST], *more])}."
    return Deadlock(" ".join([text, *missing[:MOST]]), error.waits)


def _describe(waits: Sequence[Wait], line: str, size: int) -> str:
    """Return who waits for whom, such as "ranks 0 to 7 wait for a message (line 5 of dead.py), each from the next
    rank".
    """
    ranks = {wait.rank for wait in waits}
    what = f"in {waits[0].collective}" if waits[0].collective else f"for a message{f' ({line})' * bool(line)}"
    each, whom = _whom(waits, size)
    whom = f"{', each' * each} {'for' if waits[0].collective else 'from'} {whom}{',' * each}"
    since = [wait.since for wait in waits]
    when = f"since {_spell(min(since))}"
    when = when if _spell(max(since)) == _spell(min(since)) else f"the first {when}"
    return f"{spell_ranks(ranks)} wait{'s' * (len(ranks) == 1)} {what}{whom} {when}"


def _whom(waits: Sequence[Wait], size: int) -> tuple[bool, str]:
    """Return whether each of these ranks waits for a different one, and whom they wait for, in words."""
    sources = {wait.source for wait in waits}
    if len(sources) == 1:
        return False, waits[0].whom
    offsets = {(wait.source - wait.rank) % size for wait in waits if isinstance(wait.source, int)}
    if len(offsets) == 1 and all(isinstance(source, int) for source in sources):
        (offset,) = offsets
        near = {1: "the next rank", size - 1: "the previous rank"}
        far = f"the rank {offset} after it" if 2 * offset <= size else f"the rank {size - offset} before it"
        return True, "the other" if size == 2 else near.get(offset, far)
    return True, "another rank"


def _spell(seconds: float) -> str:
    """Return a time in words, such as "2.01 µs"."""
    size, unit = next((one for one in ((1.0, "s"), (1e-3, "ms")) if seconds >= one[0]), (1e-6, "µs"))
    return f"{seconds / size:.3g} {unit}"
