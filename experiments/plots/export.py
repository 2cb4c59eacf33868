"""Exports: a run in the forms that other programs read.

CSV for spreadsheets, the Chrome trace format for ui.perfetto.dev, a page of HTML that needs no network, and pictures
where the program that draws them is installed. Every file is written under another name and renamed at the end.
"""

from __future__ import annotations

import contextlib
import csv
import html
import io
import json
import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from experiments.plots import palette, pictures
from experiments.plots.pictures import Picture, Shown
from experiments.runs.figures import FIGURES
from experiments.runs.record import Run
from tracing import HELD, KINDS, Trace

LINE = palette.RUNS[0].colour  # of the one run that a file shows
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
        return [_write(path, report(run).encode())]
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
    """Return the Chrome trace format: one track per rank, a slice per span, an arrow per message. Times are us."""
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": list(_events(trace, servers))}, separators=(",", ":"))


def _events(trace: Trace, servers: int) -> Iterator[dict[str, Any]]:
    if len(trace.spans["start"]) + 2 * len(trace.messages["sent"]) > MAX_EVENTS:
        raise ValueError(f"this run has more than {MAX_EVENTS} events; make a shorter one, or fewer ranks.")
    yield {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "Lockstep"}}
    for rank in range(trace.ranks):
        role = "server" if rank < servers else "worker"
        yield {"ph": "M", "name": "thread_name", "pid": 0, "tid": rank, "args": {"name": f"rank {rank} ({role})"}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": 0, "tid": rank, "args": {"sort_index": rank}}
    for rank, kind, start, end, step, label in _rows(trace.spans):
        yield {
            "ph": "X",
            "name": trace.labels[label],
            "cat": KINDS[kind],
            "pid": 0,
            "tid": rank,
            "ts": start * 1e6,
            "dur": (end - start) * 1e6,
            "args": {"step": step},
        }
    for number, (src, dst, tag, nbytes, sent, arrived, collective) in enumerate(_rows(trace.messages)):
        if not np.isfinite(arrived):
            continue
        flow = {"cat": "message", "name": "collective" if collective else f"tag {tag}", "id": number, "pid": 0}
        yield {**flow, "ph": "s", "tid": src, "ts": sent * 1e6, "args": {"bytes": nbytes}}
        yield {**flow, "ph": "f", "bp": "e", "tid": dst, "ts": arrived * 1e6}


def _rows(table: dict[str, np.ndarray]) -> Iterator[tuple]:
    return zip(*(column.tolist() for column in table.values()), strict=True)


def report(run: Run) -> str:
    """Return one page that shows the run without any other file or network."""
    from plotly.io import to_html

    figures = [
        to_html(figure, full_html=False, include_plotlyjs=number == 0, config={"displaylogo": False})
        for number, figure in enumerate(
            (
                curves(run),
                *([measured(run)] if run.quantities else []),
                shares(run),
                *([memory(run)] if len(run.memory["bytes"]) else []),
                links(run),
            )
        )
    ]
    facts = "".join(
        f"<tr><th>{html.escape(_label(name))}</th><td>{html.escape(_figure(value))}</td></tr>"
        for name, value in run.summary.items()
        if value is not None
    )
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in (run.error, *run.notes) if note)
    title = html.escape(f"{run.experiment.algorithm} on {run.experiment.workload}, {run.experiment.workers} workers")
    return _PAGE.format(
        title=title,
        status=html.escape(run.status),
        notes=notes,
        command=html.escape(run.experiment.command()),
        figures="\n".join(figures),
        facts=facts,
        environment=html.escape(", ".join(f"{k} {v}" for k, v in run.environment.items() if v)),
    )


def picture(run: Run, form: str) -> bytes:
    """Return the curves as SVG or PNG. ValueError, in one sentence, where kaleido is not installed."""
    try:
        import kaleido  # noqa: F401  (Plotly draws pictures with it)
    except ImportError:
        raise ValueError(
            f"{form} needs kaleido and a Chrome or Chromium: python -m pip install kaleido; "
            "or take html, whose figures save themselves as pictures."
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


def measured(run: Run):
    """Draw what the method measured, a small picture for each quantity."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    across = min(3, len(run.quantities))
    down = -(-len(run.quantities) // across)
    figure = make_subplots(rows=down, cols=across, subplot_titles=run.quantities)
    for number, quantity in enumerate(run.quantities):
        x, y = _thinned(*run.course(quantity), 2000)
        line = go.Scatter(x=x, y=y, name=quantity, line={"color": LINE}, showlegend=False)
        figure.add_trace(line, row=1 + number // across, col=1 + number % across)
    figure.update_xaxes(title="step")
    return figure.update_layout(template="plotly_white", height=60 + 240 * down, margin={"t": 40})


def shares(run: Run):
    """Draw the seconds of each rank, by what it was doing."""
    import plotly.graph_objects as go

    busy = run.trace.busy()
    ranks = [f"rank {rank}" for rank in range(run.trace.ranks)]
    bars = [
        go.Bar(x=ranks, y=busy[:, kind], name=word, marker={"color": palette.DOING[word].colour})
        for kind, word in enumerate(KINDS)
    ]
    return go.Figure(bars).update_layout(
        template="plotly_white", barmode="stack", height=320, margin={"t": 40}, yaxis_title="seconds"
    )


def memory(run: Run):
    """Draw the bytes that each rank held when it held most, by what they were held for."""
    import plotly.graph_objects as go

    held = run.held()
    ranks = [f"rank {rank}" for rank in range(run.trace.ranks)]
    bars = [
        go.Bar(x=ranks, y=held[:, kind], name=word, marker={"color": palette.HOLDING[word][0]})
        for kind, word in enumerate(HELD)
        if held[:, kind].any()
    ]
    return go.Figure(bars).update_layout(
        template="plotly_white",
        barmode="stack",
        height=320,
        margin={"t": 40},
        yaxis_title="bytes",
        legend_title="held for",
    )


def links(run: Run):
    """Draw the bytes from rank to rank."""
    import plotly.graph_objects as go

    heat = go.Heatmap(
        z=run.trace.traffic(), colorscale=[list(stop) for stop in palette.TRAFFIC], colorbar={"title": "bytes"}
    )
    return go.Figure(heat).update_layout(
        template="plotly_white",
        height=420,
        margin={"t": 40},
        xaxis_title="to rank",
        yaxis={"title": "from rank", "autorange": "reversed"},
    )


def _thinned(x: np.ndarray, y: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return means of neighbours, so that at most `points` are left."""
    if len(x) <= points:
        return x, y
    edges = np.linspace(0, len(x), points + 1).astype(int)[:-1]
    sizes = np.diff(edges, append=len(x))
    return np.add.reduceat(x, edges) / sizes, np.add.reduceat(y, edges) / sizes


def _label(name: str) -> str:
    """Return what a figure of the summary is called, with its unit; the other figures are counts and names."""
    if name not in FIGURES:
        return name.replace("_", " ")
    label, unit, _ = FIGURES[name]
    return f"{label}, {unit}" if unit in ("s", "bytes") else label


def _figure(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


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


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em; color: #1a1a1a }}
code {{ background: #f2f2f2; padding: .2em .4em; overflow-wrap: anywhere }}
th {{ text-align: left; font-weight: normal; padding-right: 2em }} td {{ text-align: right }}
</style></head><body>
<h1>{title}</h1>
<p>{status}</p>{notes}
<p><code>{command}</code></p>
{figures}
<table>{facts}</table>
<p>{environment}</p>
</body></html>
"""
