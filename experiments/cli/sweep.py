"""`sweep`: run every combination of the given values, and print a table of the results."""

from typing import Any

import click

from experiments.cli import console, options
from experiments.cli.options import ExperimentCommand, from_option, json_option, runs_option
from experiments.cli.progress_bar import Bar
from experiments.cli.running import BEST, EXIT, at_best, base_experiment, check_writable, stoppable
from experiments.runs import store


@click.command("sweep", short_help="Run every combination of several values.", cls=ExperimentCommand, many=True)
@click.argument("name", required=False, metavar="[NAME[,NAME]...]")
@from_option
@runs_option
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    metavar="INT",
    help="run each with the seeds 0 to INT-1, and show mean and spread",
)
@click.option(
    "--global-batch",
    type=click.IntRange(1),
    metavar="INT",
    help="samples per step over all workers, divided evenly among them: strong scaling",
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
    """Run every combination of the given values, and compare the results in a table.

    sweep easgd --workers 1,2,4,8 --period 1,10 makes eight runs, and sweep sync_sgd,easgd makes two.

    If workers are varied, speed-up and efficiency are relative to the fewest workers: in samples per second, or with
    --target-loss in time until that loss is reached.
    """
    from experiments.cli.comparison import side_by_side
    from experiments.study.sweep import grid, run_sweep

    names = name.split(",") if name else []
    base = base_experiment(names[0] if names else None, start, runs, {})
    fixed, axes = options.axes(click.get_current_context().command, given)
    searched = fixed.get("learning_rate") == BEST and fixed.pop("learning_rate")
    if len(names) > 1:
        axes = {"algorithm": names, **axes}
    if seeds:
        if "seed" in {**axes, **fixed}:
            raise ValueError(
                "--seed and --seeds cannot be combined; use --seeds N for the seeds 0 to N-1, or --seed 3,7,9 for a "
                "list of your own."
            )
        axes["seed"] = [*map(str, range(seeds))]
    if global_batch and "batch" in {**axes, **fixed}:
        raise ValueError(
            "--batch and --global-batch cannot be combined; use --batch for the samples of each worker, or "
            "--global-batch for those of all workers together."
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

        for done in run_sweep(experiments, show_progress, stop):
            folder, trouble = store.save_somewhere(done, runs)
            problem = problem or trouble
            made.append(done)
            folders.append(folder)
    click.echo(side_by_side(made, folders, bool(seeds), as_json, axes=[*axes]))
    if problem:
        console.complain(problem)
    return max([2 if problem else 0, *(EXIT[done.status] for done in made)])
