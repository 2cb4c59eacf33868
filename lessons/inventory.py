"""The concept inventory: questions from the chapters' quizzes, asked before and after a course. Each wrong choice is a
known misconception.

inventory.toml refers to items of the chapters' quizzes and fixes their parameters. If an item asks for a number, its
choices are the recorded answer and the results of three wrong formulas. A sitting is one student's answers at one time:

    {"lockstep_inventory": 3, "student": "Ada", "when": "before", "seed": 3,
     "answers": {"stragglers.speed_up": "linear", ...}}

`lessons.inventory_report` computes the statistics of many sittings.
"""

import json
import random
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

import lessons
from experiments.wording import units
from lessons.markup import JINJA

FILE = Path(__file__).parent / "inventory.toml"
RIGHT = "right"  # key of the right choice if the quiz asks for a number


class ConceptChoice(BaseModel):
    """A choice of a question. `misconception` is the key of the misconception behind it, or "" if the choice is
    right.
    """

    model_config = ConfigDict(frozen=True)
    key: str
    says: str
    misconception: str = ""


@dataclass(frozen=True)
class ConceptQuestion:
    """One question of the inventory. `name` is the full name of the quiz item."""

    name: str
    ask: str
    options: tuple[ConceptChoice, ...]

    @property
    def right(self) -> str:
        """The key of the right choice."""
        return next(one.key for one in self.options if not one.misconception)

    def option(self, key: str) -> ConceptChoice:
        """Return the choice with this key. Raise KeyError if no choice has it."""
        return {one.key: one for one in self.options}[key]

    def shuffle_choices(self, seed: int) -> list[ConceptChoice]:
        """Return the choices in an order that depends on the seed."""
        return random.Random(f"{seed} {self.name}").sample(self.options, len(self.options))


class Sitting(BaseModel):
    """One student's answers in one sitting. `answers` maps questions to keys of choices. An unanswered question counts
    as wrong.
    """

    model_config = ConfigDict(frozen=True)
    lockstep_inventory: Literal[3]  # 1 and 2 asked fewer questions; the others would count as wrong
    student: str = Field(min_length=1, max_length=100)
    when: Literal["before", "after"]
    seed: int = 0
    answers: dict[str, str]

    def text(self) -> str:
        return json.dumps(self.model_dump(), indent=1, ensure_ascii=False) + "\n"


@cache
def misconceptions() -> dict[str, str]:
    """Return {key: text} for all misconceptions."""
    return tomllib.loads(FILE.read_text("utf-8"))["misconceptions"]


@cache
def questions() -> tuple[ConceptQuestion, ...]:
    """Return all questions in the order of inventory.toml. Raise ValueError if a question does not fit its quiz item or
    names an unknown misconception.
    """
    return tuple(_question(**one) for one in tomllib.loads(FILE.read_text("utf-8"))["item"])


def shuffle_questions(seed: int) -> list[ConceptQuestion]:
    """Return all questions in an order that depends on the seed."""
    return random.Random(seed).sample(questions(), len(questions()))


def read(text: str | bytes) -> Sitting:
    """Return the sitting in a file. Raise ValueError if it is invalid or names an unknown question or choice."""
    try:
        sitting = Sitting.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ValueError(
            f"{where}: {first['msg']}; give a file that this version's `inventory --before` or --after wrote."
        ) from None
    known = {one.name: one for one in questions()}
    for name, key in sitting.answers.items():
        if name not in known:
            raise ValueError(f"the inventory has no question {name[:60]!r}; give a file that this version wrote.")
        if key not in [option.key for option in known[name].options]:
            raise ValueError(f"{name} has no choice {key[:60]!r}; give a file that this version wrote.")
    return sitting


def _question(
    of: str, parameters: Mapping[str, Any], wrong: Mapping[str, str] | None = None,
    numbers: Mapping[str, str] | None = None,
) -> ConceptQuestion:  # fmt: skip
    chapter, _, name = of.partition(".")
    item = lessons.chapter(chapter).item(name)
    answer = lessons.chapter(chapter).golden.answer(name, parameters)
    if numbers:
        wrongs = {key: float(JINJA.compile_expression(formula)(**parameters)) for key, formula in numbers.items()}
        options = [ConceptChoice(key=RIGHT, says=_said(answer, item.unit))]
        options += [
            ConceptChoice(key=key, says=_said(value, item.unit), misconception=key) for key, value in wrongs.items()
        ]
    else:
        item.choice(str(answer))
        named = {**(wrong or {}), answer: ""}
        options = [ConceptChoice(key=one.key, says=one.says, misconception=named[one.key]) for one in item.choices]
    if unknown := {one.misconception for one in options} - misconceptions().keys() - {""}:
        raise ValueError(f"{of}: there is no misconception {unknown.pop()!r}; add it to {FILE.name}.")
    return ConceptQuestion(of, item.question(parameters), tuple(options))


def _said(value: float, unit: str) -> str:
    """Return a number with two significant digits and its unit.

    A third digit would reveal which numbers were measured and which come from a formula.
    """
    two = float(units.number(value, 2))
    return f"{f'{two:,.0f}' if abs(two) >= 100 else units.number(two, 2)} {unit}".strip()
