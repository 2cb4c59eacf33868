"""Limit comm and task to what an exercise offers, so that a solution cannot bypass the grader's observation."""

from typing import Any

from lessons.grading.hosted import SolutionError


class Restricted:
    """An object that has only the given attributes. Access to any other raises SolutionError."""

    def __init__(self, name: str, **parts: Any):
        self._name, self._parts = name, parts

    def __getattr__(self, part: str) -> Any:
        if part not in self._parts:
            raise SolutionError(f"there is no {self._name}.{part} here; use {', '.join(self._parts)}.")
        return self._parts[part]
