"""Record the hints that a student took.

They are those from the command line, which are stored in the working folder, and those that a solution names.
"""

import json
import re
from pathlib import Path

from lessons.grading.sheet import STEPS, Sheet

FILE = ".lockstep-hints.json"
LINE = "# Hints taken: {}"
TOLD = re.compile(r"^# Hints taken: *(\d+\.\d+(?:, *\d+\.\d+)*)\.?\s*$", re.MULTILINE)


def hints_in_source(source: str) -> list[str]:
    """Return the hints that a solution names in a comment such as "# Hints taken: 2.1, 2.2"."""
    return [name.strip() for line in TOLD.findall(source[:200_000]) for name in line.split(",")]


def hints_taken(sheet: Sheet, file: Path | None) -> list[str]:
    """Return the hints taken for the solution in `file`, in order. For example, "2.1" is step 1 for mark 2. `file` may
    be None.
    """
    return _every(file).get(_key(sheet, file), [])


def take(sheet: Sheet, mark: int, file: Path | None) -> tuple[int, str]:
    """Return the next hint on this mark as (step, text), and record that it was taken. After the last step, that step
    is repeated.
    """
    before = hints_taken(sheet, file)
    step = min(1 + sum(name.startswith(f"{mark}.") for name in before), len(STEPS))
    text = sheet.hint(mark, step)
    every = _every(file) | {_key(sheet, file): list(dict.fromkeys([*before, f"{mark}.{step}"]))}
    _path(file).write_text(json.dumps(every, indent=1) + "\n", "utf-8")
    return step, text


def _key(sheet: Sheet, file: Path | None) -> str:
    return f"{sheet.name}/{file.name}" if file else sheet.name


def _path(file: Path | None) -> Path:
    return (file.parent if file else Path()) / FILE


def _every(file: Path | None) -> dict[str, list[str]]:
    path = _path(file)
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}
