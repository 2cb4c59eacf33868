"""`partition`: where to cut a profiled model for a pipeline, and how fast it should run.

lockstep partition profile.csv --workers 4 --bandwidth 1e9
"""

import math
from typing import Any

import click

from experiments.cli import show
from experiments.cli.console import wrap
from experiments.cli.options import FiniteRange
from experiments.study.partitions import (
    FORM_OF,
    MODEL_OF,
    STEP,
    Levels,
    communication,
    plan,
    read_counts,
    read_levels,
    read_profile,
)
from experiments.viewer.pictures import unit as unit_of
from experiments.wording import units
from theory.partition import Cell, Partition
from theory.profile import Profile


@click.command("partition", short_help="Cut a profiled model into pipeline stages.")
@click.argument("path", metavar="PROFILE")
@click.option(
    "--workers", metavar="INT,...", help="number of workers; 2,3 means three machines with two each [default 4]"
)
@click.option(
    "--bandwidth",
    default="10GbE",
    metavar="BYTES/S,...",
    help="bandwidth between workers, or the name of a network; with --workers 2,3 give two, within and between "
    "machines [default 10GbE]",
)
@click.option("--method", default="pipedream", metavar="NAME", help="see above [default pipedream]")
@click.option("--cuts", metavar="INT,...", help="layers of each stage, to evaluate your own cuts instead of a method's")
@click.option(
    "--memory",
    type=FiniteRange(0),
    metavar="BYTES",
    help="most memory that a stage may use, for weights and activations",
)
@click.option("--straight", is_flag=True, help="one worker for each stage, no replicas")
@click.option("--fewer", is_flag=True, help="allow workers to stay idle")
@click.option(
    "--compression",
    type=float,
    metavar="FLOAT",
    help="pipedream_code: factor by which activations are compressed on links; 1 counts them in full; without this "
    "option links cost nothing, as in the authors' program",
)
@click.option(
    "--chunks", type=click.IntRange(1), metavar="INT", help="micro-batches [default: dapple 8, torchgpipe_size 1]"
)
@click.option(
    "--copies",
    type=FiniteRange(0),
    metavar="FLOAT",
    help="torchgpipe_size: copies of the weights in memory [default 2]",
)
@click.option("--table", is_flag=True, help="also print the dynamic program's table")
def partition_command(path: str, workers: str | None, bandwidth: str, table: bool, **given: Any) -> None:
    """Cut a profiled model into pipeline stages, and predict how fast the pipeline runs.

    \b
    pipedream        slowest stage as fast as possible, with or without replicas
    pipedream_code   as in the authors' program: computation, then communication
    sosp             as in the paper of 2019: machines may have several workers
    ring             the same with a ring all-reduce
    dapple           fastest step of --chunks micro-batches, with fill and drain
    min_max          a worker for each stage: slowest stage as fast as possible
    variance         a worker for each stage: times as equal as possible (GPipe)
    torchgpipe_time  torchgpipe's heuristic for times
    torchgpipe_size  the same for bytes during training
    blocks           the same for times, but no layer counts as free

    PROFILE is a CSV table with a line for each layer, as `profile` writes it: layer,forward,backward,activations,
    weights; in seconds and bytes for one mini-batch. It may also be the graph.txt of PipeDream's own profiler.
    """
    profile, cuts, method = read_profile(path), given.pop("cuts"), given.pop("method")
    own = read_counts("cuts", cuts) if cuts else []
    if own:
        workers, method = workers or str(len(own)), f"cuts {cuts}"
    levels = read_levels(workers or "4", bandwidth)
    found = plan(profile, levels, method, own, **given)
    if table and not found.table:
        raise ValueError(
            f"--table: {method} does not use a dynamic program, so it has no table to print; choose one of "
            f"{', '.join(FORM_OF)}."
        )
    click.echo(wrap(f"{method}: {len(profile.layers)} layers, {_where(levels)}", "  ") + "\n")
    click.echo(stages(profile, found, method, levels, given["compression"]))
    click.echo(f"\n{figures(found)}")
    if table:
        click.echo(f"\n{program(profile, found)}")


def stages(profile: Profile, plan: Partition, method: str, levels: Levels, compression: float | None = None) -> str:
    """Return a table of the stages: their layers, and the times per mini-batch that can limit the period."""
    rows, single = [], len(levels) == 1
    seconds = communication(profile, plan, method, levels[0][1], compression) if single else ()
    for number, (stage, ahead) in enumerate(zip(plan.stages, plan.warm_up, strict=True)):
        inside = slice(stage.first, stage.last + 1)
        row = {
            "stage": number,
            "begins with": profile.layers[stage.first],
            "layers": stage.last - stage.first + 1,
            "replicas": stage.replicas,
            "computes": units.seconds(sum(profile.times[inside]) / stage.replicas),
        }
        if single:
            both = zip(("gradients", "link"), seconds[number], strict=True)
            row |= {name: units.seconds(time) if time else "–" for name, time in both}
        rows.append(row | {"warm-up": ahead})
    return show.table(rows, words=2)


def figures(plan: Partition) -> str:
    """Return the predictions for a plan, one per line."""
    cuts = ",".join(str(stage.last - stage.first + 1) for stage in plan.stages)
    single = all(stage.replicas == 1 for stage in plan.stages)
    trained = f"{STEP} --chunks {plan.chunks}" if plan.chunks else MODEL_OF
    full = [
        ("in flight", str(plan.in_flight), "mini-batches per replica of the first stage (NOAM)"),
        ("period", units.seconds(plan.period), "per mini-batch, once the pipeline is full"),
    ]
    step = [
        ("step", units.seconds(plan.period), f"of {plan.chunks} micro-batches, with fill and drain"),
        ("", "", "an upper bound if links are free and B/F is uniform"),
    ]
    lines = [
        ("replicas", plan.name, ""),
        ("cuts", cuts, f"run {trained} --workers {len(plan.stages)} --cuts {cuts}" if single else "layers per stage"),
        *(step if plan.chunks else full),
        ("speed-up", show.number(plan.speed_up), f"compared with one worker, which takes {units.seconds(plan.alone)}"),
    ]
    return "\n".join(wrap(f"  {name:<11}{figure:<11} {remark}".rstrip(), " " * 25) for name, figure, remark in lines)


def program(profile: Profile, plan: Partition) -> str:
    """Return the dynamic program's table, with the entries that make up the plan marked."""
    cells: dict[tuple[int | None, int], Cell] = {(cell.last, cell.workers): cell for cell in plan.table}
    cell: Cell | None = plan.table[-1]
    most, way = plan.table[-1].workers, set()
    while cell:
        way.add(cell)
        cell = cells.get((cell.cut, cell.before))
    scale, unit = unit_of("seconds", plan.period)

    def entry(cell: Cell) -> str:
        period = "–" if math.isinf(cell.period) else show.number(cell.period / scale)
        return f"{period}{'' if cell.cut is None else f' {cell.cut}|{cell.replicas}'}{'*' if cell in way else ' '}"

    rows = [
        {"j": str(j), "layer": layer} | {f"m = {m}": entry(cells[j, m]) for m in range(1, most + 1)}
        for j, layer in enumerate(profile.layers)
    ]
    meaning = wrap(
        f"A(j, m), {unit}: the best period of layers 0..j on m workers. i|r: its last stage has the layers after i, "
        "on r replicas; without i|r, all layers are one stage. * marks the plan, traced back from its end."
    )
    return f"{meaning}\n\n{show.table(rows, words=2, keys=2)}"


def _where(levels: Levels) -> str:
    inner, *outer = levels
    text = f"{units.count_with_noun(inner[0], 'worker')}, {units.rate(inner[1])} between them"
    for count, rate in outer:
        text = f"{count} times ({text}), {units.rate(rate)} between these"
    return text
