"""`list`: every algorithm and every compression, each with its idea."""

from __future__ import annotations

import json

import click

from experiments.catalogue import ALGORITHMS, COMPRESSIONS


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="print the catalogue as JSON")
def list_command(as_json: bool) -> None:
    """All algorithms by family, and all compressions, each with its idea."""
    entries = [*ALGORITHMS.values(), *COMPRESSIONS.values()]
    if as_json:
        rows = [
            {"family": entry.family, "name": entry.name, "title": entry.title, "idea": entry.idea} for entry in entries
        ]
        click.echo(json.dumps(rows, indent=1))
        return
    family, width = None, max(len(entry.name) for entry in entries)
    for entry in entries:
        if entry.family != family:
            family = entry.family
            click.echo(f"\n{family.replace('_', ' ')}")
        click.echo(f"  {entry.name:<{width}} {entry.idea}")
    able = [name for name, entry in ALGORITHMS.items() if entry.declaration.compresses]
    click.echo("\npython -m experiments run NAME --help shows the settings of one;")
    click.echo(f"--compression NAME compresses the gradients of {', '.join(able)}.")
