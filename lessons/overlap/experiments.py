"""Overlap: summing gradients while something else is computed, and what that can and cannot hide."""

from __future__ import annotations

import math

from lessons.figure import column, figure, value

MS = 1e3
DEEP = {"model": "residual", "depth": 16, "width": 96, "workers": 4, "steps": 8, "evaluations": 1}
HEAVY_END = {"model": "cnn", "batch": 128, "workers": 4, "steps": 8, "evaluations": 1}  # most parameters come last
WHOLE = 1 << 30  # one bucket for everything; slices that cut nothing

NONE = {"algorithm": "sync_sgd"}
BACKWARD = {"algorithm": "overlap", "bucket_bytes": 0}
FIFO = {"algorithm": "priority", "order": "fifo", "slice": WHOLE}
URGENT = {"algorithm": "priority"}
DELAY = {"algorithm": "delayed"}


def step(done):
    """Milliseconds of a step, once the first ones are over."""
    at = done.losses["seconds"][done.losses["rank"] == 0]
    return MS * (at[-1] - at[-5]) / 4


def computing(done):
    """Milliseconds of a step that a worker computes."""
    busy = done.trace.busy()
    return MS * (busy[0, 0] + busy[0, 1]) / done.summary["steps"]


BANDWIDTHS = 3e7, 1e8, 3e8, 1e9, 1.7e9, 3e9, 1e10


@figure(
    "What is gained by summing gradients during back-propagation?",
    source="Zhang et al. (Poseidon), USENIX ATC 2017, section 3",
    claims={
        "it is never slower": lambda rows: all(row["gain"] > 0.999 for row in rows),
        "little is gained where the network is much slower or much faster than the workers": lambda rows: (
            max(rows[0]["gain"], rows[-1]["gain"]) < 1.2 < 1.4 < max(column(rows, "gain"))
        ),
        "most is gained where summing takes about as long as back-propagation, two thirds of computing": lambda rows: (
            0.4 < max(rows, key=lambda row: row["gain"])["sum/compute"] < 1
        ),
        "even there the forward pass hides nothing: less than 5/3": lambda rows: max(column(rows, "gain")) < 5 / 3,
    },
)
def back_propagation(run):
    """Milliseconds of a step of 18 layers on 4 workers, over the bandwidth of a network without latency. What can be
    hidden is the smaller of the two: summing, and back-propagation, which is two thirds of computing."""
    rows = []
    for bandwidth in BANDWIDTHS:
        where = DEEP | {"latency": 0.0, "bandwidth": bandwidth}
        alone = run(**NONE, **where)
        none, overlap = step(alone), step(run(**BACKWARD, **where))
        ratio = none / computing(alone) - 1
        rows.append(
            {
                "bandwidth": bandwidth,
                "sum/compute": ratio,
                "no overlap": none,
                "overlap": overlap,
                "gain": none / overlap,
            }
        )
    return rows


LATENCIES = 0.0, 2e-6, 5e-6, 1e-5, 2e-5
BUCKET = 131_072  # bytes


@figure(
    "When is it slower to send every layer as soon as it is ready?",
    source="Shi et al. (MG-WFBP), INFOCOM 2019",
    claims={
        "without latency layer by layer is faster than in buckets": lambda rows: (
            rows[0]["by layer"] < rows[0]["in buckets"] < rows[0]["no overlap"]
        ),
        "with latency it is slower than not to overlap at all": lambda rows: (
            rows[-1]["by layer"] > 1.3 * rows[-1]["no overlap"]
        ),
        "since every layer pays for it again": lambda rows: rise(rows, "by layer") > 10 * rise(rows, "no overlap"),
        "gathered in buckets layers are faster than both": lambda rows: all(
            row["in buckets"] < min(row["by layer"], row["no overlap"]) for row in rows[1:]
        ),
        "sums that may be under way at once pay for it at once": lambda rows: (
            rise(rows, "at once") < rise(rows, "in buckets") and rows[-1]["at once"] < rows[-1]["in buckets"]
        ),
    },
)
def small_layers(run):
    """Milliseconds of a step over the latency of a message. A ring of 4 pays it six times for a sum, and 18 layers are
    18 sums. They go one after the other, as on one stream of a GPU; "at once" is layer by layer with every message for
    itself, as with a communicator for each layer."""
    ways = {
        "no overlap": NONE,
        "by layer": BACKWARD,
        "in buckets": BACKWARD | {"bucket_bytes": BUCKET},
        "at once": BACKWARD | {"collective": "ring"},
    }
    rows = []
    for seconds in LATENCIES:
        where = DEEP | {"latency": seconds, "bandwidth": 1e9}
        rows.append({"latency": seconds} | {name: step(run(**how, **where)) for name, how in ways.items()})
    return rows


def rise(rows, name):
    """Milliseconds more, from the first row to the last."""
    return rows[-1][name] - rows[0][name]


BUCKETS = 0, 50_000, 100_000, 150_000, 220_000, 330_000, 440_000, WHOLE


@figure(
    "How large should a bucket be?",
    source="Shi et al. (MG-WFBP), INFOCOM 2019; buckets as in PyTorch's DistributedDataParallel",
    claims={
        "the best is neither the smallest nor the largest": lambda rows: 0 < best(rows) < len(rows) - 1,
        "towards it a step only gets faster, and beyond it only slower": lambda rows: valley(column(rows, "ms")),
        "one bucket for everything is no overlap": lambda rows: (
            abs(value(rows, "ms", bucket=WHOLE) / rows[0]["no overlap"] - 1) < 1e-6
        ),
    },
)
def bucket_size(run):
    """Milliseconds of a step over the bytes of a bucket. Small ones pay for many starts, large ones leave late: the
    network stands still until the first is full, and the workers stand still until the last has come."""
    where = DEEP | {"latency": 1e-5, "bandwidth": 1e9}
    none = step(run(**NONE, **where))
    return [
        {"bucket": bucket, "ms": step(run(**BACKWARD | {"bucket_bytes": bucket}, **where)), "no overlap": none}
        for bucket in BUCKETS
    ]


def best(rows):
    return min(range(len(rows)), key=lambda i: rows[i]["ms"])


def valley(values):
    """Whether they fall and then rise."""
    low = values.index(min(values))
    return values[: low + 1] == sorted(values[: low + 1], reverse=True) and values[low:] == sorted(values[low:])


@figure(
    "What more is gained by summing during the next forward pass?",
    source="Jayarajan et al. (P3), MLSys 2019; Peng et al. (ByteScheduler), SOSP 2019",
    claims={
        "first come, first served gains nothing": lambda rows: all(
            row["fifo"] > 0.99 * row["backward only"] for row in rows
        ),
        "early layers first: a step is a good deal shorter": lambda rows: all(
            row["priority"] < 0.92 * row["fifo"] for row in rows
        ),
        "it comes near to a delay of one step, without the delay": lambda rows: all(
            row["delay 1"] < row["priority"] < 1.15 * row["delay 1"] for row in rows
        ),
    },
)
def next_forward(run):
    """Milliseconds of a step, where summing takes about as long as computing: 18 equal layers, and convolutions before
    a dense layer that has most of the parameters. The first layer's gradient comes last and is needed first."""
    equal = DEEP | {"latency": 0.0, "bandwidth": 6e8}, 1 << 20
    heavy = HEAVY_END | {"latency": 0.0, "bandwidth": 4e7}, 1024
    rows = []
    for model, (where, slices) in (("equal layers", equal), ("heavy end", heavy)):
        ways = {
            "no overlap": NONE,
            "backward only": BACKWARD,
            "fifo": FIFO,
            "priority": URGENT | {"slice": slices},
            "delay 1": DELAY,
        }
        rows.append({"model": model} | {name: step(run(**how, **where)) for name, how in ways.items()})
    return rows


SLICES = 64, 128, 256, 512, 1024, 2048, 8192


@figure(
    "In how small slices should gradients travel?",
    source="Jayarajan et al. (P3), MLSys 2019, section 5; Peng et al. (ByteScheduler), SOSP 2019",
    claims={
        "whole layers are in the way of more urgent ones": lambda rows: rows[-1]["ms"] > 1.02 * min(column(rows, "ms")),
        "small slices pay for many starts": lambda rows: rows[0]["ms"] > 1.1 * min(column(rows, "ms")),
        "the best is in between": lambda rows: 0 < best(rows) < len(rows) - 1,
    },
)
def slice_size(run):
    """Milliseconds of a step with early layers first, over the numbers of a slice. The dense layer at the end has four
    thousand; what is on the wire is not stopped, so an urgent sum waits for the slice before it."""
    where = HEAVY_END | {"latency": 0.0, "bandwidth": 4e7}
    return [{"slice": slices, "ms": step(run(**URGENT | {"slice": slices}, **where))} for slices in SLICES]


@figure(
    "How much faster is a step whose gradients may be late?",
    source='"Leveraging Asynchronicity in Gradient Descent for Scalable Deep Learning", OpenReview rkFd2P5gl',
    claims={
        "never more than twice": lambda rows: max(column(rows, "gain")) <= 2,
        "nearly twice where summing takes as long as computing": lambda rows: (
            max(column(rows, "gain")) > 1.8 and 0.5 < max(rows, key=lambda row: row["gain"])["sum/compute"] < 2
        ),
        "a step takes the longer of the two": lambda rows: all(
            0.98 < row["delay 1"] / max(row["compute"], row["sum"]) < 1.06 for row in rows
        ),
        "a longer delay gains nothing more": lambda rows: all(
            abs(row["delay 2"] / row["delay 1"] - 1) < 0.01 for row in rows
        ),
    },
)
def delay_gain(run):
    """Milliseconds of a step over the bandwidth of a network without latency, with no delay and with one or two steps.
    A gain of 1.7, the most that was published, says that the smaller of the two was 0.7 of the larger."""
    rows = []
    for bandwidth in BANDWIDTHS:
        where = DEEP | {"latency": 0.0, "bandwidth": bandwidth}
        alone = run(**NONE, **where)
        none, compute = step(alone), computing(alone)
        late = {f"delay {k}": step(run(**DELAY | {"delay": k, "layerwise": False}, **where)) for k in (1, 2)}
        summing = none - compute
        row = {"bandwidth": bandwidth, "sum/compute": summing / compute, "compute": compute, "sum": summing}
        rows.append(row | {"no overlap": none} | late | {"gain": none / late["delay 1"]})
    return rows


@figure(
    "What does lateness cost?",
    source='Stability of z^(k+1) = z^k - lr h; "Leveraging Asynchronicity in Gradient Descent", OpenReview rkFd2P5gl',
    claims={
        "the largest stable step is 2 sin(pi / (4 k + 2)) over the curvature": lambda rows: all(
            abs(row["largest step"] / row["theory"] - 1) < 0.02 for row in rows
        ),
        "a delay of one step halves it": lambda rows: (
            abs(2 * value(rows, "largest step", delay=1) / value(rows, "largest step", delay=0) - 1) < 0.03
        ),
        "every further step shrinks it": lambda rows: (
            column(rows, "largest step") == sorted(column(rows, "largest step"), reverse=True)
        ),
    },
)
def largest_step(run):
    """The largest learning rate, times the curvature, at which gradient descent on a bowl still shrinks, over the
    delay: found by halving an interval eight times."""
    rows = []
    for delay in (0, 1, 2, 3):
        low, high = 0.0, 2.56
        for _ in range(8):
            rate = (low + high) / 2
            low, high = (rate, high) if shrinks(run, delay, rate) else (low, rate)
        rows.append({"delay": delay, "largest step": low, "theory": 2 * math.sin(math.pi / (4 * delay + 2))})
    return rows


def shrinks(run, delay, rate):
    """Whether the loss is lower at the end than a little after the start."""
    bowl = {"workload": "quadratic", "dimension": 1, "points": 64, "precision": "float64"}
    how = DELAY | {"delay": delay, "learning_rate": rate, "workers": 1, "steps": 400, "evaluations": 1}
    losses = run(**how, **bowl).losses["loss"]
    return losses[-40:].max() < losses[40:80].max()
