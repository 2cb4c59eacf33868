"""Whether an experiment can run, said before it does; and the nearest one that can."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from app import controls
from experiments.experiment import OWN, Experiment
from experiments.run import check

ELSEWHERE = ("own_module", "mnist")  # workloads that are only built where they run: they load torch, or large files
MENDED = ("workers", "batch", "chunks", "stages", "replicas", "per_node", "slow", "pause", "crash")
"""Settings that may be changed for an experiment to run, the first ones first."""


class Mend(NamedTuple):
    """One setting with a value by which the experiment can run."""

    name: str
    value: Any

    @property
    def label(self) -> str:
        """What a button says: "Use 8 workers", "Leave out lost ranks"."""
        if self.value == "":
            return f"Leave out {controls.spoken(self.name)}"
        if self.name == "workers":
            return f"Use {self.value:,} worker{'s' * (self.value != 1)}"
        return f"Use {controls.spoken(self.name)} {self.value:,}"


def refusal(experiment: Experiment) -> str:
    """Return why the experiment cannot run, in a sentence; "" if nothing is known against it."""
    emulated = experiment.cluster != "simulated" and experiment.device != OWN  # which is checked by computing
    if experiment.workload in ELSEWHERE or experiment.files or emulated:
        return ""
    return _refusal(experiment.key(), experiment.json())


@lru_cache(maxsize=4096)
def _refusal(_: str, text: str) -> str:
    try:
        check(Experiment.from_json(text))
    except (ValueError, OSError) as error:
        return str(error)
    return ""


def why_not(values: Mapping[str, Any]) -> str:
    """Return the same of flat values, of which there may be no experiment."""
    try:
        return refusal(Experiment.of(values))
    except ValueError as error:
        return str(error)


def mend(values: Mapping[str, Any], changed: Iterable[str] = (), why: Callable = why_not) -> Mend | None:
    """Return the smallest change of one setting by which these flat values can run, None if there is none.

    Settings that were `changed` last are tried first; of a number, what is nearest to it.
    """
    sentence = why(values)
    names = dict.fromkeys([*(name for name in changed if name in MENDED), *MENDED])
    for name in (name for name in names if values.get(name)):
        for value in _candidates(values[name], sentence):
            if not why({**values, name: value}):
                return Mend(name, value)
    return None


def _candidates(value: Any, sentence: str) -> list:
    if isinstance(value, str):
        return [""]
    if not isinstance(value, int):
        return []
    said = {int(word.replace(",", "")) for word in re.findall(r"\d[\d,]*", sentence)}
    stops = {base << power for base in (1, 3) for power in range(13)} | said
    return sorted((n for n in stops if 0 < n != value), key=lambda n: (abs(math.log(n / value)), n))
