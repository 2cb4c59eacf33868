"""`sweep`: run every combination of the given values, and print a table of the results."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from experiments.cli import console, options, slurm
from experiments.cli.options import ExperimentCommand, from_option, json_option, runs_option
from experiments.cli.progress_bar import Bar
from experiments.cli.running import (
    BEST,
    EXIT,
    at_best,
    base_experiment,
    check_plot,
    check_writable,
    pool_at,
    pool_option,
    stoppable,
)
from experiments.specification.experiment import Experiment


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
@click.option(
    "--points",
    type=click.IntRange(1),
    metavar="INT",
    help="points spread evenly over all ranges LOW..HIGH together, logarithmically if HIGH is ten times LOW or more",
)
@pool_option
@click.option("--table", metavar="FILE", help="also write the rows to FILE, which ends in .parquet, .arrow or .csv")
@click.option("--plot", metavar="FILE", help="also draw the held-out loss over the settings varied, to FILE.svg")
@json_option
@slurm.array_options
def sweep_command(
    name: str | None,
    start: str | None,
    runs: str,
    seeds: int | None,
    global_batch: int | None,
    points: int | None,
    address: str | None,
    table: str | None,
    plot: str | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Run every combination of the given values, and compare the results in a table.

    sweep easgd --workers 1,2,4,8 --period 1,10 makes eight runs, and sweep sync_sgd,easgd makes two. Where a grid would
    be too large, sweep easgd --learning-rate 0.01..1 --period 1..32 --points 50 tries 50 points. Runs that are stored
    already are not run again, so an interrupted sweep continues with the same command.

    If workers are varied, speed-up and efficiency are relative to the fewest workers: in samples per second, or with
    --target-loss in time until that loss is reached.
    """
    from experiments.cli.comparison import side_by_side
    from experiments.exports.export import write_file
    from experiments.exports.rows import check_suffix, write_rows
    from experiments.exports.sweep_plot import sweep_svg
    from experiments.study.points import points as spread
    from experiments.study.sweep import Ended, grid, stored_sweep

    job = slurm.batch_options(given)
    if table:
        check_suffix(table)
    if plot:
        check_plot(plot)
    names = name.split(",") if name else []
    base = base_experiment(names[0] if names else None, start, runs, {})
    fixed, axes, spans = options.axes(click.get_current_context().command, given)
    if spans and not points:
        first, span = next(iter(spans.items()))
        raise ValueError(
            f"{first} is the range {span.low:g}..{span.high:g}; add --points INT to say how many values of it to try, "
            f"or list them: --{first.replace('_', '-')} 1,2,4,8."
        )
    if points and not spans:
        raise ValueError("--points needs a range to spread them over, such as --learning-rate 0.01..1.")
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
    if global_batch and "batch" in {**axes, **fixed, **spans}:
        raise ValueError(
            "--batch and --global-batch cannot be combined; use --batch for the samples of each worker, or "
            "--global-batch for those of all workers together."
        )
    experiments = grid(
        base,
        {**axes, **{name: [value] for name, value in fixed.items()}},  # a setting with its owner
        global_batch,
        spread(spans, points) if points else ({},),
    )
    if searched:
        experiments = at_best(experiments, runs)
    if job:
        return queue(experiments, job, runs)
    check_writable(runs)
    ended: list[Ended] = []
    with stoppable() as stop, Bar("sweep") as bar, pool_at(address, runs) if address else nullcontext() as pool:

        def show_progress(number: int, count: int, progress: Any) -> None:
            bar.count(number, count, progress.fraction if progress else 0.0)

        ended.extend(stored_sweep(experiments, runs, show_progress, stop, pool))
    ended.sort(key=lambda one: one.place)
    made, folders = [one.outcome for one in ended], [one.folder for one in ended]
    click.echo(side_by_side(made, folders, bool(seeds), as_json, axes=[*axes, *spans]))
    if table:
        write_rows(made, folders, Path(table))
    if plot:
        write_file(Path(plot), sweep_svg(made, [*spans, *axes], lines=not spans).encode())
    problem = next((one.trouble for one in ended if one.trouble), "")
    if problem:
        console.complain(problem)
    return max([2 if problem else 0, *(EXIT[one.status] for one in made)])


def queue(experiments: Sequence[Experiment], job: dict[str, Any], runs: str) -> int:
    """Print the job array that runs the experiments, or submit it and print its number. Return the exit code."""
    text = slurm.array_script(experiments, job, "--runs", os.path.abspath(runs))
    return slurm.queue(text, job, runs, "once it has ended, the same command without --to and --submit shows the table")
