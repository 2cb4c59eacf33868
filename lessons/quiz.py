"""Quiz: questions whose numbers are drawn, and whose answers the simulator gives.

    [[item]]                                   # in quiz.toml
    name = "speed_up"
    ask = "How many times as fast as one are {workers} workers?"
    draw = { workers = [8, 16, 32] }           # one of each, by seed
    answer = "speed_up"                        # a function in answers.py, called with what was drawn
    within = 0.15                              # how near a guess must come, as a part of the answer
    why = "The slowest takes {answer:.2f} times ..."

An item with choices is answered by the key of one of them; each wrong one says why it is:

    [[item.choice]]
    key = "one"
    says = "One of them."
    but = "That holds where ..."

{workers}, and {answer} in `why`, are filled in; other braces are left to the formulas.
"""

from __future__ import annotations

import importlib
import itertools
import random
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIELD = re.compile(r"\{(\w+)(?::([^{}]*))?\}")


@dataclass(frozen=True)
class Choice:
    """A possible answer; `but` says why it is wrong where it is."""

    key: str
    says: str
    but: str = ""


@dataclass(frozen=True)
class Item:
    """One question. Without choices it is answered by a number."""

    name: str
    ask: str
    answer: str
    why: str
    draw: Mapping[str, list] = field(default_factory=dict)
    within: float = 0.1
    unit: str = ""
    choices: tuple[Choice, ...] = ()

    def parameters(self, seed: int) -> dict[str, Any]:
        """The parameters that this seed draws."""
        dice = random.Random(f"{seed} {self.name}")
        return {name: dice.choice(values) for name, values in self.draw.items()}

    def all_parameters(self) -> list[dict[str, Any]]:
        """All parameters that can be drawn."""
        return [dict(zip(self.draw, values, strict=True)) for values in itertools.product(*self.draw.values())]

    def question(self, parameters: Mapping[str, Any]) -> str:
        """The question, filled in."""
        return fill_in(self.ask, parameters)

    def explanation(self, parameters: Mapping[str, Any], answer: Any) -> str:
        """Why the answer is what it is."""
        return fill_in(self.why, {**parameters, "answer": answer})

    def right(self, guess: Any, answer: Any) -> bool:
        """Whether a guess is near enough, or the right choice."""
        if self.choices:
            return guess == answer
        return abs(guess - answer) <= self.within * abs(answer)

    def choice(self, key: str) -> Choice:
        """The choice of this key; ValueError if there is none."""
        for one in self.choices:
            if one.key == key:
                return one
        raise ValueError(f"{self.name} has no choice {key!r}; it has {', '.join(c.key for c in self.choices)}.")

    def compute(self, chapter: str, parameters: Mapping[str, Any]) -> Any:
        """The answer, worked out here and now by the function in the chapter's answers.py."""
        answer = getattr(importlib.import_module(f"lessons.{chapter}.answers"), self.answer)(**parameters)
        if self.choices:
            self.choice(answer)
            return answer
        return float(f"{answer:.6g}")


def read(path: Path) -> tuple[Item, ...]:
    """The items of a quiz.toml; none if there is no such file. ValueError in one sentence if it is not right."""
    if not path.is_file():
        return ()
    items = []
    for values in tomllib.loads(path.read_text("utf-8")).get("item", ()):
        choices = tuple(Choice(**choice) for choice in values.pop("choice", ()))
        try:
            items.append(Item(**values, choices=choices))
        except TypeError as error:
            raise ValueError(f"{path}: item {values.get('name')!r}: {error}.") from None
    return tuple(items)


def fill_in(text: str, values: Mapping[str, Any]) -> str:
    """`text` with {name} or {name:.2f} filled in where `values` has the name."""
    return FIELD.sub(
        lambda found: format(values[found[1]], found[2] or "") if found[1] in values else found[0], text
    ).strip()
