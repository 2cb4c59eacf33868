"""Figures on compression: what a gradient can lose in transit, and when that pays."""

from itertools import pairwise
from math import inf, sqrt

import numpy as np

from algorithms.compression import qsgd
from lessons.figure import Look, column, figure, interior, is_falling, ratio, value
from tracing import COMMUNICATE, COMPUTE, UPDATE

BIASED = ("one_bit", "power_sgd", "top_k", "threshold")
UNBIASED = ("qsgd", "terngrad")
EXACT = ("bf16", "int8")  # nearly
STEPS = 120
PLAIN = {"learning_rate": 0.2, "steps": STEPS, "evaluations": 1}


@figure(
    "What does error feedback gain?",
    source="Seide et al., 2014; Karimireddy, Rebjock, Stich & Jaggi, 2019",
    claims={
        "with error feedback, every biased codec's loss is under a quarter above the uncompressed loss": lambda rows: (
            all(
                ratio(rows, "loss", codec=(codec, "none"), feedback=("with feedback", "without")) < 1.25
                for codec in BIASED
            )
        ),
        "error feedback more than halves the loss of every biased codec": lambda rows: all(
            ratio(rows, "loss", codec=codec, feedback=("without", "with feedback")) > 2 for codec in BIASED
        ),
        "error feedback changes the loss of unbiased and nearly exact codecs by less than a factor of 1.5": (
            lambda rows: all(
                2 / 3 < ratio(rows, "loss", codec=codec, feedback=("without", "with feedback")) < 1.5
                for codec in UNBIASED + EXACT
            )
        ),
    },
    look=Look("codec", ("loss",), "feedback", kind="bar", log="y", title="training loss"),
)
def error_feedback(run):
    """Training with every codec for the same number of steps at learning rate 0.2, with and without error feedback. The
    loss is the mean over the last 20 mini-batches.
    """
    yield {"codec": "none", "feedback": "without", "loss": run(**PLAIN).summary["loss"]}
    for codec in BIASED + UNBIASED + EXACT:
        for feedback in ("with feedback", "without"):
            done = run(compression=codec, error_feedback=feedback != "without", **PLAIN)
            yield {"codec": codec, "feedback": feedback, "loss": done.summary["loss"]}


@figure(
    "How few bytes does a gradient need?",
    source="Strom, 2015; Lin et al., 2018; Vogels et al., 2019",
    claims={
        "the best codec that sends under 1/20 of all bytes has a loss under a fifth above the uncompressed one": (
            lambda rows: (
                min(row["loss"] for row in rows if row["times fewer"] > 20) < 1.2 * value(rows, "loss", codec="none")
            )
        ),
        "top_k and threshold end at a higher loss if they send the fewest bytes than if they send the most": (
            lambda rows: all(losses(rows, codec)[0] < losses(rows, codec)[-1] for codec in ("top_k", "threshold"))
        ),
        "which numbers are sent matters more than how many: random_k does worse than top_k with a tenth as many": (
            lambda rows: value(rows, "loss", codec="random_k 0.01") > value(rows, "loss", codec="top_k 0.001")
        ),
    },
    look=Look("bytes per step and worker", ("loss",), "code", log="xy", title="training loss"),
)
def bytes_against_loss(run):
    """The final loss with each codec against the bytes that a worker sends per step, including indices and scales. The
    learning rate is 0.2.

    `top_k` keeps a tenth, a hundredth and a thousandth of the numbers; `threshold` is 0.05, 0.2 and 1.
    """
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
                "code": codec,
                "bytes per step and worker": sent,
                "times fewer": rows[0]["bytes per step and worker"] / sent if rows else 1.0,
                "loss": done.summary["loss"],
            }
        )
    return rows


def losses(rows, codec):
    """Return the losses in the rows whose codec has a name that begins with `codec`, in the order of the rows."""
    return [row["loss"] for row in rows if row["codec"].startswith(codec)]


@figure(
    "When does a sparse gradient cost more than a dense one?",
    source="Lin et al., 2018; Renggli et al., 2019",
    claims={
        "at a density of 1/N a sparse gradient moves exactly as many bytes as the dense ring": lambda rows: (
            column(rows, "times dense", density="1/N") == [1.0] * 5
        ),
        "relative to the dense ring, a density of 2/N moves twice as many bytes, and 1/(2N) half as many": (
            lambda rows: (
                column(rows, "times dense", density="2/N") == [2.0] * 5
                and column(rows, "times dense", density="1/(2N)") == [0.5] * 5
            )
        ),
        "one number in 16 takes under a fifth of the dense bytes with 2 workers, and twice the dense bytes with 32": (
            lambda rows: (
                value(rows, "times dense", density="1/16", workers=2) < 0.2
                and value(rows, "times dense", density="1/16", workers=32) == 2
            )
        ),
    },
    look=Look("workers", ("times dense",), "density", log="xy", title="bytes, relative to whole gradients"),
)
def break_even(run):
    """The bytes of one step with a gradient of 4,096 numbers. Each worker's chosen numbers go to all others, every
    number with its index, so a worker's traffic grows with N.

    The dense ring moves 2 d (N-1)/N numbers per worker.
    """
    for workers in (2, 4, 8, 16, 32):
        for name, density in (("1/(2N)", 0.5 / workers), ("1/N", 1 / workers), ("2/N", 2 / workers), ("1/16", 1 / 16)):
            sparse = {"compression": "top_k", "density": min(density, 1)}
            done = run(
                **sparse, workers=workers, workload="quadratic", dimension=4096, points=32, batch=1, steps=1,
                learning_rate=0.1, evaluations=1,
            )  # fmt: skip
            dense = 2 * (workers - 1) * 4096 * 4
            yield {"workers": workers, "density": name, "times dense": done.summary["bytes"] / dense}


def by_bytes(rows, bandwidth):
    """Return the gains of all codecs at this bandwidth, in GB/s, beginning with the codec that sends the most bytes."""
    some = [row for row in rows if row["GB/s"] == bandwidth and row["codec"] != "none"]
    return [row["gain"] for row in sorted(some, key=lambda row: row["times fewer"])]


CODES = {"none": {}, "bf16": {}, "one_bit": {}, "top_k": {"density": 0.01}, "power_sgd": {}}


@figure(
    "When does compression pay?",
    source="Xu et al., 2021; Agarwal et al., 2022",
    claims={
        "on a slow network every codec is over 1.9 times as fast as sending all; the fewer bytes, the faster": (
            lambda rows: by_bytes(rows, 0.01) == sorted(by_bytes(rows, 0.01)) and by_bytes(rows, 0.01)[0] > 1.9
        ),
        "on a fast network no codec pays: only the cost of encoding is left": (
            lambda rows: max(by_bytes(rows, 1000)) < 0.95
        ),
        "the gain of every codec falls as the network gets faster": lambda rows: all(
            gains == sorted(gains, reverse=True)
            for gains in (column(rows, "gain", codec=codec) for codec in CODES if codec != "none")
        ),
        "without compression a step is bound by the network up to 1 GB/s, by computing at 10 GB/s or more": (
            lambda rows: column(rows, "bound by", codec="none") == ["network"] * 3 + ["gradient"] * 3
        ),
        "with one_bit a step is bound by encoding at 0.1 GB/s or more": lambda rows: (
            column(rows, "bound by", codec="one_bit") == ["network"] + ["encoding"] * 5
        ),
    },
    look=Look("GB/s", ("gain",), "codec", log="xy", title="times as fast as without compression"),
)
def when_it_pays(run):
    """The time of a step of 8 workers on a model of 300,000 numbers, at bandwidths from 10 MB/s to 1 TB/s.

    Nothing overlaps, so all communication time counts; where back-propagation hides it, there is less to gain.
    """
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
            yield {
                "GB/s": bandwidth / 1e9,
                "codec": codec,
                "times fewer": done.summary["compression_ratio"] or 1.0,
                "step": seconds,
                "gain": plain / seconds,
                "bound by": max(parts, key=parts.get),
            }


@figure(
    "How fast can a step get if almost nothing is sent?",
    source="Vogels et al., 2019; Agarwal et al., 2022",
    claims={
        "sending a tenth of what top_k 0.01 sends saves less than 5 % of its time": lambda rows: (
            ratio(rows, "step", codec=("top_k 0.001", "top_k 0.01")) > 0.95
        ),
        "N - 1 latencies remain, about half those of a ring of whole gradients": lambda rows: all(
            0.45 < ratio(rows, "step", codec=(codec, "none")) < 0.55 for codec in ("top_k 0.01", "top_k 0.001")
        ),
        "random_k is summed in a ring like whole gradients, and saves less than 5 % of the time": lambda rows: (
            ratio(rows, "step", codec=("random_k 0.01", "none")) > 0.95
        ),
        "PowerSGD, with two all-reduces, takes over 1.5 times as long as no compression": lambda rows: (
            ratio(rows, "step", codec=("power_sgd", "none")) > 1.5
        ),
    },
    look=Look("codec", ("step",), kind="bar", title="seconds of a step"),
)
def latency_floor(run):
    """The time of a step of 8 workers on a small model of 26,000 numbers, over links of 1 ms and 10 Gbit/s. Latency
    dominates.
    """
    codes = [("none", {}), ("power_sgd", {}), ("random_k", {"density": 0.01})]
    codes += [("top_k", {"density": density}) for density in (0.1, 0.01, 0.001)]
    for codec, settings in codes:
        done = run(compression=codec, **settings, workers=8, latency=1e-3, **PLAIN | {"steps": 3})
        name = " ".join([codec, *map(str, settings.values())])
        yield {"codec": name, "bytes": done.summary["bytes"] // 24, "step": done.summary["seconds"] / 3}


@figure(
    "Which threshold should a number exceed to be sent?",
    source="Strom, 2015",
    claims={
        "a larger threshold sends less": lambda rows: (
            column(rows, "bytes") == sorted(column(rows, "bytes"), reverse=True)
        ),
        "too small a threshold sends over half of all bytes, and has over 1.3 times the lowest loss": lambda rows: (
            rows[0]["times fewer"] < 2 and rows[0]["loss"] > 1.3 * min(column(rows, "loss"))
        ),
        "too large a threshold holds small gradients back, and has over twice the lowest loss": lambda rows: (
            rows[-1]["loss"] > 2 * min(column(rows, "loss"))
        ),
        "a medium threshold sends under 1/100 of all bytes, and has under 1.75 times the lowest loss": lambda rows: any(
            row["times fewer"] > 100 and row["loss"] < 1.75 * min(column(rows, "loss")) for row in rows
        ),
    },
    look=Look("times fewer", ("loss",), "tau", log="xy", title="training loss"),
)
def threshold(run):
    """Training at learning rate 0.2 with thresholds tau from far too small to far too large. A step changes each
    element by at most tau, and the rest is owed.
    """
    for tau in (0.002, 0.01, 0.05, 0.2, 1.0, 5.0):
        done = run(compression="threshold", threshold=tau, **PLAIN)
        s = done.summary
        yield {"tau": tau, "bytes": s["bytes"], "times fewer": s["compression_ratio"], "loss": s["loss"]}


@figure(
    "Where does momentum belong when most of a gradient is sent late?",
    source="Lin, Han, Mao, Wang & Dally, 2018, section 3.2",
    claims={
        "on average over both densities, the final loss is higher with momentum after the exchange than before it": (
            lambda rows: (
                np.prod(column(rows, "loss", momentum="after")) > np.prod(column(rows, "loss", momentum="before"))
            )
        ),
        "with momentum before the exchange, a run with 1/30 of all bytes ends below 7 times the uncompressed loss": (
            lambda rows: (
                value(rows, "loss", density=0.003, momentum="before") < 7 * value(rows, "loss", density=1)
                and value(rows, "bytes", density=0.003, momentum="before") < value(rows, "bytes", density=1) / 30
            )
        ),
        "a warm-up of forty steps at falling density more than doubles the bytes": lambda rows: (
            ratio(rows, "bytes", density=0.003, momentum=("before, warm-up", "before")) > 2
        ),
    },
    look=Look("density", ("loss",), "momentum", kind="bar", log="y", title="training loss"),
)
def momentum_correction(run):
    """Deep gradient compression with momentum before the exchange, as in the paper, or after it, in the update.

    Four workers take 200 steps at learning rate 0.05, with a momentum of 0.9. With momentum in the update, what is sent
    late gets it from the step at which it arrives, not from the one at which it was due. Factor masking, the paper's
    other remedy, is on; it does not help on a problem this small.
    """
    method = {"learning_rate": 0.05, "batch": 16, "steps": 200, "evaluations": 1}
    outside = {"update": "momentum", "momentum": 0.9}
    done = run(**method, **outside)
    yield {"density": 1, "momentum": "whole", "bytes": done.summary["bytes"], "loss": done.summary["loss"]}
    for density in (0.003, 0.001):
        for where, settings in (
            ("after", {**outside, "momentum_correction": 0, "density_steps": 0}),
            ("before", {"momentum_correction": 0.9, "density_steps": 0}),
            ("before, warm-up", {"momentum_correction": 0.9, "density_steps": 10}),
        ):
            s = run(**method, compression="dgc", density=density, **settings).summary
            yield {"density": density, "momentum": where, "bytes": s["bytes"], "loss": s["loss"]}


# ---- below this line: figures of single dense codecs ----


@figure(
    "How much noise can an unbiased codec add?",
    source="Alistarh, Grubic, Li, Tomioka & Vojnovic, 2017",
    claims={
        "the noise is within the theoretical bound, the smaller of d/s^2 and sqrt(d)/s": lambda rows: all(
            row["noise"] <= row["bound"] for row in rows
        ),
        "fewer levels are noisier, and so are larger buckets": lambda rows: (
            column(rows, "noise", workers=2, bucket=1024) == sorted(column(rows, "noise", workers=2, bucket=1024))[::-1]
            and all(ratio(rows, "noise", workers=2, bucket=(1024, 64), levels=levels) > 2 for levels in (1, 4, 16))
        ),
        "QSGD with one level in buckets of 1,024 diverges at this rate, though it is unbiased": lambda rows: (
            value(rows, "progress", workers=2, bucket=1024, levels=1) < 0
        ),
        "more levels, smaller buckets, or more workers, whose noise averages out, each prevent divergence": (
            lambda rows: (
                value(rows, "progress", workers=2, bucket=1024, levels=4) > 5
                and value(rows, "progress", workers=2, bucket=64, levels=1) > 2
                and value(rows, "progress", workers=16, bucket=1024, levels=1) > 5
            )
        ),
        "where the noise is smaller than the gradient, it costs less than 3 % of the progress": lambda rows: all(
            row["progress"] > 0.97 * value(rows, "progress", levels="all") for row in rows if row["noise"] < 1
        ),
    },
    look=Look("levels", ("progress",), "workers+bucket", kind="bar", title="powers of ten by which the loss fell"),
)
def levels(run):
    """Training with QSGD on a noise-free bowl of 1,024 numbers, at a learning rate of 1/2. Each bucket is scaled by its
    2-norm.

    Noise is E |q - v|^2 / |v|^2 for a bucket of normal numbers; progress is the number of powers of ten by which the
    loss falls in 100 steps. At curvature 1, a step of rate r multiplies the square of a number by (1 - r)^2 + r^2 noise
    / N on average: at r = 1/2 it grows once noise / N is above 3.
    """
    bowl = {"workload": "quadratic", "dimension": 1024, "condition": 10, "points": 64, "batch": 1}
    course = {"learning_rate": 0.5, "steps": 100, "evaluations": 2, "precision": "float64"}
    for workers in (2, 16):
        for bucket in (1024, 64):
            for s in (1, 4, 16):
                code = {"compression": "qsgd", "norm": "2", "levels": s, "bucket": bucket}
                loss = run(workers=workers, **code, **bowl, **course).evaluations["loss"]
                yield {
                    "workers": workers,
                    "bucket": bucket,
                    "levels": s,
                    "bits": (2 * s).bit_length(),
                    "bound": min(bucket / s**2, sqrt(bucket) / s),
                    "noise": noise(run, s, bucket),
                    "progress": float(np.log10(loss[0] / loss[-1])),
                }
    loss = run(workers=2, **bowl, **course).evaluations["loss"]
    whole = {"workers": 2, "bucket": 1, "levels": "all", "bits": 64, "bound": 0.0, "noise": 0.0}
    yield whole | {"progress": float(np.log10(loss[0] / loss[-1]))}


def noise(run, s, bucket):
    """Return the relative noise that QSGD with `s` levels adds to a bucket v of normal numbers, E |q - v|^2 / |v|^2.

    Here q is v after coding and decoding. The mean is over a hundred codings.
    """
    v, squares = np.random.default_rng(run.seed).standard_normal(bucket), []
    settings, q = qsgd.Settings(levels=s, bucket=bucket, norm="2"), np.empty(bucket)
    codec = qsgd.Codec(settings, ((slice(0, bucket), (bucket,)),), 0, 1, 0)
    for _ in range(100):
        codec.decode(codec.encode(v), q)
        squares.append(np.square(q - v).sum())
    return float(np.mean(squares) / (v @ v))


@figure(
    "How many directions does a gradient need?",
    source="Vogels, Karimireddy & Jaggi, 2019",
    claims={
        "with error feedback, the loss with one direction is under a fifth above whole gradients'": lambda rows: (
            value(rows, "loss", directions=1, feedback="with feedback") < 1.2 * value(rows, "loss", directions="all")
        ),
        "without error feedback, the loss is under 5 % above whole gradients' with 16 directions, over 3 % with 8": (
            lambda rows: (
                column(rows, "loss", feedback="without")[:-1]
                == sorted(column(rows, "loss", feedback="without")[:-1])[::-1]
                and value(rows, "loss", directions=8, feedback="without") > 1.03 * value(rows, "loss", directions="all")
                and value(rows, "loss", directions=16, feedback="without")
                < 1.05 * value(rows, "loss", directions="all")
            )
        ),
        "twice the directions take less than twice the bytes, since small tensors are sent uncompressed": lambda rows: (
            all(1.5 < more / fewer < 2 for fewer, more in pairwise(column(rows, "bytes", feedback="with feedback")))
        ),
    },
    look=Look("directions", ("loss",), "feedback", kind="bar", title="training loss"),
)
def directions(run):
    """Training with PowerSGD at learning rate 0.2 with more and more directions, with and without error feedback. The
    loss is the mean over the last 20 mini-batches.
    """
    for feedback in ("with feedback", "without"):
        for r in (1, 2, 4, 8, 16):
            code = {"compression": "power_sgd", "directions": r, "least_compression": 1}
            s = run(**code, error_feedback=feedback != "without", **PLAIN).summary
            yield {"directions": r, "feedback": feedback, "bytes": s["bytes"], "loss": s["loss"]}
    s = run(**PLAIN).summary
    yield {"directions": "all", "feedback": "without", "bytes": s["bytes"], "loss": s["loss"]}


RATES = {
    "none": (0.2, 0.4, 0.8, 1.6),
    "sign": (0.00075, 0.0015, 0.003, 0.006, 0.012, 0.8),
    "sign, sizes": (0.4, 0.8, 1.6, 3.2, 6.4),
}
SIGNS = {
    "none": {},
    "sign": {"compression": "sign"},
    "sign, sizes": {"compression": "sign", "error_feedback": True},
}


def losses_by_rate(run, rates, **values):
    """Train at each learning rate and return {rate: loss of the last 20 mini-batches}. The loss is infinite where
    training diverged.
    """
    ended = {rate: run(**PLAIN | {"learning_rate": rate}, **values).summary["loss"] for rate in rates}
    return {rate: inf if loss is None else loss for rate, loss in ended.items()}


def best(rows, code):
    """Return the learning rate with the lowest loss for this code. Raise ValueError if it is the smallest or largest
    one tried.
    """
    return interior({row["rate"]: row["loss"] for row in rows if row["code"] == code})


def lowest(rows, code):
    """Return the loss of a code at its best learning rate."""
    return value(rows, "loss", code=code, rate=best(rows, code))


@figure(
    "Which learning rate is right for signs?",
    source="Bernstein, Wang, Azizzadenesheli & Anandkumar, 2018; Karimireddy et al., 2019",
    claims={
        "the best rate of a majority vote is at most a fiftieth of SGD's best rate": lambda rows: (
            best(rows, "sign") <= best(rows, "none") / 50
        ),
        "at a rate of 0.8, about the best for SGD, the vote learns nothing": lambda rows: (
            value(rows, "loss", code="sign", rate=0.8) > 2
        ),
        "with each at its own best rate, the vote ends at less than one and a half times SGD's loss": lambda rows: (
            lowest(rows, "sign") < 1.5 * lowest(rows, "none")
        ),
        "scaled signs with error feedback end at less than half of SGD's loss": lambda rows: (
            lowest(rows, "sign, sizes") < lowest(rows, "none") / 2
        ),
        "scaled signs tolerate a rate of 1.6, at which SGD learns nothing": lambda rows: (
            value(rows, "loss", code="none", rate=1.6) > 2 > 20 * value(rows, "loss", code="sign, sizes", rate=1.6)
        ),
    },
    look=Look("rate", ("loss",), "code", log="xy", title="training loss"),
)
def sign_rates(run):
    """Each codec runs for the same number of steps at its own learning rates, a factor of two apart around its best.
    The vote also runs at 0.8, one of SGD's rates.

    A majority vote moves every number by the full rate, whatever its gradient. With scales, no number moves farther in
    a step than the rate times its layer's mean absolute gradient.
    """
    for code, settings in SIGNS.items():
        for rate, loss in losses_by_rate(run, RATES[code], **settings).items():
            yield {"rate": rate, "code": code, "loss": loss}


OPTIMIZERS = {
    "SGD": ("sgd", (0.2, 0.4, 0.8, 1.6)),
    "Adam": ("adam", (0.005, 0.01, 0.02, 0.04, 0.08, 0.16)),
}


@figure(
    "Does error feedback suit every optimizer?",
    source="Tang et al., 2021, whose abstract says that it does not; the figures on digits are ours",
    claims={
        "with SGD, sending the largest hundredth ends less than a quarter above the loss of whole gradients": (
            lambda rows: ratio(rows, "loss", optimizer="SGD", sent=("the largest hundredth", "whole gradients")) < 1.25
        ),
        "with Adam, sending the largest hundredth ends at over one and a half times the loss of whole gradients": (
            lambda rows: ratio(rows, "loss", optimizer="Adam", sent=("the largest hundredth", "whole gradients")) > 1.5
        ),
        "sending whole gradients ends at a lower loss with Adam, the largest hundredth with SGD": (
            lambda rows: (
                ratio(rows, "loss", optimizer=("Adam", "SGD"), sent="whole gradients")
                < 1
                < ratio(rows, "loss", optimizer=("Adam", "SGD"), sent="the largest hundredth")
            )
        ),
    },
    look=Look("optimizer", ("loss",), "sent", kind="bar", log="y", title="training loss"),
)
def feedback_under_adam(run):
    """Training for 120 steps, with whole gradients or with error feedback and a hundredth of the numbers, the largest
    ones.

    Each runs at the best of several learning rates a factor of two apart. The best is never the smallest or the
    largest.
    """
    for optimizer, (update, rates) in OPTIMIZERS.items():
        for sent, code in (("whole gradients", {}), ("the largest hundredth", {"compression": "top_k"})):
            losses = losses_by_rate(run, rates, update=update, **code)
            rate = interior(losses)
            yield {"optimizer": optimizer, "sent": sent, "rate": rate, "loss": losses[rate]}


FIVE = (0.05, 0.1, 0.2, 0.4, 0.8)
UNLIKE = {
    "workload": "quadratic", "dimension": 10, "condition": 10, "start": 0, "points": 128, "kinds": 4, "apart": 2,
    "unequal": 5, "workers": 4, "steps": 400, "evaluations": 400, "precision": "float64", "network": "ideal",
}  # fmt: skip
ONE_IN_TEN = {
    "whole gradients": {},
    "the largest, the rest thrown away": {"compression": "top_k", "density": 0.1, "error_feedback": False},
    "the largest, the rest owed": {"compression": "top_k", "density": 0.1},
    "the largest difference": {"compression": "ef21", "density": 0.1},
}


def unlike_loss(run, sent, rate, **values):
    """Return the mean loss of the last 100 of 400 steps. Each of the four workers has a quadratic of its own."""
    return float(run(learning_rate=rate, **UNLIKE | ONE_IN_TEN[sent] | values).evaluations["loss"][-100:].mean())


@figure(
    "What should workers send if their data differ?",
    source="Richtarik, Sokolov & Fatkhullin, 2021; the measurements on these quadratics are ours",
    claims={
        "if the rest is thrown away, the loss ends above a third of its initial value at every rate": lambda rows: (
            min(column(rows, "loss", sent="the largest, the rest thrown away")) > 1.674 / 3
        ),
        "if the rest is owed, the best rate lies between the extremes, and its loss ends above 0.001": lambda rows: (
            interior({row["rate"]: row["loss"] for row in rows if row["sent"] == "the largest, the rest owed"}) > 0
            and min(column(rows, "loss", sent="the largest, the rest owed")) > 1e-3
        ),
        "if the largest difference is sent, the larger the rate, the lower the loss: below 1e-12 at the largest": (
            lambda rows: (
                is_falling(column(rows, "loss", sent="the largest difference"))
                and column(rows, "loss", sent="the largest difference")[-1] < 1e-12
            )
        ),
        "at every rate, the loss with the largest difference is under 3 times that of whole gradients": lambda rows: (
            all(ratio(rows, "loss", sent=("the largest difference", "whole gradients"), rate=rate) < 3 for rate in FIVE)
        ),
    },
    look=Look("rate", ("loss",), "sent", log="xy", title="loss above the optimum's, mean of the last 100 of 400 steps"),
)
def unlike_gradients(run):
    """Four workers compute exact gradients, each in a bowl of its own with ten parameters. A message holds one of the
    ten numbers.

    The bowls' centres are -3, -1, 1 and 3, and the first bowl is five times as steep as the last. The loss starts at
    1.67 and is averaged over the last 100 of 400 steps. Nothing is random.
    """
    for sent in ONE_IN_TEN:
        for rate in FIVE:
            yield {"rate": rate, "sent": sent, "loss": unlike_loss(run, sent, rate)}


@figure(
    "Should workers owe the rest or send differences if gradients come from mini-batches?",
    source="Fatkhullin, Tyurin & Richtarik, 2023, on noise in EF21; the measurements on digits are ours",
    claims={
        "with each method at its own best rate, sending differences ends at over twice the loss of owing the rest": (
            lambda rows: ratio(rows, "loss", sent=("the largest differences", "the largest, the rest owed")) > 2
        ),
    },
    look=Look("sent", ("loss",), kind="bar", title="training loss"),
)
def noisy_beliefs(run):
    """Training on digits for 120 steps with mini-batches of 32. Workers send a hundredth of the numbers, and each
    method runs at its own best learning rate.

    The best rate is one of four, a factor of two apart, and neither the smallest nor the largest.
    """
    for sent, codec, rates in (
        ("the largest, the rest owed", "top_k", (0.2, 0.4, 0.8, 1.6)),
        ("the largest differences", "ef21", (0.1, 0.2, 0.4, 0.8)),
    ):
        losses = losses_by_rate(run, rates, compression=codec)
        rate = interior(losses)
        yield {"sent": sent, "rate": rate, "loss": losses[rate]}
