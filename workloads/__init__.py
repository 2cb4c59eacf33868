"""Workloads: data sets, layers and models, and the task that gives each rank its part of them.

A workload module has `Settings`, which say how many numbers the data contain, and
`build(settings, dtype) -> Workload`. Its docstring describes the data and where they come from.
"""

import difflib
import importlib
from types import ModuleType

WORKLOADS: dict[str, str] = {
    "digits": "handwritten digits",
    "spirals": "spirals",
    "mnist": "MNIST",
    "text": "text",
    "quadratic": "a quadratic",
    "sparse": "sparse rows",
    "table": "your own table",
    "own_module": "your own network",
}
"""The title of each workload, as used within a sentence: "Synchronous SGD on handwritten digits"."""


def find(name: str) -> ModuleType:
    """Return the module of the workload `name`. Raise ValueError if there is none."""
    if name not in WORKLOADS:
        close = difflib.get_close_matches(name, WORKLOADS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"use one of {', '.join(WORKLOADS)}."
        raise ValueError(f"there is no workload {name[:60]!r}; {hint}")
    return importlib.import_module(f"workloads.{name}")
