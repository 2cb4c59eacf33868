"""`list`: every algorithm and every compression, each with its idea."""

from __future__ import annotations

import json

import click

from experiments.catalogue import ALGORITHMS, COMPRESSIONS, FAMILIES, Entry
from experiments.cli import console

NAME = "cyan"


@click.command("list", short_help="All algorithms by family, and all compressions.")
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
    families: dict[str, list[Entry]] = {}
    for entry in entries:
        families.setdefault(entry.family, []).append(entry)
    wide = max(len(entry.name) for entry in entries)
    for family, members in families.items():
        console.say()
        console.say((FAMILIES[family], console.HEAD))
        for entry in members:
            label = f"  {entry.name:<{wide}} "
            text = console.folded(label + told(entry), " " * len(label))
            console.say((label, NAME), text[len(label) :])
    able = [name for name, entry in ALGORITHMS.items() if entry.declaration.compresses]
    console.say()
    console.note("python -m experiments run NAME --help shows the settings of one;")
    console.note(f"--compression NAME compresses the gradients of {', '.join(able)}.")


def told(entry: Entry) -> str:
    """Return the idea of an entry behind its title, which most ideas begin with."""
    begins = entry.idea.lower().startswith(entry.title.lower())
    return entry.idea if begins else f"{entry.title[:1].upper()}{entry.title[1:]}. {entry.idea}"
