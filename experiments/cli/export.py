"""`export`: a stored run in a form that other programs read."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.cli.options import runs_option
from experiments.runs import store

FORMS = ("csv", "trace", "html", "learning", "svg", "timeline", "png", "json")
ENDINGS = ("csv", "trace.json", "html", "learning.html", "svg", "timeline.svg", "png", "json")


@click.command("export", short_help="Write a stored run for other programs.")
@click.argument("name", default="", metavar="RUN")
@click.option("--to", required=True, metavar="FORM|FILE", help=f"{', '.join(FORMS)}; or a file that ends so")
@click.option("--out", metavar="FILE", help="where to write it [default: the run's name here]")
@runs_option
def export_command(name: str, to: str, out: str | None, runs: str) -> None:
    """Write a stored run in a form that other programs read.

    trace is for ui.perfetto.dev; html a report; learning a page of its path over the loss, which is replayed for it;
    svg its curves, timeline its timeline, also as SVG.
    """
    from experiments.exports.export import SUFFIXES, export

    form, path = read(to, out)
    folder = store.find(name, runs)
    for written in export(store.load(folder), form, path or f"{folder.name}{SUFFIXES.get(form, '')}", folder.parent):
        click.echo(str(written))


def read(to: str, out: str | None = None) -> tuple[str, str | None]:
    """Return (form, file) of what --to and --out say; `to` may be a file, whose ending is its form. ValueError."""
    if to in FORMS or not any(mark in to for mark in "./\\"):
        return to, out  # what is no form at all is refused by the export
    if out:
        raise ValueError(f"both --to {to} and --out {out} name a file; give --to the form, such as {FORMS[0]}.")
    ending = Path(to).suffix.removeprefix(".")
    form = "trace" if to.endswith("trace.json") else "html" if ending == "htm" else ending
    form = "learning" if to.endswith("learning.html") else "timeline" if to.endswith("timeline.svg") else form
    if form not in FORMS:
        raise ValueError(f"{to} does not say in which form: let it end in .{', .'.join(ENDINGS)}, or add --out {to}.")
    return form, to
