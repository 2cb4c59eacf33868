"""Keep the cached results of a server's readers within bounds of size and age. Only results nobody kept are removed.

    runs/<name>/cached      nobody has kept this result; the file's date is its last use

Only the pool creates that file, and only if there is a bound of either kind. It is deleted when somebody pins, shares,
downloads or names the run. So runs of the command line, runs that somebody kept and runs from before there was a bound
are never removed.
"""

import contextlib
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

from experiments.runs import sealed

VARIABLE, AGE = "LOCKSTEP_RUNS_BYTES", "LOCKSTEP_RUNS_DAYS"
DAY = 86400.0  # s
NUMBER = re.compile(r"\d+(\.\d+)?(e\d+)?")
EVERY = 60.0  # s between two scans of the folder: with thousands of runs one takes a second
LOOKED, FULL = ".looked", ".full"  # files whose dates record the last scan, and that kept results exceed the bound


def bound() -> float:
    """Return how many bytes the results may take, or infinity if there is no limit. Raise ValueError if the setting is
    not a number.
    """
    return _number(VARIABLE, "bytes, for example 20e9")


def lifetime() -> float:
    """Return for how many seconds an unused result is kept, or infinity if there is no limit. Raise ValueError if the
    setting is not a number.
    """
    return DAY * _number(AGE, "days, for example 90")


def is_bounded() -> bool:
    """Return True if the owner of this server limits the size or the age of results."""
    return min(bound(), lifetime()) < float("inf")


def _number(variable: str, example: str) -> float:
    text = os.environ.get(variable, "").strip()
    if text and not NUMBER.fullmatch(text):
        raise ValueError(f"{variable} is {text[:60]!r}; give a number of {example}, or leave it unset.")
    return float(text) if text else float("inf")


def keep(folder: Path) -> None:
    """Protect the result in `folder` from removal. Raise OSError if its mark cannot be deleted."""
    (folder / sealed.CACHED).unlink(missing_ok=True)


def use(folder: Path) -> None:
    """Mark the result in `folder` as used, so that other results are removed first."""
    with contextlib.suppress(OSError):  # it is kept, or in a folder that others own
        os.utime(folder / sealed.CACHED)


def make_room(root: Path) -> None:
    """Remove cached results below `root`: first those that are too old, then others until the rest is within the bound.

    The folder is checked at most every EVERY seconds. Raise ValueError if the results that have to stay do not fit.
    """
    most, now = bound(), time.time()
    if not is_bounded() or not root.is_dir():
        return
    full = (root / FULL).exists()
    if not full and now - EVERY < _date(root / LOOKED) <= now:
        return
    (root / LOOKED).touch()
    left = trim(root, most, now - lifetime())
    if left <= most:
        (root / FULL).unlink(missing_ok=True)
        return
    (root / FULL).touch()
    raise ValueError(
        f"kept runs take {left / 1e9:.3g} GB of the {most / 1e9:.3g} GB that {VARIABLE} allows; the owner of "
        "this server can remove some of them, or raise this limit."
    )


def trim(root: Path, most: float, since: float = 0.0) -> float:
    """Remove cached results below `root` that were last used before `since`, then others, least recently used first,
    until at most `most` bytes are left. Return how many bytes are left.
    """
    sizes = {folder: _size(folder) for folder in root.iterdir() if folder.is_dir()}
    left = float(sum(sizes.values()))
    cached = [folder for folder in sizes if (folder / sealed.CACHED).exists()]
    for folder in sorted(cached, key=lambda folder: _date(folder / sealed.CACHED)):
        if left <= most and _date(folder / sealed.CACHED) >= since:
            break
        if _remove(folder):
            left -= sizes[folder]
    return left


def _remove(folder: Path) -> bool:
    """Remove a result unless it is kept. Return True if it is gone."""
    with contextlib.suppress(OSError):
        aside = Path(tempfile.mkdtemp(prefix=sealed.PART, dir=folder.parent)) / folder.name
        folder.rename(aside)
        if not (aside / sealed.CACHED).exists():
            aside.rename(folder)
        shutil.rmtree(aside.parent)
    return not folder.exists()


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _date(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
