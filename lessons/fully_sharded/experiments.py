"""Figures on full sharding of a small language model: what a rank holds, when it gathers layers, and what that overlaps
with.
"""

import numpy as np

from lessons.figure import Look, column, figure, is_falling, is_rising, ratio, value
from theory.overlap import Cost, StepCosts, prefetching
from theory.planner.language_model import find_model
from theory.planner.memory_use import memory_use
from theory.planner.setup import FULL, OPTIMIZER, WHOLE, Layout, Setup, find_gpu
from theory.planner.step_time import tokens_per_second
from tracing import COMPUTE, HELD, UPDATE

MS, KB, MB, GB = 1e3, 1e-3, 1e-6, 1e-9
CONTEXT = 32  # tokens of a sequence
MACHINE = {
    "workload": "text", "context": CONTEXT, "width": 64, "heads": 4, "depth": 6, "update": "adam",
    "learning_rate": 0.01, "device": "2e11:1e15:0", "latency": 1e-6, "bandwidth": 1e9, "steps": 1, "evaluations": 1,
}  # fmt: skip
STATES = [HELD.index(kind) for kind in ("parameters", "gradients", "optimizer state")]
ACTIVATIONS = HELD.index("activations")


def seconds(done):
    """Return the virtual time of the run, in s. The run is one step."""
    return done.summary["seconds"]


def computing(done):
    """Return how long rank 0 computes, in s."""
    return float(done.trace.busy()[0, [COMPUTE, UPDATE]].sum())


def peak_states(done):
    """Return the peak memory of weights, gradients and moments in bytes, on the rank where it is largest."""
    return float(done.peaks()[:, STATES].sum(axis=1).max())


def between_nodes(done, per_node):
    """Return the number of bytes that crossed from one node to another."""
    sent = done.trace.traffic()
    node = np.arange(len(sent)) // per_node
    return float(sent[node[:, None] != node].sum())


def sharded_step(run, **values):
    """Return the Run of a fully sharded step. One layer is gathered ahead unless `values` say otherwise."""
    return run(**{**MACHINE, "algorithm": "hsdp", "groups": 1, "prefetch": 1, **values})


@figure(
    "What does a fully sharded rank hold?",
    source="Rajbhandari et al., SC 2020; Zhao et al., VLDB 2023",
    claims={
        "a rank's shards take 16 bytes for each weight, divided by the number of ranks": lambda rows: all(
            abs(row["shards"] / row["16 d / N"] - 1) < 0.01 for row in rows
        ),
        "the layers that a rank briefly holds whole do not get smaller with more ranks": lambda rows: (
            min(column(rows, "whole for a moment")) > 0.99 * max(column(rows, "whole for a moment"))
        ),
        "with 16 ranks, the layers that a rank briefly holds whole take more than its shards": lambda rows: (
            value(rows, "whole for a moment", ranks=16) > value(rows, "shards", ranks=16)
        ),
        "activations do not get smaller with more ranks": lambda rows: (
            min(column(rows, "activations")) > 0.99 * max(column(rows, "activations"))
        ),
    },
    look=Look(
        "ranks", ("shards", "whole for a moment", "activations"), theory=("16 d / N",), log="xy", title="kB on a rank"
    ),
)
def what_stays_whole(run):
    """The memory of a rank when Adam trains a transformer of six blocks and 161,029 weights in float32. Each rank has
    64 tokens of its own.

    A layer is gathered when it is needed. `shards` are a rank's pieces of weights, gradient and moments. `whole for a
    moment` are the weights and the gradient of the layer that computes, at their peak.
    """
    for ranks in (2, 4, 8, 16):
        done = run(**{**MACHINE, "algorithm": "zero3", "workers": ranks, "batch": 2})
        shards = 16 * len(done.parameters) / ranks
        yield {
            "ranks": ranks,
            "shards": KB * (peak_states(done) - whole_layer(done, ranks)),
            "whole for a moment": KB * whole_layer(done, ranks),
            "activations": KB * float(done.peaks()[:, ACTIVATIONS].max()),
            "16 d / N": KB * shards,
        }


def whole_layer(done, ranks):
    """Return the peak memory of weights and of gradients that a rank holds in addition to its own pieces, in bytes."""
    return float(done.peaks()[0, STATES[:2]].sum()) - 8 * len(done.parameters) / ranks


METHODS = {
    "replicated": {"algorithm": "overlap"},
    "sharded, gathered when needed": {"algorithm": "hsdp", "prefetch": 0},
    "sharded, one layer ahead": {"algorithm": "hsdp", "prefetch": 1},
}


@figure(
    "How much longer does a step take if shards send 1.5 times the bytes of replicas?",
    source="Zhao et al., VLDB 2023, section 3.3",
    claims={
        "the sharded ranks send 1.5 times as many bytes as replicas": lambda rows: all(
            abs(ratio(rows, "MB", tokens=row["tokens"], method=(row["method"], "replicated")) - 1.5) < 1e-3
            for row in rows
            if row["method"] != "replicated"
        ),
        "with 256 tokens and gathers when needed, sharded ranks take over 1.6 times as long as replicas": lambda rows: (
            ratio(rows, "step", tokens=256, method=("sharded, gathered when needed", "replicated")) > 1.6
        ),
        "with 256 tokens and one layer ahead, sharded ranks take less than 1.4 times as long as replicas": (
            lambda rows: ratio(rows, "step", tokens=256, method=("sharded, one layer ahead", "replicated")) < 1.4
        ),
        "the more tokens, the less sharding costs": lambda rows: is_falling(
            column(rows, "step", method="sharded, gathered when needed")
        ),
    },
    look=Look("tokens", ("step",), "method", log="xy", title="time of a step, relative to computing alone"),
)
def half_as_much_again(run):
    """The time of a step of the transformer on four ranks. Each has a link of its own of 1 GB/s and a processor of 200
    GFLOP/s.

    `step` is the time of a step as a multiple of the time for which a rank computes in it. `replicated` sums each
    layer's gradient while the layers before it compute (`overlap`). Sharded ranks gather each layer twice.
    """
    for batch in (1, 4, 8, 32):
        for method, settings in METHODS.items():
            done = run(**{**MACHINE, **settings, "workers": 4, "batch": batch})
            yield {
                "tokens": batch * CONTEXT,
                "method": method,
                "step": seconds(done) / computing(done),
                "MB": MB * done.summary["bytes"],
            }


@figure(
    "How many layers ahead should a rank gather?",
    source="Zhao et al., VLDB 2023, section 3.3; our closed form (theory.overlap.prefetching)",
    claims={
        "one layer ahead saves more than a tenth of the step": lambda rows: all(
            ratio(rows, "step", tokens=tokens, prefetch=(1, 0)) < 0.9 for tokens in AHEAD_TOKENS
        ),
        "gathering a second layer ahead changes the step by less than a twentieth": lambda rows: all(
            abs(ratio(rows, "step", tokens=tokens, prefetch=(2, 1)) - 1) < 0.05 for tokens in AHEAD_TOKENS
        ),
        "with all seven ahead, a step is more than 5 % longer than with one": lambda rows: all(
            ratio(rows, "step", tokens=tokens, prefetch=(7, 1)) > 1.05 for tokens in AHEAD_TOKENS
        ),
        "each further layer ahead takes more memory": lambda rows: all(
            is_rising(column(rows, "kB", tokens=tokens)) for tokens in AHEAD_TOKENS
        ),
        "the closed form is accurate within 2 %": lambda rows: all(
            abs(row["step"] / row["formula"] - 1) < 1 / 50 for row in rows
        ),
        "prefetching does not change the trained weights, to the last bit": lambda rows: all(
            column(rows, "same weights")
        ),
    },
    look=Look("prefetch", ("step",), "tokens", theory=("formula",), title="time of a step, relative to no prefetching"),
)
def how_far_ahead(run):
    """The same transformer on four ranks with 1 GB/s each. `prefetch` is the number of layers, out of eight, that may
    be on their way while one computes.

    `kB` is the most memory that a rank uses for weights. The formula uses the sizes of layers, and the times of their
    passes in the run without prefetching.
    """
    for tokens in AHEAD_TOKENS:
        late = sharded_step(run, prefetch=0, workers=4, batch=tokens // CONTEXT)
        costs = layer_costs(late, ranks=4)
        for ahead in (0, 1, 2, 4, 7):
            done = late if ahead == 0 else sharded_step(run, prefetch=ahead, workers=4, batch=tokens // CONTEXT)
            yield {
                "tokens": tokens,
                "prefetch": ahead,
                "step": seconds(done) / seconds(late),
                "formula": prefetching(costs, ahead, Cost(2 * MACHINE["latency"])) / seconds(late),
                "kB": KB * float(done.peaks()[0, STATES[0]]),
                "same weights": bool(np.array_equal(done.parameters, late.parameters)),
            }


AHEAD_TOKENS = 128, 256, 1024


def layer_costs(done, ranks):
    """Return the costs of a step of the text model. The times of passes are those of rank 0 in this run."""
    spans, sizes = done.trace.spans, layer_sizes(MACHINE["width"])
    names = np.array(done.trace.labels)[spans["label"]]
    spent = {
        name: float((spans["end"] - spans["start"])[(spans["rank"] == 0) & (names == name)].sum()) for name in {*names}
    }
    forward, backward = ([spent[f"{kind}{layer}"] for layer in range(len(sizes))] for kind in "FB")
    forward[-1] += spent["loss"]
    gather = Cost(0.0, (ranks - 1) / ranks * 4 / MACHINE["bandwidth"])
    update = Cost(0.0, spent["adam"] / sum(sizes))
    return StepCosts(forward, backward, sizes, gather, Cost(MACHINE["latency"]), update)


def layer_sizes(width, kinds=69):
    """Return the number of weights in each layer of the text model, whose vocabulary has `kinds` tokens."""
    attention, mlp = 4 * width**2 + 6 * width, 8 * width**2 + 7 * width
    ends = (kinds + CONTEXT) * width, 2 * width + (width + 1) * kinds
    return [ends[0], *[attention, mlp] * (MACHINE["depth"] // 2), ends[1]]


@figure(
    "How many tokens per rank does it take to hide the gathers?",
    source="a measurement of ours; Zhao et al., VLDB 2023, section 3.3",
    claims={
        "the exposed share of the gather time depends on the number of tokens, hardly on the width": lambda rows: all(
            max(shown) - min(shown) < 12
            for tokens in (64, 128, 256, 512, 1024)
            for shown in [column(rows, "shown", tokens=tokens)]
        ),
        "with a quarter of the tokens the formula asks for, over half of the gather time is exposed": lambda rows: all(
            shown > 50 for shown in column(rows, "shown", tokens=64)
        ),
        "with about twice the tokens the formula asks for, less than a fifth of the gather time is exposed": (
            lambda rows: all(shown < 20 for shown in column(rows, "shown", tokens=512))
        ),
    },
    look=Look("tokens", ("shown",), "width", log="x", title="percent of the gather time that is exposed"),
)
def tokens_that_hide(run):
    """How much of the gathers stays exposed if four ranks gather one layer ahead. `shown` is the exposed gather time,
    as a percentage of the time of all gathers.

    Twice the width is about four times as many weights. With the formula's 300 tokens, a layer's gather takes as long
    as its forward pass. With more tokens, what is still exposed is the first gather of each pass, and that of a layer
    that is larger than the one before.
    """
    for width in (32, 64, 128):
        sizes = layer_sizes(width)
        gathers = 2 * sum(sizes) * 3 / 4 * 4 / MACHINE["bandwidth"]
        for tokens in (64, 128, 256, 512, 1024):
            values = {"workers": 4, "width": width, "batch": tokens // CONTEXT}
            late, ahead = (seconds(sharded_step(run, prefetch=k, **values)) for k in (0, 1))
            yield {"width": width, "tokens": tokens, "shown": 100 * (1 - (late - ahead) / gathers)}


@figure(
    "What if more ranks share the same batch?",
    source="a comparison of ours; Rajbhandari et al., SC 2020",
    claims={
        "sixteen fully sharded ranks are less than a sixth faster than eight": lambda rows: (
            ratio(rows, "speed-up", method="fully sharded", ranks=(16, 8)) < 7 / 6
        ),
        "sixteen replicas are more than a third faster than sixteen sharded ranks": lambda rows: (
            ratio(rows, "speed-up", ranks=16, method=("replicated", "fully sharded")) > 4 / 3
        ),
        "two fully sharded ranks are less than a tenth slower than two replicas": lambda rows: (
            ratio(rows, "speed-up", ranks=2, method=("fully sharded", "replicated")) > 0.9
        ),
        "with 16 ranks, full shards take less than a fifth of the replicas' memory": lambda rows: (
            ratio(rows, "kB", ranks=16, method=("fully sharded", "replicated")) < 1 / 5
        ),
    },
    look=Look("ranks", ("speed-up",), "method", theory=("ranks",), log="xy", title="times as fast as one rank"),
)
def same_batch(run):
    """The 2,048 tokens of a step are divided among the ranks. Each rank has a link of its own of 1 GB/s.

    Fully sharded ranks gather one layer ahead. Replicas hide their sums behind the backward pass. ZeRO-1 hides nothing.
    `kB` is the memory of a rank for weights, gradients and moments.
    """
    methods = {
        "replicated": {"algorithm": "overlap"},
        "ZeRO-1": {"algorithm": "zero1"},
        "fully sharded": {"algorithm": "hsdp"},
    }
    one = seconds(run(**{**MACHINE, "algorithm": "zero1", "workers": 1, "batch": 64}))
    for ranks in (2, 4, 8, 16):
        for method, settings in methods.items():
            done = run(**{**MACHINE, **settings, "workers": ranks, "batch": 64 // ranks})
            yield {"ranks": ranks, "method": method, "speed-up": one / seconds(done), "kB": KB * peak_states(done)}


NODES = {"workers": 8, "per_node": 4, "nics": 1, "batch": 8}
SHARDS = {
    "one copy": {"algorithm": "hsdp", "groups": 1},
    "a copy per node": {"algorithm": "hsdp", "groups": 2},
    "ZeRO-1": {"algorithm": "zero1"},
    "replicated": {"algorithm": "overlap", "collective": "hierarchical"},
}


@figure(
    "Should two nodes use hybrid sharding, ZeRO-1, or neither?",
    source="Zhao et al., VLDB 2023, section 3.2.2; Rajbhandari et al., SC 2020",
    claims={
        "over the slowest link, a copy per node takes less than a third of the time of one copy": lambda rows: (
            ratio(rows, "ms", shards=("a copy per node", "one copy"), **{"GB/s": 0.125}) < 1 / 3
        ),
        "over the slowest link, a copy per node takes less than two thirds of the time of ZeRO-1": lambda rows: (
            ratio(rows, "ms", shards=("a copy per node", "ZeRO-1"), **{"GB/s": 0.125}) < 2 / 3
        ),
        "replicas that sum node by node are faster still, over every link": lambda rows: all(
            ratio(rows, "ms", shards=("replicated", shards), **{"GB/s": line}) < 0.95
            for line in LINES
            for shards in ("one copy", "a copy per node", "ZeRO-1")
        ),
        "replicas that sum node by node send as many bytes between nodes as a copy per node": lambda rows: (
            abs(ratio(rows, "MB between nodes", shards=("replicated", "a copy per node"), **{"GB/s": 0.125}) - 1) < 1e-3
        ),
        "if the link between nodes is as fast as those within, ZeRO-1 is faster than a copy per node": lambda rows: (
            ratio(rows, "ms", shards=("ZeRO-1", "a copy per node"), **{"GB/s": 8.0}) < 0.99
        ),
        "a copy per node takes less than 0.7 times the memory of ZeRO-1, and less than 0.4 times that of replicas": (
            lambda rows: (
                ratio(rows, "kB", shards=("a copy per node", "ZeRO-1"), **{"GB/s": 8.0}) < 0.7
                and ratio(rows, "kB", shards=("a copy per node", "replicated"), **{"GB/s": 8.0}) < 0.4
            )
        ),
    },
    look=Look("GB/s", ("ms",), "shards", log="xy", title="milliseconds of a step"),
)
def hybrid_or_zero1(run):
    """Two nodes of four ranks with 256 tokens each, and 8 GB/s within a node. `GB/s` is the bandwidth of the link
    between the two nodes.

    Sharded layers are gathered one layer ahead. Replicas sum node by node, and hide their sums behind the backward
    pass. ZeRO-1's reduce-scatter and all-gather go around a ring of all eight.
    """
    for line in LINES:
        for shards, settings in SHARDS.items():
            done = run(**{**MACHINE, **settings, **NODES, "bandwidth": line * 1e9})
            yield {
                "GB/s": line,
                "shards": shards,
                "ms": MS * seconds(done),
                "MB between nodes": MB * between_nodes(done, 4),
                "kB": KB * peak_states(done),
            }


LINES = 0.125, 0.5, 2.0, 8.0  # GB/s
KEEP = {"an eighth": 1, "a quarter": 2, "a half": 4, "all": 8}  # of a layer, from forward to backward: groups


@figure(
    "How much of a layer should a rank keep from forward to backward?",
    source="Wang et al. (ZeRO++), arXiv:2306.10209; PyTorch's FSDP (reshard_after_forward)",
    claims={
        "on two nodes keeping a quarter of each layer saves more than a quarter of the step": lambda rows: (
            ratio(rows, "ms", cluster="two nodes of four", keep=("a quarter", "an eighth")) < 0.75
        ),
        "on two nodes keeping all of each layer saves less than 1 % of the step compared with keeping a quarter": (
            lambda rows: ratio(rows, "ms", cluster="two nodes of four", keep=("all", "a quarter")) > 0.99
        ),
        "with eight equal links, keeping all saves less than a tenth of the step": lambda rows: (
            0.9 < ratio(rows, "ms", cluster="eight equal links", keep=("all", "an eighth")) < 0.98
        ),
        "keeping all of each layer sends two thirds of the bytes of keeping only a rank's own piece": lambda rows: all(
            abs(ratio(rows, "MB", cluster=cluster, keep=("all", "an eighth")) - 2 / 3) < 1e-3 for cluster in CLUSTERS
        ),
        "a rank that keeps all of each layer holds about twice as much as one that keeps only its piece": lambda rows: (
            all(1.8 < ratio(rows, "kB", cluster=cluster, keep=("all", "an eighth")) < 2.2 for cluster in CLUSTERS)
        ),
    },
    look=Look("keep", ("ms",), "cluster", kind="bar", title="milliseconds of a step"),
)
def kept_for_backward(run):
    """Eight ranks with 256 tokens each share one copy of the model, and gather one layer ahead. In the forward pass a
    rank keeps a part of each gathered layer. In the backward pass it gathers the rest from the nearest ranks that have
    it.

    An eighth is a rank's own piece: nothing more is kept. Two nodes of four ranks have 8 GB/s within them and 0.5 GB/s
    between them. Eight equal links have 1 GB/s each. `kB` is the memory for weights, gradients and moments.
    """
    for cluster, links in CLUSTERS.items():
        for keep, groups in KEEP.items():
            done = sharded_step(run, **{**NODES, **links}, groups=groups, secondary=groups > 1)
            yield {
                "cluster": cluster,
                "keep": keep,
                "ms": MS * seconds(done),
                "MB": MB * done.summary["bytes"],
                "kB": KB * peak_states(done),
            }


CLUSTERS = {
    "two nodes of four": {"bandwidth": 0.5e9},
    "eight equal links": {"per_node": 1, "nics": None},
}


@figure(
    "How do eight billion weights fit, and how fast do they train?",
    source="the formulas of `lockstep plan`; Zhao et al., VLDB 2023",
    claims={
        "ZeRO-1 is the fastest with any number of GPUs": lambda rows: all(
            ratio(rows, "tokens/s", GPUs=row["GPUs"], shards=("ZeRO-1", shards)) > 1.03
            for row in rows
            for shards in ("one copy", "a copy per node")
        ),
        "ZeRO-1 takes more than 65 GB, however many GPUs there are": lambda rows: (
            min(column(rows, "GB", shards="ZeRO-1")) > 65
        ),
        "with 64 GPUs one copy takes less than a third of the memory of ZeRO-1": lambda rows: (
            ratio(rows, "GB", GPUs=64, shards=("one copy", "ZeRO-1")) < 1 / 3
        ),
        "a copy per node is slower than one copy on 64 GPUs, and faster on 512": lambda rows: (
            ratio(rows, "tokens/s", GPUs=64, shards=("a copy per node", "one copy")) < 0.98
            and ratio(rows, "tokens/s", GPUs=512, shards=("a copy per node", "one copy")) > 1.02
        ),
    },
    look=Look("GPUs", ("tokens/s",), "shards", log="x", title="tokens per second on each GPU"),
)
def eight_billion(run):
    """Training of Llama 3 8B on H100s, eight to a node, by the planner's formulas. A step has 512 sequences of 8,192
    tokens.
    """
    for gpus in (8, 16, 32, 64, 128, 256, 512):
        for shards, (shard, groups) in {
            "one copy": (FULL, 1), "a copy per node": (FULL, gpus // 8), "ZeRO-1": (OPTIMIZER, 1)
        }.items():  # fmt: skip
            layout = Layout(data=gpus, shard=shard, groups=groups, micro_batch=1, recompute=WHOLE)
            setup = Setup(find_model("llama-3-8b"), 512, find_gpu("H100"), layout)
            yield {
                "GPUs": gpus,
                "shards": shards,
                "tokens/s": float(tokens_per_second(setup)),
                "GB": GB * float(memory_use(setup).total),
            }
