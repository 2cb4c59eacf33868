"""*Try it here*, below a timeline: the settings its author lets a reader change, and what the recorded run measured."""

from functools import cache
from typing import Any

from experiments.specification.experiment import Experiment
from lessons.live.fields import fields
from lessons.movement import Timeline

RUN = ("algorithm", "workers", "network", "jitter", "slow", "batch", "steps")
"""The settings of the playground."""


def trial(block: Timeline) -> dict[str, Any]:
    """Return what the page's script needs to try a timeline."""
    return {**_form(block.experiment, block.tries), "recorded": book_result(block.experiment.query())}


def playground() -> dict[str, Any]:
    """Return the same for the playground, which starts with EASGD and a slow worker."""
    return _form(Experiment.of({"algorithm": "easgd", "slow": "2:4", "steps": 50}), RUN)


def _form(experiment: Experiment, names: tuple[str, ...]) -> dict[str, Any]:
    return {"query": experiment.query(), "fields": [one._asdict() for one in fields(experiment, names)]}


@cache
def book_result(query: str) -> dict[str, float]:
    """Return the virtual time and the held-out loss of a run, computed here and now: they are the book's."""
    from experiments.execution.run import run

    done = run(Experiment.from_query(query))
    return {"seconds": done.trace.seconds(), "loss": float(done.evaluations["loss"][-1])}
