"""`partition`: where to cut a profiled model for a pipeline, and what to expect of that.

lockstep partition profile.csv --workers 4 --bandwidth 1e9
"""

from __future__ import annotations

import math
from typing import Any

import click

from experiments.cli import show
from experiments.cli.console import folded
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
from theory.partition import Cell, Partition
from theory.profile import Profile


@click.command("partition", short_help="Where to cut a profiled model for a pipeline.")
@click.argument("path", metavar="PROFILE")
@click.option("--workers", metavar="INT,...", help="how many; 2,3 are three machines of two [default 4]")
@click.option(
    "--bandwidth",
    default="10GbE",
    metavar="BYTES/S,...",
    help="between workers, or a network by name; two of them for --workers 2,3, within and between [default 10GbE]",
)
@click.option("--method", default="pipedream", metavar="NAME", help="see above [default pipedream]")
@click.option("--cuts", metavar="INT,...", help="instead of a method: the layers of each stage, to see what they give")
@click.option(
    "--memory", type=click.FloatRange(0), metavar="BYTES", help="most that a stage may hold: weights and activations"
)
@click.option("--straight", is_flag=True, help="one worker for each stage, no replicas")
@click.option("--fewer", is_flag=True, help="workers may stay idle")
@click.option(
    "--compression",
    type=float,
    metavar="FLOAT",
    help="pipedream_code: how much smaller activations get on links; 1 counts them in full, and without it links cost "
    "nothing, as in the authors' program",
)
@click.option(
    "--chunks", type=click.IntRange(1), metavar="INT", help="micro-batches [default: dapple 8, torchgpipe_size 1]"
)
@click.option(
    "--copies", type=click.FloatRange(0), metavar="FLOAT", help="torchgpipe_size: of the weights held [default 2]"
)
@click.option("--table", is_flag=True, help="print the dynamic program's table, too")
def partition_command(path: str, workers: str | None, bandwidth: str, table: bool, **given: Any) -> None:
    """Where to cut a profiled model for a pipeline, and what to expect of it.

    \b
    pipedream        slowest stage as fast as can be, with or without replicas
    pipedream_code   as the authors' program: computing and exchanging add up
    sosp             as in the paper of 2019, which also knows machines of workers
    ring             the same with a ring all-reduce
    dapple           quickest step of --chunks micro-batches, filled and drained
    min_max          a worker for each stage: slowest stage as fast as can be
    variance         a worker for each stage: times as equal as can be (GPipe)
    torchgpipe_time  torchgpipe's heuristic for times
    torchgpipe_size  the same for bytes while training
    blocks           the same for times, without its trap: no layer is free

    PROFILE is a table (CSV) with a line for each layer, as `profile` writes it: layer,forward,backward,activations,
    weights; in seconds and bytes for one mini-batch. Or it is the graph.txt of PipeDream's own profiler.
    """
    profile, cuts, method = read_profile(path), given.pop("cuts"), given.pop("method")
    own = read_counts("cuts", cuts) if cuts else []
    if own:
        workers, method = workers or str(len(own)), f"cuts {cuts}"
    levels = read_levels(workers or "4", bandwidth)
    found = plan(profile, levels, method, own, **given)
    if table and not found.table:
        raise ValueError(f"{method} fills no table; {', '.join(FORM_OF)} do.")
    click.echo(folded(f"{method}: {len(profile.layers)} layers, {_where(levels)}", "  ") + "\n")
    click.echo(stages(profile, found, method, levels, given["compression"]))
    click.echo(f"\n{figures(found)}")
    if table:
        click.echo(f"\n{program(profile, found)}")


def stages(profile: Profile, plan: Partition, method: str, levels: Levels, compression: float | None = None) -> str:
    """Return a table with a row for each stage: what it holds, and what may set the period, per mini-batch."""
    rows, single = [], len(levels) == 1
    seconds = communication(profile, plan, method, levels[0][1], compression) if single else ()
    for number, (stage, ahead) in enumerate(zip(plan.stages, plan.warm_up, strict=True)):
        inside = slice(stage.first, stage.last + 1)
        row = {
            "stage": number,
            "begins with": profile.layers[stage.first],
            "layers": stage.last - stage.first + 1,
            "replicas": stage.replicas,
            "computes": show.duration(sum(profile.times[inside]) / stage.replicas),
        }
        if single:
            both = zip(("gradients", "link"), seconds[number], strict=True)
            row |= {name: show.duration(time) if time else "–" for name, time in both}
        rows.append(row | {"warm-up": ahead})
    return show.table(rows, words=2)


def figures(plan: Partition) -> str:
    """Return what to expect of a plan, a line each."""
    cuts = ",".join(str(stage.last - stage.first + 1) for stage in plan.stages)
    single = all(stage.replicas == 1 for stage in plan.stages)
    trained = f"{STEP} --chunks {plan.chunks}" if plan.chunks else MODEL_OF
    full = [
        ("in flight", str(plan.in_flight), "mini-batches per replica of the first stage (NOAM)"),
        ("period", show.duration(plan.period), "per mini-batch, once the pipeline is full"),
    ]
    step = [
        ("step", show.duration(plan.period), f"of {plan.chunks} micro-batches, filled and drained"),
        ("", "", "an upper bound if links are free and B/F is uniform"),
    ]
    lines = [
        ("replicas", plan.name, ""),
        ("cuts", cuts, f"run {trained} --workers {len(plan.stages)} --cuts {cuts}" if single else "layers per stage"),
        *(step if plan.chunks else full),
        ("speed-up", show.number(plan.speed_up), f"over one worker, which takes {show.duration(plan.alone)}"),
    ]
    return "\n".join(folded(f"  {name:<11}{figure:<11} {remark}".rstrip(), " " * 25) for name, figure, remark in lines)


def program(profile: Profile, plan: Partition) -> str:
    """Return the dynamic program's table, with marks at the entries that make up the plan."""
    cells = {(cell.last, cell.workers): cell for cell in plan.table}
    cell: Cell | None = plan.table[-1]
    most, way = plan.table[-1].workers, set()
    while cell:
        way.add(cell)
        cell = cells.get((cell.cut, cell.before))
    scale, unit = show.scale(plan.period)

    def entry(cell: Cell) -> str:
        period = "–" if math.isinf(cell.period) else show.number(cell.period / scale)
        return f"{period}{'' if cell.cut is None else f' {cell.cut}|{cell.replicas}'}{'*' if cell in way else ' '}"

    rows = [
        {"j": str(j), "layer": layer} | {f"m = {m}": entry(cells[j, m]) for m in range(1, most + 1)}
        for j, layer in enumerate(profile.layers)
    ]
    meaning = folded(
        f"A(j, m), {unit}: the best period of the layers 0..j on m workers. i|r: its last stage are the "
        "layers after i on r replicas; otherwise all are one stage. * the plan, from its end back."
    )
    return f"{meaning}\n\n{show.table(rows, words=2, keys=2)}"


def _where(levels: Levels) -> str:
    inner, *outer = levels
    text = f"{inner[0]} worker{'s' * (inner[0] != 1)}, {show.size(inner[1])}/s between them"
    for count, rate in outer:
        text = f"{count} times ({text}), {show.size(rate)}/s between these"
    return text
