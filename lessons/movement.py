"""Animated parts of a text: schedules, and timelines of simulated runs. This module holds only their data; pages draw
them.

{{ schedule zb_h1 ranks=4 chunks=8 }}                      a plan of experiments.study.schedules, with its options
{{ timeline algorithm=sync_sgd workers=8 jitter=cloud }}   settings of an experiment; simulated, runs in seconds
{{ timeline algorithm=easgd try=workers,period }}          and settings to try where a page computes (lessons/live)
"""

import difflib
import shlex
from typing import Any, NamedTuple
from urllib.parse import urlencode

from experiments.specification.catalogue import ALGORITHMS
from experiments.specification.experiment import Experiment
from experiments.study import schedules
from experiments.study.schedules import Plan
from experiments.viewer.canvases import schedule as canvas
from experiments.wording import naming, units

ON_PAGE = {"ranks": "ranks", "chunks": "micro_batches", "forward": "cost_f", "inputs": "cost_i", "weights": "cost_w",
           "latency": "link_takes", "costs": "other_costs"}  # fmt: skip
"""The names of a plan's fields in the address of the schedules page."""


TITLES = {
    **{name: entry.title for name, entry in ALGORITHMS.items()},
    "backup": "Synchronous SGD with backup workers", "layer_wise": "Back-propagation", "ddg": "DDG",
    "greedy": "Greedy learning", "sandblaster": "Sandblaster", "overlap": "Overlap with back-propagation",
    "priority": "Early layers first", **schedules.TITLES,
}  # fmt: skip
"""Names for algorithms and schedules in sentences: their titles, except where a shorter one will do."""
WHOLE = {"pipedream", "systolic", "pipemare"}
"""Schedules that never drain and update after each backward pass, so mini-batches are not split."""
SAID = {"latency": units.seconds, "bandwidth": units.rate}
"""Settings of a run that have a unit, each with the function that states its value in words."""
CLOUDS = {"none": "", "hpc": " on a quiet cluster", "cloud": " in the cloud", "noisy cloud": " in the noisy cloud"}


class Schedule(NamedTuple):
    """A pipeline schedule, ready to be analysed and drawn."""

    plan: Plan

    @property
    def caption(self) -> str:
        """The caption: a sentence without its full stop."""
        plan = self.plan
        piece = "mini-batch" if plan.schedule in WHOLE else "micro-batch"
        size = f"one {piece}" if plan.chunks == 1 else f"{plan.chunks} {piece}es"
        return f"{_title(plan.schedule)}: {size} on {plan.ranks} ranks"

    @property
    def settings(self) -> str:
        """The settings that the caption leaves out, in words, and the unit of time."""
        told = {"schedule", "own", "options", "ranks", "chunks"}
        others = {**self.plan.model_dump(exclude=told, exclude_defaults=True), **self.plan.options}
        return "; ".join(
            [*([_listed(others)] if others else []), f"time unit: a forward pass takes {self.plan.forward:g}"]
        )

    @property
    def link(self) -> str:
        """The address of the same schedule, relative to the workbench."""
        plan, given = self.plan, self.plan.model_dump(exclude_defaults=True)
        values = {
            "schedule_a": plan.schedule,
            **{name: given[field] for field, name in ON_PAGE.items() if field in given},
        }
        return "schedules?" + urlencode({**values, **{f"{name}_a": value for name, value in plan.options.items()}})


class Timeline(NamedTuple):
    """The timeline of a simulated run, which shows when each rank does what."""

    experiment: Experiment
    tries: tuple[str, ...] = ()
    """Settings that a reader may change where the page can compute the run itself."""

    @property
    def caption(self) -> str:
        """The caption: a sentence without its full stop."""
        one = self.experiment
        law = CLOUDS.get(one.jitter, f" with {one.jitter} step times")
        workers = "one worker" if one.workers == 1 else f"{one.workers} workers"
        return "; ".join([f"{_title(one.algorithm)} on {workers}{law}", *(words for _, words in naming.faults(one))])

    @property
    def settings(self) -> str:
        """All settings that were given, in words."""
        told = self.experiment.flat()
        return _listed({**told, **{name: say(told[name]) for name, say in SAID.items() if name in told}})

    @property
    def link(self) -> str:
        """The address of the same run, relative to the workbench."""
        return f"?{self.experiment.query()}"


def _title(name: str) -> str:
    return TITLES.get(name, name.replace("_", " "))


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_said(value)}" for name, value in values.items())


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def frame(block: Schedule) -> bytes:
    """Return a schedule packed for the browser. (Timelines are recorded: see lessons.timelines.)"""
    return canvas.frame(schedules.study(block.plan))


def schedule(words: str) -> Schedule:
    """Return the schedule described by text such as "zb_h1 ranks=4 chunks=8". Raise ValueError if it is invalid."""
    name, _, rest = words.partition(" ")
    if name not in schedules.NAMES or name == schedules.OWN:
        raise ValueError(f"there is no schedule {name[:60]!r}; {_among(name, schedules.NAMES)}")
    given, options = _settings(rest), schedules.options(name)
    common = [field for field in Plan.model_fields if field not in ("schedule", "options", "own")]
    for setting in given:
        if setting not in (*common, *options):
            raise ValueError(f"{name} has no setting {setting[:60]!r}; {_among(setting, (*common, *options))}")
    own = {setting: _option(given.pop(setting)) for setting in options if setting in given}
    return Schedule(Plan.of(schedule=name, options=own, **given))


def timeline(words: str) -> Timeline:
    """Return the timeline described by text such as "algorithm=sync_sgd workers=8 try=workers,slow".

    Raise ValueError if it is invalid.
    """
    given = _settings(words)
    tries = tuple(filter(None, given.pop("try", "").split(",")))
    experiment = Experiment.of(given)
    if experiment.cluster != "simulated":
        raise ValueError(f"cluster is {experiment.cluster}; a timeline in a text needs a simulated cluster.")
    if unknown := [name for name in tries if name not in experiment.in_force()]:
        raise ValueError(f"try: {_among(unknown[0], tuple(experiment.in_force()))}")
    return Timeline(experiment, tries)


def _settings(words: str) -> dict[str, str]:
    parts = [part.partition("=") for part in shlex.split(words)]
    if wrong := [name for name, equals, _ in parts if not equals]:
        raise ValueError(f"{wrong[0][:60]!r} cannot be read; write name=value, with spaces in between.")
    return {name: value for name, _, value in parts}


def _option(value: str) -> Any:
    """Return the value of a schedule's own setting, which is a switch, a whole number or a word."""
    return {"true": True, "false": False}.get(value, int(value) if value.isdecimal() else value)


def _among(name: str, known) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"choose one of {', '.join(known)}."
