"""Model parallelism: what ranks hold and what they send each other, if none of them has the whole model."""

from itertools import pairwise

import numpy as np

from algorithms.parts import rank_groups
from cluster.devices import DEVICES
from experiments.viewer.look import Look
from lessons.figure import column, figure, ratio, value
from theory.partition_cost import Machine, dense_layer, local, speed_up
from theory.zero_memory import RECIPES, nbytes
from tracing import COMPUTE, HELD, UPDATE

MS, KB, MB = 1e3, 1e-3, 1e-6
DEEP = {"model": "residual", "depth": 30, "width": 32, "batch": 4}
STATES = [HELD.index(kind) for kind in ("parameters", "gradients", "optimizer state")]


@figure(
    "What does a rank still hold if it shards the optimizer's state, then gradients, then parameters, too?",
    source="Rajbhandari et al., SC 2020, Figure 1",
    claims={
        "with each stage of ZeRO a rank holds less": lambda rows: all(
            column(rows, "kB", ranks=ranks) == sorted(column(rows, "kB", ranks=ranks), reverse=True)
            for ranks in (2, 4, 8)
        ),
        "the formula holds, except for up to two copies of the largest layer": lambda rows: all(
            -0.01 < row["kB"] - row["formula"] < 2.01 * row["kB of the largest layer"] for row in rows
        ),
        "at stage 3 each of eight ranks holds less than a sixth of what it holds at stage 0": lambda rows: (
            ratio(rows, "kB", ranks=8, stage=(3, 0)) < 1 / 6
        ),
        "only stage 3 adds traffic: half as much again": lambda rows: all(
            abs(ratio(rows, "MB sent", ranks=ranks, stage=(3, stage)) - 1.5) < 2e-5
            for ranks in (2, 4, 8)
            for stage in (0, 1, 2)
        ),
        "all stages end with the same loss": lambda rows: all(
            abs(row["loss"] - rows[0]["loss"]) < 1e-3 for row in rows if row["ranks"] == rows[0]["ranks"]
        ),
    },
    look=Look("ranks", ("kB",), colour="stage", theory=("formula",), title="kB on a rank, without activations"),
)
def stages_of_zero(run):
    """A rank's peak of parameters, gradients and moments, when Adam trains a deep residual model in float32."""
    for ranks in (2, 4, 8):
        for stage, algorithm in enumerate(("sync_sgd", "zero1", "zero2", "zero3")):
            done = run(
                algorithm=algorithm, update="adam", learning_rate=0.01, workers=ranks, steps=4, evaluations=1, **DEEP
            )
            d = len(done.parameters)
            yield {
                "ranks": ranks,
                "stage": stage,
                "kB": KB * float(done.peaks()[:, STATES].sum(axis=1).max()),
                "formula": KB * nbytes(d, ranks, stage, RECIPES["float32 Adam"]),
                "kB of the largest layer": KB * 4 * (64 * 32 + 32),
                "MB sent": MB * done.summary["bytes"],
                "loss": done.summary["held_out_loss"],
            }


@figure(
    "When should ranks split the model, and when the data?",
    source="Yadan et al., arXiv:1312.5853; Das et al., arXiv:1602.06709",
    claims={
        "a small batch sends least with one group, a large one with one rank per group": lambda rows: (
            (least(rows, "kB sent", 8), least(rows, "kB sent", 1024)) == (1, 8)
        ),
        "in between, the best number of groups grows with the batch": lambda rows: (
            [least(rows, "kB sent", batch) for batch in BATCHES] == [1, 1, 2, 4, 8]
        ),
        "the bytes sent match the formula within 5 %": lambda rows: all(
            abs(row["kB sent"] / row["formula"] - 1) < 0.05 for row in rows
        ),
        "the fastest number of groups grows with the batch as well": lambda rows: (
            (times := [least(rows, "ms", batch) for batch in BATCHES]) == sorted(times) and times[0] < times[-1]
        ),
    },
    look=Look("batch of all", ("kB sent",), colour="groups", theory=("formula",), log="xy", title="kB from each rank"),
)
def share_model_or_data(run):
    """Eight ranks form 1, 2, 4 or 8 groups, and train layers of 256 units for one step. The ranks of a group split a
    model, and the groups split the batch.
    """
    for batch in BATCHES:
        for groups in rank_groups.divisors(RANKS):
            done = step_of_groups(run, batch, groups)
            members = RANKS // groups
            outputs = (members - 1) / members * batch / groups * 10  # logits, gathered again
            sent = rank_groups.elements_per_rank(512, len(done.parameters), batch, RANKS, groups) + outputs
            yield {
                "batch of all": batch,
                "groups": groups,
                "kB sent": KB * done.summary["bytes"] / RANKS,
                "formula": KB * 4 * sent,
                "ms": MS * done.trace.seconds(),
            }


def step_of_groups(run, batch, groups):
    """Return the Run of a step in which this many groups share the whole batch."""
    return run(
        algorithm="hybrid",
        learning_rate=0.2,
        groups=groups,
        workers=RANKS,
        batch=batch // groups,
        hidden="256,256",
        steps=1,
        evaluations=1,
    )


RANKS = 8
BATCHES = 8, 32, 128, 512, 1024


def least(rows, quantity, batch):
    """Return the number of groups for which a quantity is smallest at this batch size."""
    return min((row for row in rows if row["batch of all"] == batch), key=lambda row: row[quantity])["groups"]


@figure(
    "Over how many machines is it worth splitting one layer?",
    source="Dean et al., NIPS 2012, sections 3 and 5",
    claims={
        "a fully connected network is fastest on a few machines, and slower again on more": lambda rows: (
            0 < (best := best_place(rows, "connected")) < len(rows) - 1
            and column(rows, "connected")[-1] < 0.9 * column(rows, "connected")[best]
        ),
        "the formula for one fully connected layer also has its maximum between one machine and the most": (
            lambda rows: 0 < best_place(rows, "connected, formula") < len(rows) - 1
        ),
        "with locally connected units every further machine helps": lambda rows: (
            column(rows, "local, formula") == sorted(column(rows, "local, formula"))
            and rows[-1]["local, formula"] > 2 * max(column(rows, "connected"))
        ),
    },
    look=Look(
        "machines", ("connected",), theory=("connected, formula", "local, formula"), title="speed-up over one machine"
    ),
)
def spread_a_layer(run):
    """Steps of a network with two layers of 512 units on 128 samples. A message takes 60 us, and a machine is
    one core.
    """
    machine = Machine(DEVICES["laptop"].flops, bandwidth=1.17e9, message=6e-5)
    alone = None  # milliseconds of the first row: a single machine
    for machines in (1, 2, 3, 4, 5, 6, 8, 10):
        done = run(
            algorithm="distbelief",
            learning_rate=0.2,
            workers=machines,
            batch=128,
            hidden="512,512",
            steps=2,
            evaluations=1,
            network=f"2e-5:{machine.bandwidth}:{machine.message}",
        )
        ms = MS * done.trace.seconds() / 2
        alone = alone or ms
        yield {
            "machines": machines,
            "ms": ms,
            "connected, formula": speed_up(lambda n: dense_layer(512, 512, 128, n, machine), machines),
            "local, formula": speed_up(lambda n: local(64, 8, 3, 128, n, machine), machines),
            "connected": alone / ms,
        }


def best_place(rows, quantity):
    return int(np.argmax(column(rows, quantity)))


@figure(
    "What is saved if ranks sum once for two layers instead of after each?",
    source="Shoeybi et al., arXiv:1909.08053",
    claims={
        "splitting columns, then rows, sends less than 0.45 times as much as splitting the units of each layer": (
            lambda rows: all(
                ratio(rows, "kB sent", ranks=ranks, split=("columns, then rows", "units of each layer")) < 0.45
                for ranks in (2, 4, 8)
            )
        ),
        "the bytes sent match the formulas within 3 %": lambda rows: all(
            abs(row["kB sent"] / row["formula"] - 1) < 0.03 for row in rows
        ),
        "on 1 GbE ranks that sum once are faster than one rank, and ranks that sum after each layer are slower": (
            lambda rows: all(
                row["speed-up"] > 1.2 if row["split"] == "columns, then rows" else row["speed-up"] < 0.9 for row in rows
            )
        ),
        "with either split the ranks learn what one rank learns": lambda rows: all(column(rows, "same loss")),
    },
    look=Look("ranks", ("kB sent",), colour="split", theory=("formula",), title="kB from each rank in a step"),
)
def one_sum_for_two_layers(run):
    """Two pairs of dense layers, of 1,024 and 256 units, and a last layer of ten units, with 128 samples and 1 Gb
    Ethernet.

    The formulas leave out the ten outputs.
    """
    values = {"learning_rate": 0.2, "hidden": "1024,256,1024,256", "network": "1GbE", "steps": 1, "evaluations": 1}
    one = run(algorithm="sgd", batch=SAMPLES, **values)
    gathered, summed = 2 * (1024 + 256), 4 * 256  # numbers of a sample, once each way; in four sums of twice the cost
    for ranks in (2, 4, 8):
        for split, crossing, settings in (
            ("units of each layer", gathered, {"algorithm": "hybrid", "layout": "model"}),
            ("columns, then rows", summed, {"algorithm": "tensor"}),
        ):
            done = run(**settings, workers=ranks, batch=SAMPLES, **values)
            yield {
                "ranks": ranks,
                "split": split,
                "kB sent": KB * done.summary["bytes"] / ranks,
                "formula": KB * 4 * 2 * SAMPLES * crossing * (ranks - 1) / ranks,
                "speed-up": one.trace.seconds() / done.trace.seconds(),
                "same loss": abs(done.summary["held_out_loss"] - one.summary["held_out_loss"]) < 1e-4,
            }


SAMPLES = 128


@figure(
    "Over how many ranks should every matrix be split?",
    source="Narayanan et al., SC 2021, section 5.4; Shoeybi et al., arXiv:1909.08053",
    claims={
        "with 1 GbE between nodes, splitting over as many ranks as a node has is the fastest": lambda rows: all(
            min((row["ms"], row["tensor"]) for row in rows if row["ranks per node"] == node)[1] == node
            for node in (2, 4)
        ),
        "with matrices split over two nodes instead of inside one, a step takes over 1.5 times as long": (
            lambda rows: all(
                value(rows, "ms", tensor=2 * node, **{"ranks per node": node})
                > 1.5 * value(rows, "ms", tensor=node, **{"ranks per node": node})
                for node in (2, 4)
            )
        ),
        "with matrices split over two nodes instead of inside one, over 1.9 times the bytes pass between nodes": (
            lambda rows: all(
                value(rows, "MB between nodes", tensor=2 * node, **{"ranks per node": node})
                > 1.9 * value(rows, "MB between nodes", tensor=node, **{"ranks per node": node})
                for node in (2, 4)
            )
        ),
        "if all ranks share a node, eight take less than twice as long as one": lambda rows: (
            value(rows, "ms", tensor=8, **{"ranks per node": 8})
            < 2 * value(rows, "ms", tensor=1, **{"ranks per node": 8})
        ),
    },
    look=Look("tensor", ("ms",), colour="ranks per node", log="x", title="ms of a step"),
)
def tensor_inside_the_node(run):
    """A transformer on 8 ranks, with 1 GbE between nodes. T ranks split every matrix, and 8/T replicas split the same
    32 samples.
    """
    for node in (2, 4, 8):
        for tensor in (1, 2, 4, 8):
            done = step_on_nodes(run, node, tensor)
            nodes = np.arange(8) // node
            between = done.trace.traffic()[nodes[:, None] != nodes].sum()
            yield {
                "ranks per node": node,
                "tensor": tensor,
                "ms": MS * done.trace.seconds(),
                "MB between nodes": MB * float(between),
            }


def step_on_nodes(run, node, tensor, batch=4):
    """Return the run of one step on nodes of `node` ranks, where `tensor` ranks split every matrix.

    `batch` is the number of sequences for each rank.
    """
    return run(
        algorithm="three_d",
        learning_rate=0.3,
        workload="text",
        width=64,
        heads=8,
        depth=2,
        tensor=tensor,
        stages=1,
        chunks=1,
        workers=8,
        batch=batch * tensor,
        steps=1,
        evaluations=1,
        network="1GbE",
        per_node=node,
    )


@figure(
    "What is gained if each rank holds some of the layers and passes its activations on?",
    source="Huang et al. (GPipe), NeurIPS 2019, figure 2b",
    claims={
        "memory: with P ranks the fullest one holds little more than 1/P of the whole": lambda rows: all(
            1 <= row["memory"] * row["ranks"] < 1.06 for row in rows
        ),
        "no time is saved: more ranks take longer, and eight take 10 to 30 % longer than one": lambda rows: (
            column(rows, "step") == sorted(column(rows, "step")) and 1.1 < rows[-1]["step"] < 1.3
        ),
        "one rank computes while all others wait": lambda rows: all(
            0.8 < row["busy"] * row["ranks"] < 1.01 for row in rows
        ),
    },
    look=Look("ranks", ("step", "memory", "busy"), theory=("1/ranks",), log="xy", title="relative to one rank"),
)
def layer_by_layer(run):
    """A residual model whose 32 layers are split over ranks on 10 Gb Ethernet, with one mini-batch of 128 images at a
    time.

    `step` is the duration of a step and `memory` the memory of the fullest rank, both relative to one rank; `busy` is
    the mean fraction of time that a rank computes. Pipelines improve on this by working on several mini-batches or
    parts of one at a time.
    """
    one = ()
    for ranks in (1, 2, 4, 8):
        done = four_steps(run, ranks)
        seconds, held = done.trace.seconds(), float(done.peaks().sum(axis=1).max())
        one = one or (seconds, held)
        yield {
            "ranks": ranks,
            "step": seconds / one[0],
            "memory": held / one[1],
            "busy": float(done.trace.busy()[:, [COMPUTE, UPDATE]].sum() / seconds / ranks),
            "1/ranks": 1 / ranks,
        }


def four_steps(run, ranks):
    """Return the Run of four steps on ranks that each hold some of the layers."""
    return run(
        algorithm="layer_wise",
        learning_rate=0.01,
        workers=ranks,
        batch=128,
        network="10GbE",
        steps=4,
        evaluations=1,
        **DEEP_AND_WIDE,
    )


def units_in_shares(run, ranks, latency=0.0):
    """Return the Run of four steps on ranks that each hold a share of every layer's units. There are 32 layers."""
    return run(
        algorithm="tensor",
        learning_rate=0.01,
        workers=ranks,
        batch=128,
        hidden=",".join(["64"] * 31),
        latency=latency,
        bandwidth=1e13,
        device="40e9:1e15:0",
        steps=4,
        evaluations=1,
    )


DEEP_AND_WIDE = {"model": "residual", "depth": 30, "width": 64}
SHAPES = (1, 1), (2, 1), (4, 1), (8, 1), (1, 2), (1, 4), (1, 8), (2, 2), (4, 2), (2, 4)  # tensor, stages


@figure(
    "Which of three kinds of parallelism should eight ranks combine?",
    source="Narayanan et al., SC 2021, sections 3 and 5.4",
    claims={
        "a combination is the fastest: pairs that split matrices, in four stages": lambda rows: (
            min(rows, key=lambda row: row["ms"])["data x tensor x stages"] == "1 x 2 x 4"
        ),
        "pairs in four stages take less than 0.6 times as long as eight replicas": lambda rows: (
            cut_value(rows, "ms", 1, 2, 4) < 0.6 * cut_value(rows, "ms", 8, 1, 1)
        ),
        "splitting matrices over all eight ranks takes more than twice as long as any other combination": lambda rows: (
            cut_value(rows, "ms", 1, 8, 1) > 2 * sorted(column(rows, "ms"))[-2]
        ),
        "stages alone send least between nodes, but wait for each other: they take over 1.3 times as long as pairs": (
            lambda rows: (
                cut_value(rows, "MB between nodes", 1, 1, 8) == min(column(rows, "MB between nodes"))
                and cut_value(rows, "ms", 1, 1, 8) > 1.3 * cut_value(rows, "ms", 1, 2, 4)
            )
        ),
        "a rank holds least if the model is cut in all three ways at once": lambda rows: (
            cut_value(rows, "kB", 2, 2, 2) == min(column(rows, "kB"))
        ),
        "all cuts end with the same loss": lambda rows: all(column(rows, "same loss")),
    },
    look=Look("data x tensor x stages", ("ms",), kind="bar", title="milliseconds of a step"),
)
def three_ways(run):
    """A transformer of eight blocks on two nodes of four ranks, with 1 Gb Ethernet between the nodes. A step has 64
    samples. A replica that is split into stages cuts its share into eight micro-batches.

    Data x tensor x stages: the number of replicas, of ranks that split each matrix, and of stages; ranks that split a
    matrix are next to each other. `kB`: what the fullest rank holds.
    """
    losses = []
    for tensor, stages in SHAPES:
        done = run(
            algorithm="three_d",
            learning_rate=0.3,
            workload="text",
            width=128,
            heads=8,
            depth=8,
            tensor=tensor,
            stages=stages,
            chunks=8 if stages > 1 else 1,
            workers=8,
            batch=8 * tensor * stages,
            steps=1,
            evaluations=1,
            network="1GbE",
            per_node=4,
        )
        nodes = np.arange(8) // 4
        losses.append(done.summary["loss"])
        yield {
            "data x tensor x stages": f"{8 // tensor // stages} x {tensor} x {stages}",
            "ms": MS * done.trace.seconds(),
            "MB between nodes": MB * float(done.trace.traffic()[nodes[:, None] != nodes].sum()),
            "kB": KB * float(done.peaks().sum(axis=1).max()),
            "same loss": abs(losses[-1] - losses[0]) < 1e-5,
        }


def cut_value(rows, quantity, data, tensor, stages):
    return value(rows, quantity, **{"data x tensor x stages": f"{data} x {tensor} x {stages}"})


GROUPS = {"8 x 1": 8, "4 x 2": 4, "2 x 4": 2, "1 x 8": 1}  # copies x pieces


@figure(
    "Among how many ranks should each copy of the weights be sharded?",
    source="Zhao et al. (FSDP), VLDB 2023; Wang et al. (ZeRO++), arXiv:2306.10209",
    claims={
        "one copy per node sends least between nodes, less than a quarter as much as one copy for all": lambda rows: (
            value_of_shards(rows, "MB between nodes", "2 x 4") == min(column(rows, "MB between nodes"))
            and value_of_shards(rows, "MB between nodes", "2 x 4")
            < 0.25 * value_of_shards(rows, "MB between nodes", "1 x 8")
        ),
        "with one copy per node a step is the shortest, more than a fifth shorter than the second shortest": (
            lambda rows: value_of_shards(rows, "ms", "2 x 4") < 0.8 * sorted(column(rows, "ms"))[1]
        ),
        "ZeRO-3 sends as many bytes as one copy for all, but only 50 to 60 % as many between nodes": lambda rows: (
            abs(value_of_shards(rows, "MB", "1 x 8") / value_of_shards(rows, "MB", "ZeRO-3") - 1) < 1e-3
            and 0.5
            < value_of_shards(rows, "MB between nodes", "ZeRO-3") / value_of_shards(rows, "MB between nodes", "1 x 8")
            < 0.6
        ),
        "each halving of the copies reduces a rank's memory by a quarter or more": lambda rows: all(
            value_of_shards(rows, "kB", fewer) < 0.74 * value_of_shards(rows, "kB", more)
            for more, fewer in pairwise(GROUPS)
        ),
        "all ways to shard compute the same loss": lambda rows: all(column(rows, "same loss")),
    },
    look=Look("copies x pieces", ("ms",), kind="bar", title="milliseconds per step"),
)
def shards_of_a_node(run):
    """Adam trains a dense model with 216,586 weights on eight ranks with 16 samples each. They form two nodes of four,
    with 1 Gb Ethernet between the nodes. HSDP gathers one layer ahead. The last bar is ZeRO-3, which gathers its only
    copy in a ring. `kB` is the peak size of the weights, gradients and moments on a rank.
    """
    kinds = {name: {"algorithm": "hsdp", "groups": groups} for name, groups in GROUPS.items()}
    losses = []
    for name, settings in (kinds | {"ZeRO-3": {"algorithm": "zero3"}}).items():
        done = run(
            **settings, update="adam", learning_rate=0.01, workers=8, per_node=4, network="1GbE", batch=16, steps=1,
            hidden="256,256,256,256", evaluations=1,
        )  # fmt: skip
        nodes = np.arange(8) // 4
        traffic = done.trace.traffic()
        losses.append(done.summary["loss"])
        yield {
            "copies x pieces": name,
            "ms": MS * done.trace.seconds(),
            "MB between nodes": MB * float(traffic[nodes[:, None] != nodes].sum()),
            "MB": MB * float(traffic.sum()),
            "kB": KB * float(done.peaks()[:, STATES].sum(axis=1).max()),
            "same loss": abs(losses[-1] - losses[0]) < 1e-5,
        }


def value_of_shards(rows, quantity, name):
    return value(rows, quantity, **{"copies x pieces": name})


@figure(
    "When is it worth gathering a layer before it is needed?",
    source="Zhao et al. (FSDP), VLDB 2023, section 3.3",
    claims={
        "over 1 Gb Ethernet prefetching saves more with a larger batch": lambda rows: (
            column(rows, "saved", network="1GbE") == sorted(column(rows, "saved", network="1GbE"))
        ),
        "over EDR prefetching saves less with a larger batch": lambda rows: (
            column(rows, "saved", network="EDR") == sorted(column(rows, "saved", network="EDR"), reverse=True)
        ),
        "over 10 Gb Ethernet prefetching saves most with 16 samples, more than a fifth of the step": lambda rows: (
            (saved := column(rows, "saved", network="10GbE"))[1] == max(saved) > 20
        ),
    },
    look=Look("batch", ("saved",), "network", log="x", title="percent of the step saved by prefetching a layer"),
)
def what_prefetching_hides(run):
    """Adam trains a residual model of equal layers, sharded over four ranks, each on a node of its own. The table also
    shows the duration of a step in ms, if each layer is gathered when it is needed, and if it is gathered one layer
    ahead.
    """
    for network in ("1GbE", "10GbE", "EDR"):
        for batch in (4, 16, 64, 256):
            late, ahead = (
                MS
                * run(
                    algorithm="hsdp", groups=1, prefetch=prefetch, update="adam", learning_rate=0.01, workers=4,
                    model="residual", depth=6, width=128, batch=batch, steps=1, evaluations=1, network=network,
                ).trace.seconds()
                for prefetch in (0, 1)
            )  # fmt: skip
            yield {
                "network": network, "batch": batch, "saved": 100 * (1 - ahead / late), "when needed": late,
                "a layer ahead": ahead,
            }  # fmt: skip


LONG = {
    "algorithm": "context", "context": 512, "width": 32, "heads": 8, "batch": 2, "steps": 1, "evaluations": 1,
    "learning_rate": 1.0,
}  # fmt: skip


@figure(
    "Which positions of a sequence should each rank have?",
    source="Liu et al., arXiv:2310.01889; Grattafiori et al., arXiv:2407.21783, section 3.3.2",
    claims={
        "with consecutive pieces on P ranks, the busiest spends 2 - 1/P times the mean time on attention, within 5 %": (
            lambda rows: all(
                abs(busiest / (2 - 1 / ranks) - 1) < 0.05
                for ranks, busiest in zip(
                    column(rows, "ranks", pieces="consecutive"),
                    column(rows, "busiest over mean", pieces="consecutive"),
                    strict=True,
                )
            )
        ),
        "with zigzag pieces all ranks spend the same time on attention, within 1 %": lambda rows: (
            max(column(rows, "busiest over mean", pieces="zigzag")) < 1.01
        ),
        "with two or more ranks, zigzag pieces are faster than consecutive ones by a quarter or more": lambda rows: all(
            ratio(rows, "speed-up", pieces=("zigzag", "consecutive"), ranks=ranks) > 1.25 for ranks in (2, 4, 8)
        ),
        "with zigzag pieces eight ranks hold an eighth of the activations, within a tenth": lambda rows: (
            abs(8 * value(rows, "MB", ranks=8, pieces="zigzag") / value(rows, "MB", ranks=1, pieces="zigzag") - 1) < 0.1
        ),
    },
    look=Look("ranks", ("speed-up",), "pieces", log="x", title="times as fast as one rank"),
)
def pieces_of_a_sequence(run):
    """Ring attention on ranks that share sequences of 512 characters, over EDR InfiniBand. `busiest over mean` is the
    time that the busiest rank spends on attention, as a multiple of the mean, and `MB` is the size of the fullest
    rank's activations.
    """
    alone = {}
    for ranks in (1, 2, 4, 8):
        for pieces in ("consecutive", "zigzag"):
            done = run(**LONG, workers=ranks, positions=pieces, network="EDR")
            attending = done.trace.spans["label"] == done.trace.labels.index("attention")
            seconds = (done.trace.spans["end"] - done.trace.spans["start"])[attending]
            spent = np.bincount(done.trace.spans["rank"][attending], seconds, ranks)
            alone.setdefault(pieces, done.trace.seconds())
            yield {
                "ranks": ranks, "pieces": pieces, "speed-up": alone[pieces] / done.trace.seconds(),
                "busiest over mean": float(spent.max() / spent.mean()),
                "MB": MB * float(done.peaks()[:, HELD.index("activations")].max()),
            }  # fmt: skip


EXCHANGES = {"ring": (6, -4, 0), "gather": (4, -4, 0), "ulysses": (0, 8, -8)}


@figure(
    "How should queries meet the keys of other ranks?",
    source="Liu et al., arXiv:2310.01889; Jacobs et al., arXiv:2309.14509",
    claims={
        "each rank sends what the formula says": lambda rows: all(
            abs(row["kB sent"] / row["formula"] - 1) < 1e-3 for row in rows
        ),
        "with eight ranks Ulysses sends a quarter of what the all-gather sends, and the ring over 1.5 times as much": (
            lambda rows: (
                abs(ratio(rows, "kB sent", exchange=("ulysses", "gather"), ranks=8) - 0.25) < 1e-3
                and 1.5 < ratio(rows, "kB sent", exchange=("ring", "gather"), ranks=8) < 1.6
            )
        ),
        "with eight ranks the ring is nevertheless faster than the all-gather": lambda rows: (
            ratio(rows, "ms", exchange=("ring", "gather"), ranks=8) < 0.95
        ),
    },
    look=Look(
        "ranks",
        ("kB sent",),
        "exchange",
        theory=("formula",),
        log="x",
        title="kilobytes of keys and values from a rank",
    ),
)
def ways_to_meet(run):
    """Ranks share sequences of 512 characters in zigzag pieces, over 10 Gb Ethernet. The bytes of gradients, the same
    with every exchange, are not counted.
    """
    for ranks in (2, 4, 8):
        for exchange, (constant, over_ranks, over_squares) in EXCHANGES.items():
            done = run(**LONG, workers=ranks, exchange=exchange, network="10GbE")
            for_gradients = 4 * 2 * (ranks - 1) * (len(done.parameters) + 1)
            keys = 4 * LONG["batch"] * LONG["context"] * LONG["width"]
            yield {
                "ranks": ranks, "exchange": exchange,
                "kB sent": KB * (done.summary["bytes"] - for_gradients) / ranks,
                "ms": MS * done.trace.seconds(),
                "formula": KB * keys * (constant + over_ranks / ranks + over_squares / ranks**2),
            }  # fmt: skip


MIXTURE = {
    "algorithm": "expert", "workers": 8, "experts": 8, "width": 16, "context": 8, "batch": 16, "steps": 60,
    "learning_rate": 1.0, "evaluations": 1,
}  # fmt: skip


def late_mean(done, quantity):
    """Return the mean of a measured quantity over the second half of a run."""
    values = done.course(quantity)[1]
    return float(np.mean(values[len(values) // 2 :]))


@figure(
    "What happens if a few experts are popular?",
    source="Lepikhin et al., arXiv:2006.16668; Fedus et al., arXiv:2101.03961",
    claims={
        "the largest balance loss lowers the busiest expert's load from over 1.6 times an equal share to under 1.6": (
            lambda rows: value(rows, "busiest expert", balance=0.1) < 1.6 < value(rows, "busiest expert", balance=0)
        ),
        "with the largest balance loss, ranks wait less than four fifths as long as without one": lambda rows: (
            ratio(rows, "waiting", balance=(0.1, 0)) < 0.8
        ),
    },
    look=Look("balance", ("waiting",), kind="bar", title="percent of the time that ranks wait"),
)
def popular_experts(run):
    """Eight ranks with an expert each train the text model for 60 steps, with enough capacity that no token is dropped.
    `busiest expert` is the number of tokens of the busiest expert in the second half of the run, as a multiple of an
    equal share.
    """
    for balance in (0, 0.01, 0.1):
        done = run(**MIXTURE, balance=balance, capacity=8)
        yield {
            "balance": balance, "waiting": 100 * done.summary["share_wait"],
            "busiest expert": late_mean(done, "imbalance"),
        }  # fmt: skip


@figure(
    "How much room should an expert have?",
    source="Fedus et al., arXiv:2101.03961, section 2.2",
    claims={
        "with room for twice an equal share, under a quarter as many tokens are dropped as with no room to spare": (
            lambda rows: ratio(rows, "dropped", capacity=(2, 1)) < 0.25
        ),
        "with room for twice an equal share, ranks wait longer than with no room to spare": lambda rows: (
            ratio(rows, "waiting", capacity=(2, 1)) > 1.1
        ),
    },
    look=Look("capacity", ("dropped", "waiting"), kind="bar", title="percent of tokens dropped, and of time waited"),
)
def room_for_tokens(run):
    """Eight ranks with an expert each train the text model for 60 steps, with a balance loss of 0.01. `capacity` is the
    most tokens that an expert takes, as a multiple of an equal share.
    """
    for capacity in (1, 1.25, 2, 4):
        done = run(**MIXTURE, balance=0.01, capacity=capacity)
        yield {
            "capacity": capacity, "dropped": 100 * late_mean(done, "tokens dropped"),
            "waiting": 100 * done.summary["share_wait"],
        }  # fmt: skip
