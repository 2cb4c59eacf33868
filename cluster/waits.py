"""Waits: whom a rank waits for and since when, which a deadlock consists of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

NAMED = 8  # waits that a message names; of more it gives the number


class Wait(NamedTuple):
    """What a rank waits for since `since` s of the run's clock: a message with `tag`, or inside a `collective`."""

    rank: int
    source: int | Literal["any rank", "the others"]
    since: float
    collective: str = ""
    tag: int = 0

    @property
    def whom(self) -> str:
        """The source in words."""
        return self.source if isinstance(self.source, str) else f"rank {self.source}"

    def __str__(self) -> str:
        message = f"for a message from {self.whom} (tag {self.tag})"
        what = f"in {self.collective} for {self.whom}" if self.collective else message
        return f"rank {self.rank} has waited {what} since {self.since:.6g} s"


def describe_deadlock(waits: Sequence[Wait], notes: Iterable[str] = ()) -> str:
    """Return a sentence that names the first waits of a deadlock, and what else there is to know about it."""
    more = [f"and {len(waits) - NAMED} more"] if len(waits) > NAMED else []
    return f"deadlock, nothing is on its way: {'; '.join([*map(str, waits[:NAMED]), *more, *notes])}."
