"""Runs side by side, for `compare` and `sweep`: the settings in which they differ, and what came of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from typing import Any

from experiments.cli import show
from experiments.runs.compare import compare, over_seeds
from experiments.runs.record import Run
from experiments.runs.seeds import SeedFigure, differ_in_seed


def side_by_side(runs: Sequence[Run], names: Sequence[str], seeds: bool, as_json: bool) -> str:
    """Return runs side by side, as a table that fits the terminal or as JSON: a row each, or one for all `seeds`."""
    rows = over_seeds(runs) if seeds else [{"run": name, **row} for name, row in zip(names, compare(runs), strict=True)]
    together = differ_in_seed([run.experiment for run in runs])
    if as_json:
        if seeds:
            rows = [{"runs": [names[n] for n in some], **row} for some, row in zip(together, rows, strict=True)]
        plain = [{k: v._asdict() if isinstance(v, SeedFigure) else v for k, v in row.items()} for row in rows]
        return json.dumps(plain, indent=1)
    if not rows:
        return ""
    rows = [{name: row[name] for name in row if any(map(exists, (one[name] for one in rows)))} for row in rows]
    wide = shutil.get_terminal_size((10_000, 0)).columns  # a file has no edge
    told = [show.table(rows, keys=list(rows[0]).index("status"), wide=wide)]
    if seeds:
        some = any(isinstance(v, SeedFigure) and 0 < v.n < len(row["seeds"]) for row in rows for v in row.values())
        fewer_runs = "; (n): of the n runs that have the figure" if some else ""
        told.append(f"mean ± standard deviation over seeds, with n - 1 in its denominator{fewer_runs}")
    elif any(row.get("accuracy_error") for row in rows):
        told.append("accuracy ± its standard error, from the number of held-out samples")
    if not seeds and len(together) < len(runs):
        told.append("some of these runs differ only in their seed; compare --seeds gives mean and spread over them")
    return "\n".join(told)


def exists(value: Any) -> bool:
    """Return whether there is a value: a setting of the run's algorithm, or a figure of one of its seeds."""
    return value is not None and not (isinstance(value, SeedFigure) and value.n == 0)
