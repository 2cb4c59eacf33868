"""`memory`: show the memory of parameters, gradients and optimizer state on each rank, by ZeRO stage.

lockstep memory --parameters 7.5e9 --ranks 64
"""

import json

import click

from experiments.cli import console, show
from experiments.study import model_states
from experiments.wording import units


@click.command("memory", short_help="Show a model's memory per rank, by ZeRO stage and precision.")
@click.option("--parameters", default="7.5B", metavar="NUMBER", help="number of parameters: 7.5e9, 7.5B [default 7.5B]")
@click.option(
    "--ranks",
    default=64,
    type=click.IntRange(1),
    metavar="INT",
    help="number of ranks that train the model together [default 64]",
)
@click.option("--json", "as_json", is_flag=True, help="print the bytes as JSON")
def memory_command(parameters: str, ranks: int, as_json: bool) -> None:
    """Show the memory of a model on each rank: a row for each precision and optimizer, a column for each ZeRO stage.

    The bytes cover parameters, gradients and optimizer state. Activations come on top: they depend on batch size,
    sequence length and recomputation.
    """
    count = units.parse_count(parameters, "parameters")
    if as_json:
        click.echo(json.dumps(model_states.sizes(count, ranks), indent=1))
        return
    title = f"{units.in_millions(count)} parameters on {units.count_with_noun(ranks, 'rank')}, bytes on each"
    console.say((console.wrap(title, "  "), console.HEAD))
    console.say()
    console.say(show.table(model_states.rows(count, ranks), words=1, keys=1))
    console.say()
    console.say(console.prose(model_states.LEFT_OUT))
