"""Home: the one folder of all that is kept between two starts, for the command line and for the workbench."""

from __future__ import annotations

from pathlib import Path

from installation import kept


def home() -> Path:
    """Return the folder: $LOCKSTEP_RUNS, or `runs` beside the source, or of the user, wherever the program started."""
    return kept("LOCKSTEP_RUNS", "runs")
