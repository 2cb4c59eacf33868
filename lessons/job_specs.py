"""What the page of a chapter has done outside its own process: a figure run again, or a solution graded.

The result is a folder with answer.json: of a figure its plain golden.Drawn and which claims hold, of a solution the
plain grader.Report.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lessons
from experiments.jobs.spec import JobSpec

KIND = "lesson"


def again(figure: str) -> JobSpec:
    """Run the figure of this full name again."""
    folder = Path(__file__).parent / figure.partition(".")[0]
    source = b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))
    return JobSpec(KIND, {"figure": figure, "version": hashlib.sha256(source).hexdigest()[:8]})


def graded(chapter: str, source: str, name: str, seed: int) -> JobSpec:
    """Grade `source`, from a file of this name, as a solution of the chapter's exercise."""
    return JobSpec(KIND, {"check": chapter, "source": source, "name": name, "seed": seed})


def perform(values: dict[str, Any], root: Path, progress: Callable[[float], None] = lambda part: None) -> Path:
    """Do it and give the folder. ValueError in one sentence if it cannot be done."""
    answer = _again(values["figure"], progress) if "figure" in values else _graded(**values)
    text = json.dumps(answer, ensure_ascii=False)
    return JobSpec(KIND, values).keep(root, lambda folder: (folder / "answer.json").write_text(text, "utf-8"))


def read(folder: Path) -> dict[str, Any]:
    """The answer in `folder`."""
    return json.loads((folder / "answer.json").read_text("utf-8"))


def _again(name: str, progress: Callable[[float], None]) -> dict[str, Any]:
    from lessons import chapters

    figure, before = lessons.find(name), lessons.known(name)
    most = 1 + len(before.runs if before else ())
    drawn = chapters.drawn(name, figure, lambda count: progress(min(count / most, 0.99)))
    return {**drawn.plain(), "holds": {claim: bool(test(drawn.rows)) for claim, test in figure.claims.items()}}


def _graded(check: str, source: str, name: str, seed: int) -> dict[str, Any]:
    from lessons.grading import grader

    return grader.grade(lessons.chapter(check), source, seed, name).plain()
