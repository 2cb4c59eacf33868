"""Check beforehand whether an experiment can run, and find the nearest one that can."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from experiments.execution.run import check
from experiments.specification.experiment import OWN, Experiment
from experiments.wording.field_labels import field_label

MOST_NUMBERS = 1_000_000  # of the data, and
MOST_OPS = 10_000  # of a pipeline's plan that the server makes itself, in a tenth of a second
MENDED = ("workers", "batch", "chunks", "stages", "replicas", "per_node", "nics", "slow", "pause", "crash")
"""Settings that may be changed to make an experiment runnable, in the order in which they are tried."""


class Mend(NamedTuple):
    """A setting and a value that would make the experiment runnable."""

    name: str
    value: Any

    @property
    def label(self) -> str:
        """The label of the button that sets this value, such as "Use 8 workers" or "Leave out lost ranks"."""
        if self.value == "":
            return f"Leave out {field_label(self.name)}"
        if self.name == "workers":
            return f"Use {self.value:,} worker{'s' * (self.value != 1)}"
        return f"Use {field_label(self.name)} {self.value:,}"


class Reason(NamedTuple):
    """The reason why an experiment cannot run, and the numbers that may fix it. It is empty, and false, if the
    experiment can run.
    """

    text: str = ""
    remedies: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text)

    @classmethod
    def of(cls, error: Exception) -> Reason:
        """Return the refusal that this error describes."""
        return cls(str(error), getattr(error, "remedies", ()))


def refusal(experiment: Experiment) -> str:
    """Return a sentence on why the experiment cannot run, or "" if no reason is known."""
    return _reason(experiment).text


def _reason(experiment: Experiment) -> Reason:
    emulated = experiment.cluster != "simulated" and experiment.device != OWN  # checking that means computing
    try:
        if experiment.files or emulated or not is_light(experiment):
            return Reason()
    except ValueError as error:
        return Reason.of(error)
    return _checked(experiment.key(), experiment.json())


def is_light(experiment: Experiment) -> bool:
    """Return True if the experiment is small enough that the server itself may build the workload and plan the
    pipeline.

    A larger one is built and checked where it runs, in a process of the pool. Raise ValueError if its table does not
    exist.
    """
    return experiment.numbers <= MOST_NUMBERS and _has_short_plan(experiment)


def _has_short_plan(experiment: Experiment) -> bool:
    ops = 2 * experiment.workers * math.prod(experiment.settings.get(name, 1) for name in ("chunks", "pieces"))
    return experiment.method.plan is None or ops <= MOST_OPS


@lru_cache(maxsize=4096)
def _checked(_: str, text: str) -> Reason:
    try:
        check(Experiment.from_json(text))
    except (ValueError, OSError) as error:
        return Reason.of(error)
    return Reason()


def why_not(values: Mapping[str, Any]) -> Reason:
    """Return why an experiment with these values, valid or not, cannot run. A plan that is too large to be made here
    counts as a reason.
    """
    try:
        experiment = Experiment.of(values)
        return (
            _reason(experiment) if _has_short_plan(experiment) else Reason("the plan is too large to be checked here.")
        )
    except ValueError as error:
        return Reason.of(error)


def mend(
    values: Mapping[str, Any], changed: Iterable[str] = (), why: Callable[[Mapping[str, Any]], Reason] = why_not
) -> Mend | None:
    """Return the smallest change of a single setting that makes an experiment with these values runnable, or None.

    Settings that were `changed` last are tried first, and numbers in order of distance.
    """
    remedies = why(values).remedies
    names = dict.fromkeys([*(name for name in changed if name in MENDED), *MENDED])
    for name in (name for name in names if values.get(name)):
        for value in _candidates(values[name], remedies):
            if not why({**values, name: value}):
                return Mend(name, value)
    return None


def _candidates(value: Any, remedies: Iterable[int]) -> list:
    if isinstance(value, str):
        return [""]
    if not isinstance(value, int):
        return []
    stops = {base << power for base in (1, 3) for power in range(13)}.union(remedies)
    return sorted((n for n in stops if 0 < n != value), key=lambda n: (abs(math.log(n / value)), n))
