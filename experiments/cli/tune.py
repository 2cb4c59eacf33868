"""`tune`: the learning rate is swept, and nothing else, for one experiment or for the table of defaults."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from experiments.cli.options import ExperimentCommand, from_option, json_option, runs_option, values
from experiments.cli.running import base_experiment


@click.command("tune", short_help="Find the learning rate at which an experiment ends lowest.", cls=ExperimentCommand)
@click.argument("name", required=False)
@from_option
@runs_option
@json_option
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(1, 100), help="seeds of each rate")
@click.option(
    "--table", is_flag=True, help="write algorithms/rates.toml anew: NAME's lines (several with commas), or all"
)
@click.option("--pairs", help="with --table: only these parts of it, for example digits-cnn,sparse")
def tune_command(
    name: str | None,
    start: str | None,
    runs: str,
    as_json: bool,
    seeds: int,
    table: bool,
    pairs: str | None,
    **given: Any,
) -> int:
    """Find the learning rate at which an experiment ends lowest: 1, 2 and 5 times powers of ten, three seeds each."""
    if table:
        return write_table(name.split(",") if name else None, pairs.split(",") if pairs else None)
    from experiments.study.rates import Search, nearest, rung

    experiment = base_experiment(name, start, runs, values(given)).change(evaluations=1)
    search = Search(experiment, range(seeds))
    best = search.best(nearest(experiment.settings["learning_rate"]))
    tried = sorted(search.losses.items())
    if as_json:
        found = {"best": rung(best), "held_out_loss": search.loss(best), "interior": search.interior(best)}
        rows = [
            {"learning_rate": rung(n), **{f"seed {seed}": loss for seed, loss in done.items()}} for n, done in tried
        ]
        click.echo(json.dumps({**found, "tried": rows}, indent=1))
        return 0
    for n, done in tried:
        told = "  ".join(f"{loss:9.4f}" if loss < float("inf") else " diverged" for loss in done.values())
        click.echo(f"{rung(n):>9g}  {told}{'   best' if n == best else ''}")
    return 0


def write_table(names: list[str] | None, wanted: list[str] | None) -> int:
    """Search for the lines of these algorithms and parts, all by default, and write them into the table."""
    import algorithms
    from algorithms import rates
    from experiments.run import workload_of
    from experiments.study.rate_table import PAIRS, experiment_of, lines, noted

    names = [algorithms.module(name).__name__.rsplit(".", 1)[-1] for name in names or algorithms.names()]
    parts = {rates.pair(*pair): pair for pair in PAIRS}
    unknown = set(wanted or ()) - set(parts)
    if unknown:
        raise ValueError(f"the table has no part {sorted(unknown)[0]!r}; there are {', '.join(parts)}.")
    order = {name: place for place, name in enumerate(algorithms.names())}
    found = {part: dict(rates.table().get(part, {})) for part in parts}
    for part, pair in parts.items():
        if wanted and part not in wanted:
            continue
        for name, one in lines(pair, names, os.cpu_count() or 1, lambda text: click.echo(text, err=True)):
            found[part][name] = one
            found[part] = dict(sorted(found[part].items(), key=lambda item: order[item[0]]))
            rates.write(found)  # line by line, so that nothing is lost
        found[part] = noted(found[part], workload_of(experiment_of("sgd", *pair)))
        rates.write(found)
    return 0
