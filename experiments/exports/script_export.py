"""Export a script's run in formats that other programs read: tables, timeline, curves, settings."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from experiments.exports.export import chrome_trace, csv_text, write_file
from experiments.exports.svg import svg
from experiments.exports.timeline_svg import timeline_file
from experiments.runs.script_run import ScriptRun
from experiments.viewer import script_pictures
from experiments.wording.script_summary import heading
from tracing import HELD

Columns = dict[str, np.ndarray]


def export(run: ScriptRun, form: str, path: str | Path) -> list[Path]:
    """Write `run` in one of FORMATS, or as "csv", and return the files. Raise ValueError or OSError if that fails."""
    path = Path(path)
    if form == "csv":
        return [
            write_file(path.with_name(f"{path.stem}-{name}.csv"), csv_text(table).encode())
            for name, table in tables(run).items()
        ]
    if form not in FORMATS:
        raise ValueError(f"a run of a script cannot be exported as {form[:40]}; choose csv, {', '.join(FORMATS)}.")
    return [write_file(path, FORMATS[form](run).encode())]


def tables(run: ScriptRun) -> dict[str, Columns]:
    """Return the tables of a run by name: losses, values logged and printed, memory, waits and printed lines."""
    names = np.array(run.quantities, object)
    return {
        "losses": run.losses,
        "logged": run.measures | {"quantity": names[run.measures["quantity"]]},
        "memory": run.memory | {"kind": np.array(HELD, object)[run.memory["kind"]]},
        "waits": {name: np.array([getattr(wait, name) for wait in run.waits], object) for name in WAITS},
        "printed": {
            "rank": np.array([rank for rank, _ in run.printed], int),
            "line": np.array([line for _, line in run.printed], object),
        },
    }


WAITS = ("rank", "culprit", "what", "line", "start", "end")


def settings(run: ScriptRun) -> str:
    """Return as JSON everything that determines the run, including the script itself."""
    return json.dumps(asdict(run.experiment), indent=1)


def curves(run: ScriptRun) -> str:
    """Return losses and logged values by step as the text of an SVG file. Raise ValueError if there are none."""
    if not (named := script_pictures.curves(run)):
        raise ValueError("this run has no losses and logged nothing, so there are no curves; timeline draws its spans.")
    return svg(named, heading(run.experiment))


def timeline(run: ScriptRun) -> str:
    """Return the timeline as the text of an SVG file. Raise ValueError if nothing took virtual time."""
    if not run.summary.seconds:
        raise ValueError("nothing in this run took virtual time, so there is no timeline to draw.")
    return timeline_file(script_pictures.timeline_frame(run, ""))


def trace(run: ScriptRun) -> str:
    return chrome_trace(run.trace, servers=None, known=run.causes)


FORMATS: dict[str, Callable[[ScriptRun], str]] = {
    "trace": trace,
    "svg": curves,
    "timeline": timeline,
    "json": settings,
}
"""The function that makes each text file."""
