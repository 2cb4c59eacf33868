"""The engine in the browser, which answers the requests of a page, one after another.

    {"do": "run", "query": settings of a link, ...}             -> results, a frame of the timeline, one of the loss
    {"do": "figure", "name": "averaging.one_average", ...}      -> a sentence, a frame of the figure
    {"do": "predict", "chapter": name, "question": name, ...}   -> the answer
    {"do": "check", "chapter": name, "source": a solution}      -> the grader's report

A request is JSON. The answer is [JSON, bytes, ...], or [{"refused": a sentence}] for a mistake of the reader's.
"""

import contextlib
import gc
import importlib
import io
import json
import math
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

SAME_TIME, SAME_LOSS, SAME_ROWS = 1e-9, 1e-4, 1e-3
PRINTED = 4000  # characters of a solution's output that are shown


def answer(request: str) -> list[Any]:
    """Carry out a request from the page and return its answer."""
    asked = json.loads(request)
    try:
        return DO[asked.pop("do")](**asked)
    except ValueError as error:
        return [json.dumps({"refused": str(error)})]
    finally:
        gc.collect()


def start() -> str:
    """Import what a first run needs. Return a sentence on what computes the runs, which the page shows once."""
    sys.modules["torch"] = None  # type: ignore[assignment]  # so that nobody looks for it in every folder
    import numpy

    import experiments.execution.run
    import experiments.viewer.pictures  # noqa: F401

    computed = f"Computed in this page by Python {sys.version.split()[0]} and NumPy {numpy.__version__}, without Numba"
    return f"{computed}: virtual times are the same as on any other machine, and losses are the same up to rounding."


def run(query: str, changes: dict[str, str] | None = None, recorded: dict[str, float] | None = None) -> list[Any]:
    """Run the experiment that a link describes, with some settings changed. `changes` is {setting: its value as text}.

    Return what it measured, the frame of its timeline, and that of its loss. If results were `recorded`, the words say
    how far the run's results are from them.
    """
    from experiments.execution.notes import kernel_notes
    from experiments.execution.run import run
    from experiments.specification.experiment import Experiment
    from experiments.viewer import pictures
    from experiments.viewer.canvases import curve, timeline

    experiment = Experiment.from_query(query)
    done = run(experiment.change(**changes) if changes else experiment)
    link = done.experiment.query()
    lanes, said = timeline.lane_names(done), timeline.describe(done)
    frame = timeline.trace_frame(done.trace, lanes, said, link)
    picture = pictures.loss([pictures.Shown("this run", done, 0)], "seconds")
    curves = curve.frame(picture, "Loss of this run against time.", link)
    measured = {"seconds": done.trace.seconds(), "loss": float(done.evaluations["loss"][-1])}
    notes = [note for note in done.notes if note not in kernel_notes()]  # the page says so once
    told = [words(measured, recorded), *([f"It ended early: {done.error}"] if done.error else []), *notes]
    finite = {name: value if math.isfinite(value) else None for name, value in measured.items()}
    facts = {"query": link, "values": done.experiment.in_force(), "words": " ".join(told), **finite}
    return [json.dumps({**facts, "canvases": ["timeline", "curve"]}), frame, curves]


def figure(name: str, changes: dict[str, str], recorded: list[dict[str, Any]]) -> list[Any]:
    """Compute a figure under the first seed, with some settings changed in all its runs. `changes` is {setting: its
    value as text}.

    Return a sentence on how far its rows are from the recorded ones, and its frame.
    """
    import lessons
    from experiments.execution.run import run
    from experiments.viewer.canvases import figure
    from experiments.viewer.look import guess
    from lessons.seeds import Seeded

    chapter, _, short = name.partition(".")
    drawn = lessons.figures(chapter)[short]
    rows = drawn.rows(Seeded(start=lambda one: run(one.change(**changes) if changes else one)))
    look = drawn.look or guess(recorded)
    frame = figure.frame(rows, look, (), drawn.question, f"{name}, here")
    return [json.dumps({"words": distance(rows, recorded, look.y), "canvases": ["curve"]}), frame]


def distance(rows: list[dict[str, Any]], recorded: list[dict[str, Any]], columns: tuple[str, ...]) -> str:
    """Return a sentence on how far these columns of a figure are from the recorded ones, row by row.

    >>> distance([{"s": 1.0}, {"s": 3.0}], [{"s": 1.0}, {"s": 2.0}], ("s",))
    'With the first seed, s is 1 to 1.5 times what was recorded.'
    """
    if len(rows) != len(recorded):
        return f"Here the figure has {len(rows)} rows; {len(recorded)} were recorded."
    return f"With the first seed, {'; '.join(_apart(rows, recorded, name) for name in columns)}."


def _apart(rows: list[dict[str, Any]], recorded: list[dict[str, Any]], column: str) -> str:
    pairs = [(row[column], old[column]) for row, old in zip(rows, recorded, strict=True)]
    if all(new == old or math.isclose(new, old, rel_tol=SAME_ROWS) for new, old in pairs):
        return f"{column} is within {100 * SAME_ROWS:g} % of what was recorded"
    ratios = [new / old for new, old in pairs if old and math.isfinite(new / old)]
    if not ratios:
        return f"{column} has no finite ratio to what was recorded"
    return f"{column} is {min(ratios):.3g} to {max(ratios):.3g} times what was recorded"


def predict(chapter: str, question: str, parameters: dict[str, Any]) -> list[Any]:
    """Compute the answer to a question under the first seed, and return it as JSON. The function `question` in the
    chapter's answers.py computes it.
    """
    from lessons.seeds import Seeded

    answers = importlib.import_module(f"lessons.{chapter}.answers")
    return [json.dumps({"answer": getattr(answers, question)(Seeded(), **parameters)})]


def words(measured: dict[str, float], recorded: dict[str, float] | None) -> str:
    """Return a sentence that compares a run's time and loss with the recorded ones.

    >>> words({"seconds": 0.03, "loss": 0.5}, {"seconds": 0.02, "loss": 0.50001})
    'This run takes 30 ms, 1.5 times as long as recorded, and its held-out loss ends at 0.500, as recorded.'
    """
    from experiments.wording import units

    time, loss = units.seconds(measured["seconds"]), units.loss(measured["loss"])
    if recorded:
        time += f", {_times(measured['seconds'], recorded['seconds'])},"
        loss += f", {_higher(measured['loss'], recorded['loss'])}"
    return f"This run takes {time} and its held-out loss ends at {loss}."


def _times(seconds: float, recorded: float) -> str:
    if math.isclose(seconds, recorded, rel_tol=SAME_TIME):
        return "as recorded"
    return f"{seconds / recorded:.3g} times as long as recorded"


def _higher(loss: float, recorded: float) -> str:
    if math.isclose(loss, recorded, rel_tol=0, abs_tol=SAME_LOSS):
        return "as recorded"
    if not math.isfinite(loss):
        return f"and {recorded:.3g} was recorded"
    return f"{abs(loss - recorded):.2g} {'above' if loss > recorded else 'below'} the recorded one"


def check(chapter: str, source: str, seed: int | None = None) -> list[Any]:
    """Grade a solution to a chapter's exercise, for practice, and return the report as JSON. The solution runs in this
    process, and memory is not measured.
    """
    from lessons.grading.attempt import Solution
    from lessons.grading.grader import judge, refuse_start_file
    from lessons.grading.in_process import InProcess
    from lessons.grading.seeds import grading_seed
    from lessons.grading.sheet import Sheet

    folder = Path(importlib.import_module(f"lessons.{chapter}").__path__[0])
    given = SimpleNamespace(name=chapter, folder=folder, exercise=(folder / "exercise.py").read_text("utf-8"))
    sheet, module = Sheet(given), importlib.import_module(f"lessons.{chapter}.check")
    solution = Solution(source, signatures=sheet.signatures, settings=sheet.settings, starts=InProcess)
    judged = refuse_start_file if source.strip() == given.exercise.strip() else module.check
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        report = judge(judged, module.POINTS, solution, grading_seed() if seed is None else seed, chapter)
    marks = [asdict(mark) for mark in report.marks]
    facts = {"score": report.score, "marks": marks, "error": report.error, "printed": printed.getvalue()[:PRINTED]}
    return [json.dumps(facts)]


DO = {"run": run, "figure": figure, "predict": predict, "check": check}
