"""Exports: a run in the forms that other programs read.

CSV for spreadsheets, the Chrome trace format for ui.perfetto.dev, a page of HTML that needs no network, and pictures
where the program that draws them is installed. Every file is written under another name and renamed at the end.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import tempfile
from pathlib import Path

import numpy as np

from experiments import naming
from experiments.plots import perfetto, pictures
from experiments.plots.pictures import Picture, Shown
from experiments.plots.report import report
from experiments.runs.record import Run
from tracing import HELD, Trace

MAX_EVENTS = 1_000_000  # of a Chrome trace; ui.perfetto.dev opens that many


def export(run: Run, form: str, path: str | Path) -> list[Path]:
    """Write `run` as "csv", "trace", "html", "svg", "png" or "json"; return the files. ValueError, OSError."""
    path = Path(path)
    if form == "csv":
        named = run.measures | {"quantity": np.array(run.quantities, object)[run.measures["quantity"]]}
        held = run.memory | {"kind": np.array(HELD, object)[run.memory["kind"]]}
        return [
            _write(path.with_name(f"{path.stem}-{name}.csv"), csv_text(table).encode())
            for name, table in (
                ("losses", run.losses),
                ("evaluations", run.evaluations),
                ("staleness", run.applied),
                ("measures", named),
                ("memory", held),
            )
        ]
    if form == "trace":
        return [_write(path, chrome_trace(run.trace, run.experiment.servers).encode())]
    if form == "html":
        return [_write(path, report([Shown(naming.method(run.experiment), run, 0)]).encode())]
    if form in ("svg", "png"):
        return [_write(path, picture(run, form))]
    if form == "json":
        return [_write(path, run.experiment.json().encode())]
    raise ValueError(f"there is no export {form[:40]!r}; allowed is {', '.join(SUFFIXES)}.")


SUFFIXES = {"csv": ".csv", "trace": ".trace.json", "html": ".html", "svg": ".svg", "png": ".png", "json": ".json"}


def csv_text(table: dict[str, np.ndarray]) -> str:
    """Return a table as CSV with a header; floats in full, so that reading restores the same numbers."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
    return text.getvalue()


def chrome_trace(trace: Trace, servers: int = 0) -> str:
    """Return the Chrome trace format: one track per rank, a slice per span, an arrow per message. ValueError."""
    if len(trace.spans["start"]) + 2 * len(trace.messages["sent"]) > MAX_EVENTS:
        raise ValueError(f"this run has more than {MAX_EVENTS} events; make a shorter one, or fewer ranks.")
    events = list(perfetto.events(trace, servers))
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": events}, separators=(",", ":"))


def picture(run: Run, form: str) -> bytes:
    """Return the curves as SVG or PNG. ValueError, in one sentence, where kaleido is not installed."""
    try:
        import kaleido  # noqa: F401  (Plotly draws pictures with it)
    except ImportError:
        raise ValueError(
            f"{form} needs kaleido and a Chrome or Chromium: python -m pip install kaleido; "
            "or take html, and press Save at any of its pictures: SVG, PNG or a film."
        ) from None
    return curves(run).to_image(format=form, width=1000, height=450, scale=2 if form == "png" else 1)


def curves(run: Run):
    """Draw training and held-out loss, and accuracy, against the run's own clock, as the workbench does."""
    shown = [Shown(run.experiment.algorithm, run, 0)]
    named = {"loss": pictures.loss(shown, "seconds"), "held-out accuracy": pictures.accuracy(shown, "seconds")}
    figure = drawn(named)
    return figure.update_layout(template="plotly_white", height=420, margin={"t": 40})


def drawn(named: dict[str, Picture]):
    """Draw pictures side by side, each with its name above it."""
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=len(named), subplot_titles=list(named))
    for column, picture in enumerate(named.values(), 1):
        for one in picture.series:
            mode = "markers" if one.bare else "lines+markers" if one.symbol else "lines"
            figure.add_scatter(
                x=one.x, y=one.y, name=one.key or one.name, mode=mode, showlegend=bool(one.key),
                line={"color": one.colour, "dash": one.dash, "width": one.width},
                marker={"symbol": one.symbol or "circle", "color": one.colour}, opacity=0.45 if one.faint else 1.0,
                hoverinfo="skip" if one.faint else None, row=1, col=column,
            )  # fmt: skip
        for axis, update in ((picture.x, figure.update_xaxes), (picture.y, figure.update_yaxes)):
            ends = [math.log10(end) for end in (axis.least, axis.most)] if axis.log else [axis.least, axis.most]
            title = ", ".join(filter(None, (axis.name if axis is picture.x else "", axis.unit)))
            update(title=title, type="log" if axis.log else "linear", range=ends, row=1, col=column)
    return figure


def _write(path: Path, content: bytes) -> Path:
    """Put `content` at `path`, whole or not at all; OSError in one sentence."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(prefix=".part-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(part, 0o644)
            os.replace(part, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise
    except OSError as error:
        raise OSError(error.errno, f"{path} cannot be written: {error.strerror or error}.") from error
    return path
