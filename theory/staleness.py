"""Staleness of a schedule: which versions of the weights its passes read, counted along its lists.

Every update of a stage increments its version. A forward reads the newest version at the time it runs, and its backward
reads the same again (`stash`) or the newest; or both read the version that a `policy` names. So

    delay = updates before this gradient's own - updates that its forward saw
    gap   = version that its backward read - version that its forward read

Source: the staleness of Harlap et al. 2018 (PipeDream), Yang et al. 2021 (PipeMare) and Narayanan et al. 2021 (2BW).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from algorithms.parts.pipeline.ops import Op


@dataclass
class Versions:
    """Versions of one stage that one rank reads; delay and gap of the stalest micro-batch of each update."""

    delay: list[int] = field(default_factory=list)
    gap: list[int] = field(default_factory=list)
    born: list[int] = field(default_factory=lambda: [-1])  # where in the list each version is made
    read: dict[int, int] = field(default_factory=dict)  # version -> where it is read for the last time

    @property
    def alive(self) -> int:
        """Most versions held at one time: the newest, and those that will be read again."""
        life = [(self.born[-1], 1)]
        for version, (made, replaced) in enumerate(pairwise(self.born)):
            life += [(made, 1), (max(replaced, self.read.get(version, made)), -1)]
        return max(accumulate(change for _, change in sorted(life)))


def count(ops: Iterable[Op], stash: bool = True, policy: Callable[[int], int] | None = None) -> dict[int, Versions]:
    """Return, by stage, what the list of one rank reads. `policy(chunk)` is the version that a micro-batch has to read.

    ValueError if the policy names a version that does not exist yet, or an update has no gradient.
    """
    found: dict[int, Versions] = {}
    forward: dict[tuple[int, int], int] = {}  # (stage, micro-batch) -> the version that it read
    waiting: dict[int, list[tuple[int, int]]] = {}  # stage -> (delay, gap) of the gradients since the last update
    for position, op in enumerate(ops):
        kind, stage, chunk = op
        mine, gradients = found.setdefault(stage, Versions()), waiting.setdefault(stage, [])
        newest = len(mine.born) - 1
        if kind == "F":
            version = newest if policy is None else policy(chunk)
            if not 0 <= version <= newest:
                raise ValueError(f"{op} has to read version {version}, but {newest} is the newest of stage {stage}.")
            forward[stage, chunk] = version
            mine.read[version] = position
        elif kind in "BI":
            version = forward[stage, chunk] if stash or policy else newest
            mine.read[version] = position
            gradients.append((newest - forward[stage, chunk], version - forward[stage, chunk]))
        elif kind == "U":
            if not gradients:
                raise ValueError(f"{op} comes where there is no gradient of stage {stage} that it could take.")
            mine.delay.append(max(delay for delay, _ in gradients))
            mine.gap.append(max(gap for _, gap in gradients))
            mine.born.append(position)
            gradients.clear()
    return found
