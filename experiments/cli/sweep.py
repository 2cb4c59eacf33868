"""`sweep`: every combination of the values given, one run each, and a table of what came of them."""

from __future__ import annotations

from typing import Any

import click

from experiments.cli import console, options
from experiments.cli.options import ExperimentCommand, from_option, json_option, runs_option
from experiments.cli.progress_bar import Bar
from experiments.cli.running import BEST, EXIT, at_best, base_experiment, check_writable, stoppable
from experiments.runs import store


@click.command("sweep", short_help="Run every combination of several values.", cls=ExperimentCommand, many=True)
@click.argument("name", required=False)
@from_option
@runs_option
@click.option("--seeds", type=click.IntRange(1, 1000), metavar="INT", help="seeds 0 to INT-1 of each, mean and spread")
@click.option(
    "--global-batch",
    type=click.IntRange(1),
    metavar="INT",
    help="samples of all workers in a step, divided evenly among them: strong scaling",
)
@json_option
def sweep_command(
    name: str | None,
    start: str | None,
    runs: str,
    seeds: int | None,
    global_batch: int | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Run every combination of the values given: --workers 1,2,4,8 --period 1,10 makes eight runs.

    Where workers are varied, speed-up and efficiency are those against the fewest workers: of samples per second, or
    with --target-loss of the time until the loss is reached.
    """
    from experiments.cli.comparison import side_by_side
    from experiments.study.sweep import grid, swept

    names = name.split(",") if name else []
    base = base_experiment(names[0] if names else None, start, runs, {})
    fixed, axes = options.axes(click.get_current_context().command, given)
    searched = fixed.get("learning_rate") == BEST and fixed.pop("learning_rate")
    if len(names) > 1:
        axes = {"algorithm": names, **axes}
    if seeds:
        if "seed" in {**axes, **fixed}:
            raise ValueError(
                "both --seed and --seeds were given; use --seeds for the first so many, or --seed for your own."
            )
        axes["seed"] = range(seeds)
    if global_batch and "batch" in {**axes, **fixed}:
        raise ValueError(
            "both --batch and --global-batch were given; the first is of a worker, the other of all; use one."
        )
    experiments = grid(
        base, {**axes, **{name: [value] for name, value in fixed.items()}}, global_batch
    )  # a setting with its owner
    check_writable(runs)
    if searched:
        experiments = at_best(experiments, runs)
    made, folders, problem = [], [], ""
    with stoppable() as stop, Bar("sweep") as bar:

        def show_progress(number: int, count: int, progress: Any) -> None:
            bar(progress, f"run {number + 1} of {count}")

        for done in swept(experiments, show_progress, stop):
            folder, trouble = store.save_somewhere(done, runs)
            problem = problem or trouble
            made.append(done)
            folders.append(folder)
    click.echo(side_by_side(made, folders, bool(seeds), as_json, axes=[*axes]))
    if problem:
        console.complain(problem)
    return max([2 if problem else 0, *(EXIT[done.status] for done in made)])
