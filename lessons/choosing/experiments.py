"""Choosing a strategy: what a step costs, whether it fits, and how many steps it takes."""

import math
from dataclasses import replace

import numpy as np

from cluster.network import NETWORKS
from lessons.choosing.rehearsal import rehearse
from lessons.choosing.strategies import BUCKET, CLOSED_FORMS, FLOAT32, MEMORY, Case, fits, memory, states
from lessons.figure import Look, figure, ratio, value
from theory import collective_costs, overlap, published_models
from theory.partition_pipedream import partition

MS = 1e3
CASES = {
    case.name: case
    for case in (
        Case("ResNet-50", "V100", "10GbE", batch=32),
        Case("VGG-16", "V100", "10GbE", batch=32),
        Case("VGG-16", "V100", "EDR", batch=32),
        Case("GPT-2", "V100", "25GbE", batch=4),
        Case("GPT-2 XL", "H100", "NVLink", batch=2),
        Case("GPT-2 XL", "V100", "EDR", batch=1),
    )
}
LARGE = "GPT-2 XL, V100, EDR"
PARTS = {
    "VGG-16, convolutions": ("VGG-16", "conv"),
    "VGG-16, dense layers": ("VGG-16", "fc"),
    "ResNet-50, convolutions": ("ResNet-50", ("conv", "block")),
    "ResNet-50, dense layer": ("ResNet-50", "fc"),
    "GPT-2, embedding": ("GPT-2", "embedding"),
    "GPT-2, blocks": ("GPT-2", "block"),
    "GPT-2, output": ("GPT-2", "output"),
}


# the model


@figure(
    "Where are the weights of a model, and where is the work?",
    source="shapes of Simonyan & Zisserman, 2015; He et al., 2016; Radford et al., 2019",
    claims={
        "three dense layers hold nearly nine tenths of the weights of VGG-16 and do less than 1 % of the work": (
            lambda rows: (
                value(rows, "weights", part="VGG-16, dense layers") > 89
                and value(rows, "work", part="VGG-16, dense layers") < 1
            )
        ),
        "ResNet-50 has one of them, with less than a tenth": lambda rows: (
            value(rows, "weights", part="ResNet-50, dense layer") < 10
        ),
        "the embedding of GPT-2 holds nearly a third of its weights and multiplies nothing": lambda rows: (
            0.3 < value(rows, "weights", part="GPT-2, embedding") / 100 < 0.33
            and value(rows, "work", part="GPT-2, embedding") == 0
        ),
        "the shares of a model add up to the whole": lambda rows: all(
            math.isclose(sum(row[kind] for row in rows if row["part"].startswith(model)), 100)
            for model in ("VGG-16", "ResNet-50", "GPT-2")
            for kind in ("weights", "work")
        ),
    },
    look=Look("part", ("weights", "work"), kind="bar", title="percent of the model's"),
)
def weights_and_work(run):
    """Percent of the weights and of the multiplications, by parts of three published models, counted from their shapes.

    What data parallelism sends is the weights; what hides it is the work.
    """
    for part, (model, begins) in PARTS.items():
        layers = published_models.MODELS[model]()
        mine = [layer for layer in layers if layer.name.startswith(begins)]
        here, every = (np.sum([layer[1:3] for layer in some], axis=0) for some in (mine, layers))
        weights, work = (100 * here / every).tolist()
        yield {"part": part, "weights": weights, "work": work, "millions": float(here[0] / 1e6)}


# the step


@figure(
    "Which of eight strategies trains the most samples per second, in six cases?",
    source="closed forms as in Das et al., arXiv:1602.06709; every message sent on the simulated cluster",
    claims={
        "paper and simulation agree within 1 % for all but the pipeline": lambda rows: all(
            abs(row["paper"] / row["simulated"] - 1) < 0.01 for row in rows if row["strategy"] != "1F1B"
        ),
        "the pipeline agrees within 5 % where its links are faster than its stages": lambda rows: all(
            abs(row["paper"] / row["simulated"] - 1) < 0.05
            for row in rows
            if row["strategy"] == "1F1B" and "10GbE" not in row["case"]
        ),
        "and is up to a quarter slower than the formula where they are not": lambda rows: all(
            1.15 < row["paper"] / row["simulated"] < 1.35
            for row in rows
            if row["strategy"] == "1F1B" and "10GbE" in row["case"]
        ),
        "meeting every 16 steps trains the most samples per second in four cases of six, or within 2 % of it": (
            lambda rows: (
                sum(_fastest(rows, case) == "local SGD" for case in CASES) >= 4
                and all(_speeds(rows, case)["local SGD"] > 0.98 * max(_speeds(rows, case).values()) for case in CASES)
            )
        ),
        "on 10 GbE one parameter server is no faster than one machine with VGG-16": lambda rows: (
            _speeds(rows, "VGG-16, V100, 10GbE")["server"] < _speeds(rows, "VGG-16, V100, 10GbE")["one machine"]
        ),
        "splitting layers is slowest by far on 10 GbE, and within a fifth of the fastest on NVLink": lambda rows: (
            all(min(_speeds(rows, case), key=_speeds(rows, case).get) == "tensor" for case in CASES if "10GbE" in case)
            and _speeds(rows, "GPT-2 XL, H100, NVLink")["tensor"]
            > 0.8 * max(_speeds(rows, "GPT-2 XL, H100, NVLink").values())
        ),
    },
    look=Look("strategy", ("simulated", "paper"), slider="case", kind="bar", log="y", title="samples per second"),
)
def on_paper(run):
    """Samples per second of eight devices, each a node of its own: by the formulas, and with every message sent on the
    simulated cluster. ZeRO-3 fetches each layer when it gets there, none ahead. Whether they fit the memory is another
    question.

    The pipeline's formula lets links work while stages do. Where a link takes longer than a stage, what comes back
    waits for what goes out, and the formula does not know.
    """
    return [
        {
            "case": name,
            "strategy": strategy,
            "simulated": case.samples / rehearse(case, strategy),
            "paper": case.samples / seconds(case),
            "GB": memory(case, strategy) / 1e9,
            "fits": str(fits(case, strategy)),
        }
        for name, case in CASES.items()
        for strategy, seconds in CLOSED_FORMS.items()
    ]


def _speeds(rows, case):
    return {row["strategy"]: row["simulated"] for row in rows if row["case"] == case}


def _fastest(rows, case):
    return max(_speeds(rows, case), key=_speeds(rows, case).get)


# memory


@figure(
    "Which of them fit?",
    source="Rajbhandari et al., SC 2020; Korthikanti et al., MLSys 2023",
    claims={
        "where every rank has the whole model and its optimizer, the states alone are too large": lambda rows: all(
            row["states"] > row["the device has"]
            for row in rows
            if row["strategy"] in ("one machine", "all-reduce", "overlapped", "local SGD")
        ),
        "methods that divide the model among ranks fit": lambda rows: all(
            row["states and activations"] < row["the device has"]
            for row in rows
            if row["strategy"] in ("1F1B", "tensor", "ZeRO-3")
        ),
        "the fastest does not fit; the pipeline is the fastest that does, if ZeRO-3 fetches none ahead": lambda rows: (
            max(rows, key=lambda row: row["speed"])["strategy"] == "local SGD"
            and max((r for r in rows if _fits(r)), key=lambda row: row["speed"])["strategy"] == "1F1B"
        ),
        "which costs more than two fifths of the speed": lambda rows: (
            ratio(rows, "speed", strategy=("1F1B", "local SGD")) < 0.6
        ),
    },
    look=Look(
        "strategy",
        ("states and activations", "states"),
        kind="bar",
        theory=("the device has",),
        title="GB on the fullest rank",
    ),
)
def does_it_fit(run):
    """GB on the fullest of eight V100 with 16 GB that train the largest GPT-2 by Adam, a sequence of 1,024 tokens each,
    in single precision. States: weights, gradients, and what Adam keeps. Nothing is computed again in backward. The
    pipeline holds up to eight micro-batches in flight; the server's own memory is not drawn.
    """
    case = CASES[LARGE]
    return [
        {
            "strategy": strategy,
            "states and activations": memory(case, strategy) / 1e9,
            "states": states(case, strategy) / 1e9,
            "the device has": MEMORY[case.device] / 1e9,
            "speed": case.samples / seconds(case),
        }
        for strategy, seconds in CLOSED_FORMS.items()
    ]


def _fits(row):
    return row["states and activations"] < row["the device has"]


# between the two


PLANNED = ("VGG-16", "ResNet-50")
RANKS = 8


@figure(
    "Replicate, cut in stages, or both?",
    source="Harlap et al., arXiv:1806.03377, Table 1: VGG-16 on eight V100 over 10 Gb/s; Narayanan et al., SOSP 2019",
    claims={
        "on 10 GbE VGG-16 gets seven replicas of the front and one machine for the end: 7-1": lambda rows: (
            value(rows, "plan", model="VGG-16", network="10GbE") == "7-1"
        ),
        "which is over 7 times as fast as one machine, where data parallelism is less than 4 times": lambda rows: (
            value(rows, "planned", model="VGG-16", network="10GbE")
            > 7
            > 4
            > value(rows, "data parallel", model="VGG-16", network="10GbE")
        ),
        "ResNet-50 has no heavy end to set apart: its plan is data parallelism on every network": lambda rows: (
            {row["plan"] for row in rows if row["model"] == "ResNet-50"} == {"8"}
        ),
        "and so is that of VGG-16 from 25 gigabits on": lambda rows: (
            [row["plan"] for row in rows if row["model"] == "VGG-16"] == ["7-1", "7-1", "8", "8", "8"]
        ),
    },
    look=Look("GB/s", ("planned", "data parallel"), colour="model", log="x", title="times as fast as one machine"),
)
def where_to_cut(run):
    """Eight V100 with 32 images each, from 1 GbE to 400-gigabit InfiniBand: PipeDream's partitioner, on profiles that
    were computed and not measured. Replicas of a stage sum their gradients around a ring while they compute, and the
    pipeline is never emptied. `plan`: replicas of each stage.
    """
    for model in PLANNED:
        for network in ("1GbE", "10GbE", "25GbE", "EDR", "NDR"):
            case = Case(model, "V100", network, batch=32)
            profile = published_models.profile(case.layers, case.batch, case.flops)
            plan = partition(profile, [(RANKS, 1 / case.beta)], form="ring")
            sync = 2 * (RANKS - 1) / RANKS * sum(profile.weights) * case.beta
            alone = sum(profile.times)
            yield {
                "model": model,
                "network": network,
                "GB/s": 1e-9 / case.beta,
                "planned": plan.speed_up,
                "data parallel": RANKS * alone / max(alone, sync),
                "plan": plan.name,
            }


# many


NODES = (2, 8, 32, 128, 512)
SLICE = 8e6  # bytes


@figure(
    "Up to how many nodes does data parallelism scale?",
    source="Sridharan et al. (MLSL), arXiv:1801.08030, 2018; Shi et al. (MG-WFBP), INFOCOM 2019",
    claims={
        "summing during backward gains up to 1.4 times and more over summing after it": lambda rows: all(
            max(r["during backward"] / r["after backward"] for r in rows if r["model"] == m) > 1.4 for m in PLANNED
        ),
        "sending early layers first gains another fifth for VGG-16 on 32 nodes and more": lambda rows: all(
            row["early layers first"] > 1.2 * row["during backward"]
            for row in rows
            if row["model"] == "VGG-16" and row["nodes"] >= 32
        ),
        "with it 512 nodes are worth over nine tenths of 512 machines for ResNet-50, over four fifths for VGG-16": (
            lambda rows: (
                value(rows, "early layers first", model="ResNet-50", nodes=512) > 0.9
                and value(rows, "early layers first", model="VGG-16", nodes=512) > 0.8
            )
        ),
        "beyond 32 nodes little is lost any more: no rank sends more than two gradients": lambda rows: all(
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
    """Samples per second as a share of so many single machines, V100 with 32 images each over 25 GbE, in closed form.
    All-reduces are by halving and doubling: one after backward; buckets of 25 MB during backward; or slices of 8 MB
    for which the next forward pass waits layer by layer, and those of early layers go first."""
    for model in PLANNED:
        for nodes in NODES:
            case = Case(model, "V100", "25GbE", batch=32, ranks=nodes)
            line = overlap.Cost(2 * math.log2(nodes) * case.alpha, collective_costs.share(nodes) * case.beta)
            p = replace(case.overlap(), line=line)
            seconds = (
                overlap.no_overlap(p),
                overlap.wait_free(p, overlap.fill_buckets(p, BUCKET)),
                overlap.forward_overlap(p, most=SLICE),
            )
            shares = {way: case.compute / s for way, s in zip(WAYS, seconds, strict=True)}
            yield {"model": model, "nodes": nodes} | shares


WAYS = "after backward", "during backward", "early layers first"


# steps


WORKERS, TARGET = 8, 0.3  # held-out loss, in the mean of the last WINDOW samples
WINDOW = 512
DIGITS = {
    "workload": "digits", "hidden": "64", "batch": 16, "workers": WORKERS, "device": "1e9:1e15:0", "evaluations": 1000,
    "network": "10GbE",
}  # fmt: skip
ROUNDS = "recursive_doubling"
SMALL = {
    "one machine": {"algorithm": "sgd", "workers": 1, "steps": 320},
    "ring": {"algorithm": "sync_sgd", "collective": "ring", "steps": 96},
    "doubling": {"algorithm": "sync_sgd", "collective": ROUNDS, "steps": 96},
    "server": {"algorithm": "asgd", "steps": 112},
    "local SGD, 4": {"algorithm": "local_sgd", "period": 4, "collective": ROUNDS, "steps": 128},
    "local SGD, 16": {"algorithm": "local_sgd", "period": 16, "collective": ROUNDS, "steps": 192},
}
RATES = {
    "one machine": 0.4, "ring": 1.0, "doubling": 1.0, "server": 0.125, "local SGD, 4": 0.8, "local SGD, 16": 0.8,
}  # fmt: skip
"""The best of the rates that `own_best` tries. Everywhere else strategies are compared at these."""


def to_the_loss(run, strategy, rate=None, **where):
    """(seconds, samples) until the held-out loss is TARGET to stay, and samples per second; infinite if it never is."""
    done = run(**{**DIGITS, **SMALL[strategy], "learning_rate": rate or RATES[strategy], **where})
    per_second = done.summary["samples_per_second"]
    seconds = arrival(done)
    return seconds, seconds * per_second, per_second


REPEATED = 3  # a single run reaches the loss at one meeting or the next, which is a fifth of its time


def on_average(run, strategy, rate=None, **where):
    """Return the means of what to_the_loss returns over REPEATED runs, each with its own seed."""
    return np.mean([to_the_loss(run, strategy, rate, seed=own, **where) for own in range(REPEATED)], axis=0)


def arrival(done):
    """Return the seconds until the mean held-out loss of the last WINDOW samples is TARGET; infinite if it never is.

    One small batch may dip below it long before the next ones do.
    """
    losses, samples = done.evaluations["loss"], done.evaluations["seconds"] * done.summary["samples_per_second"]
    for end in np.flatnonzero(samples > WINDOW - 1) if done.status == "finished" else ():
        lately = samples[: end + 1] > samples[end] - WINDOW + 1  # less one, for what seconds lose to rounding
        if losses[: end + 1][lately].mean() <= TARGET:
            return float(done.evaluations["seconds"][end])
    return math.inf


FACTORS = (0.5, 1, 2)


@figure(
    "How many samples does each strategy need, at its own best rate?",
    source="Zhang & Re (DimmWitted), PVLDB 7(12), 2014: statistical and hardware efficiency",
    claims={
        "every strategy has nearly its best rate: half or twice that rate saves under a tenth": lambda rows: all(
            min(_others(rows, name)) > 0.9 * value(rows, "samples", strategy=name, factor=1) for name in TRIED
        ),
        "one machine needs less than half of the samples that eight need together": lambda rows: all(
            ratio(rows, "samples", strategy=("one machine", name), factor=1) < 1 / 2
            for name in TRIED
            if name != "one machine"
        ),
        "stale gradients need less than 1.4 times the samples of the sum, at an eighth of its rate": lambda rows: (
            _against_sums(rows, "server") < 1.4 and 8 * RATES["server"] == RATES["doubling"]
        ),
        "meeting every fourth step takes more than the sum, every 16 over 1.2 times as many": lambda rows: (
            _against_sums(rows, "local SGD, 4") > 1 and _against_sums(rows, "local SGD, 16") > 1.2
        ),
    },
    look=Look("factor", ("samples",), colour="strategy", log="xy", title="samples to a mean held-out loss of 0.3"),
)
def own_best(run):
    """Digits, eight workers with 16 images each per step, one hidden layer of 64; the network takes no time. Samples
    that all workers need together until the mean loss of the last 512 is reached, at half, once and twice the rate that
    is best for each, on average over three runs. A point is missing where one of the runs does not reach it.
    """
    for strategy in TRIED:
        for factor in FACTORS:
            rate = factor * RATES[strategy]
            samples = on_average(run, strategy, rate, network="ideal")[1]
            yield {"strategy": strategy, "factor": factor, "rate": rate, "samples": samples}


TRIED = tuple(name for name in SMALL if name != "ring")


def _others(rows, name):
    return [row["samples"] for row in rows if row["strategy"] == name and row["factor"] != 1]


def _against_sums(rows, name):
    return ratio(rows, "samples", strategy=(name, "doubling"), factor=1)


# both


LATENCIES = (20, 160, 640, 5120)  # us, of a message, in all


@figure(
    "Which strategy is first at the loss, and what if the latency grows?",
    source="the product of steps and seconds as in Hadjis et al. (Omnivore), arXiv:1606.04487",
    claims={
        "at 20 us meeting every 16 steps is not first, with more samples per second than sums": lambda rows: (
            min(_ms(rows, name, 20) for name in ("doubling", "server", "local SGD, 4")) < _ms(rows, "local SGD, 16", 20)
            and _sps(rows, "local SGD, 16", 20) > 1.15 * _sps(rows, "doubling", 20)
        ),
        "at 160 us meeting every fourth step is ahead of exchanging in every step": lambda rows: (
            _ms(rows, "local SGD, 4", 160) < min(_ms(rows, name, 160) for name in ("doubling", "server"))
        ),
        "at 640 us meeting every 16 steps is ahead of meeting more often": lambda rows: (
            _ms(rows, "local SGD, 16", 640) < min(_ms(rows, n, 640) for n in ("doubling", "server", "local SGD, 4"))
        ),
        "at 5,120 us one machine is ahead of eight, whatever they do": lambda rows: all(
            _ms(rows, "one machine", 5120) < 0.8 * _ms(rows, name, 5120) for name in TRIED if name != "one machine"
        ),
        "meeting every 16 steps trains the most samples per second at every latency": lambda rows: all(
            _sps(rows, "local SGD, 16", us) >= max(_sps(rows, name, us) for name in TRIED) for us in LATENCIES
        ),
        "the formula gives every time to within a tenth": lambda rows: all(
            abs(row["formula"] / row["ms"] - 1) < 0.1 for row in rows
        ),
    },
    look=Look(
        "microseconds",
        ("ms",),
        colour="strategy",
        theory=("formula",),
        log="xy",
        title="ms to a mean held-out loss of 0.3",
    ),
)
def latency(run):
    """Digits as before, over 10 GbE whose latency grows, each strategy at its own best rate. Means of three runs.

    `formula`: the samples that it needs when the network takes no time, times the seconds per sample of the closed
    forms.
    """
    needed = {name: on_average(run, name, network="ideal") for name in TRIED}
    for us in LATENCIES:
        for name in TRIED:
            alone, samples, _ = needed[name]
            ms, _, per_second = on_average(run, name, latency=us * 1e-6)
            row = {"microseconds": us, "strategy": name, "ms": MS * ms, "samples/s": per_second}
            workers = 1 if name == "one machine" else WORKERS
            steps = samples / workers / DIGITS["batch"]
            yield row | {"formula": MS * steps * step_seconds(name, alone / steps, us * 1e-6)}


PARAMETERS = 4810  # of the small model


def step_seconds(name, computing, alpha):
    """Return the seconds of a step of the small model in closed form; `computing` is a step without a network."""
    n, beta = FLOAT32 * PARAMETERS, 1 / NETWORKS["10GbE"].between.bandwidth
    if name == "one machine":
        return computing
    if name == "server":
        return max(computing + 2 * (alpha + n * beta), WORKERS * n * beta)
    return computing + collective_costs.recursive_doubling(WORKERS, n, alpha, beta) / SMALL[name].get("period", 1)


def _ms(rows, name, us):
    return value(rows, "ms", strategy=name, microseconds=us)


def _sps(rows, name, us):
    return value(rows, "samples/s", strategy=name, microseconds=us)
