"""`add`: a run, a table or a network of the reader's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from experiments.cli import console
from experiments.cli.options import runs_option

SHEETS = (".xlsx", ".xlsm", ".ods", ".numbers")  # which are zips, as runs may be


@click.command("add", short_help="Add a table, a network or a run of your own.")
@click.argument("names", nargs=-1, required=True, metavar="FILE...")
@runs_option
@click.option(
    "--missing",
    type=click.Choice(["rows", "mean"]),
    help="of a table with cells that are empty or no numbers: leave their rows out, or take the mean of the column",
)
@click.option("--label", default="", metavar="COLUMN", help="of a table: what is to be predicted [default: the last]")
def add_command(names: Sequence[str], runs: str, missing: str | None, label: str) -> None:
    """Add a file of your own: a table (CSV, or two IDX files), a torch module (.py), or a run (zip or folder).

    It is checked and kept, and a command that trains on it is printed.
    """
    from experiments.runs import upload

    paths = [Path(name) for name in names]
    if len(paths) == 1 and paths[0].is_dir():
        paths = [paths[0] / name for name in upload.FILES if (paths[0] / name).is_file()]
        if not paths:
            raise ValueError(f"{names[0]} is not a run folder: it has no run.json.")
    try:
        files = [(path.name, path.read_bytes()) for path in paths]
    except OSError as error:
        raise ValueError(f"{error.filename} cannot be read: {error.strerror}.") from None
    network = len(files) == 1 and paths[0].suffix == ".py"
    suffix = paths[0].suffix.lower()
    packed = suffix == ".zip" or (files[0][1][:2] == b"PK" and suffix not in SHEETS)
    run = not network and (packed or "run.json" in (name for name, _ in files))
    what = "network" if network else "run" if run else "table"
    for kind, options in (("table", ("missing", "label")), ("run", ("runs",))):
        if kind != what:
            console.refuse(f"is for {kind}s, and {names[0]} is a {what}; leave it out.", *options)
    if network:
        name = upload.save_module(files[0][1], files[0][0])
        console.say(("kept", console.DIM), f"    {name}")
        console.command("train", f"python -m experiments run sync_sgd --workload own_module --net {name}")
    elif run:
        folder = upload.take_run(files, Path(runs)).resolve()
        console.say(("kept", console.DIM), f"    {folder}")
    else:
        _add_table(files, missing or "", label)


def _add_table(files: Sequence[tuple[str, bytes]], repair: str, label: str) -> None:
    from experiments.runs import upload

    try:
        name = upload.take_table(files, repair).stem
    except ValueError as error:
        if upload.repairs(str(error)):
            raise ValueError(f"{error} Say which: add --missing rows, or --missing mean.") from None
        raise
    made = upload.load_table(name)
    if label and label not in made.names:
        raise ValueError(f"there is no column {label[:60]!r}; there are {', '.join(made.names[:20])}.")
    console.say(("kept", console.DIM), f"    {name}")
    columns = f"{len(made.cells):,} rows; columns {', '.join(made.names[:20])}"
    for text in (columns, *(note.removeprefix("table: ") for note in made.notes)):
        console.say(console.folded(f"        {text}", " " * 8))
    try:
        experiment, why = upload.first_run(name, label)
    except ValueError as error:
        console.say(console.folded(f"        {str(error).removeprefix('table: ')} Name it by --label.", " " * 8))
        return
    if left_out := made.left_out(experiment.data["label"] or made.names[-1]):
        console.say(console.folded(f"        {left_out}", " " * 8))
    console.command("train", experiment.command())
    if why:
        console.note(f"        with {why}")
