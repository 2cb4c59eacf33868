"""Home: the one folder of all that is kept between two starts, for the command line and for the workbench."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """Return the folder: $LOCKSTEP_RUNS, or `runs` beside the source, wherever the program was started."""
    return Path(os.environ.get("LOCKSTEP_RUNS") or Path(__file__).resolve().parents[1] / "runs")
