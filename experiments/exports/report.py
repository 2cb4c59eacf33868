"""A report: runs on one HTML page that looks like the workbench and can be kept, sent, and read offline."""

from collections.abc import Sequence
from html import escape

from experiments.exports.page import page, place
from experiments.learning.record import Learning
from experiments.runs.ending import explain_planned_loss, explain_stop
from experiments.runs.figures import FIGURES, choose_figures, headline_label, measured_name, run_figure_text
from experiments.runs.record import Run
from experiments.specification import catalogue
from experiments.specification.experiment import Experiment, coding_settings, format_value
from experiments.viewer import bars, curves, palette, pictures
from experiments.viewer.canvases import curve, landscape, timeline
from experiments.viewer.html_table import Html, html_table
from experiments.viewer.lanes import lane_names
from experiments.viewer.pictures import Shown
from experiments.viewer.saved import heading, labels_of_several
from experiments.wording import units
from experiments.wording.naming import readable, title

ABOVE = ("held_out_loss", "accuracy", "seconds", "bytes", "share_wait", "staleness_mean")
COMPARED = (
    *("held_out_loss", "accuracy", "r2", "seconds", "samples_per_second", "bytes"),
    *("share_wait", "staleness_mean"),
)
SPANS = 16_000  # spans in all timelines of a report together, which keeps it well below 1 MB
LARGEST = 500_000  # bytes of the frame of how a run learned, before compression
CELLS = 16  # rows and columns of the table of traffic
ENDED = {"diverged": "Diverged", "failed": "Failed"}


def report(shown: Sequence[Shown], address: str = "", learning: Learning | None = None) -> str:
    """Return an HTML page on the first run that compares it with the others; `address` is the workbench to link to.

    `learning` is how the first run learned; it is drawn if given and not too large for a page.
    """
    run = shown[0].run
    drawn, frames = _drawn(shown)
    if learning and len(frame := landscape.frame(run, learning, "learning")) <= LARGEST:
        frames["learning"] = ("landscape", frame)
        drawn.append(f"<h2>See it learn</h2>{place('learning')}")
    parts = [_head(run, address), _comparison(shown) if len(shown) > 1 else "", *drawn]
    parts += [_ranks(shown[0]), _settings(run.experiment), _figures(run), _again(run)]
    return page(heading(run.experiment), "\n".join(parts), frames)


def outline(shown: Sequence[Shown]) -> str:
    """Return an HTML page with the curves and timelines of `shown`, without the report's text.

    Inside an iframe, such as a notebook's, the page sets the frame's height to its own.
    """
    drawn, frames = _drawn(shown)
    compared = [_comparison(shown)] if len(shown) > 1 else []
    return page(heading(shown[0].run.experiment), "\n".join([*compared, *drawn, _FITTED]), frames, "embed")


_FITTED = """<script>
new ResizeObserver(() => {
  const high = Math.ceil(document.body.getBoundingClientRect().height) + 1;
  if (window.frameElement) frameElement.style.height = `${high}px`;
}).observe(document.body);
</script>"""


def _drawn(shown: Sequence[Shown]) -> tuple[list[str], dict[str, tuple[str, bytes]]]:
    """Return the curves and timelines as parts of a page, and the frames of their canvases."""
    frames, parts = {}, []

    def drawn(name: str, picture: pictures.Picture, words: str) -> str:
        frames[name] = ("curve", curve.frame(picture, f"{words}.", name, labels_of_several(shown, words)))
        return f"<div><h2>{escape(words)}</h2>{place(name)}</div>"

    axis = "seconds" if len(shown) > 1 else "step"
    charts = [drawn("loss", pictures.loss(list(shown), axis), "Loss")]
    if any(len(curves.held_out(one.run, "step", "accuracy").x) for one in shown):
        charts.append(drawn("accuracy", pictures.accuracy(list(shown), axis), "Held-out accuracy, %"))
    parts.append(f'<div class="two">{"".join(charts)}</div>')
    for number, one in enumerate(shown):
        name = f"timeline-{number}"
        frames[name] = ("timeline", timeline.frame(one.run, name, most=SPANS // len(shown)))
        of = f": {one.name}" if len(shown) > 1 else ""
        parts.append(f"<h2>Timeline{escape(of)}</h2>{place(name)}")
    asked = dict.fromkeys(quantity for one in shown for quantity in one.run.quantities)
    having = {quantity: [one for one in shown if quantity in one.run.quantities] for quantity in asked}
    measured = [
        drawn(f"measured-{n}", pictures.measurements(some, quantity), measured_name(quantity))
        for n, (quantity, some) in enumerate(having.items())
    ]
    parts.append(f'<div class="two">{"".join(measured)}</div>' if measured else "")
    return parts, frames


def _head(run: Run, address: str) -> str:
    e = run.experiment
    back = f"{address}?{e.query()}"
    link = f' <a href="{escape(back)}">Open it in the workbench</a>' if address else ""
    ended = (
        f'<p class="ended"><b>{ENDED[run.status]}.</b> {escape(readable(e, run.error))}</p>'
        if run.status in ENDED
        else ""
    )
    if plain := explain_planned_loss(run) or explain_stop(run):
        ended = f"<p>{escape(plain)}</p>"
    notes = "".join(f'<p class="soft">{escape(readable(e, note))}</p>' for note in run.notes)
    metrics = "".join(
        f'<div title="{escape(FIGURES[name].meaning)}"><dt>{escape(headline_label(name, e))}</dt>'
        f"<dd>{escape(run_figure_text(run, name))}</dd></div>"
        for name in choose_figures(ABOVE, e)
        if run.summary.get(name) is not None
    )
    where = heading(e).removeprefix(f"{title(e)} · ")
    return (
        f'<h1>{escape(title(e))}</h1><p class="soft">{escape(where)} · seed {e.seed}.{link}</p>'
        f'{ended}{notes}<dl class="metrics">{metrics}</dl>'
    )


def _comparison(shown: Sequence[Shown]) -> str:
    """Return a table of all runs' figures, one row each; it is also the legend of the curves."""
    names = [name for name in COMPARED if any(one.run.summary.get(name) is not None for one in shown)]
    rows = [
        (Html(f"{mark(one)} {escape(one.name)}"), [run_figure_text(one.run, name) for name in names]) for one in shown
    ]
    table = html_table(["run", *(FIGURES[name].label for name in names)], rows, "runs")
    return f'<h2>Comparison</h2><div class="wide">{table}</div>'


def mark(one: Shown) -> str:
    """Return HTML for a run's line style in the curves."""
    style = {"solid": "solid", "dot": "dotted"}.get(one.line.dash, "dashed")
    return f'<i style="border-top: 3px {style} {one.line.colour}"></i>'


def _ranks(one: Shown) -> str:
    """Return the sections on what each rank did, held and sent."""
    run = one.run
    parts = [f"<h2>Where the time goes</h2>{bars.html(bars.shares([one]), timeline.shares(run))}"]
    if run.peak_memory().any():
        words = "What each rank held when its memory was fullest."
        parts.append(f"<h2>Memory</h2>{bars.html(bars.memory([one]), words)}")
    names = lane_names(run)
    if len(run.trace.messages["bytes"]) and len(names) <= CELLS:
        parts.append(f"<h2>Who sends to whom</h2>{_traffic(run, names)}")
    return "\n".join(parts)


def _traffic(run: Run, names: list[str]) -> str:
    table = run.trace.traffic()
    most, colour = max(float(table.max()), 1.0), palette.DOING["communicate"].colour

    def cell(nbytes: float) -> str:
        if not nbytes:
            return "<td></td>"
        deep = round(10 + 80 * float(nbytes) / most)
        look = f"background: color-mix(in srgb, {colour} {deep}%, transparent)"
        look += f"; color: {palette.DARK}" * (deep > 40)
        return f'<td style="{look}">{escape(units.size(nbytes))}</td>'

    head = "".join(f"<th>to {escape(name)}</th>" for name in names)
    rows = "".join(
        f"<tr><th>{escape(name)}</th>{''.join(map(cell, row))}</tr>" for name, row in zip(names, table, strict=True)
    )
    return (
        f'<div class="wide"><table class="traffic"><thead><tr><th>from</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _settings(e: Experiment) -> str:
    """Return a table of the settings that are not at their defaults, with their meanings."""
    kinds = [
        type(e),
        e.method.Settings,
        coding_settings(e.compression),
        catalogue.WORKLOADS[e.workload].module.Settings,
    ]
    fields = {name: field for kind in reversed(kinds) for name, field in kind.model_fields.items()}
    rows = []
    for name, value in {"workers": e.workers, "batch": e.batch, **e.settings, **e.flat()}.items():
        if name in ("algorithm", "workload"):  # they are in the title
            continue
        extra = fields[name].json_schema_extra or {}
        unit, none = extra.get("unit", ""), extra.get("none", "auto")
        said = none if value is None else f"{value:g}" if isinstance(value, float) else format_value(value)
        words = fields[name].description or ""
        unit = "" if value is None else unit.removesuffix("s") if value == 1 and unit != "s" else unit
        rows.append((name.replace("_", " "), (f"{said} {unit}".strip(), words)))
    return f'<h2>Settings</h2><div class="wide">{html_table((), rows, "explained")}</div>'


def _figures(run: Run) -> str:
    there = {name: figure for name, figure in FIGURES.items() if run.summary.get(name) is not None}
    rows = [(figure.label, (run_figure_text(run, name), figure.meaning)) for name, figure in there.items()]
    return f'<h2>All figures</h2><div class="wide">{html_table((), rows, "explained")}</div>'


def _again(run: Run) -> str:
    """Return the section that says how to reproduce the run, and in which environment it ran."""
    made = ", ".join(f"{name} {value}" for name, value in run.environment.items() if value)
    digest = run.summary.get("digest")
    same = (
        f"<p class=soft>The losses and models of this run have the digest {escape(str(digest))}.</p>" if digest else ""
    )
    return (
        f"<h2>Run it again</h2><p><code>{escape(run.experiment.command())}</code></p>{same}"
        f'<p class="soft">{escape(made)}</p>'
    )
