"""`collective`: compare the cost of an all-reduce on a network across algorithms.

lockstep collective --ranks 32 --bytes 4e9 --network HDR --per-node 8
"""

import json
from dataclasses import asdict

import click

from cluster.network import parse_network
from experiments.cli import console, show
from experiments.study.collectives import MOST, all_reduces, links, note_on_nodes, rows
from experiments.wording import units


@click.command("collective", short_help="Compare the cost of an all-reduce by every algorithm.")
@click.option("--ranks", default=8, type=int, metavar="INT", help=f"number of ranks, at most {MOST} [default 8]")
@click.option("--bytes", "nbytes", default="100MB", metavar="SIZE", help="size of the vector: 4e9, 4GB [default 100MB]")
@click.option("--network", default="10GbE", metavar="TEXT", help="a preset, or latency:bandwidth:overhead")
@click.option("--per-node", default=1, type=click.IntRange(1), metavar="INT", help="ranks per node [default 1]")
@click.option("--nics", type=click.IntRange(1), metavar="INT", help="NICs per node [default that of the preset]")
@click.option("--json", "as_json", is_flag=True, help="print the rows as JSON, in bytes and seconds")
def collective_command(ranks: int, nbytes: str, network: str, per_node: int, nics: int | None, as_json: bool) -> None:
    """Show what an all-reduce costs on a network: a row for each algorithm, fastest first.

    Each algorithm runs on the simulated cluster, where all ranks arrive at the same time and additions are free. Ranks
    on one node share its NICs (each rank uses the nearest one) and communicate over the node's internal link.

    \b
    rounds         messages that have to follow one another
    sent           bytes that the busiest rank sends
    latency        share of the time that links without latency would save
    bus bandwidth  2 (ranks - 1) / ranks of the vector over the time, as
                   nccl-tests prints it; compare it with the links
    """
    size, where = units.parse_size(nbytes), parse_network(network).on_nodes(per_node, nics)
    costs = all_reduces(ranks, size, where)
    if as_json:
        click.echo(json.dumps([asdict(cost) | {"bus_bandwidth": cost.bus_bandwidth} for cost in costs], indent=1))
        return
    title = f"All-reduce of {units.size(size)} among {ranks} ranks, {network}: {links(where, ranks)}"
    console.say((console.wrap(title, "  "), console.HEAD))
    if note := note_on_nodes(where, ranks):
        console.say(console.wrap(note, "  "))
    console.say()
    console.say(show.table(rows(costs), words=1, keys=1))
