"""`tune`: search for the best learning rate of one experiment, or for those in the table of defaults."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.cli import console, show
from experiments.cli.options import ExperimentCommand, from_option, json_option, runs_option, values
from experiments.cli.running import base_experiment, check_plot, check_writable
from experiments.jobs.dask_cluster import VARIABLE
from experiments.wording import naming

if TYPE_CHECKING:
    from experiments.study.rates import Search


@click.command("tune", short_help="Find the best learning rate of an experiment.", cls=ExperimentCommand)
@click.argument("name", required=False)
@from_option
@runs_option
@json_option
@click.option(
    "--seeds",
    default=3,
    show_default=True,
    type=click.IntRange(1, 100),
    help="number of seeds for each rate; eight are used if fewer cannot tell two rates apart",
)
@click.option(
    "--table",
    is_flag=True,
    help="rewrite algorithms/rates.toml: the lines of NAME (or several, separated by commas), or all",
)
@click.option(
    "--pool",
    "address",
    envvar=VARIABLE,
    metavar="ADDRESS",
    help="with --table: search on a Dask cluster, tcp://scheduler:8786 or local:4 [default: $LOCKSTEP_POOL, or here]",
)
@click.option("--plot", metavar="FILE", help="also draw the held-out loss over the rates that were tried, to FILE.svg")
@click.option("--pairs", help="with --table: only these parts of it, for example digits-cnn,sparse")
def tune_command(
    name: str | None,
    start: str | None,
    runs: str,
    as_json: bool,
    seeds: int,
    table: bool,
    pairs: str | None,
    address: str | None,
    plot: str | None,
    **given: Any,
) -> int:
    """Find the learning rate (1, 2 or 5 times a power of ten) with the lowest final held-out loss over several seeds.

    Its runs are stored, so an interrupted search continues with the same command. With --table, find the rates of
    algorithms/rates.toml instead.
    """
    if table and plot:
        raise ValueError("--plot draws the search for one experiment; remove it, or --table.")
    if plot:
        check_plot(plot)
    if table:
        return write_table(name.split(",") if name else None, pairs.split(",") if pairs else None, address or "")
    from experiments.study.rates import Search, nearest, rung

    experiment = base_experiment(name, start, runs, _searchable(values(given))).change(evaluations=1)
    check_writable(runs)
    search = Search(experiment, range(seeds), runs)
    best = search.best(nearest(experiment.settings["learning_rate"]))
    if plot:
        draw(search, Path(plot))
    if as_json:
        found = {"best": rung(best), "held_out_loss": search.loss(best), "interior": search.interior(best)}
        rows = [
            {"learning_rate": rung(n), **{f"seed {seed}": loss for seed, loss in done.items()}}
            for n, done in sorted(search.losses.items())
        ]
        click.echo(json.dumps({**found, "tried": rows}, indent=1))
        return 0
    console.say((console.wrap(f"{naming.title(experiment)}: final held-out loss, by seed"), console.HEAD))
    console.say(rates_table(search, best))
    console.say(console.wrap(conclusion(search, best)))
    return 0


def _searchable(given: dict[str, Any]) -> dict[str, Any]:
    """Return `given`. Raise ValueError if it fixes something that the search varies."""
    if "learning_rate" in given:
        raise ValueError(
            f"tune searches for the learning rate itself, so --learning-rate {given['learning_rate']} has no effect; "
            "remove it, or try your own rates with sweep --learning-rate 0.1,0.2."
        )
    if "seed" in given:
        raise ValueError(
            f"tune picks its own seeds, so --seed {given['seed']} has no effect; use --seeds INT to set how many."
        )
    return given


def draw(search: Search, file: Path) -> None:
    """Write a picture of a search whose runs are stored: the held-out loss at each learning rate, with a band of one
    standard deviation over the seeds.
    """
    from experiments.exports.export import write_file
    from experiments.exports.sweep_plot import sweep_svg
    from experiments.study.sweep import stored_sweep

    assert search.root
    tried = [search.at(n, seed) for n, done in sorted(search.losses.items()) for seed in done]
    ended = sorted(stored_sweep(tried, search.root), key=lambda one: one.place)
    write_file(file, sweep_svg([one.outcome for one in ended], ["learning_rate"]).encode())


def rates_table(search: Search, best: int) -> str:
    """Return a table of the learning rates tried, with the loss of each seed and the best rate marked."""
    from experiments.study.rates import rung

    rows = [["learning rate", *(f"seed {seed}" for seed in search.seeds)]]
    for n, done in sorted(search.losses.items()):
        losses = [show.number(done[seed]) if seed in done else "" for seed in search.seeds]
        mark = "best " if n == best and math.isfinite(search.loss(best)) else ""
        rows.append([f"{mark}{rung(n):g}", *losses])
    return show.align_columns(rows)


def conclusion(search: Search, best: int) -> str:
    """Return sentences on the best learning rate, the default, and why some rates were not tried with every seed."""
    from experiments.study.rates import rung

    default = search.experiment.change(learning_rate=None).settings["learning_rate"]
    loss, seeds = search.loss(best), len(search.seeds)
    if math.isinf(loss):
        return f"Training diverged at every rate tried; the default is {default:g}."
    lost = f"with a held-out loss of {show.number(loss)}"
    mean = f"{lost}, the mean of {seeds} seeds" if seeds > 1 else lost
    rest = " The first seed narrows the search; the others run only near the best rate." if seeds > 1 else ""
    return f"The best rate is {rung(best):g}, {mean}; the default is {default:g}.{rest}"


def write_table(names: list[str] | None, wanted: list[str] | None, address: str = "") -> int:
    """Search for the best learning rates of these algorithms in these parts of the table (default: all). Write the
    table, and return the exit code.
    """
    import algorithms
    from algorithms import rates
    from experiments.execution.run import workload_of
    from experiments.study.rate_table import PAIRS, add_notes, experiment_of, lines

    names = [algorithms.module(name).__name__.rsplit(".", 1)[-1] for name in names or algorithms.names()]
    parts = {rates.pair(*pair): pair for pair in PAIRS}
    unknown = set(wanted or ()) - set(parts)
    if unknown:
        raise ValueError(f"the table has no part {sorted(unknown)[0]!r}; choose one of {', '.join(parts)}.")
    order = {name: place for place, name in enumerate(algorithms.names())}
    found = {part: dict(rates.table().get(part, {})) for part in parts}
    for part, pair in parts.items():
        if wanted and part not in wanted:
            continue
        for name, one in lines(pair, names, os.cpu_count() or 1, lambda text: click.echo(text, err=True), address):
            found[part][name] = one
            found[part] = dict(sorted(found[part].items(), key=lambda item: order[item[0]]))
            rates.write(found)  # after each line, so that an interrupt loses nothing
        plain = experiment_of("sgd", *pair)
        assert plain  # since one worker can always run
        found[part] = add_notes(found[part], workload_of(plain))
        rates.write(found)
    return 0
