"""The exercise of a chapter: its task and points, its start files, and hints that are revealed one at a time."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

from lessons.book import markdown
from lessons.chapters import Chapter
from lessons.grading import levels
from lessons.grading.sheet import STEPS, Sheet

FOLDER = "exercises"


def template_values(chapter: Chapter, workbench: str) -> dict[str, Any] | None:
    """Return the values that the template needs for an exercise, or None if the chapter has none."""
    if not chapter.exercise:
        return None
    sheet = Sheet(chapter)
    steps = [[(step, markdown.inline(sheet.hint(n, k))) for k, step in enumerate(STEPS, 1)] for n in _hinted(sheet)]
    marks = [(points, mark) for mark, points in sheet.points.items()]
    return {
        "title": markdown.inline(sheet.title),
        "task": markdown.render(sheet.task),
        "program": markdown.code(sheet.program, "python"),
        "file": f"{chapter.name}_solution.py",
        "marks": [(*mark, steps[n] if n < len(steps) else ()) for n, mark in enumerate(marks)],
        "targets": sheet.targets,
        "files": {f"{FOLDER}/{name}": label for name, (label, _) in _files(chapter).items()},
        "address": f"{workbench}/textbook?chapter={quote(chapter.name)}&part=exercise" if workbench else "",
    }


def write_files(chapter: Chapter, out: Path) -> None:
    """Write a start file for each level of the chapter's exercise to the folder `exercises` in `out`. Do nothing if the
    chapter has no exercise.
    """
    for name, (_, source) in _files(chapter).items() if chapter.exercise else ():
        (out / FOLDER).mkdir(exist_ok=True)
        (out / FOLDER / name).write_text(source, "utf-8")


def _hinted(sheet: Sheet) -> range:
    return range(1, len(sheet.hints) + 1)


def _files(chapter: Chapter) -> dict[str, tuple[str, str]]:
    """Return {file name: (label, source)} for each start file."""
    sheet = Sheet(chapter)
    files = {f"{chapter.name}_solution.py": ("exercise.py", sheet.source)}
    for level, what in levels.LEVELS.items() if sheet.notes else ():
        files[f"{chapter.name}_level{level}.py"] = (f"level {level}: {what}", levels.template(sheet, level))
    return files
