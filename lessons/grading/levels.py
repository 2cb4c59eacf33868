"""The levels of an exercise. They are the same program with more and more of it missing, and the same check grades them
all.

    1   the textbook's program to read, and questions about a run of it
    2   one line is missing
    3   one role is missing: a self-contained part of the program
    4   a blank page: the task and the function's first line

For levels 2 and 3, `exercise.toml` gives the beginnings of the statements cut from `solution.py`, and what they do; the
program itself is not annotated. For level 1 it names the program and the run, which supplies the answers.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from lessons.grading.sheet import Sheet

LEVELS = {
    1: "Read and predict",
    2: "One line is missing",
    3: "One role is missing",
    4: "A blank page",
}
PREDICTIONS = "predictions"
CLOSE = 0.02  # of the answer
HEADER = re.compile(rf"^Level ([2-4]): (?:{'|'.join(map(str.lower, LEVELS.values()))})\b", re.MULTILINE)


def template(sheet: Sheet, level: int) -> str:
    """Return the start file of this level. Raise ValueError if there is no such level."""
    if level not in LEVELS or not sheet.notes:
        raise ValueError(f"there is no level {level} of {sheet.name}; choose one of {', '.join(map(str, LEVELS))}.")
    if level == 1:
        return _questions(sheet)
    if level == 4:
        source = f'    raise NotImplementedError("write {sheet.function}{sheet.signatures[sheet.function]}")\n'
        head = f"{sheet.title}\n{_with_level(sheet, level)}\n{sheet.task_alone.strip()}\n"
        return (
            f'"""{head}"""\n\nimport numpy as np\n\n\ndef {sheet.function}{sheet.signatures[sheet.function]}:\n{source}'
        )
    cut, says = _cut(sheet, level)
    lines = solution(sheet).splitlines()
    for first, last in sorted(cut, reverse=True):
        indent = " " * (len(lines[first - 1]) - len(lines[first - 1].lstrip()))
        lines[first - 1 : last] = [
            *(f"{indent}# {line}" for line in textwrap.wrap(f"Yours: {says}", 100)),
            f'{indent}raise NotImplementedError("this part is yours")',
        ]
    return _after_docstring("\n".join(lines), f"{sheet.title}\n{_with_level(sheet, level)}")


def solution(sheet: Sheet) -> str:
    """Return the source of the solution that levels are cut from."""
    return (sheet.folder / "solution.py").read_text("utf-8")


def asks_for_predictions(source: str) -> bool:
    """Return whether a handed-in file is of level 1, which asks for predictions."""
    try:
        return any(isinstance(node, ast.FunctionDef) and node.name == PREDICTIONS for node in ast.parse(source).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def level_of(source: str) -> int | None:
    """Return the level that a file started from, or None if it does not say so.

    The level is 1 if the file has the function of level 1, and otherwise the number in its header.
    """
    if asks_for_predictions(source):
        return 1
    said = HEADER.search(source)
    return int(said[1]) if said else None


def is_start_file(sheet: Sheet, source: str) -> bool:
    """Return whether a file is an unchanged start file.

    Its docstring, comments and layout do not matter.
    """
    given = (sheet.source, *(template(sheet, level) for level in LEVELS if sheet.notes))
    return _program(source) in map(_program, given)


def _program(source: str) -> str:
    """Return a file's code in a form without docstring, comments and layout. Return the text itself if it is not valid
    Python.
    """
    try:
        first, *others = body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    told = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return ast.dump(ast.Module(others if told else body, []))


def points(sheet: Sheet) -> dict[str, int]:
    """Return {question: 1} for the questions of level 1. Each is a mark worth one point."""
    return {question["ask"]: 1 for question in sheet.notes["read"]["question"]}


def check(sheet: Sheet) -> Any:
    """Return the check of level 1, which compares a file's predictions with a run of the module."""

    def compare(attempted, seed: int) -> Iterator[tuple[str, bool, str]]:
        from lessons.figure import run_now

        read = sheet.notes["read"]
        done = run_now(**read["run"]) if "run" in read else None
        with attempted.attempt() as attempt:
            said = attempt.call(PREDICTIONS)
            said = said if isinstance(said, dict) else {}
            for question in read["question"]:
                guess, right = said.get(question["ask"]), _answer(question, done)
                known = isinstance(guess, int | float) and not isinstance(guess, bool)
                near = known and abs(guess - right) <= CLOSE * abs(right)
                yield question["ask"], near, question["why"] if near else _told(guess)

    return compare


def _answer(question: dict[str, Any], done: Any) -> float:
    """Return the answer to a question of level 1.

    It is a value from the summary of a schedule or of the run, or the last value of a quantity measured in the run.
    Values of the run are divided by `per`.
    """
    if "schedule" in question:
        from experiments.study.schedules import Plan, study

        return study(Plan.of(**question["schedule"])).summary[question["value"]]
    value = done.summary.get(question["value"])
    if value is None:
        value = done.measurements(question["value"])["value"][-1]
    return value / question.get("per", 1)


def _told(guess: Any) -> str:
    return "no number yet" if guess is None else f"not {str(guess)[:40]}; read the program again, or run it"


def _questions(sheet: Sheet) -> str:
    """Return the start file of level 1, which has the program to read and the questions about it."""
    from lessons import markup

    read = sheet.notes["read"]
    shown = "\n\n".join(
        f"# {code.path}, line {code.line}\n{_commented(code.source)}"
        for code in (markup.source(name) for name in read["code"])
    )
    asked = "\n".join(f"        {question['ask']!r}: None," for question in read["question"])
    return (
        f'"""{sheet.title}\n{_with_level(sheet, 1)}\n"""\n\n{shown}\n\n\n'
        f"def {PREDICTIONS}():\n    return {{\n{asked}\n    }}\n"
    )


def _commented(source: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in source.splitlines())


def _with_level(sheet: Sheet, level: int) -> str:
    said = {1: "read", 2: "level2", 3: "level3"}.get(level)
    told = f"Level {level}: {LEVELS[level].lower()}."
    if said:
        told = f"{told if level == 1 else told[:-1] + ':'} {sheet.notes[said]['says']}{'.' * (level != 1)}"
    more = "" if level == 4 else f"\nThe task, its marks and targets: `lockstep book check {sheet.name}`."
    return "\n" + textwrap.fill(told, 110) + more + "\n"


def _cut(sheet: Sheet, level: int) -> tuple[list[tuple[int, int]], str]:
    """Return the places of the statements that are cut on this level, and a text on what these statements do.

    A place is the pair of a first and a last line.
    """
    notes, source = sheet.notes[f"level{level}"], solution(sheet)
    lines = source.splitlines()
    statements = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    places = []
    for begins in notes["cut"]:
        fits = [node for node in statements if lines[node.lineno - 1].lstrip().startswith(begins)]
        if len(fits) != 1:
            raise ValueError(
                f"{sheet.name}, level {level}: {len(fits)} statements begin with {begins!r}; exactly one must."
            )
        first = fits[0].lineno
        if places and places[-1][1] == first - 1:  # merges with the previous hole
            first = places.pop()[0]
        places.append((first, fits[0].end_lineno))
    return places, notes["says"]


def _after_docstring(source: str, docstring: str) -> str:
    """Return a module's source with its docstring replaced."""
    first = ast.parse(source).body[0]
    return f'"""{docstring}"""\n' + "\n".join(source.splitlines()[first.end_lineno :]) + "\n"
