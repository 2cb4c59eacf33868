"""The table that compares runs of scripts, for `compare`."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.cli import show
from experiments.cli.comparison import NONE, short_names
from experiments.cli.console import wrap
from experiments.runs.script_run import ScriptRun
from experiments.runs.script_verdict import verdict
from experiments.specification.script import SETTINGS
from experiments.wording import units

FIGURES = {
    "steps": units.count,
    "step_seconds": units.seconds,
    "waiting": units.percent,
    "sent": units.size,
    "loss": units.loss,
}
"""The function that formats each figure."""
HEADS = {"step_seconds": "time per step", "waiting": "longest waiting", "sent": "sent per step", "loss": "last loss"}


def side_by_side(runs: Sequence[ScriptRun], folders: Sequence[Path], as_json: bool) -> str:
    """Return the runs as a table that fits the terminal, followed by how each differs from the first; or as JSON."""
    names = [folder.name for folder in folders] if as_json else short_names(folders)
    rows = [{"run": name, **_settings(run, runs), **_figures(run)} for name, run in zip(names, runs, strict=True)]
    verdicts = [verdict(runs[0], run) for run in runs[1:]]
    if as_json:
        for row, sentences in zip(rows[1:], verdicts, strict=True):
            row["verdict"] = sentences
        return json.dumps(rows, indent=1)
    lines = [show.table([_words(row) for row in rows], keys=1, heads=HEADS)]
    for name, sentences in zip(names[1:], verdicts, strict=True):
        lines += ["", *(wrap(f"{name} and {names[0]}: {one}", "  ") for one in sentences[:1])]
        lines += [wrap(f"  {one}", "    ") for one in sentences[1:]]
    return "\n".join(lines)


def _settings(run: ScriptRun, runs: Sequence[ScriptRun]) -> dict[str, Any]:
    """Return the settings of `run` that differ in at least one of the other runs."""
    every = [_all_settings(one) for one in runs]
    return {name: value for name, value in _all_settings(run).items() if any(one[name] != value for one in every)}


def _all_settings(run: ScriptRun) -> dict[str, Any]:
    e = run.experiment
    return {
        "script": e.name,
        "arguments": " ".join(e.arguments),
        **{name: getattr(e, name) for name in SETTINGS},
        "status": run.status,
    }


def _figures(run: ScriptRun) -> dict[str, Any]:
    """Return the figures of a run, or None for those that it does not have."""
    s = run.summary
    return {
        "steps": s.steps,
        "step_seconds": s.step_seconds if math.isfinite(s.step_seconds) else None,
        "waiting": s.waiting_share,
        "sent": float(s.sent.max()) / s.steps if s.steps else None,
        "loss": [*s.losses.values()][-1] if s.losses else None,
    }


def _words(row: dict[str, Any]) -> dict[str, Any]:
    words = {name: NONE if value in ("", None) and name not in FIGURES else value for name, value in row.items()}
    return words | {name: "–" if row[name] is None else write(row[name]) for name, write in FIGURES.items()}
