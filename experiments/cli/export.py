"""`export`: write a stored run in a format that other programs read."""

from pathlib import Path

import click

from experiments.cli.options import runs_option
from experiments.runs import store
from experiments.runs.script_run import ScriptRun

FORMS = ("csv", "trace", "html", "learning", "svg", "timeline", "png", "json")
ENDINGS = ("csv", "trace.json", "html", "learning.html", "svg", "timeline.svg", "png", "json")


@click.command("export", short_help="Export a stored run to other programs.")
@click.argument("name", default="", metavar="RUN")
@click.option(
    "--to", required=True, metavar="FORM|FILE", help=f"{', '.join(FORMS)}; or a file name that ends in one of these"
)
@click.option("--out", metavar="FILE", help="output file [default: the run's name, in this folder]")
@runs_option
def export_command(name: str, to: str, out: str | None, runs: str) -> None:
    """Export a stored run in a format that other programs read.

    trace is for ui.perfetto.dev; html is a report; learning is a page with the run's path over the loss surface,
    found by replaying the run; svg is its curves; timeline is its timeline, also as SVG. Runs of scripts have no html,
    learning or png.
    """
    from experiments.exports import script_export
    from experiments.exports.export import SUFFIXES, export

    form, path = read(to, out)
    folder = store.find(name, runs)
    run, file = store.load_any(folder), path or f"{folder.name}{SUFFIXES.get(form, '')}"
    made = (
        script_export.export(run, form, file) if isinstance(run, ScriptRun) else export(run, form, file, folder.parent)
    )
    for written in made:
        click.echo(str(written))


def read(to: str, out: str | None = None) -> tuple[str, str | None]:
    """Return (format, file) for --to and --out. `to` may be a file whose ending implies the format. Raise ValueError if
    the ending implies no format, or if both are files.
    """
    if to in FORMS or not any(mark in to for mark in "./\\"):
        return to, out  # the export refuses an unknown format
    if out:
        raise ValueError(
            f"--to {to} and --out {out} both name a file. Give --to a format, such as {FORMS[0]}, or remove --out."
        )
    ending = Path(to).suffix.removeprefix(".")
    form = "trace" if to.endswith("trace.json") else "html" if ending == "htm" else ending
    form = "learning" if to.endswith("learning.html") else "timeline" if to.endswith("timeline.svg") else form
    if form not in FORMS:
        raise ValueError(
            f"cannot tell the format from the name {to}; use one of the endings .{', .'.join(ENDINGS)}, or give the "
            f"format with --to and the file with --out {to}."
        )
    return form, to
