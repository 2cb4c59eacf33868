"""`add`: a run, a table or a network of the reader's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from experiments.cli.options import runs_option


@click.command("add", short_help="Add a table, a network or a run of your own.")
@click.argument("names", nargs=-1, required=True, metavar="FILE...")
@runs_option
def add_command(names: Sequence[str], runs: str) -> None:
    """Add a file of your own: a table (CSV, or two IDX files), a torch module (.py), or a run (zip or folder).

    It is checked and kept, and the name is printed by which experiments know it.
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
    if len(files) == 1 and paths[0].suffix == ".py":
        name = upload.save_module(files[0][1], files[0][0])
        click.echo(f"kept as {name}\ntrain it  python -m experiments run sync_sgd --workload own_module --net {name}")
    elif "run.json" in (name for name, _ in files) or files[0][1][:2] == b"PK":
        click.echo(f"kept in {upload.take_run(files, Path(runs))}")
    else:
        name = upload.take_table(files).stem
        made = upload.load_table(name)
        click.echo(f"kept as {name}: {len(made.cells):,} rows; columns {', '.join(made.names[:20])}")
        for note in made.notes:
            click.echo(f"note      {note}")
        click.echo(f"train it  python -m experiments run sync_sgd --workload table --table {name}")
