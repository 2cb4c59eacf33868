"""Compression: what a gradient may lose on its way, and when it is worth it."""

from itertools import pairwise
from math import sqrt

import numpy as np

from algorithms.compression import qsgd
from lessons.figure import column, figure, value
from tracing import COMMUNICATE, COMPUTE, UPDATE

BIASED = ("one_bit", "power_sgd", "top_k", "threshold")
UNBIASED = ("qsgd", "terngrad")
EXACT = ("bf16", "int8")  # nearly
STEPS = 120
PLAIN = {"learning_rate": 0.2, "steps": STEPS, "evaluations": 1}


def kept(rows, codec):
    """How many times the loss is larger without error feedback."""
    return value(rows, "loss", codec=codec, feedback="off") / value(rows, "loss", codec=codec, feedback="on")


@figure(
    "What becomes of what a code leaves out?",
    source="Seide et al., 2014; Karimireddy, Rebjock, Stich & Jaggi, 2019",
    claims={
        "kept for the next gradient, it costs no biased code more than a quarter of the loss": lambda rows: all(
            value(rows, "loss", codec=codec, feedback="on") < 1.25 * value(rows, "loss", codec="none", feedback="off")
            for codec in BIASED
        ),
        "lost, it makes the loss of every biased code at least twice as large": lambda rows: all(
            kept(rows, codec) > 2 for codec in BIASED
        ),
        "codes that are right in the mean, or nearly right, do not need it": lambda rows: all(
            0.8 < kept(rows, codec) < 1.25 for codec in UNBIASED + EXACT
        ),
    },
)
def error_feedback(run):
    """Every code with the same steps, with and without error feedback; loss is that of the last 20 mini-batches."""
    rows = [{"codec": "none", "feedback": "off", "loss": run(**PLAIN).summary["loss"]}]
    for codec in BIASED + UNBIASED + EXACT:
        for feedback in ("on", "off"):
            done = run(compression=codec, error_feedback=feedback == "on", **PLAIN)
            rows.append({"codec": codec, "feedback": feedback, "loss": done.summary["loss"]})
    return rows


@figure(
    "How few bytes does a gradient need?",
    source="Strom, 2015; Lin et al., 2018; Vogels et al., 2019",
    claims={
        "a twentieth of the bytes need cost nothing": lambda rows: (
            min(row["loss"] for row in rows if row["times fewer"] > 20) < 1.1 * value(rows, "loss", codec="none")
        ),
        "among equal codes fewer bytes are paid for in loss in the end": lambda rows: (
            losses(rows, "top_k")[0] < losses(rows, "top_k")[-1] / 1.2
            and losses(rows, "threshold")[0] < losses(rows, "threshold")[-1] / 1.2
        ),
        "whose bytes they are matters more than how many: random places do worse with ten times as many": lambda rows: (
            value(rows, "loss", codec="random_k 0.01") > value(rows, "loss", codec="top_k 0.001")
        ),
    },
)
def bytes_against_loss(run):
    """Codes by the bytes that a worker sends in a step, indices and scales counted, and the loss at the end."""
    codes = [("none", {}), ("bf16", {}), ("int8", {}), ("qsgd", {"levels": 1}), ("one_bit", {}), ("power_sgd", {})]
    codes += [("top_k", {"density": density}) for density in (0.1, 0.01, 0.001)]
    codes += [("random_k", {"density": 0.01})]
    codes += [("threshold", {"threshold": tau}) for tau in (0.05, 0.2, 1.0)]
    rows = []
    for codec, settings in codes:
        done = run(compression=codec, **PLAIN, **settings)
        sent = done.summary["bytes"] / (STEPS * 4)
        rows.append(
            {
                "codec": " ".join([codec, *map(str, settings.values())]),
                "bytes per step and worker": sent,
                "times fewer": rows[0]["bytes per step and worker"] / sent if rows else 1.0,
                "loss": done.summary["loss"],
            }
        )
    return rows


def losses(rows, codec):
    """Of one codec, from many bytes to few."""
    return [row["loss"] for row in rows if row["codec"].startswith(codec)]


@figure(
    "When does a sparse gradient cost more than a dense one?",
    source="Lin et al., 2018; Renggli et al., 2019",
    claims={
        "with a density of one in N it moves exactly the bytes of the dense ring": lambda rows: (
            column(rows, "times dense", density="1/N") == [1.0] * 5
        ),
        "with twice that density it moves twice as many, with half of it half": lambda rows: (
            column(rows, "times dense", density="2/N") == [2.0] * 5
            and column(rows, "times dense", density="1/(2N)") == [0.5] * 5
        ),
        "one number in 16 is a bargain for two workers and a bad deal for thirty-two": lambda rows: (
            value(rows, "times dense", density="1/16", workers=2) < 0.2
            and value(rows, "times dense", density="1/16", workers=32) == 2
        ),
    },
)
def break_even(run):
    """Everybody's chosen numbers go to everybody, an index with each: the traffic of a worker grows with N.

    The dense ring moves 2 d (N-1)/N numbers per worker and is full. A gradient of 4,096 numbers, one step of it.
    """
    rows = []
    for workers in (2, 4, 8, 16, 32):
        for name, density in (("1/(2N)", 0.5 / workers), ("1/N", 1 / workers), ("2/N", 2 / workers), ("1/16", 1 / 16)):
            sparse = {"compression": "top_k", "density": min(density, 1)}
            done = run(
                **sparse, workers=workers, workload="quadratic", dimension=4096, points=32, batch=1, steps=1,
                learning_rate=0.1, evaluations=1,
            )  # fmt: skip
            dense = 2 * (workers - 1) * 4096 * 4
            rows.append({"workers": workers, "density": name, "times dense": done.summary["bytes"] / dense})
    return rows


def by_bytes(rows, bandwidth):
    """The gains of all codes, the one with most bytes first."""
    some = [row for row in rows if row["bandwidth"] == bandwidth and row["codec"] != "none"]
    return [row["gain"] for row in sorted(some, key=lambda row: row["times fewer"])]


CODES = {"none": {}, "bf16": {}, "one_bit": {}, "top_k": {"density": 0.01}, "power_sgd": {}}


@figure(
    "When does compression pay?",
    source="Xu et al., 2021; Agarwal et al., 2022",
    claims={
        "on a slow network every code pays, the more the fewer bytes it makes": lambda rows: (
            by_bytes(rows, 1e7) == sorted(by_bytes(rows, 1e7)) and by_bytes(rows, 1e7)[0] > 1.9
        ),
        "on a fast one none does: what is left is the arithmetic of encoding": lambda rows: (
            max(by_bytes(rows, 1e12)) < 0.95
        ),
        "the gain of every code falls as the network gets faster": lambda rows: all(
            gains == sorted(gains, reverse=True)
            for gains in (column(rows, "gain", codec=codec) for codec in CODES if codec != "none")
        ),
        "a step of whole gradients waits for the network until that is 1,000 times as fast": lambda rows: (
            column(rows, "bound by", codec="none") == ["network"] * 3 + ["gradient"] * 3
        ),
        "one of single bits soon waits for encoding": lambda rows: (
            column(rows, "bound by", codec="one_bit") == ["network"] + ["encoding"] * 5
        ),
    },
)
def when_it_pays(run):
    """The time of a step of 8 workers on a model of 300,000 numbers, at bandwidths from 10 MB/s to 1 TB/s.

    Nothing overlaps, so all of the network's time counts; where it hides behind back-propagation there is less to gain.
    """
    rows = []
    for bandwidth in (1e7, 1e8, 1e9, 1e10, 1e11, 1e12):
        plain = None
        for codec, settings in CODES.items():
            done = run(
                compression=codec, **settings, workers=8, hidden="512,512", bandwidth=bandwidth, latency=5e-6,
                **PLAIN | {"steps": 2},
            )  # fmt: skip
            seconds = done.summary["seconds"] / 2
            plain = plain or seconds
            busy = done.trace.busy()[0]
            parts = {"network": busy[COMMUNICATE], "encoding": busy[UPDATE], "gradient": busy[COMPUTE]}
            rows.append(
                {
                    "bandwidth": bandwidth,
                    "codec": codec,
                    "times fewer": done.summary["compression_ratio"] or 1.0,
                    "step": seconds,
                    "gain": plain / seconds,
                    "bound by": max(parts, key=parts.get),
                }
            )
    return rows


@figure(
    "How fast can a step become if almost nothing is sent?",
    source="Vogels et al., 2019; Agarwal et al., 2022",
    claims={
        "a tenth of the numbers less, and then a tenth of those, gains ever less": lambda rows: (
            value(rows, "step", codec="top_k 0.001") > 0.95 * value(rows, "step", codec="top_k 0.01")
        ),
        "N - 1 latencies stay, half of what a ring of whole gradients has": lambda rows: all(
            0.45 < value(rows, "step", codec=codec) / value(rows, "step", codec="none") < 0.55
            for codec in ("top_k 0.01", "top_k 0.001")
        ),
        "random places are summed by a ring like whole gradients, and gain nothing": lambda rows: (
            value(rows, "step", codec="random_k 0.01") > 0.95 * value(rows, "step", codec="none")
        ),
        "PowerSGD, which meets twice, is slower than no compression": lambda rows: (
            value(rows, "step", codec="power_sgd") > 1.5 * value(rows, "step", codec="none")
        ),
    },
)
def latency_floor(run):
    """A step of 8 workers on a small model, 26,000 numbers, over links of 1 ms and 10 Gbit/s: latency is everything."""
    codes = [("none", {}), ("power_sgd", {}), ("random_k", {"density": 0.01})]
    codes += [("top_k", {"density": density}) for density in (0.1, 0.01, 0.001)]
    rows = []
    for codec, settings in codes:
        done = run(compression=codec, **settings, workers=8, latency=1e-3, **PLAIN | {"steps": 3})
        name = " ".join([codec, *map(str, settings.values())])
        rows.append({"codec": name, "bytes": done.summary["bytes"] // 24, "step": done.summary["seconds"] / 3})
    return rows


@figure(
    "Which threshold is right?",
    source="Strom, 2015",
    claims={
        "a larger threshold sends less": lambda rows: (
            column(rows, "bytes") == sorted(column(rows, "bytes"), reverse=True)
        ),
        "too small a threshold sends as much as whole gradients do, and falls behind all the same": lambda rows: (
            rows[0]["times fewer"] < 2 and rows[0]["loss"] > 1.3 * min(column(rows, "loss"))
        ),
        "too large a threshold lets small gradients wait too long": lambda rows: (
            rows[-1]["loss"] > 2 * min(column(rows, "loss"))
        ),
        "in between there is one for a hundredth of the bytes and less than half more loss": lambda rows: any(
            row["times fewer"] > 100 and row["loss"] < 1.5 * min(column(rows, "loss")) for row in rows
        ),
    },
)
def threshold(run):
    """The same steps at thresholds from far too small to far too large: what is sent is at most tau per step."""
    rows = []
    for tau in (0.002, 0.01, 0.05, 0.2, 1.0, 5.0):
        done = run(compression="threshold", threshold=tau, **PLAIN)
        s = done.summary
        rows.append({"tau": tau, "bytes": s["bytes"], "times fewer": s["compression_ratio"], "loss": s["loss"]})
    return rows


@figure(
    "Where does momentum belong when most of a gradient is late?",
    source="Lin, Han, Mao, Wang & Dally, 2018, section 3.2",
    claims={
        "momentum after the exchange, on what arrives, ends at least a third higher": lambda rows: all(
            value(rows, "loss", density=density, momentum="after")
            > 4 / 3 * value(rows, "loss", density=density, momentum="before")
            for density in (0.003, 0.001)
        ),
        "before it, at the workers, thirty times fewer bytes end at a few times what whole gradients do": lambda rows: (
            value(rows, "loss", density=0.003, momentum="before") < 5 * value(rows, "loss", density=1)
            and value(rows, "bytes", density=0.003, momentum="before") < value(rows, "bytes", density=1) / 30
        ),
        "forty steps of falling density send more than all that follow": lambda rows: (
            value(rows, "bytes", density=0.003, momentum="before, warm-up")
            > 2 * value(rows, "bytes", density=0.003, momentum="before")
        ),
    },
)
def momentum_correction(run):
    """Deep gradient compression with its momentum taken out and given to the method instead: the same bytes.

    200 steps of 4 workers, rate 0.05, momentum 0.9. What is sent late then gets its momentum from the day it arrives,
    not from the day it was due. Factor masking, the paper's other remedy, is on; on a problem this small it is no help.
    """
    method = {"learning_rate": 0.05, "batch": 16, "steps": 200, "evaluations": 1}
    outside = {"update": "momentum", "momentum": 0.9}
    done = run(**method, **outside)
    rows = [{"density": 1, "momentum": "whole", "bytes": done.summary["bytes"], "loss": done.summary["loss"]}]
    for density in (0.003, 0.001):
        for where, settings in (
            ("after", {**outside, "momentum_correction": 0, "density_steps": 0}),
            ("before", {"momentum_correction": 0.9, "density_steps": 0}),
            ("before, warm-up", {"momentum_correction": 0.9, "density_steps": 10}),
        ):
            s = run(**method, compression="dgc", density=density, **settings).summary
            rows.append({"density": density, "momentum": where, "bytes": s["bytes"], "loss": s["loss"]})
    return rows


# ---- figures of the dense codes of their own go below this line ----


@figure(
    "How much noise may a code make that is right in the mean?",
    source="Alistarh, Grubic, Li, Tomioka & Vojnovic, 2017",
    claims={
        "the noise is within the bound of theory, which is the smaller of d/s^2 and sqrt(d)/s": lambda rows: all(
            row["noise"] <= row["bound"] for row in rows
        ),
        "fewer levels are noisier, and so are larger buckets": lambda rows: (
            column(rows, "noise", workers=2, bucket=1024) == sorted(column(rows, "noise", workers=2, bucket=1024))[::-1]
            and all(
                value(rows, "noise", workers=2, bucket=1024, levels=levels)
                > 2 * value(rows, "noise", workers=2, bucket=64, levels=levels)
                for levels in (1, 4, 16)
            )
        ),
        "one level in buckets of 1,024 diverges at this rate, though it is right in the mean": lambda rows: (
            value(rows, "progress", workers=2, bucket=1024, levels=1) < 0
        ),
        "more levels, smaller buckets, or more workers, whose noises cancel: each of them cures it": lambda rows: (
            value(rows, "progress", workers=2, bucket=1024, levels=4) > 5
            and value(rows, "progress", workers=2, bucket=64, levels=1) > 2
            and value(rows, "progress", workers=16, bucket=1024, levels=1) > 5
        ),
        "where the noise is smaller than the gradient it costs hardly anything": lambda rows: all(
            row["progress"] > 0.97 * value(rows, "progress", levels="all") for row in rows if row["noise"] < 1
        ),
    },
)
def levels(run):
    """QSGD with buckets' lengths on a bowl of 1,024 numbers without noise of its own, at a rate of 1/2.

    Noise is E |q - v|^2 / |v|^2 of a bucket of normal numbers; progress is how many powers of ten the loss fell in 100
    steps. Of a number's square, a step of rate r leaves (1 - r)^2 + r^2 noise / N, in the mean and at curvature 1: at
    r = 1/2 it grows as soon as noise / N is above 3.
    """
    bowl = {"workload": "quadratic", "dimension": 1024, "condition": 10, "points": 64, "batch": 1}
    course = {"learning_rate": 0.5, "steps": 100, "evaluations": 2, "precision": "float64"}
    rows = []
    for workers in (2, 16):
        for bucket in (1024, 64):
            for s in (1, 4, 16):
                code = {"compression": "qsgd", "norm": "2", "levels": s, "bucket": bucket}
                loss = run(workers=workers, **code, **bowl, **course).evaluations["loss"]
                rows.append(
                    {
                        "workers": workers,
                        "bucket": bucket,
                        "levels": s,
                        "bits": (2 * s).bit_length(),
                        "bound": min(bucket / s**2, sqrt(bucket) / s),
                        "noise": noise(run, s, bucket),
                        "progress": float(np.log10(loss[0] / loss[-1])),
                    }
                )
    loss = run(workers=2, **bowl, **course).evaluations["loss"]
    whole = {"workers": 2, "bucket": 1, "levels": "all", "bits": 64, "bound": 0.0, "noise": 0.0}
    return [*rows, whole | {"progress": float(np.log10(loss[0] / loss[-1]))}]


def noise(run, s, bucket):
    """E |q - v|^2 / |v|^2 of a bucket of normal numbers, thrown a hundred times."""
    v, squares = np.random.default_rng(run.seed).standard_normal(bucket), []
    settings, q = qsgd.Settings(levels=s, bucket=bucket, norm="2"), np.empty(bucket)
    codec = qsgd.Codec(settings, ((slice(0, bucket), (bucket,)),), 0, 1, 0)
    for _ in range(100):
        codec.decode(codec.encode(v), q)
        squares.append(np.square(q - v).sum())
    return float(np.mean(squares) / (v @ v))


@figure(
    "How many directions does a gradient have?",
    source="Vogels, Karimireddy & Jaggi, 2019",
    claims={
        "one direction and what it leaves out, kept, come within a twentieth of whole gradients' loss": lambda rows: (
            value(rows, "loss", directions=1, feedback="on") < 1.05 * value(rows, "loss", directions="all")
        ),
        "without what it leaves out it takes sixteen": lambda rows: (
            column(rows, "loss", feedback="off")[:-1] == sorted(column(rows, "loss", feedback="off")[:-1])[::-1]
            and value(rows, "loss", directions=8, feedback="off") > 1.03 * value(rows, "loss", directions="all")
            and value(rows, "loss", directions=16, feedback="off") < 1.05 * value(rows, "loss", directions="all")
        ),
        "twice the directions are less than twice the bytes, since what is small goes as it is": lambda rows: all(
            1.5 < more / fewer < 2 for fewer, more in pairwise(column(rows, "bytes", feedback="on"))
        ),
    },
)
def directions(run):
    """PowerSGD with more and more directions, with and without error feedback; the loss of the last 20 mini-batches."""
    rows = []
    for feedback in ("on", "off"):
        for r in (1, 2, 4, 8, 16):
            code = {"compression": "power_sgd", "directions": r, "least_compression": 1}
            s = run(**code, error_feedback=feedback == "on", **PLAIN).summary
            rows.append({"directions": r, "feedback": feedback, "bytes": s["bytes"], "loss": s["loss"]})
    s = run(**PLAIN).summary
    return [*rows, {"directions": "all", "feedback": "off", "bytes": s["bytes"], "loss": s["loss"]}]


RATES = (0.001, 0.003, 0.03, 0.3, 1.0)


def best(rows, code):
    """The rate with the lowest loss."""
    return min((row["loss"], row["rate"]) for row in rows if row["code"] == code)[1]


@figure(
    "Which learning rate is right for signs?",
    source="Bernstein, Wang, Azizzadenesheli & Anandkumar, 2018; Karimireddy et al., 2019",
    claims={
        "the best rate of a majority vote is a hundredth of SGD's, or less": lambda rows: (
            best(rows, "sign") <= best(rows, "none") / 100
        ),
        "at that of SGD it learns nothing": lambda rows: value(rows, "loss", code="sign", rate=best(rows, "none")) > 2,
        "signs that bring their size, and keep what they leave out, take SGD's rates": lambda rows: all(
            value(rows, "loss", code="sign, sizes", rate=rate) < 1.1 * value(rows, "loss", code="none", rate=rate)
            for rate in RATES
        ),
    },
)
def sign_rates(run):
    """The same steps at rates from 0.001 to 1: a vote moves every number by the whole rate, whatever its gradient."""
    codes = {"none": {}, "sign": {"compression": "sign"}}
    codes["sign, sizes"] = {"compression": "sign", "error_feedback": True}
    rows = []
    for rate in RATES:
        for code, settings in codes.items():
            done = run(**PLAIN | {"learning_rate": rate}, **settings)
            rows.append({"rate": rate, "code": code, "loss": done.summary["loss"]})
    return rows
