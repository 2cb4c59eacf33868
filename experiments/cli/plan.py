"""`plan`: find the best layouts for training a language model on a cluster of GPUs.

lockstep plan --model llama-3-70b --gpus 64 --device H100 --network 400G --batch 4M-tokens
"""

import json
from dataclasses import asdict, fields
from typing import Any

import click
import numpy as np

from experiments.cli import console, show
from experiments.cli.options import FiniteRange
from experiments.measure.gpu_file import read_gpu
from experiments.study import layouts, planned_pipeline
from experiments.wording import units
from theory.planner.language_model import PRESETS
from theory.planner.setup import GPUS, RECOMPUTE, SHARDS, Layout

LEGEND = (
    "In column pipe, 8x5 is eight GPUs with five stages on each, and 8 zb a zero-bubble schedule. Column again says "
    "what is recomputed in backward: light (activation functions) or full."
)


@click.command("plan", short_help="Find the best layouts for training a language model on GPUs.")
@click.option(
    "--model", default="llama-3-8b", metavar="TEXT", help=f"{', '.join(PRESETS)}; or a Hugging Face config.json"
)
@click.option("--gpus", default=64, type=click.IntRange(1, 2**17), metavar="INT", help="number of GPUs [default 64]")
@click.option("--per-node", default=8, type=click.IntRange(1, 72), metavar="INT", help="GPUs per node [default 8]")
@click.option("--device", metavar="TEXT", help=f"{', '.join(GPUS)} [default H100]")
@click.option("--constants", metavar="FILE", help="constants of the GPU, as lockstep fit --gpu writes them")
@click.option("--network", default="", metavar="TEXT", help="Gbit/s of each GPU's port: 400G [default the device's]")
@click.option("--batch", default="1024", metavar="TEXT", help="sequences, or tokens: 4M-tokens [default 1024]")
@click.option("--sequence", type=click.IntRange(1, 2**22), metavar="INT", help="tokens [default the model's]")
@click.option("--precision", default="bf16", metavar="TEXT", help="bf16 or fp8 [default bf16]")
@click.option("--tokens", default="1T", metavar="NUMBER", help="tokens to train on, for days and cost [default 1T]")
@click.option("--price", type=FiniteRange(0), metavar="NUMBER", help="price of a GPU hour, for the cost")
@click.option(
    "--top", default=layouts.TOP, type=click.IntRange(1, 100), metavar="INT", help="layouts to show [default 10]"
)
@click.option("--json", "as_json", is_flag=True, help="print the layouts as JSON, in seconds and bytes")
def plan_command(
    tokens: str, price: float | None, top: int, as_json: bool, device: str | None, constants: str | None, **asked: Any
) -> None:
    """Show how to split a model and its batch over GPUs: the fastest layouts that fit, and what a step consists of.

    Data-parallel ranks shard the optimizer's state. The search tries tensor, pipeline, context and expert parallelism,
    gradient and full sharding, hybrid sharding, micro-batches, interleaving and recomputation. Times are closed forms
    fitted to 144 published configurations.

    \b
    data to context   GPUs over which each way splits the work; pipe 4x10: a
                      pipeline of four GPUs with ten stages on each, 4 zb: a
                      zero-bubble schedule
    experts           GPUs over which the experts of a layer are divided
    micro             sequences in a micro-batch
    shards            what data-parallel ranks shard: the optimizer's state,
                      gradients too, or all; full/8: in each of eight groups
    again             recomputed in backward: light (activation functions), full
    tok/s             tokens per second per GPU
    MFU               the model's FLOPs as a share of the GPU's peak
    memory            share of the GPU's memory
    """
    count = units.parse_count(tokens, "tokens")
    measured = read_gpu(constants) if constants is not None else None
    device = device or (measured.device if measured else "H100")
    answer = layouts.find_layouts(layouts.Request(device=device, constants=measured, **asked))
    if as_json:
        click.echo(json.dumps(_layouts(answer, top), indent=1))
        return
    console.say((console.wrap(layouts.title(answer), "  "), console.HEAD))
    console.say()
    if len(answer.found):
        console.say(show.table(layouts.rows(answer, top)))
        console.say(console.prose(layouts.SELECTION))
        console.say(console.prose(LEGEND))
        console.say()
        console.say((console.wrap(f"The best: {layouts.layout_text(answer.found, 0)}", "  "), console.HEAD))
        console.say(show.table(layouts.step_parts(answer.found), words=1, keys=1))
        console.say()
        console.say(show.table(layouts.memory_parts(answer.found), words=1, keys=1))
        console.say()
        if pipeline := planned_pipeline.sketch_pipeline(answer.found):
            console.say(("See its pipeline  ", console.DIM), console.wrap_command(pipeline.command, 18))
            console.say(console.prose(pipeline.remark))
    for remark in layouts.remarks(answer, count, price):
        console.say(console.prose(remark))


def _layouts(answer: layouts.LayoutAnswer, top: int) -> list[dict]:
    """Return the best layouts as plain values, with the duration of each part of a step in s, and the size of each kind
    of memory in bytes.
    """
    found, at = answer.found, answer.found.setup.layout
    coded = {"shard": SHARDS, "recompute": RECOMPUTE}
    listed = []
    for i in range(min(top, len(found))):
        layout = {f.name: np.asarray(getattr(at, f.name))[i].item() for f in fields(Layout)}
        layout |= {name: words[layout[name]] for name, words in coded.items()}
        listed.append(
            {
                "layout": layout,
                "seconds": float(found.time.seconds[i]),
                "tokens_per_second_per_gpu": float(found.rates[i]),
                "parts": layouts.parts_of(found.time, i),
                "memory": {name: float(np.asarray(part)[i]) for name, part in asdict(found.memory).items()},
                "memory_share": float(found.shares[i]),
            }
        )
    return listed
