"""Read the front matter of a chapter, chapter.toml. It says what a chapter requires of a reader and what a reader can
do afterwards.

title = "Gossip: only neighbours"            # only where there is no text.md, whose first line is the title
difficulty = 2                               # 1 easy, 2 some mathematics, 3 demanding
prerequisites = ["stragglers"]               # chapters to read before
background = ["the chain rule"]              # what else a reader knows
objectives = ["Compute ...", "Predict ..."]  # two or more; the first word is a verb that can be tested
letters = ["N", "d"]                         # of the table in notation.toml: those that its formulas use

[own]                                        # letters that it needs for something else, or that are not in the table
H = "harmonic number of its index"
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

VERBS = "Choose Compare Compute Derive Draw Explain Implement Predict Prove Show Tell Write"
"""The verbs that an objective may begin with; "understand" and "know" cannot be tested."""
DIFFICULTIES = {1: "easy", 2: "some mathematics", 3: "demanding"}


@dataclass(frozen=True)
class FrontMatter:
    """The content of chapter.toml. The constructor raises ValueError if a value is invalid."""

    title: str = ""
    difficulty: int = 1
    prerequisites: tuple[str, ...] = ()
    background: tuple[str, ...] = ()
    objectives: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    own: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self):
        if self.difficulty not in DIFFICULTIES:
            raise ValueError(f"difficulty is {self.difficulty!r}; use 1 (easy), 2 or 3 (demanding).")
        for objective in self.objectives:
            if objective.split()[0] not in VERBS.split():
                raise ValueError(f"the objective {objective[:60]!r} cannot be tested; begin with one of {VERBS}.")


def read(path: Path) -> FrontMatter:
    """Return the front matter in the file `path`, or the defaults if there is no file. Raise ValueError if it is
    invalid.
    """
    if not path.is_file():
        return FrontMatter()
    values = tomllib.loads(path.read_text("utf-8"))
    known = [one.name for one in fields(FrontMatter)]
    if unknown := [name for name in values if name not in known]:
        raise ValueError(f"{path.parent.name}: chapter.toml has no field {unknown[0]!r}; use {', '.join(known)}.")
    try:
        return FrontMatter(**{n: tuple(v) if isinstance(v, list) else v for n, v in values.items()})
    except ValueError as error:
        raise ValueError(f"{path.parent.name}: {error}") from None
