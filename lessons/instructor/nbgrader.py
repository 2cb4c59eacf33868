"""Write a notebook for nbgrader's folder `source`. The student solves the exercise in one cell, and other cells grade
it.

The student's cell is written to a file, which our grader runs in its sandbox. A cell for each mark ends with the points
earned, which nbgrader uses as partial credit. The code of these cells is between comments, so that `nbgrader
generate_assignment` cuts it out, and `nbgrader autograde` puts it back. nbgrader itself runs all cells of a notebook,
including those that a student adds, and has no sandbox: run it in a container, as its manual says.
"""

import json
from pathlib import Path
from typing import Any

from lessons.chapters import Chapter
from lessons.grading import levels
from lessons.grading.sheet import Sheet

FILE = "solution.py"


def notebook(chapter: Chapter, to: Path, seed: int) -> None:
    """Write the notebook of the chapter's exercise. All hand-ins are graded on the hidden cases of `seed`.

    Raise ValueError if there is no exercise.
    """
    sheet = Sheet(chapter)
    cells = [_cell("markdown", "task", f"# {sheet.title}\n\n{sheet.task_alone.strip()}", locked=True), _solution(sheet)]
    run = (
        f"from pathlib import Path\n\nimport lessons\nfrom lessons.grading.grader import grade\n\n"
        f"report = grade(lessons.chapter({chapter.name!r}), Path({FILE!r}).read_text(), seed={seed}, practice=False)\n"
    )
    for number, (mark, points) in enumerate(sheet.points.items()):
        deed = f"{run if number == 0 else ''}print(report.marks[{number}].observed, report.error)\n"
        hidden = f"### BEGIN HIDDEN TESTS\n{deed}report.marks[{number}].earned\n### END HIDDEN TESTS"
        cells.append(_cell("code", f"mark{number + 1}", f"# {mark}\n{hidden}", locked=True, points=points))
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    whole = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    to.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _solution(sheet: Sheet) -> dict[str, Any]:
    """Return the cell in which the student solves the exercise, an empty template. The magic command in its first line
    writes the cell to a file.
    """
    source = levels.template(sheet, 4)
    head, _, body = source.rpartition("\n    raise NotImplementedError")
    body = f"    ### BEGIN SOLUTION\n    raise NotImplementedError{body.rstrip()}\n    ### END SOLUTION"
    return _cell("code", "solution", f"%%writefile {FILE}\n{head}\n{body}", solution=True)


def _cell(
    kind: str, name: str, source: str, locked: bool = False, solution: bool = False, points: int | None = None
) -> dict[str, Any]:
    """Return a cell with nbgrader 0.9's metadata (schema 3)."""
    noted = {
        "schema_version": 3, "grade_id": name, "grade": points is not None, "solution": solution, "task": False,
        "locked": locked,
    }  # fmt: skip
    if points is not None:
        noted["points"] = points
    code = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {"cell_type": kind, "id": name, "metadata": {"nbgrader": noted}, "source": source, **code}
