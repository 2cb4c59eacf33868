"""The command line of partitioners: what the layers of a model cost, and where to cut it for a pipeline.

python -m experiments profile digits --model residual --out profile.csv
python -m experiments partition profile.csv --workers 4 --bandwidth 1e9
"""

from __future__ import annotations

import csv
import math
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import click

from cluster.devices import parse_device
from cluster.network import NETWORKS
from experiments.cli import options, show
from experiments.cli.options import WorkloadCommand
from experiments.experiment import Experiment
from theory import balance
from theory.partition_dapple import partition_step
from theory.partition_pipedream import FORMS, Cell, Partition, flat, partition, plan_of
from theory.profile import Profile, load, save

MODEL_OF = "pipedream"  # whose model is profiled if the reader asks for no other: the one that pipelines train
FORM_OF = {"pipedream": "2018", "pipedream_code": "code", "sosp": "sosp", "ring": "ring"}  # of the dynamic program
BALANCES: dict[str, tuple[str, Callable]] = {  # what is balanced, and how
    "min_max": ("times", balance.by_slowest),
    "variance": ("times", balance.by_variance),
    "torchgpipe_time": ("times", balance.by_blocks),
    "torchgpipe_size": ("sizes", balance.by_blocks),
    "blocks": ("times", lambda costs, parts: balance.by_blocks(costs, parts, offset=False)),
}
STEP = "dapple"  # which makes a step with a flush quick, not the period of a full pipeline
METHODS = (*FORM_OF, STEP, *BALANCES)
GOES_WITH = {  # option -> methods
    **dict.fromkeys(("memory", "straight"), (*FORM_OF, STEP)),
    "fewer": tuple(FORM_OF),
    "compression": ("pipedream_code",),
    "chunks": (STEP, "torchgpipe_size"),
    "copies": ("torchgpipe_size",),
}
CHUNKS = 8  # micro-batches of a step, if none are given


@click.command("profile", cls=WorkloadCommand, knobs=("batch", "precision", "device"))
@click.argument("workload", default="digits")
@click.option("--out", metavar="FILE", help="write it as a CSV table, which partition reads")
@click.option("--passes", default=100, type=click.IntRange(1, 10**6), help="passes to take medians of [default 100]")
def profile_command(workload: str, out: str | None, passes: int, **given: Any) -> None:
    """What each layer of a model costs: forward, backward, what it gives to the next layer, and its weights.

    Times are measured here, in passes of one mini-batch. With --device they are computed from the kernels' prices on
    that device, as the simulated cluster does, and are the same every time.
    """
    import numpy as np

    import workloads
    from experiments.measure import profile
    from workloads.batches import Batches

    values = options.values(given)
    experiment = Experiment.of({"algorithm": MODEL_OF, "workload": workload, **values})
    module = workloads.find(workload)
    built = module.build(module.Settings(**experiment.data), np.dtype(experiment.precision))
    batch = built.batch(next(Batches(built.samples, experiment.batch, shuffle=built.shuffle)))
    if "device" in values:
        found = profile.priced(built, batch, parse_device(experiment.device))
        how = f"prices on {experiment.device}"
    else:
        found = profile.measured(built, batch, _shown(passes))
        how = f"medians of {passes} passes here"
    click.echo(
        f"{workload}: {len(found.layers)} layers, mini-batches of {experiment.batch}, {how}\n\n{layers(found)}\n"
    )
    if out:
        save(found, out)
        click.echo(f"cut it    python -m experiments partition {shlex.quote(out)} --workers 4")
    click.echo(f"train it  {experiment.command()}")


@click.command("partition")
@click.argument("path", metavar="PROFILE.CSV")
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
@click.option("--compression", type=float, metavar="FLOAT", help="pipedream_code: how much smaller activations get")
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
    pipedream        slowest stage as fast as can be, stages may have replicas (2018)
    pipedream_code   as the authors' program: computing and exchanging add up
    sosp             as in the paper of 2019, which also knows machines of workers
    ring             the same with a ring all-reduce
    dapple           quickest step of --chunks micro-batches, with filling and draining
    min_max          a worker for each stage: slowest stage as fast as can be
    variance         a worker for each stage: times as equal as can be (GPipe)
    torchgpipe_time  torchgpipe's heuristic for times
    torchgpipe_size  the same for bytes while training
    blocks           the same for times, without its trap: no layer is free

    PROFILE.CSV has a line for each layer, as `profile` writes it: layer,forward,backward,activations,weights; in
    seconds and bytes for one mini-batch.
    """
    profile, cuts, method = _profile(path), given.pop("cuts"), given.pop("method")
    own = _whole("cuts", cuts) if cuts else []
    if own:
        workers, method = workers or str(len(own)), f"cuts {cuts}"
    levels = _levels(workers or "4", bandwidth)
    plan = _plan(profile, levels, method, own, **given)
    if table and not plan.table:
        raise ValueError(f"{method} fills no table; {', '.join(FORM_OF)} do.")
    click.echo(f"{method}: {len(profile.layers)} layers, {_where(levels)}\n")
    click.echo(stages(profile, plan, FORM_OF.get(method, "2018"), levels))
    click.echo(f"\n{figures(plan, given['chunks'] or CHUNKS if method == STEP else 0)}")
    if table:
        click.echo(f"\n{program(profile, plan)}")


def layers(profile: Profile) -> str:
    """A row for each layer, and their sum."""
    columns = profile.forward, profile.backward, profile.activations, profile.weights
    rows = [*zip(profile.layers, *columns, strict=True), ("all", *map(sum, columns))]
    return show.table(
        [
            {
                "layer": name,
                "forward": show.duration(forward),
                "backward": show.duration(backward),
                "activations": show.size(activations),
                "weights": show.size(weights),
            }
            for name, forward, backward, activations, weights in rows
        ],
        words=1,
    )


def stages(profile: Profile, plan: Partition, form: str, levels: Sequence[tuple[int, float]]) -> str:
    """A row for each stage: what it holds, and what of its work may set the period, per mini-batch."""
    rows = []
    for number, (stage, ahead) in enumerate(zip(plan.stages, plan.warm_up, strict=True)):
        inside = slice(stage.first, stage.last + 1)
        row = {
            "stage": number,
            "begins with": profile.layers[stage.first],
            "layers": stage.last - stage.first + 1,
            "replicas": stage.replicas,
            "computes": show.duration(sum(profile.times[inside]) / stage.replicas),
        }
        if len(levels) == 1:
            exchange = FORMS[form](0, sum(profile.weights[inside]), stage.replicas, levels[0][1])
            crossing = 2 * profile.activations[stage.last] / levels[0][1]
            row["gradients"] = show.duration(exchange) if exchange else "–"
            row["link"] = show.duration(crossing) if number + 1 < len(plan.stages) and form != "code" else "–"
        rows.append(row | {"warm-up": ahead})
    return show.table(rows, words=2)


def figures(plan: Partition, chunks: int = 0) -> str:
    """What to expect of a plan, a line each; of one for a step with a flush, if it has `chunks` micro-batches."""
    cuts = ",".join(str(stage.last - stage.first + 1) for stage in plan.stages)
    single = all(stage.replicas == 1 for stage in plan.stages)
    trained = f"{STEP} --chunks {chunks}" if chunks else MODEL_OF
    full = [
        ("in flight", str(plan.in_flight), "mini-batches per replica of the first stage (NOAM)"),
        ("period", show.duration(plan.period), "per mini-batch, once the pipeline is full"),
    ]
    lines = [
        ("replicas", plan.name, ""),
        ("cuts", cuts, f"run {trained} --workers {len(plan.stages)} --cuts {cuts}" if single else "layers per stage"),
        *([("step", show.duration(plan.period), f"of {chunks} micro-batches, filled and drained")] if chunks else full),
        ("speed-up", show.number(plan.speed_up), f"over one worker, which takes {show.duration(plan.alone)}"),
    ]
    return "\n".join(f"  {name:<11}{figure:<11} {remark}".rstrip() for name, figure, remark in lines)


def program(profile: Profile, plan: Partition) -> str:
    """The dynamic program's table; those entries are marked that the plan is made of."""
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
    return (
        f"A(j, m), {unit}: the best period of the layers 0..j on m workers. i|r: its last stage are the\n"
        f"layers after i on r replicas; otherwise all are one stage. * the plan, from its end back.\n\n"
        f"{show.table(rows, words=2)}"
    )


def _plan(profile: Profile, levels, method: str, own: Sequence[int], **given: Any) -> Partition:
    """The plan of `method`, or of the cuts `own`; ValueError for options of another method."""
    if not own and method not in METHODS:
        raise ValueError(f"there is no method {method[:60]!r}; there are {', '.join(METHODS)}.")
    given = {name: value for name, value in given.items() if value is not None and value is not False}
    for name in given:
        if method not in GOES_WITH[name]:
            raise ValueError(f"--{name} goes with {', '.join(GOES_WITH[name])}, not with {method}; leave it out.")
    if method in FORM_OF:
        plan = partition(profile, levels, FORM_OF[method], **given)
        return replace(plan, stages=flat(plan.stages))
    if method == STEP and len(levels) == 1:
        return partition_step(profile, *levels[0], **{"chunks": CHUNKS} | given)
    if len(levels) > 1:
        raise ValueError(f"{method} knows no machines of workers; give one number of workers, or use sosp.")
    workers, bandwidth = levels[0]
    if own and workers != len(own):
        raise ValueError(f"{method} are {len(own)} stages, for as many workers; leave --workers {workers} out.")
    if not own:
        quantity, balanced = BALANCES[method]
        own = balanced(profile.times if quantity == "times" else profile.sizes(**given), workers)
    return plan_of(profile, own, bandwidth)


def _profile(path: str) -> Profile:
    try:
        profile = load(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{path} is no table of text; write one with `profile --out {path}`.") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not any(profile.times):
        raise ValueError(f"{path}: no layer takes any time, so there is nothing to share out.")
    return profile


def _levels(workers: str, bandwidth: str) -> list[tuple[int, float]]:
    """(workers, bytes/s) of each level, from the innermost out."""
    counts, rates = _whole("workers", workers), [_rate(text) for text in bandwidth.split(",")]
    if len(counts) != len(rates):
        raise ValueError(
            f"workers {workers} are {len(counts)} levels and bandwidth {bandwidth} {len(rates)}; "
            "give one of each per level, as in --workers 2,3 --bandwidth NVLink,10GbE."
        )
    return list(zip(counts, rates, strict=True))


def _whole(name: str, text: str) -> list[int]:
    if not re.fullmatch(r"\d{1,6}(,\d{1,6})*", text):
        raise ValueError(f"{name} is {text[:60]!r}; write whole numbers with commas, for example 4 or 2,3.")
    return [int(number) for number in text.split(",")]


def _rate(text: str) -> float:
    if text in NETWORKS:
        return NETWORKS[text].between.bandwidth
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not rate > 0:
        raise ValueError(
            f"bandwidth is {text[:60]!r}; give bytes per second, for example 1e9, or {', '.join(NETWORKS)}."
        )
    return rate


def _where(levels: Sequence[tuple[int, float]]) -> str:
    inner, *outer = levels
    text = f"{inner[0]} worker{'s' * (inner[0] != 1)}, {show.size(inner[1])}/s between them"
    for count, rate in outer:
        text = f"{count} times ({text}), {show.size(rate)}/s between these"
    return text


def _shown(passes: int) -> Iterable:
    """The passes, with a bar on a terminal."""
    if not sys.stderr.isatty():
        return range(passes)
    from rich.console import Console
    from rich.progress import track

    return track(range(passes), "measuring", console=Console(stderr=True), transient=True)
