"""`add`: add a run, a table or a network of your own."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from experiments.cli import console
from experiments.cli.options import runs_option
from experiments.runs import store
from workloads import own_module

if TYPE_CHECKING:
    from workloads.table_samples import Missing


@click.command("add", short_help="Add a table, a network or a run of your own.")
@click.argument("names", nargs=-1, metavar="FILE...")
@click.option("--example", is_flag=True, help="print an example torch module to start from, and nothing else")
@runs_option
@click.option(
    "--missing",
    type=click.Choice(["rows", "mean"]),
    help="what to do with missing numbers in a table: drop their rows, or use the column's mean",
)
@click.option(
    "--label",
    default="",
    metavar="COLUMN",
    help="column of a table to predict [default: one called label or class, else the last]",
)
def add_command(names: Sequence[str], example: bool, runs: str, missing: Missing | None, label: str) -> None:
    """Add a file of your own: a table (CSV, or two IDX files), a torch module (.py), or a run (zip or folder).

    A module's file defines net, loss, train and test: a network, a function of its output and target, and two pairs
    (samples, targets). `add --example > net.py` writes one that trains as it is. The file is executed.

    The file is checked and stored. A table or module is also tried out, and the command that trains on it is printed.
    """
    from experiments.jobs import upload

    if example:
        click.echo(own_module.EXAMPLE, nl=False)
        return
    if not names:
        raise ValueError(
            "add: no file was given; name a table, a module or a run. add --example prints a module to start from."
        )
    paths = [Path(name) for name in names]
    if len(paths) == 1 and paths[0].is_dir():
        if store.is_script(paths[0]):
            raise ValueError(
                f"{names[0]} is a run of a script, which cannot be added; copy it next to the other runs, in {runs}."
            )
        paths = [paths[0] / name for name in upload.FILES if (paths[0] / name).is_file()]
        if not paths:
            raise ValueError(f"{names[0]} is not a run folder: it has no run.json.")
    files = [(path.name, _read(path, upload.MOST_UNPACKED)) for path in paths]
    network = len(files) == 1 and paths[0].suffix == ".py"
    what = "network" if network else "run" if upload.is_run(files) else "table"
    for kind, options in (("table", ("missing", "label")), ("run", ("runs",))):
        if kind != what:
            console.refuse(f"is for {kind}s, but {names[0]} is a {what}; remove it.", *options)
    if what == "network":
        _add_network(*files[0])
    elif what == "run":
        _kept(str(upload.take_run(files, Path(runs)).resolve()))
    else:
        _add_table(files, missing or "refuse", label)


def _read(path: Path, most: int) -> bytes:
    """Return the content of a file of at most `most` bytes. Raise ValueError, naming the file, if it cannot be read."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise ValueError(f"{path} is a device, not a file; give a file.")
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    if len(content) > most:
        raise ValueError(f"{path} is larger than {most:,} bytes, the most that can be read; add a smaller file.")
    return content


def _add_network(file: str, content: bytes) -> None:
    from experiments.execution import trial
    from experiments.jobs import upload
    from experiments.specification.experiment import Experiment

    name = upload.save_module(content, file)
    trial.check(Experiment.of({"workload": "own_module", "net": name}))
    _kept(name)
    console.command("train", f"lockstep run sync_sgd --workload own_module --net {name}")


def _add_table(files: Sequence[tuple[str, bytes]], missing: Missing, label: str) -> None:
    from experiments.execution import trial
    from experiments.runs import tables

    name = tables.take(files).stem
    try:
        first = tables.first_run(name, label, missing=missing)
        trial.check(first.experiment)
    except tables.Gaps as error:
        raise ValueError(f"{error} Choose how: add --missing rows, or --missing mean.") from None
    except ValueError as error:
        raise ValueError(" ".join([str(error), *tables.load(name).notes])) from None  # notes may say why
    _kept(name)
    table, data = tables.load(name), first.experiment.data
    estimate = not data["regression"] and (data["label"] or table.names[-1]) not in table.words
    other = "--label chooses another column" + ", and --regression true predicts a number" * estimate
    for text in (
        f"{first.rows:,} rows; columns {', '.join(table.names[:20])}",
        *table.notes,
        *first.notes,
        f"predicts {first.predicts}; {other}.",
        first.features,
    ):
        console.say(console.wrap(f"        {text}", " " * 8))
    console.command("train", first.experiment.command())
    if first.why:
        console.note(f"        with {first.why}")


def _kept(name: str) -> None:
    console.say(("kept", console.DIM), f"    {name}")
