"""Print the summary of a script's run, for `script` and `show`, and store it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.cli import console
from experiments.cli.running import EXIT
from experiments.runs import slow_ranks, store
from experiments.runs.script_files import plain_summary
from experiments.wording.script_summary import heading, lines

if TYPE_CHECKING:
    from experiments.runs.script_run import ScriptRun


def conclude(run: ScriptRun, runs: str, as_json: bool, trace: str | None) -> int:
    """Store `run`, print its summary, write its timeline if a file is given, and return the exit code."""
    folder, problem = store.save_somewhere(run, runs)
    with console.unheard(sys.stdout):
        tell(run, folder.resolve(), as_json)
        sys.stdout.flush()
    if trace:
        from experiments.exports.export import chrome_trace

        Path(trace).write_text(chrome_trace(run.trace, servers=None, known=run.causes), "utf-8")
        console.note(f"timeline  {trace}: open it at ui.perfetto.dev")
    complain_of(run)
    if problem:
        console.complain(problem)
        return 2
    return EXIT[run.status]


def tell(run: ScriptRun, folder: Path, as_json: bool) -> None:
    """Print the summary of a stored run."""
    if as_json:
        click.echo(json.dumps(_plain(run, folder), indent=1))
        return
    if run.summary.seconds or not run.error:
        console.say((heading(run.experiment), console.HEAD))
        slow = ("slow", text) if (text := slow_ranks.cost_or_advice(run, folder)) else None
        for label, text in [*lines(run.summary, run.notes), *([slow] if slow else [])]:
            console.say((f"  {label:<10}", console.DIM), console.wrap(" " * 12 + text, " " * 12).lstrip())
    console.say(("stored  ", console.DIM), str(folder))


def complain_of(run: ScriptRun) -> None:
    """Print why the run ended early, if it did, with the script's own traceback."""
    if run.traceback:
        click.echo(run.traceback, err=True, nl=False)
    if run.error:
        console.complain(run.error)


def _plain(run: ScriptRun, folder: Path) -> dict[str, Any]:
    """Return the summary as plain values for JSON."""
    return {
        "status": run.status,
        "error": run.error,
        "notes": list(run.notes),
        "folder": str(folder),
        "command": run.experiment.command(),
        "printed": run.printed,
        "summary": plain_summary(run.summary),
    }
