"""`list`: every algorithm, compression and all-reduce, each with the idea behind it."""

import json
import re

import click

from cluster.collectives import ALL_REDUCE, idea
from experiments.cli import console
from experiments.specification.catalogue import ALGORITHMS, COMPRESSIONS, FAMILIES, Entry
from experiments.wording.sentences import capital

NAME = "cyan"
ALL_REDUCES = "all-reduces"


@click.command("list", short_help="List algorithms by family, compressions and all-reduces.")
@click.option("--json", "as_json", is_flag=True, help="print the catalogue as JSON")
def list_command(as_json: bool) -> None:
    """List all algorithms by family, all compressions and all all-reduces, each with the idea behind it."""
    entries = [*ALGORITHMS.values(), *COMPRESSIONS.values()]
    if as_json:
        rows = [
            {"family": entry.family, "name": entry.name, "title": entry.title, "idea": entry.idea} for entry in entries
        ]
        rows += [{"family": ALL_REDUCES, "name": name, "title": name, "idea": idea(name)} for name in ALL_REDUCE]
        click.echo(json.dumps(rows, indent=1))
        return
    families: dict[str, dict[str, str]] = {}
    for entry in entries:
        families.setdefault(FAMILIES[entry.family], {})[entry.name] = title_and_idea(entry)
    families[ALL_REDUCES.capitalize()] = {name: idea(name) for name in ALL_REDUCE}
    wide = max(len(entry.name) for entry in entries)
    for family, members in families.items():
        console.say()
        console.say((family, console.HEAD))
        for name, words in members.items():
            label = f"  {name:<{wide}} "
            text = console.wrap(label + words, " " * len(label))
            console.say((label, NAME), text[len(label) :])
    able = [name for name, entry in ALGORITHMS.items() if entry.declaration.compresses]
    console.say()
    console.note("lockstep run NAME --help shows the settings of one;")
    console.note(f"--compression NAME compresses the gradients of {', '.join(able)};")
    console.note(
        "--collective NAME uses that algorithm for every all-reduce; by default the cluster chooses the fastest."
    )


def title_and_idea(entry: Entry) -> str:
    """Return the idea of `entry`, preceded by its title unless the idea repeats it."""
    words, idea = re.findall(r"[\w-]+", entry.title.lower()), entry.idea.lower()
    named = idea.startswith(tuple(words)) and all(word in idea for word in words)
    return entry.idea if named else f"{capital(entry.title)}. {entry.idea}"
