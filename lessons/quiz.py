"""A quiz: questions with random parameters, whose answers the simulator computes.

    [[item]]                                   # in quiz.toml
    name = "speed_up"
    ask = "How many times as fast as one are {workers} workers?"
    draw = { workers = [8, 16, 32] }           # parameters: one value of each list, by seed
    first = { workers = 32 }                   # those of the prediction in the text, where the answer surprises
    answer = "speed_up"                        # a function in answers.py: (run, **parameters) -> answer
    within = 0.15                              # relative tolerance of a guess
    why = "The slowest takes {answer:.2f} times ..."

An item with choices is answered by the key of one of them; each wrong one explains why:

    [[item.choice]]
    key = "one"
    says = "One of them."
    but = "That holds where ..."

With `live = true`, readers of a book that computes may have their own browser run `answer`, after they have answered;
it should take a few seconds there.

{workers}, and {answer} in `why`, are replaced by values; other braces belong to formulas.
"""

import importlib
import itertools
import random
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lessons import seeds

NUMBER = re.compile(r"(?:It is )?[*$]*(\d+(?:\.\d+)?)")  # how an explanation may begin
FIELD = re.compile(r"\{(\w+)(?::([^{}]*))?\}")


@dataclass(frozen=True)
class Choice:
    """A possible answer. If it is wrong, `but` explains why."""

    key: str
    says: str
    but: str = ""


@dataclass(frozen=True)
class Item:
    """One question of a quiz. If it has no choices, its answer is a number."""

    name: str
    ask: str
    answer: str
    why: str
    draw: Mapping[str, list] = field(default_factory=dict)
    first: Mapping[str, Any] = field(default_factory=dict)
    within: float = 0.1
    unit: str = ""
    choices: tuple[Choice, ...] = ()
    live: bool = False
    """True if the reader's own browser may compute the answer, where a page can (lessons/live)."""

    def parameters(self, seed: int) -> dict[str, Any]:
        """Return the parameters drawn with this seed."""
        dice = random.Random(f"{seed} {self.name}")
        return {name: dice.choice(values) for name, values in self.draw.items()}

    def prediction(self, seed: int) -> dict[str, Any]:
        """Return the parameters of the prediction in the text. Those in `first` are fixed, and the rest are drawn with
        this seed.
        """
        return self.parameters(seed) | dict(self.first)

    def all_parameters(self) -> list[dict[str, Any]]:
        return [dict(zip(self.draw, values, strict=True)) for values in itertools.product(*self.draw.values())]

    def question(self, parameters: Mapping[str, Any]) -> str:
        return fill_in(self.ask, parameters)

    def explanation(self, parameters: Mapping[str, Any], answer: Any) -> str:
        return fill_in(self.why, {**parameters, "answer": answer})

    def starts_with_answer(self, parameters: Mapping[str, Any], answer: Any) -> bool:
        """Return whether the explanation begins with the numeric answer. If it does, the answer need not be stated
        separately.
        """
        begins = NUMBER.match(self.explanation(parameters, answer))
        return not self.choices and bool(begins) and abs(float(begins[1]) - answer) <= 0.05 * abs(answer)

    def unit_for(self, number: float) -> str:
        """Return the unit that goes with this number. For example, it is "model" for 1 and "models" for other
        numbers.
        """
        whole = self.unit in ("models", "updates", "workers", "micro-batches")
        return re.sub("(?<=batch)es$|s$", "", self.unit) if whole and number == 1 else self.unit

    def right(self, guess: Any, answer: Any) -> bool:
        """Return whether a guess is the right choice or, for a number, within tolerance of the answer."""
        if self.choices:
            return guess == answer
        return abs(guess - answer) <= self.within * abs(answer)

    def choice(self, key: str) -> Choice:
        """Return the choice with this key. Raise ValueError if there is none."""
        for one in self.choices:
            if one.key == key:
                return one
        raise ValueError(f"{self.name} has no choice {key!r}; it has {', '.join(c.key for c in self.choices)}.")

    def compute(self, chapter: str, parameters: Mapping[str, Any]) -> Any:
        """Return the answer: the mean over seeds, or the key of a choice. Raise ValueError if seeds disagree on the
        choice.
        """
        return self.combine_seeds(self.compute_each(chapter, parameters))

    def compute_under(self, run: seeds.Seeded, chapter: str, parameters: Mapping[str, Any]) -> Any:
        """Return the answer for one seed, computed by the function in the chapter's answers.py."""
        answer = getattr(importlib.import_module(f"lessons.{chapter}.answers"), self.answer)(run, **parameters)
        return self.choice(answer).key if self.choices else float(f"{answer:.6g}")

    def compute_each(self, chapter: str, parameters: Mapping[str, Any]) -> list:
        """Return the answers for all seeds, or a single answer if nothing depends on the seed."""
        return [*seeds.each(lambda run: self.compute_under(run, chapter, parameters)).values()]

    def combine_seeds(self, by_seed: Sequence) -> Any:
        """Return the mean of the answers over all seeds. For a choice, return the common answer, or raise ValueError if
        seeds disagree.
        """
        if not self.choices:
            return float(f"{sum(by_seed) / len(by_seed):.6g}")
        if len({*by_seed}) > 1:
            raise ValueError(f"seeds disagree on {self.name}: {by_seed}; ask a question on which all seeds agree.")
        return by_seed[0]


def read(path: Path) -> tuple[Item, ...]:
    """Return the items in a quiz.toml, or () if there is no such file. Raise ValueError if the file is invalid."""
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
    """Return `text` with fields such as {name} or {name:.2f} replaced by the values of these names. A field without a
    value stays as it is.
    """
    return FIELD.sub(
        lambda found: format(values[found[1]], found[2] or "") if found[1] in values else found[0], text
    ).strip()
