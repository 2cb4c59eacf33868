"""Restricted: what of comm and task an exercise offers; all else would go past what the grader sees."""

from __future__ import annotations

from typing import Any

from lessons.grading.hosted import SolutionError


class Restricted:
    """Some attributes of an object, and no others."""

    def __init__(self, name: str, **parts: Any):
        self._name, self._parts = name, parts

    def __getattr__(self, part: str) -> Any:
        if part not in self._parts:
            raise SolutionError(f"there is no {self._name}.{part} here; use {', '.join(self._parts)}.")
        return self._parts[part]
