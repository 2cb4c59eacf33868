"""Train small models, and count the samples and seconds until they reach a target loss."""

import math

import numpy as np

from cluster.network import NETWORKS
from lessons.choosing.experiments import MS
from lessons.figure import Look, figure, ratio, value
from theory import collective_costs
from theory.published_models import FLOAT32

WORKERS, TARGET = 8, 0.3  # held-out loss, averaged over the last WINDOW samples
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
"""The best of the rates that `own_best` tries. All other figures compare strategies at these rates."""


def to_the_loss(run, strategy, rate=None, **where):
    """Return (seconds, samples, samples per second) of a run. The first two are counted until the mean loss reaches
    TARGET, and are infinite if it never does.
    """
    done = run(**{**DIGITS, **SMALL[strategy], "learning_rate": rate or RATES[strategy], **where})
    per_second = done.summary["samples_per_second"]
    seconds = arrival(done)
    return seconds, seconds * per_second, per_second


REPEATED = 3  # a single run reaches the loss at one meeting or the next, and a period is a fifth of its time


def on_average(run, strategy, rate=None, **where):
    """Return the means of what `to_the_loss` returns, over REPEATED runs with different seeds."""
    return np.mean([to_the_loss(run, strategy, rate, seed=own, **where) for own in range(REPEATED)], axis=0)


def arrival(done):
    """Return the time at which the mean held-out loss of the last WINDOW samples reaches TARGET, in s. It is infinite
    if that never happens.

    The loss of one small batch may dip below TARGET long before the loss of the next ones does.
    """
    losses, samples = done.evaluations["loss"], done.evaluations["seconds"] * done.summary["samples_per_second"]
    for end in np.flatnonzero(samples > WINDOW - 1) if done.status == "finished" else ():
        lately = samples[: end + 1] > samples[end] - WINDOW + 1  # one less, to allow for rounding
        if losses[: end + 1][lately].mean() <= TARGET:
            return float(done.evaluations["seconds"][end])
    return math.inf


FACTORS = (0.5, 1, 2)


@figure(
    "How many samples does each strategy need, at its own best rate?",
    source="Zhang & Re (DimmWitted), PVLDB 7(12), 2014: statistical and hardware efficiency",
    claims={
        "every rate is nearly the best: half or twice the rate saves under a tenth of the samples": lambda rows: all(
            min(_others(rows, name)) > 0.9 * value(rows, "samples", strategy=name, factor=1) for name in TRIED
        ),
        "one machine needs less than half of the samples that eight need together": lambda rows: all(
            ratio(rows, "samples", strategy=("one machine", name), factor=1) < 1 / 2
            for name in TRIED
            if name != "one machine"
        ),
        "at an eighth of the rate of synchronous SGD, stale gradients need less than 1.4 times as many samples": (
            lambda rows: _against_sums(rows, "server") < 1.4 and 8 * RATES["server"] == RATES["doubling"]
        ),
        "averaging every 4 steps takes more samples than synchronous SGD, every 16 steps over 1.2 times as many": (
            lambda rows: _against_sums(rows, "local SGD, 4") > 1 and _against_sums(rows, "local SGD, 16") > 1.2
        ),
    },
    look=Look("factor", ("samples",), colour="strategy", log="xy", title="samples to a mean held-out loss of 0.3"),
)
def own_best(run):
    """Eight workers train a network with one hidden layer of 64 on digits, with 16 images each per step. The network
    takes no time.

    The chart shows how many samples all workers together need until the mean loss of the last 512 reaches the target.
    Each strategy runs at its best learning rate, at half and at twice that rate. Values are means of three runs. A
    point is missing where one of the runs does not reach the target.
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


LATENCIES = (20, 160, 640, 5120)  # us, of a whole message


@figure(
    "Which strategy reaches the loss first, and what if the latency grows?",
    source="the product of steps and seconds as in Hadjis et al. (Omnivore), arXiv:1606.04487",
    claims={
        "at 20 us, averaging every 16 steps is not first, though it processes more samples/s than synchronous SGD": (
            lambda rows: (
                min(_ms(rows, name, 20) for name in ("doubling", "server", "local SGD, 4"))
                < _ms(rows, "local SGD, 16", 20)
                and _sps(rows, "local SGD, 16", 20) > 1.15 * _sps(rows, "doubling", 20)
            )
        ),
        "at 160 us averaging every fourth step is ahead of exchanging in every step": lambda rows: (
            _ms(rows, "local SGD, 4", 160) < min(_ms(rows, name, 160) for name in ("doubling", "server"))
        ),
        "at 640 us averaging every 16 steps is ahead of exchanging more often": lambda rows: (
            _ms(rows, "local SGD, 16", 640) < min(_ms(rows, n, 640) for n in ("doubling", "server", "local SGD, 4"))
        ),
        "at 5,120 us one machine is ahead of eight, with any strategy": lambda rows: all(
            _ms(rows, "one machine", 5120) < 0.8 * _ms(rows, name, 5120) for name in TRIED if name != "one machine"
        ),
        "averaging every 16 steps processes the most samples per second at every latency": lambda rows: all(
            _sps(rows, "local SGD, 16", us) >= max(_sps(rows, name, us) for name in TRIED) for us in LATENCIES
        ),
        "every time agrees with the formula within a tenth": lambda rows: all(
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
    """Training on digits as before, over 10 GbE with larger and larger latencies. Each strategy runs at its own best
    learning rate, and values are means of three runs.

    `formula` is the number of samples that a strategy needs when the network takes no time, multiplied by the seconds
    per sample of its closed form.
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
    """Return the time of a step of the small model by the closed form, in s. `computing` is the time of a step without
    a network.
    """
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
