"""The sheet of an exercise: everything that is known before a solution is handed in.

It is read from the chapter's files, without running them:

    exercise.py     the task (its docstring); TARGETS, with the unit of each; the function to write
    check.py        POINTS, by mark
    exercise.toml   hints, and the statements cut from solution.py for each level (`levels.py`)
"""

import ast
import re
import textwrap
import tomllib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

NOT_REACHED = "not reached"  # the observation for a mark that was not judged
STEPS = ("concept", "principle", "almost the line")


@dataclass(frozen=True)
class Target:
    """A limit that a solution must meet. It has a name, its value as written in the file (`most`), and what it counts
    (`of`).
    """

    name: str
    most: str
    of: str


class Sheet:
    """The exercise of `chapter`, as shown before a solution is handed in. The constructor raises ValueError if there is
    none.
    """

    def __init__(self, chapter):
        if not chapter.exercise:
            raise ValueError(f"chapter {chapter.name} has no exercise.")
        self.name, self.folder, self.source = chapter.name, chapter.folder, chapter.exercise
        self.tree = ast.parse(self.source)
        self.title, _, self.task = (ast.get_docstring(self.tree) or "").partition("\n")

    @cached_property
    def task_alone(self) -> str:
        """The task in a form without the template below it. For example, "the server below" becomes "the server of
        exercise.py".
        """

        def paragraph(found: re.Match) -> str:
            where = f"The {found[1]} of exercise.py (`exercise {self.name} --level 0`)"
            return textwrap.fill(f"{where} {found[2]}", 115, break_on_hyphens=False)

        return re.sub(r"^The (\w+) below (.+?)$(?=\n\n)", paragraph, self.task, flags=re.MULTILINE | re.DOTALL)

    @cached_property
    def program(self) -> str:
        """The template without its docstring, which holds the task."""
        return "\n".join(self.source.splitlines()[self.tree.body[0].end_lineno :]).strip()

    @cached_property
    def signatures(self) -> dict[str, str]:
        """The arguments of each function in the template, such as "(comm, task, s)"."""
        functions = (node for node in self.tree.body if isinstance(node, ast.FunctionDef))
        return {function.name: f"({ast.unparse(function.args)})" for function in functions}

    @cached_property
    def function(self) -> str:
        """The function to write: the first one in the template."""
        return next(iter(self.signatures))

    @cached_property
    def settings(self) -> tuple[str, ...] | None:
        """The names of the settings that the task uses, or None if it uses none. For example, `s.backups` gives
        "backups".
        """
        return tuple(dict.fromkeys(re.findall(r"\bs\.(\w+)", self.source))) or None

    @cached_property
    def points(self) -> dict[str, int]:
        return ast.literal_eval(_assigned(ast.parse((self.folder / "check.py").read_text("utf-8")), "POINTS"))

    @cached_property
    def targets(self) -> tuple[Target, ...]:
        """The limits in TARGETS, each with its comment."""
        found, lines = _assigned(self.tree, "TARGETS"), self.source.splitlines()
        if found is None:
            return ()
        return tuple(
            Target(
                key.value, ast.get_source_segment(self.source, value), lines[key.lineno - 1].partition("#")[2].strip()
            )
            for key, value in zip(found.keys, found.values, strict=True)
        )

    @cached_property
    def notes(self) -> dict[str, Any]:
        """The content of exercise.toml."""
        path = self.folder / "exercise.toml"
        return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}

    @cached_property
    def hints(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Each mark with its hints, as (mark, hints in the order of STEPS)."""
        return tuple((hint["mark"], tuple(hint["steps"])) for hint in self.notes.get("hint", ()))

    def hint(self, number: int, step: int) -> str:
        """Return a hint on a mark. `number` is the mark's number and `step` the hint's, both from 1. Raise ValueError
        if there is none.
        """
        if not 1 <= number <= len(self.hints) or not 1 <= step <= len(self.hints[number - 1][1]):
            raise ValueError(
                f"there is no hint {number}.{step}; {self.name} has {len(self.hints)} marks, {len(STEPS)} hints each."
            )
        return self.hints[number - 1][1][step - 1]


def _assigned(tree: ast.Module, name: str) -> Any:
    """Return the expression that is assigned to `name` in a module, or None."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]:
            return node.value
    return None
