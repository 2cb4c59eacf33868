"""Data for pages that compute: the settings of *Try it here* below a figure, what was recorded, and exercises."""

from functools import cache
from typing import Any

from experiments.specification.experiment import Experiment
from lessons.chapters import Chapter
from lessons.golden import RecordedFigure
from lessons.live.fields import fields
from lessons.movement import Timeline

RUN = ("algorithm", "workers", "network", "jitter", "slow", "batch", "steps")
"""The settings of the playground."""
LONG = {"choosing"}
"""Chapters whose checks train for minutes where kernels are not compiled."""
TOO_LONG = "A browser would take several minutes to grade this exercise; the command grades it in one."


def trial(block: Timeline) -> dict[str, Any]:
    """Return what the page's script needs to run a timeline's experiment again with other settings."""
    return {**_form(block.experiment, block.tries), "recorded": book_result(block.experiment.query())}


def figure_trial(one: RecordedFigure, names: tuple[str, ...]) -> dict[str, Any]:
    """Return what the page's script needs to compute a figure again with other settings in all its runs.

    Raise ValueError unless all runs of the figure have each setting, with the same value.
    """
    runs = [Experiment.from_query(query) for query in one.runs]
    for name in names:
        values = {
            str(run.in_force().get(name)) for run in runs if name in run.in_force() and run.cluster == "simulated"
        }
        if len(values) != 1 or not all(name in run.in_force() for run in runs):
            raise ValueError(f"{one.name}: try: its runs must agree on {name}; found {sorted(values) or 'no run'}.")
    form = _form(runs[0], names)
    return {"figure": one.name, "fields": form["fields"], "recorded": one.under(one.seeds[0])}


def exercise(chapter: Chapter) -> dict[str, str]:
    """Return the start file of a chapter's exercise or, if a browser would take too long to grade it, a refusal."""
    told = {"refusal": TOO_LONG} if chapter.name in LONG else {"source": chapter.exercise}
    return {"chapter": chapter.name, **told}


def playground() -> dict[str, Any]:
    """Return what the page's script needs for the playground, which starts with EASGD and a slow worker."""
    return _form(Experiment.of({"algorithm": "easgd", "slow": "2:4", "steps": 50}), RUN)


def _form(experiment: Experiment, names: tuple[str, ...]) -> dict[str, Any]:
    return {"query": experiment.query(), "fields": [one._asdict() for one in fields(experiment, names)]}


@cache
def book_result(query: str) -> dict[str, float]:
    """Run the experiment of `query` while the book is built. Return its virtual duration in s and its held-out loss."""
    from experiments.execution.run import run

    done = run(Experiment.from_query(query))
    return {"seconds": done.trace.seconds(), "loss": float(done.evaluations["loss"][-1])}
