"""The grader: run an untrusted solution to an exercise and judge its behaviour.

    report = grade(lessons.chapter("stragglers"), source)      # GradingReport: score, marks, output
    lockstep book check stragglers my_solution.py

A chapter's `check.py` defines POINTS, the weight of each mark, and `check(solution, seed)`, which yields marks as
(name, whether it is earned, what was observed). The solution runs in an attempt, i.e. in its own process:

    with solution.attempt() as attempt:
        attempt.call("name", 3, vector)                        # a function of plain values
        attempt.run(worker, algorithm="backup", workers=16)    # a run in which `attempt.role("server")` plays a rank

Threat model. The solution's process has limits on time, memory, files and output; on Linux it can neither start a
process nor open a connection, send a signal, write a file, or read the grader's files (`bubblewrap.py` where it works,
`sandbox.py` everywhere; the report says which). Cluster, data, clock, statistics and all expected results stay in the
grader's process, and what the solution returns is parsed as plain data. Seeds, and with them sizes, are drawn when
grading begins; every mark is measured in the same runs, so a solution that knows `check.py` cannot tell which run is
judged by what. `patience.py` limits how long the grader waits, and `hosted.Quota` how much it accepts. Not covered:
systems other than Linux, where only the limits hold. Grade untrusted solutions on a separate machine.
"""

import importlib
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from lessons import harmless
from lessons.grading import levels
from lessons.grading.attempt import TEXTBOOK, Attempt, Solution, SolutionError
from lessons.grading.hints import hints_in_source
from lessons.grading.seeds import grading_seed
from lessons.grading.sheet import NOT_REACHED, Sheet

LONGEST = 200_000  # characters of a solution


@dataclass(frozen=True)
class Mark:
    """One criterion, with the points that it is worth, the points earned, and what was observed."""

    name: str
    points: int
    earned: int
    observed: str


@dataclass(frozen=True)
class GradingReport:
    """The result of grading. `score` is 0 to 100. `error` says why grading ended early, or is "" if it did not.

    `sandbox` maps what was protected (sandbox.ALL) to the mechanism that did it. `timelines` maps "yours" and "the
    textbook's" to timelines of the ranks (`timelines.plain`). The textbook's is there only once every mark is earned,
    since it may be the answer. `hints` are the hints that the student took, such as "2.1". `level` is the level of the
    start file (`levels.level_of`). `untouched` is True if the file is an unchanged start file: nothing was handed in
    yet, and nothing judged.
    """

    chapter: str
    score: int
    marks: tuple[Mark, ...]
    seed: int
    seconds: float
    error: str = ""
    printed: str = ""
    sandbox: dict[str, str] = field(default_factory=dict)
    timelines: dict[str, Any] = field(default_factory=dict)
    hints: tuple[str, ...] = ()
    level: int | None = None
    untouched: bool = False

    @property
    def judged_marks(self) -> tuple[Mark, ...]:
        """The marks that were judged."""
        return tuple(mark for mark in self.marks if mark.observed != NOT_REACHED)

    def plain(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


def grade(
    chapter,
    source: str,
    seed: int | None = None,
    name: str = "solution.py",
    hints: Sequence[str] = (),
    practice: bool = True,
    starts: Callable[[Solution], Attempt] | None = None,
) -> GradingReport:
    """Grade `source` as a solution to the chapter's exercise, and return the report. Raise ValueError if the chapter
    has no exercise.

    An unchanged start file earns nothing, even if it does some things right. A file of level 1 is graded on its
    predictions in `practice`, and refused where grades count. `hints` are the hints taken, for the report; those named
    in the file are added. `starts` makes the attempts, by default in the sandbox.
    """
    sheet = Sheet(chapter)
    seed = grading_seed() if seed is None else seed
    solution = Solution(source, name, signatures=sheet.signatures, settings=sheet.settings, starts=starts)
    level = levels.level_of(source)
    if level == 1:
        check, points = (levels.check(sheet), levels.points(sheet)) if practice else (_refuse, sheet.points)
    else:
        module = importlib.import_module(f"lessons.{chapter.name}.check")
        check, points = module.check, module.POINTS
    is_untouched = check is not _refuse and levels.is_start_file(sheet, source)
    if is_untouched:
        check = refuse_start_file
    report = judge(check, points, solution, seed, chapter.name)
    return replace(
        report, hints=tuple(dict.fromkeys((*hints, *hints_in_source(source)))), level=level, untouched=is_untouched
    )


def refuse_start_file(solution: Solution, seed: int) -> Iterator[tuple[str, bool, str]]:
    """Raise SolutionError for an unmodified start file, so that no mark is judged."""
    raise SolutionError("this is the unmodified start file. Edit it, then grade it again.")
    yield


def _refuse(solution: Solution, seed: int) -> Iterator[tuple[str, bool, str]]:
    raise SolutionError("this is level 1, predictions for practice; hand in a solution to the exercise.")
    yield


def judge(
    check: Callable[[Solution, int], Iterator[tuple[str, bool, str]]],
    points: dict[str, int],
    solution: Solution | str,
    seed: int,
    chapter: str = "",
) -> GradingReport:
    """Judge a solution with `check`, and return the report. `solution` may also be its source.

    Marks earned before an error count, and the others are lost. An error of the check itself is reported with its line,
    so that a student gets a report whatever happens.
    """
    began = time.monotonic()
    solution = Solution(solution) if isinstance(solution, str) else solution
    seen = {}
    try:
        if not solution.source.strip():
            raise SolutionError("the file is empty." + _wanted(solution))
        if len(solution.source) > LONGEST:
            raise SolutionError(f"the file has {len(solution.source)} characters; at most {LONGEST} are read.")
        for mark, earned, observed in check(solution, seed):
            seen[mark] = bool(earned), observed
    except SolutionError as failure:
        solution.errors.append(str(failure))
    except Exception as failure:
        solution.errors.append(_failed(failure))
    marks = []
    for mark, worth in points.items():
        earned, observed = seen.get(mark, (False, NOT_REACHED))
        marks.append(Mark(mark, worth, worth if earned else 0, harmless.visible(observed)))
    score = round(100 * sum(mark.earned for mark in marks) / sum(points.values()))
    took = time.monotonic() - began
    shown = {whose: one for whose, one in solution.timelines.items() if whose != TEXTBOOK or score == 100}
    return GradingReport(
        chapter, score, tuple(marks), seed, took, harmless.visible(" ".join(map(sentence, solution.errors))),
        harmless.visible(solution.printed), solution.sandbox, shown,
    )  # fmt: skip


def _failed(failure: Exception) -> str:
    """Return a sentence that says what went wrong in the grader itself, and where. It is meant for the maintainer."""
    last = traceback.extract_tb(failure.__traceback__)[-1]
    where = f"{Path(last.filename).name}, line {last.lineno}"
    said = f"{type(failure).__name__}: {str(failure)[:200]}" if str(failure) else type(failure).__name__
    return f"the grader itself failed on this answer ({said}; {where}); show this report to your teacher."


def _wanted(solution: Solution) -> str:
    function = next(iter(solution.signatures), "")
    return f" Write {function}{solution.signatures[function]} in it." if function else ""


def sentence(text: str) -> str:
    """Return `text`, with a full stop added if it needs one."""
    return text if text.endswith((".", "?", "!")) else f"{text}."
