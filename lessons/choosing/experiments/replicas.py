"""The number of replicas of each layer: which layers to replicate, and how many times."""

import math
from dataclasses import replace

from lessons.choosing.case import Case
from lessons.choosing.experiments import PLANNED, PRECISIONS
from lessons.figure import Look, column, figure, matching, ratio, value
from theory import collective_costs, overlap, published_models
from theory.partition_pipedream import partition

RANKS = 8


@figure(
    "Replicate a model, cut it into stages, or both?",
    source="Harlap et al., arXiv:1806.03377, Table 1: VGG-16 on eight V100 over 10 Gb/s; Narayanan et al., SOSP 2019",
    claims={
        "on 10 GbE the best plan for VGG-16 is 7-1: seven replicas of the front, one machine for the end": (
            lambda rows: {row["plan"] for row in matching(rows, model="VGG-16", network="10GbE")} == {"7-1"}
        ),
        "in single precision 7-1 is over 7 times as fast as one machine, and data parallelism less than 4 times": (
            lambda rows: _speed_ups(rows, "10GbE")[0] > 7 > 4 > _speed_ups(rows, "10GbE")[1]
        ),
        "the authors measured about nine tenths of the planned speed-up with 7-1, under two fifths with 8 replicas": (
            lambda rows: (
                _speed_ups(rows, "10GbE")[1] > 2.5 * MEASURED["data parallel"]
                and 1.05 < _speed_ups(rows, "10GbE")[0] / MEASURED["7-1"] < 1.15
            )
        ),
        "in single precision, the best plan for VGG-16 at 25 gigabits or more is eight replicas": lambda rows: (
            _plans(rows, "float32") == ["7-1", "7-1", *3 * "8"]
        ),
        "with tensor cores, the best plan for VGG-16 at 25 gigabits is 7-1, over 3 times as fast as eight replicas": (
            lambda rows: (
                _plans(rows, "mixed")[1:] == ["7-1", "7-1", "8", "8"]
                and _speed_ups(rows, "25GbE", "mixed")[0] > 3 * _speed_ups(rows, "25GbE", "mixed")[1]
            )
        ),
        "ResNet-50 has no heavy end to set apart: its plan is data parallelism on every network": lambda rows: (
            {row["plan"] for row in rows if row["model"] == "ResNet-50"} == {"8"}
        ),
    },
    look=Look(
        "GB/s",
        ("planned", "data parallel"),
        colour="model",
        slider="precision",
        log="x",
        title="times as fast as one machine",
    ),
)
def where_to_cut(run):
    """The plans of PipeDream's partitioner for eight V100s with 32 images each, from 1 GbE to 400-gigabit InfiniBand.
    Its profiles are computed, not measured.

    Replicas of a stage sum their gradients around a ring while they compute, and the pipeline is never emptied. `plan`
    is the number of replicas of each stage.
    """
    for precision, words in PRECISIONS.items():
        for model in PLANNED:
            for network in ("1GbE", "10GbE", "25GbE", "EDR", "NDR"):
                case = Case(model, "V100", network, batch=32, precision=precision)
                profile = published_models.profile(case.layers, case.batch, case.flops, case.itemsize)
                plan = partition(profile, [(RANKS, 1 / case.beta)], form="ring")
                sync = 2 * (RANKS - 1) / RANKS * sum(profile.weights) * case.beta
                alone = sum(profile.times)
                yield {
                    "precision": words,
                    "model": model,
                    "network": network,
                    "GB/s": 1e-9 / case.beta,
                    "planned": plan.speed_up,
                    "data parallel": RANKS * alone / max(alone, sync),
                    "plan": plan.name,
                }


MEASURED = {"data parallel": 1.36, "7-1": 6.98}  # times one V100, VGG-16 over 10 Gb/s: Harlap et al., Table 1


def _speed_ups(rows, network, precision="float32"):
    where = {"model": "VGG-16", "network": network, "precision": PRECISIONS[precision]}
    return value(rows, "planned", **where), value(rows, "data parallel", **where)


def _plans(rows, precision):
    return column(rows, "plan", model="VGG-16", precision=PRECISIONS[precision])


# many nodes


NODES = (2, 8, 32, 128, 512)
SLICE = 8e6  # bytes


@figure(
    "Up to how many nodes does data parallelism scale?",
    source="Sridharan et al. (MLSL), arXiv:1801.08030, 2018; Shi et al. (MG-WFBP), INFOCOM 2019",
    claims={
        "at best, summing during backward is over 1.4 times as fast as summing after it": lambda rows: all(
            max(r["during backward"] / r["after backward"] for r in rows if r["model"] == m) > 1.4 for m in PLANNED
        ),
        "sending early layers first gains another fifth for VGG-16 on 32 or more nodes": lambda rows: all(
            row["early layers first"] > 1.2 * row["during backward"]
            for row in rows
            if row["model"] == "VGG-16" and row["nodes"] >= 32
        ),
        "with early layers first, 512 nodes reach over 90 % of perfect scaling for ResNet-50, over 80 % for VGG-16": (
            lambda rows: (
                value(rows, "early layers first", model="ResNet-50", nodes=512) > 0.9
                and value(rows, "early layers first", model="VGG-16", nodes=512) > 0.8
            )
        ),
        "beyond 32 nodes little more is lost: no rank sends more than twice the gradient": lambda rows: all(
            ratio(rows, way, model=m, nodes=(512, 32)) > 0.9 for m in PLANNED for way in WAYS
        ),
    },
    look=Look(
        "nodes",
        ("early layers first", "during backward", "after backward"),
        slider="model",
        log="x",
        title="share of perfect scaling",
    ),
)
def many_nodes(run):
    """Samples per second as a share of perfect scaling, in closed form, for V100s with 32 images each over 25 GbE.

    All-reduces use halving and doubling, in three variants: one all-reduce after backward; 25 MB buckets during
    backward; or 8 MB slices. Slices of early layers go first, and each layer of the next forward pass waits only for
    its own slices.
    """
    for model in PLANNED:
        for nodes in NODES:
            case = Case(model, "V100", "25GbE", batch=32, ranks=nodes)
            line = overlap.Cost(2 * math.log2(nodes) * case.alpha, collective_costs.share(nodes) * case.beta)
            p = replace(case.overlap(), line=line)
            seconds = (
                overlap.no_overlap(p),
                overlap.wait_free(p, overlap.fill_buckets(p, case.bucket)),
                overlap.forward_overlap(p, most=SLICE),
            )
            shares = {way: case.compute / s for way, s in zip(WAYS, seconds, strict=True)}
            yield {"model": model, "nodes": nodes} | shares


WAYS = "after backward", "during backward", "early layers first"
