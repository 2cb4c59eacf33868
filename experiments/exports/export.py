"""Export a run in formats that other programs read.

CSV for spreadsheets, the Chrome trace format for ui.perfetto.dev, self-contained HTML pages, curves and timeline as SVG
and, if the program that draws it is installed, curves as PNG. Every file is written under a temporary name and renamed
at the end.
"""

import contextlib
import csv
import io
import json
import math
import os
import tempfile
from html import escape
from pathlib import Path

import numpy as np

from cluster.waiting.causes import Causes
from experiments.exports import perfetto
from experiments.exports.page import page, place
from experiments.exports.report import report
from experiments.exports.svg import svg
from experiments.exports.timeline_svg import timeline_svg
from experiments.learning import record
from experiments.learning.record import Learning
from experiments.runs.record import Run
from experiments.viewer import curves as curve_data
from experiments.viewer import pictures
from experiments.viewer.canvases import landscape
from experiments.viewer.pictures import Picture, Shown
from experiments.viewer.saved import heading
from experiments.wording import naming
from tracing import HELD, Trace

REPLAYED = 10.0  # s: the report of a run that took at most this long includes a replay of it
MAX_EVENTS = 1_000_000  # of a Chrome trace; ui.perfetto.dev opens that many


def export(run: Run, form: str, path: str | Path, root: str | Path | None = None) -> list[Path]:
    """Write `run` in one of the formats in SUFFIXES and return the files. Raise ValueError or OSError if that fails.

    To find out how the run learned, it is replayed, and the result is stored in `root` among the runs. The "html" page
    includes it if the run took at most REPLAYED seconds. Without `root` it is omitted.
    """
    path = Path(path)
    if form == "csv":
        named = run.measures | {"quantity": np.array(run.quantities, object)[run.measures["quantity"]]}
        held = run.memory | {"kind": np.array(HELD, object)[run.memory["kind"]]}
        return [
            write_file(path.with_name(f"{path.stem}-{name}.csv"), csv_text(table).encode())
            for name, table in (
                ("losses", run.losses),
                ("evaluations", evaluations(run)),
                ("staleness", run.applied),
                ("measures", named),
                ("memory", held),
            )
        ]
    if form == "trace":
        return [write_file(path, chrome_trace(run.trace, run.experiment.servers).encode())]
    if form == "html":
        shown = [Shown(naming.method(run.experiment), run, 0)]
        return [write_file(path, report(shown, learning=learning(run, root, REPLAYED)).encode())]
    if form == "learning":
        return [write_file(path, learning_page(run, root or path.parent).encode())]
    if form == "svg":
        return [write_file(path, svg(drawings(run), heading(run.experiment)).encode())]
    if form == "timeline":
        return [write_file(path, timeline_svg(run).encode())]
    if form == "png":
        return [write_file(path, picture(run))]
    if form == "json":
        return [write_file(path, run.experiment.json().encode())]
    raise ValueError(f"there is no export format {form[:40]!r}; choose one of {', '.join(SUFFIXES)}.")


SUFFIXES = {
    "csv": ".csv",
    "trace": ".trace.json",
    "html": ".html",
    "learning": ".learning.html",
    "svg": ".svg",
    "timeline": ".timeline.svg",
    "png": ".png",
    "json": ".json",
}


def evaluations(run: Run) -> dict[str, np.ndarray]:
    """Return the run's evaluations, with steps counted as curves count them: per worker, lost workers excluded."""
    return run.evaluations | {"step": curve_data.tried_steps(run)}


def csv_text(table: dict[str, np.ndarray]) -> str:
    """Return a table as CSV with a header; floats have all digits, so that reading restores the same numbers."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
    return text.getvalue()


def chrome_trace(trace: Trace, servers: int | None = 0, known: Causes | None = None) -> str:
    """Return the trace in Chrome's format (see perfetto.py). Raise ValueError if it is too long."""
    if len(trace.spans["start"]) + 2 * len(trace.messages["sent"]) > MAX_EVENTS:
        raise ValueError(f"this run has more than {MAX_EVENTS} events; use fewer steps or fewer ranks.")
    events = list(perfetto.events(trace, servers, known))
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": events}, separators=(",", ":"))


def learning(run: Run, root: str | Path | None, patience: float = math.inf) -> Learning | None:
    """Return how a run learned. Return None without `root`, or if it cannot be found out.

    It is read from the record in `root`. If there is none, and the run took at most `patience` s, the run is replayed
    and the record stored.
    """
    try:
        job = record.spec(run)
        if root is None:
            return None
        folder = job.find_result(root)
        if folder is None and run.summary["wall_seconds"] <= patience:
            folder = job.perform(root)
        return record.load(folder) if folder else None
    except ValueError:
        return None


def learning_page(run: Run, root: str | Path) -> str:
    """Return a page on how a run learned. Raise ValueError if the run cannot be replayed.

    It is read from the record in `root`. If there is none, the run is replayed and the record stored.
    """
    job = record.spec(run)
    found = record.load(job.find_result(root) or job.perform(root))
    frames = {"learning": ("landscape", landscape.frame(run, found, "learning"))}
    words = heading(run.experiment)
    return page(words, f"<h1>{escape(words)}</h1>{place('learning')}", frames)


def picture(run: Run) -> bytes:
    """Return the curves as PNG. Raise ValueError if kaleido is not installed."""
    try:
        import kaleido  # noqa: F401  (Plotly uses it to draw images)
    except ImportError:
        raise ValueError(
            "png needs kaleido and Chrome or Chromium: python -m pip install kaleido; or use svg, which needs "
            "neither, or html, whose pictures have Save buttons for SVG, PNG and video."
        ) from None
    return curves(run).to_image(format="png", width=1000, height=450, scale=2)


def curves(run: Run):
    """Return a Plotly figure of training loss, held-out loss and accuracy against time on the run's own clock."""
    figure = plotly_figure(drawings(run))
    return figure.update_layout(template="plotly_white", height=420, margin={"t": 40})


def drawings(run: Run) -> dict[str, Picture]:
    """Return the pictures, by name, of a run's loss and, if it has one, its accuracy, against time on the run's own
    clock.
    """
    shown = [Shown(run.experiment.algorithm, run, 0)]
    named = {"Loss": pictures.loss(shown, "seconds")}
    if np.isfinite(run.evaluations["accuracy"]).any():
        named["Held-out accuracy, %"] = pictures.accuracy(shown, "seconds")
    return named


def plotly_figure(named: dict[str, Picture]):
    """Return a Plotly figure of the pictures side by side, each with its name above it."""
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


def write_file(path: Path, content: bytes) -> Path:
    """Write `content` to `path` atomically and return `path`. Raise OSError if that is impossible."""
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
