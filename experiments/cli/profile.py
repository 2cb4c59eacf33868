"""`profile`: measure what each layer of a model costs, as a table that `partition` reads.

lockstep profile digits --model residual --out profile.csv
"""

import shlex
import sys
from collections.abc import Iterable
from typing import Any

import click

import workloads
from experiments.cli import console, options, show
from experiments.cli.options import WorkloadCommand
from experiments.specification.experiment import Experiment
from experiments.study.partitions import MODEL_OF, profile_model
from experiments.wording import units
from theory.profile import Profile, save


@click.command(
    "profile",
    short_help="Measure what each layer of a model costs.",
    cls=WorkloadCommand,
    algorithm=MODEL_OF,
    knobs=("batch", "precision", "device"),
)
@click.argument("workload", default="digits")
@click.option("--out", metavar="FILE", help="write the table as CSV, for partition")
@click.option(
    "--passes",
    default=100,
    type=click.IntRange(1, 10**6),
    help="number of passes; times are their medians [default 100]",
)
def profile_command(workload: str, out: str | None, passes: int, **given: Any) -> None:
    """Show what each layer of a model costs: forward, backward, its output's size, and its weights.

    Times are medians over passes of one mini-batch, measured on this machine. With --device they are computed from the
    kernels' prices on that device, as in the simulated cluster, and are the same every time.
    """
    values = options.values(given)
    experiment = Experiment.of({"algorithm": MODEL_OF, "workload": workload, **values})
    experiment.refuse_idle(values)
    priced = "device" in values
    found = profile_model(experiment, None if priced else _with_bar(passes))
    how = f"prices on {experiment.device}" if priced else f"medians of {passes} passes here"
    model = experiment.data.get("model")
    named = f"{workload}, model {model}" if model else workload
    title = f"{named}: {len(found.layers)} layers, mini-batches of {experiment.batch}, {how}"
    console.say((console.wrap(title, "  "), console.HEAD))
    console.say(f"\n{layers(found)}\n")
    usual = workloads.find(workload).Settings.model_fields.get("model")
    if model and model != usual.default and "model" not in values:
        console.note(f"Pipelines train this model; other methods train --model {usual.default}.")
        console.say()
    if out:
        save(found, out)
        console.command("cut it", f"lockstep partition {shlex.quote(out)} --workers 4")
    console.command("train", experiment.command())


def layers(profile: Profile) -> str:
    """Return a table with a row for each layer, and one for their sum."""
    columns = profile.forward, profile.backward, profile.activations, profile.weights
    rows = zip((*profile.layers, "all"), *((*column, sum(column)) for column in columns), strict=True)
    return show.table(
        [
            {
                "layer": name,
                "forward": units.seconds(forward),
                "backward": units.seconds(backward),
                "activations": units.size(activations),
                "weights": units.size(weights),
            }
            for name, forward, backward, activations, weights in rows
        ],
        words=1,
    )


def _with_bar(passes: int) -> Iterable:
    """Return an iterable over the passes that shows a progress bar on a terminal."""
    if not sys.stderr.isatty():
        return range(passes)
    from rich.console import Console
    from rich.progress import track

    return track(range(passes), "measuring", console=Console(stderr=True), transient=True)
