"""The waits that make up a deadlock: whom each rank waits for, and since when."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

NAMED = 8  # waits that a message lists; the rest are only counted


class Wait(NamedTuple):
    """A wait of `rank`, which began at time `since`, in s on the run's clock.

    The rank waits for a message or, if `collective` is set, in that collective.
    """

    rank: int
    source: int | Literal["any rank", "the others"]
    since: float
    collective: str = ""
    tag: int = 0

    @property
    def whom(self) -> str:
        return self.source if isinstance(self.source, str) else f"rank {self.source}"

    def __str__(self) -> str:
        message = f"for a message from {self.whom} (tag {self.tag})"
        what = f"in {self.collective} for {self.whom}" if self.collective else message
        return f"rank {self.rank} has been waiting {what} since t = {self.since:.6g} s"


def describe_deadlock(waits: Sequence[Wait], notes: Iterable[str] = ()) -> str:
    """Return a sentence on a deadlock: its first waits, followed by `notes`."""
    more = [f"and {len(waits) - NAMED} more"] if len(waits) > NAMED else []
    return f"deadlock, no message is on its way: {'; '.join([*map(str, waits[:NAMED]), *more, *notes])}."
