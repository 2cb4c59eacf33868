"""`sweep`: every combination of the values given, one run each, and a table of what came of them."""

from __future__ import annotations

import json
from typing import Any

import click

from experiments.cli import options, show
from experiments.cli.options import ExperimentCommand, from_option, json_option, runs_option
from experiments.cli.running import EXIT, Bar, base_experiment, check_writable, stoppable
from experiments.runs import store


@click.command("sweep", cls=ExperimentCommand, many=True)
@click.argument("name", required=False)
@from_option
@runs_option
@json_option
def sweep_command(name: str | None, start: str | None, runs: str, as_json: bool, **given: Any) -> int:
    """Run every combination of the values given: --workers 1,2,4,8 --period 1,10 makes eight runs."""
    from experiments.runs.compare import compare, grid, swept

    names = name.split(",") if name else []
    base = base_experiment(names[0] if names else None, start, runs, {})
    fixed, axes = options.axes(click.get_current_context().command, given)
    if len(names) > 1:
        axes = {"algorithm": names, **axes}
    experiments = grid(base, {**axes, **{name: [value] for name, value in fixed.items()}})  # a setting with its owner
    check_writable(runs)
    made, folders, problem = [], [], ""
    with stoppable() as stop, Bar("sweep") as bar:

        def show_progress(number: int, count: int, progress: Any) -> None:
            bar(progress, f"run {number + 1} of {count}")

        for done in swept(experiments, show_progress, stop):
            folder, trouble = store.save_somewhere(done, runs)
            problem = problem or trouble
            made.append(done)
            folders.append(folder)
    rows = [{"run": folder.name, **row} for folder, row in zip(folders, compare(made), strict=True)]
    click.echo(json.dumps(rows, indent=1) if as_json else show.fitted(rows))
    if problem:
        click.echo(problem, err=True)
    return max([2 if problem else 0, *(EXIT[done.status] for done in made)])
