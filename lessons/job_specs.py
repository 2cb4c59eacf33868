"""Job specs of the textbook, with which a process of the pool reruns a figure or grades a solution.

The result is a folder with answer.json. It holds the golden.RecordedFigure of a figure, or the grader.GradingReport of
a solution, as JSON.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lessons
from experiments.jobs.spec import JobSpec

KIND = "lesson"


def figure_spec(figure: str) -> JobSpec:
    """Return the spec for rerunning the figure with this full name. It contains a hash of the chapter's Python
    files.
    """
    folder = lessons.chapter(figure.partition(".")[0]).folder
    source = b"".join(path.read_bytes() for path in sorted(folder.rglob("*.py")))
    return JobSpec(KIND, {"figure": figure, "version": hashlib.sha256(source).hexdigest()[:8]})


def grading_spec(chapter: str, source: str, name: str, seed: int, hints: tuple[str, ...] = ()) -> JobSpec:
    """Return the spec for grading `source` as a solution to the chapter's exercise. `name` is the name of its file.

    `hints` are those that were taken, for the report.
    """
    return JobSpec(KIND, {"check": chapter, "source": source, "name": name, "seed": seed, "hints": list(hints)})


def perform(values: dict[str, Any], root: Path, progress: Callable[[float], None] = lambda part: None) -> Path:
    """Run the job that `values` describes, and return the folder with its result. Raise ValueError if the job cannot be
    run.
    """
    answer = _rerun(values["figure"], progress) if "figure" in values else _grade(**values)
    text = json.dumps(answer, ensure_ascii=False)
    return JobSpec(KIND, values).keep(root, lambda folder: (folder / "answer.json").write_text(text, "utf-8"))


def read(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "answer.json").read_text("utf-8"))


def _rerun(name: str, progress: Callable[[float], None]) -> dict[str, Any]:
    from lessons import chapters

    figure, before = lessons.find(name), lessons.recorded_figure(name)
    most = 1 + (len(before.runs) * len(before.seeds) if before else 0)
    return chapters.run_figure(name, figure, lambda count: progress(min(count / most, 0.99))).plain()


def _grade(check: str, source: str, name: str, seed: int, hints: list[str] = ()) -> dict[str, Any]:
    from lessons.grading import grader

    return grader.grade(lessons.chapter(check), source, seed, name, hints).plain()
