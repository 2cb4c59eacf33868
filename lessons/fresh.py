"""Test the claims of figures and the answers of quizzes with fresh seeds, i.e. with seeds that were never used before.

A threshold that was set after looking at ten seeds may still be too close: only other seeds can tell. The command
`lockstep book run --fresh 5` draws five seeds, and prints what breaks.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import lessons
from experiments.execution.run import run
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.viewer.look import Rows
from lessons import golden, seeds
from lessons.chapters import Chapter
from lessons.figure import Figure, columns_read
from lessons.quiz import Item

LOWEST, HIGHEST = 100, 10**6  # bounds of the seeds drawn; smaller ones were used while figures were written


@dataclass(frozen=True)
class Break:
    """A claim or a recorded answer that does not hold with one seed.

    `rows` has the columns that the claim reads; it is empty for an answer, and if the figure or the claim raised an
    error.
    """

    seed: int
    claim: str
    rows: Rows = ()


@dataclass(frozen=True)
class Trial:
    """A figure or multiple-choice question to try with fresh seeds. `claims` is the number of claims to test. For a
    question, it is the number of recorded answers.

    `breaks(seeds, on_run)` returns the claims that do not hold, and calls `on_run` before each run.
    """

    name: str
    claims: int
    breaks: Callable[[Sequence[int], Callable[[], Any]], list[Break]]


def draw(count: int) -> range:
    """Return `count` consecutive seeds, beginning with a random one."""
    first = LOWEST + secrets.randbelow(HIGHEST - LOWEST)
    return range(first, first + count)


def trials(name: str) -> list[Trial]:
    """Return the trials of a chapter, or the trial of a single figure or question, such as "sgd.passes". Raise
    ValueError if the name is unknown.
    """
    chapter = lessons.chapter(name.partition(".")[0])
    every = [*_of_figures(chapter), *_of_questions(chapter)]
    if name == chapter.name:
        return every
    if chosen := [one for one in every if one.name == name]:
        return chosen
    raise ValueError(
        f"{name[:60]} cannot be tried; choose one of {chapter.name}'s {', '.join(one.name for one in every)}."
    )


def _of_figures(chapter: Chapter) -> list[Trial]:
    figures = {name: lessons.find(name) for name in chapter.figure_questions}
    return [Trial(name, len(one.claims), partial(not_shown, one)) for name, one in figures.items()]


def _of_questions(chapter: Chapter) -> list[Trial]:
    """Return the trials of multiple-choice questions. Questions with a numeric answer are skipped, because their answer
    is a mean with a tolerance.
    """
    return [
        Trial(f"{chapter.name}.{item.name}", len(answers), partial(not_answered, item, chapter.name, answers))
        for item in chapter.items
        if item.choices and (answers := chapter.golden.answers.get(item.name))
    ]


def not_shown(figure: Figure, of: Sequence[int], on_run: Callable[[], Any]) -> list[Break]:
    found = []
    for seed, rows in _under_each(lambda run: golden.plain_rows(figure.rows(run)), of, on_run).items():
        if isinstance(rows, _Failure):
            found.append(Break(seed, f"the figure cannot be run: {rows}"))
            continue
        for claim, holds in figure.claims.items():
            answer = _attempt(lambda holds=holds, rows=rows: bool(holds(rows)))
            if isinstance(answer, _Failure):
                found.append(Break(seed, f"{claim}: {answer}"))
            elif not answer:
                read = columns_read(holds, rows)
                found.append(Break(seed, claim, [{name: row[name] for name in row if name in read} for row in rows]))
    return found


def not_answered(
    item: Item,
    chapter: str,
    answers: Sequence[tuple[Mapping[str, Any], str]],
    of: Sequence[int],
    on_run: Callable[[], Any],
) -> list[Break]:
    found = []
    for parameters, answer in answers:
        asked = "".join(f"{name} = {value}, " for name, value in parameters.items())
        given = _under_each(lambda run, drawn=parameters: item.compute_under(run, chapter, drawn), of, on_run)
        found += [Break(s, f"{asked}the answer is {answer}; here: {now}") for s, now in given.items() if now != answer]
    return found


class _Failure(str):
    """The reason why an attempt failed, in words."""


def _under_each(make: Callable[[seeds.Seeded], Any], of: Sequence[int], on_run: Callable[[], Any]) -> dict[int, Any]:
    def run_and_note(experiment: Experiment) -> Run:
        on_run()
        return run(experiment)

    return seeds.each(lambda seeded: _attempt(lambda: make(seeded)), run_and_note, of)


def _attempt(make: Callable[[], Any]) -> Any:
    """Return the result of `make`, or a _Failure if it raises an exception. So one failing seed does not end an hour's
    run of the others.
    """
    try:
        return make()
    except Exception as error:
        return _Failure(f"{type(error).__name__}: {error}")
