"""Fault settings: which ranks are slow, pause or are lost, parsed once from the text of a link or a command line.

    LostRanks.read("3:0.4").by_rank         {3: (0.4, inf)}

A setting keeps its text, so that links, command lines and stored runs repeat it as written.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from cluster.faults import parse_crash, parse_pause, parse_slow, spell_crash, spell_pause, spell_slow


@dataclass(frozen=True)
class FaultSetting:
    """A fault setting, as text and by rank. Equal settings have equal texts."""

    text: str = ""
    by_rank: dict[int, Any] = field(default_factory=dict, compare=False)
    name: ClassVar[str]
    parse: ClassVar[Callable]
    spell: ClassVar[Callable]

    @classmethod
    def read(cls, text: str) -> FaultSetting:
        """Parse a setting from its text; "none" means no fault. Raise ValueError if the text is invalid. Any rank is
        accepted.
        """
        text = "" if text == "none" else text
        return cls(text, cls.parse(text, math.inf))

    def check(self, ranks: int) -> None:
        """Raise ValueError if the setting names a rank that does not exist among `ranks`."""
        if beyond := [rank for rank in self.by_rank if rank >= ranks]:
            raise ValueError(f"{self.name}: there is no rank {beyond[0]}; ranks are 0 to {ranks - 1}.")

    def with_value(self, rank: int, value: Any) -> FaultSetting:
        """Return the setting with another value for one rank; None removes its fault."""
        others = {other: own for other, own in self.by_rank.items() if other != rank}
        return type(self).read(type(self).spell(others if value is None else {**others, rank: value}))


class SlowRanks(FaultSetting):
    """Ranks that compute slower or faster than usual, each with the factor by which its times are multiplied. An
    example of the text is "2:3,5:1.5".
    """

    name, parse, spell = "slow", staticmethod(parse_slow), staticmethod(spell_slow)


class PausedRanks(FaultSetting):
    """Ranks that pause, each with its pauses (from, to) in s. An example of the text is "1:0.5-0.8"."""

    name, parse, spell = "pause", staticmethod(parse_pause), staticmethod(spell_pause)


class LostRanks(FaultSetting):
    """Ranks that are lost, each with the times of its loss and return (in s, inf for never). Examples of the text are
    "3:0.4" and "3:0.4-0.6".
    """

    name, parse, spell = "crash", staticmethod(parse_crash), staticmethod(spell_crash)


def _from_text(kind: type[FaultSetting]) -> Any:
    """Return the type of a knob that is a `kind` in Python, and text in JSON and on the command line."""

    def read(value: Any) -> FaultSetting:
        if not isinstance(value, str | kind):
            raise ValueError(f"{kind.name} is {str(value)[:60]!r}; it must be text.")
        return kind.read(value) if isinstance(value, str) else value

    text = PlainSerializer(lambda setting: setting.text), WithJsonSchema({"type": "string"})
    return Annotated[kind, BeforeValidator(read), *text]


Slow, Pause, Crash = map(_from_text, (SlowRanks, PausedRanks, LostRanks))
