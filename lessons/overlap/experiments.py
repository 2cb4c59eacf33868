"""Overlap: all-reducing gradients during other computation, and what that can and cannot hide."""

import math

import numpy as np

from algorithms.parts.rank_groups import divisors
from cluster.devices import DEVICES
from cluster.network import NETWORKS
from lessons.figure import Look, column, figure, value
from theory import overlap, traffic
from theory.collective_costs import share
from theory.delay import largest_rate

MS, MB = 1e3, 1e-6
RUN = {"workers": 4, "steps": 8, "evaluations": 1, "collective": "stream"}  # one sum after the other, as on a GPU
DEEP = {"model": "residual", "depth": 16, "width": 96, **RUN}
HEAVY_END = {"model": "cnn", "batch": 128, **RUN}  # most parameters come last
WHOLE = 1 << 30  # one bucket for everything; slices larger than any layer

NONE = {"algorithm": "sync_sgd", "learning_rate": 0.2}
BACKWARD = {"algorithm": "overlap", "bucket_bytes": 0, "learning_rate": 0.2}
FIFO = {"algorithm": "priority", "order": "fifo", "slice": WHOLE, "learning_rate": 0.2}
URGENT = {"algorithm": "priority", "learning_rate": 0.2}
DELAY = {"algorithm": "delayed", "learning_rate": 0.1}


def step(done):
    """Return the duration of a step in ms, averaged over the last four steps."""
    at = done.losses["seconds"][done.losses["rank"] == 0]
    return MS * (at[-1] - at[-5]) / 4


def computing(done):
    """Return how long a worker computes in a step, in ms."""
    busy = done.trace.busy()
    return MS * (busy[0, 0] + busy[0, 1]) / done.summary["steps"]


BANDWIDTHS = 3e7, 1e8, 3e8, 1e9, 1.7e9, 3e9, 1e10


@figure(
    "What does all-reducing gradients during back-propagation gain?",
    source="Zhang et al. (Poseidon), USENIX ATC 2017, section 3",
    claims={
        "overlap is never slower": lambda rows: all(row["gain"] > 0.999 for row in rows),
        "overlap gains little where the network is much slower or much faster than the workers": lambda rows: (
            max(rows[0]["gain"], rows[-1]["gain"]) < 1.2 < 1.4 < max(column(rows, "gain"))
        ),
        "overlap gains most where the all-reduce takes about as long as back-propagation": lambda rows: (
            0.4 < max(rows, key=lambda row: row["gain"])["sum/compute"] < 1
        ),
        "the forward pass hides nothing, so the gain stays below 5/3": lambda rows: max(column(rows, "gain")) < 5 / 3,
    },
    look=Look("sum/compute", ("gain",), log="x", title="times as fast as without overlap"),
)
def back_propagation(run):
    """How much faster overlap makes a step of 18 layers on 4 workers, against the time of the all-reduce divided by
    that of computing. Networks have no latency.

    Overlap can hide at most the shorter of two times: that of the all-reduce, or that of back-propagation, which is two
    thirds of computing.
    """
    for bandwidth in BANDWIDTHS:
        where = DEEP | {"latency": 0.0, "bandwidth": bandwidth}
        alone = run(**NONE, **where)
        none, overlap = step(alone), step(run(**BACKWARD, **where))
        ratio = none / computing(alone) - 1
        yield {
            "MB/s": MB * bandwidth,
            "sum/compute": ratio,
            "no overlap": none,
            "overlap": overlap,
            "gain": none / overlap,
        }


LATENCIES = 0.0, 2e-6, 5e-6, 1e-5, 2e-5
BUCKET = 131_072  # bytes


@figure(
    "When is it slower to send every layer as soon as it is ready?",
    source="Shi et al. (MG-WFBP), INFOCOM 2019",
    claims={
        "without latency, layer by layer is faster than buckets, and buckets are faster than no overlap": lambda rows: (
            rows[0]["by layer"] < rows[0]["in buckets"] < rows[0]["no overlap"]
        ),
        "with 20 us of latency, layer by layer takes over 1.3 times as long as no overlap": lambda rows: (
            rows[-1]["by layer"] > 1.3 * rows[-1]["no overlap"]
        ),
        "latency costs over ten times as much layer by layer as without overlap": lambda rows: (
            rise(rows, "by layer") > 10 * rise(rows, "no overlap")
        ),
        "with latency, buckets are faster than layer by layer and than no overlap": lambda rows: all(
            row["in buckets"] < min(row["by layer"], row["no overlap"]) for row in rows[1:]
        ),
        "concurrent all-reduces pay latencies at the same time, and at 20 us are faster than buckets": lambda rows: (
            rise(rows, "at once") < rise(rows, "in buckets") and rows[-1]["at once"] < rows[-1]["in buckets"]
        ),
    },
    look=Look("latency, us", ("no overlap", "by layer", "in buckets", "at once"), title="milliseconds of a step"),
)
def small_layers(run):
    """The duration of a step in ms, against the latency of a message. A ring of 4 workers pays the latency six times
    per all-reduce, and 18 layers need 18 all-reduces.

    The all-reduces run one after the other, as on one GPU stream; "at once" is layer by layer with concurrent
    all-reduces, as with a communicator for each layer.
    """
    ways = {
        "no overlap": NONE,
        "by layer": BACKWARD,
        "in buckets": BACKWARD | {"bucket_bytes": BUCKET},
        "at once": BACKWARD | {"collective": "fast"},
    }
    for seconds in LATENCIES:
        where = DEEP | {"latency": seconds, "bandwidth": 1e9}
        yield {"latency, us": 1e6 * seconds} | {name: step(run(**where | how)) for name, how in ways.items()}


def rise(rows, name):
    """Return by how many ms a column of `rows` rises from the first row to the last."""
    return rows[-1][name] - rows[0][name]


BUCKETS = {f"{kb} kB": 1000 * kb for kb in (50, 100, 150, 220, 330, 440)}
BUCKETS = {"a layer": 0} | BUCKETS | {"everything": WHOLE}


@figure(
    "How large should a bucket be?",
    source="Shi et al. (MG-WFBP), INFOCOM 2019; buckets as in PyTorch's DistributedDataParallel",
    claims={
        "the best bucket size is neither the smallest nor the largest": lambda rows: 0 < best(rows) < len(rows) - 1,
        "larger buckets make a step faster up to the best size, and slower beyond it": (
            lambda rows: valley(column(rows, "ms"))
        ),
        "one bucket for everything takes as long as no overlap": lambda rows: (
            abs(rows[-1]["ms"] / rows[0]["no overlap"] - 1) < 1e-6
        ),
    },
    look=Look("bucket", ("ms",), kind="bar", theory=("no overlap",), title="milliseconds of a step"),
)
def bucket_size(run):
    """The duration of a step in ms, against the size of a bucket in bytes. Small buckets pay many start-up costs. Large
    ones leave late: the network idles until the first is full, and the workers idle until the last has arrived.
    """
    where = DEEP | {"latency": 1e-5, "bandwidth": 1e9}
    none = step(run(**NONE, **where))
    return [
        {"bucket": bucket, "ms": step(run(**BACKWARD | {"bucket_bytes": nbytes}, **where)), "no overlap": none}
        for bucket, nbytes in BUCKETS.items()
    ]


def best(rows):
    return min(range(len(rows)), key=lambda i: rows[i]["ms"])


def valley(values):
    """Return whether the values first fall and then rise."""
    low = values.index(min(values))
    return values[: low + 1] == sorted(values[: low + 1], reverse=True) and values[low:] == sorted(values[low:])


@figure(
    "How much more does overlap with the next forward pass gain?",
    source="Jayarajan et al. (P3), MLSys 2019; Peng et al. (ByteScheduler), SOSP 2019",
    claims={
        "first come, first served gains nothing over overlap with the backward pass alone": lambda rows: all(
            row["fifo"] > 0.99 * row["backward only"] for row in rows
        ),
        "with early layers first a step takes at least 8 % less time than first come, first served": lambda rows: all(
            row["priority"] < 0.92 * row["fifo"] for row in rows
        ),
        "with early layers first a step is longer than with a delay of one step, by less than 15 %": lambda rows: all(
            row["delay 1"] < row["priority"] < 1.15 * row["delay 1"] for row in rows
        ),
    },
    look=Look(
        "model",
        ("no overlap", "backward only", "fifo", "priority", "delay 1"),
        kind="bar",
        title="milliseconds of a step",
    ),
)
def next_forward(run):
    """The duration of a step in ms, if the all-reduce takes a quarter to a half longer than computing.

    There are two models: 18 equal layers, and convolutions before a dense layer with most of the parameters. The first
    layer's gradient is ready last and needed first.
    """
    equal = DEEP | {"latency": 0.0, "bandwidth": 6e8}, 1 << 20
    heavy = HEAVY_END | {"latency": 0.0, "bandwidth": 4e7}, 1024
    for model, (where, slices) in (("equal layers", equal), ("heavy end", heavy)):
        ways = {
            "no overlap": NONE,
            "backward only": BACKWARD,
            "fifo": FIFO,
            "priority": URGENT | {"slice": slices},
            "delay 1": DELAY,
        }
        yield {"model": model} | {name: step(run(**how, **where)) for name, how in ways.items()}


SLICES = 64, 128, 256, 512, 1024, 2048, 8192


@figure(
    "How small should the slices of a gradient be?",
    source="Jayarajan et al. (P3), MLSys 2019, section 5; Peng et al. (ByteScheduler), SOSP 2019",
    claims={
        "whole layers hold up more urgent ones": lambda rows: rows[-1]["ms"] > 1.02 * min(column(rows, "ms")),
        "small slices pay many start-up costs": lambda rows: rows[0]["ms"] > 1.1 * min(column(rows, "ms")),
        "the best slice size is neither the smallest nor the largest": lambda rows: 0 < best(rows) < len(rows) - 1,
    },
    look=Look("slice", ("ms",), log="x", title="milliseconds of a step"),
)
def slice_size(run):
    """The duration of a step in ms with early layers first, against the size of a slice in numbers. The dense layer at
    the end has four thousand numbers. A transfer is not preempted, so an urgent all-reduce waits for the slice before
    it.
    """
    where = HEAVY_END | {"latency": 0.0, "bandwidth": 4e7}
    return [{"slice": slices, "ms": step(run(**URGENT | {"slice": slices}, **where))} for slices in SLICES]


@figure(
    "How much faster is a step if gradients may be late?",
    source='Daily et al., "Leveraging Asynchronicity in Gradient Descent", OpenReview rkFd2P5gl',
    claims={
        "a delay never makes a step more than twice as fast": lambda rows: max(column(rows, "gain")) <= 2,
        "a delay makes a step over 1.8 times as fast where the all-reduce takes about as long as computing": (
            lambda rows: (
                max(column(rows, "gain")) > 1.8 and 0.5 < max(rows, key=lambda row: row["gain"])["sum/compute"] < 2
            )
        ),
        "with a delay, a step takes as long as computing or the all-reduce, whichever is longer": lambda rows: all(
            0.98 < row["delay 1"] / max(row["compute"], row["sum"]) < 1.06 for row in rows
        ),
        "a delay of two steps gains no more than a delay of one": lambda rows: all(
            abs(row["delay 2"] / row["delay 1"] - 1) < 0.01 for row in rows
        ),
    },
    look=Look(
        "MB/s",
        ("no overlap", "delay 1", "delay 2"),
        theory=("compute", "sum"),
        log="xy",
        title="milliseconds of a step",
    ),
)
def delay_gain(run):
    """The duration of a step in ms, against the bandwidth of a network without latency, with a delay of 0, 1 or 2
    steps. A gain of 1.7, the largest published, means that the shorter of computing and all-reduce took 0.7 times as
    long as the longer.
    """
    for bandwidth in BANDWIDTHS:
        where = DEEP | {"latency": 0.0, "bandwidth": bandwidth}
        alone = run(**NONE, **where)
        none, compute = step(alone), computing(alone)
        late = {f"delay {k}": step(run(**DELAY | {"delay": k, "layerwise": False}, **where)) for k in (1, 2)}
        summing = none - compute
        row = {"MB/s": MB * bandwidth, "sum/compute": summing / compute, "compute": compute, "sum": summing}
        yield row | {"no overlap": none} | late | {"gain": none / late["delay 1"]}


@figure(
    "What does a delay of gradients cost?",
    source="the stability of z^(k+1) = z^k - lr h; Daily et al., OpenReview rkFd2P5gl",
    claims={
        "at a delay of k the largest stable rate is 2 sin(pi / (4 k + 2)) over the curvature": lambda rows: all(
            abs(row["largest step"] / row["theory"] - 1) < 0.02 for row in rows
        ),
        "a delay of one step halves the largest stable rate": lambda rows: (
            abs(2 * value(rows, "largest step", delay=1) / value(rows, "largest step", delay=0) - 1) < 0.03
        ),
        "every further step of delay lowers the largest stable rate": lambda rows: (
            column(rows, "largest step") == sorted(column(rows, "largest step"), reverse=True)
        ),
    },
    look=Look("delay", ("largest step",), theory=("theory",), title="largest stable rate, times the curvature"),
)
def largest_step(run):
    """The largest learning rate, times the curvature, at which gradient descent on a bowl still converges, against the
    delay of the gradients. It is found by eight bisections.
    """
    for delay in (0, 1, 2, 3):
        low, high = 0.0, 2.56
        for _ in range(8):
            rate = (low + high) / 2
            low, high = (rate, high) if shrinks(run, delay, rate) else (low, rate)
        yield {"delay": delay, "largest step": low, "theory": largest_rate(delay)}


def shrinks(run, delay, rate):
    """Return whether the loss is lower at the end than shortly after the start."""
    bowl = {"workload": "quadratic", "dimension": 1, "points": 64, "precision": "float64"}
    how = DELAY | {"delay": delay, "learning_rate": rate, "workers": 1, "steps": 400, "evaluations": 1}
    losses = run(**how, **bowl).losses["loss"]
    return losses[-40:].max() < losses[40:80].max()


ALEXNET = {  # (inputs of a unit, units or feature maps, positions of the output that share the weights)
    "conv1": (11 * 11 * 3, 96, 55 * 55),
    "conv2": (5 * 5 * 48, 256, 27 * 27),
    "conv3": (3 * 3 * 256, 384, 13 * 13),
    "conv4": (3 * 3 * 192, 384, 13 * 13),
    "conv5": (3 * 3 * 192, 256, 13 * 13),
    "fc6": (6 * 6 * 256, 4096, 1),
    "fc7": (4096, 4096, 1),
    "fc8": (4096, 1000, 1),
}
PARAMETERS = [(inputs + 1) * units for inputs, units, _ in ALEXNET.values()]
FORWARD = [2 * (inputs + 1) * units * positions for inputs, units, positions in ALEXNET.values()]  # FLOPs of an image
IMAGES, ITEM = 128, 4  # for each GPU; bytes of a number
GPU, GPUS, ETHERNET = DEVICES["K40"], 8, NETWORKS["10GbE"].between
MESSAGE, SLICE_BYTES = 2e-5, 8e6  # s of latency; slices far longer on the wire than the 14 messages of their sum
WAYS = "layer by layer", "merged", "next forward", "delay"


@figure(
    "What does each way of overlapping gain as the network gets slower?",
    source="the closed forms of theory/overlap.py; layers of AlexNet: Krizhevsky, Sutskever & Hinton, NIPS 2012",
    claims={
        "a delay gains most, and never makes a step more than twice as fast": lambda rows: all(
            max(row[way] for way in WAYS) <= row["delay"] * (1 + 1e-9) <= 2 for row in rows
        ),
        "each way gains most where the all-reduce takes between half and twice as long as computing": lambda rows: all(
            0.5 < max(rows, key=lambda row: row[way])["sum/compute"] < 2 for way in WAYS
        ),
        "back-propagation hides at most its own time, two thirds of computing": lambda rows: all(
            row["no overlap"] * (1 - 1 / row["merged"]) <= 2 / 3 * row["compute"] * (1 + 1e-9) for row in rows
        ),
        "merged layers are never slower than layer by layer or one all-reduce at the end": lambda rows: all(
            row["merged"] >= max(row["layer by layer"], 1) * (1 - 1e-9) for row in rows
        ),
        "where the all-reduce takes longer than computing, hiding it behind the next forward pass, too, gains more": (
            lambda rows: all(row["next forward"] > row["merged"] for row in rows if row["sum/compute"] > 1)
        ),
    },
    look=Look("GB/s", WAYS, log="x", title="times as fast as without overlap"),
)
def every_way(run):
    """A step of AlexNet with 128 images on each of 8 GPUs at peak speed, and with a ring at 20 us per message. Most
    bytes come last in the forward pass and first in the backward pass, so much can be hidden. Closed forms only.
    """
    forward = [IMAGES * flops / GPU.flops for flops in FORWARD]
    for gigabytes in (0.1, 0.3, 1, 2, 3, 5, 10, 30, 100):
        line = overlap.Cost(2 * (GPUS - 1) * MESSAGE, share(GPUS) / (1e9 * gigabytes))
        p = overlap.StepCosts(forward, [2 * f for f in forward], [ITEM * k for k in PARAMETERS], line)
        none = overlap.no_overlap(p)
        times = (
            overlap.wait_free(p),
            overlap.wait_free(p, overlap.merge_buckets(p)),
            overlap.forward_overlap(p, most=SLICE_BYTES),
            overlap.delayed_update(p),
        )
        row = {"GB/s": gigabytes, "sum/compute": none / p.compute - 1, "compute": MS * p.compute}
        yield row | {"no overlap": MS * none} | {way: none / s for way, s in zip(WAYS, times, strict=True)}


TRANSFORMER = {"blocks": 32, "parameters": 2.5e8}  # weights of a block: 8 billion in all, each used once per token
HALF = 2  # bytes of a weight or gradient in mixed precision
H100, NDR, MANY_GPUS = 400e12, NETWORKS["NDR"].between, 64  # FLOP/s: we assume two fifths of the peak
HIDDEN = "after backward", "during backward", "early layers first"


@figure(
    "How many tokens does a GPU need to hide the all-reduce of a transformer's gradients?",
    source="the closed forms of theory/overlap.py; FLOPs per byte: Das et al., arXiv:1602.06709",
    claims={
        "computing takes longer with more tokens, the all-reduce does not": lambda rows: all(
            math.isclose(row["sum"], rows[0]["sum"]) and math.isclose(row["compute"], row["tokens"] * PER_TOKEN)
            for row in rows
        ),
        "the all-reduce takes more than twice as long as computing with 2,048 tokens, and under a fifth with 32,768": (
            lambda rows: (
                value(rows, "sum/compute", tokens=2048) > 2 and value(rows, "sum/compute", tokens=32768) < 1 / 5
            )
        ),
        "with 8,192 tokens or more, an all-reduce during the backward pass adds at most 5 % to the time of computing": (
            lambda rows: all(row["during backward"] < 1.05 for row in rows if row["tokens"] >= 8192)
        ),
        "with 2,048 tokens or fewer every way takes over 2.5 times as long as computing alone": lambda rows: all(
            min(row[way] for way in HIDDEN) > 2.5 for row in rows if row["tokens"] <= 2048
        ),
        "a model with a quarter of the weights needs just as many tokens": lambda rows: all(
            math.isclose(row["a quarter of the weights"], row["sum/compute"], rel_tol=0.03) for row in rows
        ),
    },
    look=Look("tokens", HIDDEN, log="xy", title="times as long as computing alone"),
)
def tokens_per_gpu(run):
    """A data-parallel step on 64 H100s at 400 TFLOP/s, against the number of tokens per GPU. Each GPU has its own
    400-gigabit InfiniBand port.

    The model has 8 billion weights in 32 equal blocks, gradients have two bytes per number, and the all-reduce is a
    ring. All weights belong to dense layers, and attention scores are not counted. Closed forms only; such a model
    needs sharded states, too.
    """
    for tokens in (1024, 2048, 4096, 8192, 16384, 32768, 65536):
        whole, quarter = (transformer(tokens, parameters) for parameters in (TRANSFORMER["parameters"], 0.625e8))
        seconds = (
            overlap.no_overlap(whole),
            overlap.wait_free(whole),
            overlap.forward_overlap(whole),
        )
        row = {"tokens": tokens, "compute": whole.compute, "sum": whole.line(sum(whole.sizes))}
        row |= {"sum/compute": row["sum"] / whole.compute}
        row |= {way: time / whole.compute for way, time in zip(HIDDEN, seconds, strict=True)}
        yield row | {"a quarter of the weights": quarter.line(sum(quarter.sizes)) / quarter.compute}


PER_TOKEN = 6 * TRANSFORMER["blocks"] * TRANSFORMER["parameters"] / H100  # s: two FLOPs forward, four backward


def transformer(tokens, parameters):
    """Return the costs of a transformer's step with `tokens` per GPU and `parameters` per block."""
    forward = [2 * tokens * parameters / H100] * TRANSFORMER["blocks"]
    line = overlap.Cost(2 * (MANY_GPUS - 1) * NDR.alpha, share(MANY_GPUS) / NDR.bandwidth)
    return overlap.StepCosts(forward, [2 * f for f in forward], [HALF * parameters] * len(forward), line)


@figure(
    "Can one profiled run predict the step time of every way of overlapping?",
    source="Shi et al. (MG-WFBP), INFOCOM 2019: layers are timed, and a line is fitted to the sums",
    claims={
        "the simulated step time matches the formula within 1 %": lambda rows: all(
            abs(row["ms"] / row["formula"] - 1) < 0.01 for row in rows
        ),
        "no way is faster than computing alone, or the all-reduce alone": lambda rows: all(
            row["ms"] > max(row["compute"], row["sum"]) * (1 - 1e-9) for row in rows
        ),
    },
    look=Look("MB/s", ("ms",), "way", theory=("formula",), log="xy", title="milliseconds of a step"),
)
def predicted(run):
    """The duration of a step of 4 workers in ms, against the bandwidth of a network without latency. Most parameters
    are in the last layers. The formulas use only what the layer-by-layer run shows: how long its layers and its
    all-reduces take.
    """
    most, least = 1024, 18_000  # numbers in a slice; bytes in a bucket, which the last two layers fill
    for bandwidth in (1e7, 2e7, 4e7, 8e7):
        where = HEAVY_END | {"latency": 0.0, "bandwidth": bandwidth, "steps": 12}
        by_layer = run(**BACKWARD, **where)
        p = profile(by_layer)
        sent = share(where["workers"])  # times that a worker sends each byte
        for way, done, seconds in (
            ("no overlap", run(**NONE, **where), overlap.no_overlap(p)),
            ("layer by layer", by_layer, overlap.wait_free(p)),
            (
                "in buckets",
                run(**BACKWARD | {"bucket_bytes": least}, **where),
                overlap.wait_free(p, overlap.fill_buckets(p, sent * least)),
            ),
            (
                "next forward",
                run(**URGENT | {"slice": most}, **where),
                overlap.forward_overlap(p, most=sent * ITEM * most),
            ),
            ("delay", run(**DELAY, **where), overlap.delayed_update(p)),
        ):
            row = {"way": way, "MB/s": MB * bandwidth, "ms": step(done), "formula": MS * seconds}
            yield row | {"compute": computing(done), "sum": MS * p.line(sum(p.sizes))}


def profile(done):
    """Return the costs of a step as a layer-by-layer run shows them on rank 0. Sizes are the bytes that the rank sends
    in a ring.
    """
    spans, messages = done.trace.spans, done.trace.messages
    mine = spans["rank"] == 0
    labels = (done.trace.labels[label] for label in spans["label"][mine])
    took = dict(zip(labels, spans["end"][mine] - spans["start"][mine], strict=True))
    sent, arrived, nbytes = (messages[name][messages["src"] == 0] for name in ("sent", "arrived", "bytes"))
    each, start = np.polyfit(nbytes, arrived - np.maximum(sent, np.append(0, arrived[:-1])), 1)
    layers = sum(label.startswith("F") for label in took)
    backward = [took[f"B{layer}"] for layer in range(layers)]
    backward[-1] += took["loss"]
    sizes = nbytes[:layers][::-1].tolist()
    update = overlap.Cost(each=took["sgd"] / sum(sizes))
    forward = [took[f"F{layer}"] for layer in range(layers)]
    return overlap.StepCosts(forward, backward, sizes, overlap.Cost(start, each), update=update)


@figure(
    "Which layers of AlexNet should not be replicated?",
    source="Krizhevsky, arXiv:1404.5997; FLOPs per byte: Das et al., arXiv:1602.06709",
    claims={
        "convolutions do over nine tenths of the computing, and dense layers over nine tenths of the sending": (
            lambda rows: part(rows, "compute", "conv") > 0.9 < part(rows, "sum", "fc")
        ),
        "on 10 Gb Ethernet each convolution takes longer to compute than to send": lambda rows: all(
            row["compute"] > row["sum"] for row in rows if row["layer"].startswith("conv")
        ),
        "each dense layer takes more than thirty times as long to send as to compute": lambda rows: all(
            row["sum"] > 30 * row["compute"] for row in rows if row["layer"].startswith("fc")
        ),
        "FLOPs per byte grow with the output positions, not with the parameters": lambda rows: all(
            row["FLOP/byte"] == rows[-1]["FLOP/byte"] * row["positions"] for row in rows
        ),
        "compute / sum is the layer's FLOPs per byte divided by the FLOPs that the GPU can do in the time of sending "
        "one byte": lambda rows: all(
            abs(row["FLOP/byte"] * ETHERNET.bandwidth / GPU.flops * row["sum"] / row["compute"] - 1) < 1e-9
            for row in rows
        ),
    },
    look=Look("layer", ("compute", "sum"), kind="bar", log="y", title="milliseconds of a step"),
)
def compute_per_byte(run):
    """The time of AlexNet's layers in ms: for the forward and backward pass, and for sending the gradient over 10 Gb
    Ethernet.

    Each of many GPUs runs at peak speed on 128 images. A weight of a convolution is used at every output position, a
    weight of a dense layer at one. Closed forms only.
    """
    for (layer, (*_, positions)), parameters, flops in zip(ALEXNET.items(), PARAMETERS, FORWARD, strict=True):
        yield {
            "layer": layer,
            "positions": positions,
            "parameters": parameters,
            "FLOP/byte": traffic.intensity(IMAGES, positions, ITEM),
            "compute": MS * 3 * IMAGES * flops / GPU.flops,
            "sum": MS * 2 * ITEM * parameters / ETHERNET.bandwidth,
        }


def part(rows, quantity, kind):
    """Return the fraction of a quantity that belongs to layers of this kind."""
    return sum(row[quantity] for row in rows if row["layer"].startswith(kind)) / sum(column(rows, quantity))


WIDTH, MANY = ALEXNET["fc7"][1], 64


@figure(
    "Below which batch should a dense layer be split rather than replicated?",
    source="Das et al., arXiv:1602.06709; Sridharan et al. (MLSL), arXiv:1801.08030",
    claims={
        "splitting sends less for a batch smaller than the layer is wide, replicating for a larger one": lambda rows: (
            all(
                np.sign(round(row["split"] - row["replicated"], 6)) == np.sign(row["batch of all"] - WIDTH)
                for row in rows
            )
        ),
        "the hybrid never sends more than splitting alone or replicating alone": lambda rows: all(
            row["hybrid"] <= min(row["split"], row["replicated"]) * (1 + 1e-9) for row in rows
        ),
        "where splitting sends as much as replicating, the hybrid sends about a quarter of that": lambda rows: (
            0.24
            < value(rows, "hybrid", **{"batch of all": WIDTH}) / value(rows, "split", **{"batch of all": WIDTH})
            < 0.25
        ),
        "with four times the batch, the best number of replicas doubles": lambda rows: (
            column(rows, "replicas") == [2.0**n for n in range(len(rows))]
        ),
        "no number of replicas sends less than the hybrid's": lambda rows: all(
            row["hybrid"] <= MB * traffic.hybrid(other, MANY, row["batch of all"], WIDTH) * (1 + 1e-9)
            for row in rows
            for other in divisors(MANY)
        ),
    },
    look=Look("batch of all", ("replicated", "split", "hybrid"), log="xy", title="MB from each worker"),
)
def split_or_replicate(run):
    """The data that each of 64 workers sends in a step for AlexNet's layer fc7, 4096 x 4096, in MB, against the global
    batch size.

    A replicated layer sends its gradient, a split one its activations; the hybrid, replicas that are split, sends both.
    Closed forms only; model_parallel.share_model_or_data measures the same on the simulated cluster.
    """
    for batch in (64, 256, 1024, 4096, 16384, 65536, 262144):
        replicas = traffic.best_replicas(MANY, batch, WIDTH)
        ways = {"replicated": MANY, "split": 1, "hybrid": replicas}
        sent = {way: MB * traffic.hybrid(groups, MANY, batch, WIDTH, ITEM) for way, groups in ways.items()}
        yield {"batch of all": batch, "replicas": replicas} | sent
