"""The staleness of a schedule: which versions of the weights its passes read, counted along its lists.

Every update of a stage increments its version. A forward reads the newest version at the time it runs. Its backward
reads the same version again (`stash`) or the newest one; alternatively, a `policy` chooses the version for both. So

    delay = updates before this gradient's own - updates that its forward saw
    gap   = version that its backward read - version that its forward read

Source: the staleness of Harlap et al. 2018 (PipeDream), Yang et al. 2021 (PipeMare) and Narayanan et al. 2021 (2BW).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from algorithms.parts.pipeline.ops import Op


@dataclass
class Versions:
    """The versions of one stage's weights that a rank reads. For each update, it also has the largest delay and gap of
    its micro-batches.
    """

    delay: list[int] = field(default_factory=list)
    gap: list[int] = field(default_factory=list)
    born: list[int] = field(default_factory=lambda: [-1])  # where in the list each version is made
    read: dict[int, int] = field(default_factory=dict)  # version -> where it is read for the last time

    @property
    def alive(self) -> int:
        """The largest number of versions held at a time: the newest, and those that will be read again."""
        life = [(self.born[-1], 1)]
        for version, (made, replaced) in enumerate(pairwise(self.born)):
            life += [(made, 1), (max(replaced, self.read.get(version, made)), -1)]
        return max(accumulate(change for _, change in sorted(life)))


def count(ops: Iterable[Op], stash: bool = True, policy: Callable[[int], int] | None = None) -> dict[int, Versions]:
    """Return, by stage, the versions that a rank's list reads. `policy(chunk)` is the version a micro-batch must read.

    Raise ValueError if the policy chooses a version that does not exist yet, or if an update has no gradient.
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
                raise ValueError(f"{op} must read version {version}, but the newest of stage {stage} is {newest}.")
            forward[stage, chunk] = version
            mine.read[version] = position
        elif kind in "BI":
            version = forward[stage, chunk] if stash or policy else newest
            mine.read[version] = position
            gradients.append((newest - forward[stage, chunk], version - forward[stage, chunk]))
        elif kind == "U":
            if not gradients:
                raise ValueError(f"{op} comes where stage {stage} has no gradient to apply.")
            mine.delay.append(max(delay for delay, _ in gradients))
            mine.gap.append(max(gap for _, gap in gradients))
            mine.born.append(position)
            gradients.clear()
    return found
