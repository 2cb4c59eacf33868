"""PipeDream and stale weights: what a pipeline that never empties costs in learning, memory and network traffic."""

from collections import deque
from functools import partial
from math import inf

import numpy as np

from cluster.devices import parse_device
from experiments.measure.profile import price_profile
from lessons.figure import Look, column, figure, is_rising, matching, ratio, value
from lessons.pipedream.gradients import PLACES, distance
from lessons.pipelined_backprop.experiments import TRIED, at_best, best, loss_in_slots
from lessons.pipelined_backprop.slots import updates
from theory.partition_pipedream import partition
from tracing import COMPUTE, HELD, UPDATE
from workloads import digits
from workloads.budget import RECENT

SMOOTH = "1e9:1e15:0"  # a device that takes time for arithmetic and nothing else
EXACT = {"network": "ideal", "precision": "float64", "evaluations": 1}  # runs that rounding does not change
DEEP = {"depth": 14, "width": 32, "batch": 32, "device": SMOOTH, **EXACT}  # 16 layers
GUESSING = float(np.log(10))  # the loss of a model that predicts all digits with equal probability

SYNCHRONOUS = {"algorithm": "gpipe", "update": "momentum"}
STASH = {"algorithm": "pipedream"}
NONE = {"algorithm": "pipedream", "weights": "none"}
VERTICAL = {"algorithm": "pipedream", "weights": "vertical"}
SPECTRAIN = {"algorithm": "spectrain", "form": "end"}
SPECTRAIN_OWN = {"algorithm": "spectrain", "form": "own"}
TWO_VERSIONS = {"algorithm": "pipedream_2bw"}
PIPEMARE = {"algorithm": "pipemare", "rescale": 0, "correct": False}


FOUR = {"chunks": 4}
TIMED = {"GPipe": SYNCHRONOUS | FOUR, "stash": STASH, "SpecTrain": SPECTRAIN, "2BW": TWO_VERSIONS | FOUR}


def loss_after(run, how, stages):
    """Return the loss at the end of 300 mini-batches with momentum, at the learning rate that all methods share."""
    return tail(run(**how, workers=stages, momentum=0.9, learning_rate=0.003, steps=300, **DEEP))


IN_SLOTS = {  # on how many stages their weights can be computed on one machine, and how
    "GPipe": (1, {}),
    "stash": (4, {"hops": 1, "stash": True}),
    "2BW": (2, {"hops": 1, "stash": True, "vertical": True}),  # every weight is one update late
}
LOW, MOST = 0.5, 400  # the loss to reach, and the mini-batches it may take


def to_a_loss(run, method, rate, momentum, clock):
    """Return (mini-batches, seconds) until the loss on four stages falls to LOW. Both are infinite beyond MOST
    mini-batches.

    For a method whose weights are computed on one machine (see IN_SLOTS), `clock` converts mini-batches to seconds.
    """
    if method in IN_SLOTS:
        steps = _steps_in_slots(run.seed, *IN_SLOTS[method], rate, momentum)
        return (steps, clock(steps)) if steps < MOST else (inf, inf)
    done = run(**TIMED[method], workers=4, momentum=momentum, learning_rate=rate, steps=MOST, target_loss=LOW, **DEEP)
    reached = done.status == "finished" and done.summary["steps"] < MOST
    return (done.summary["steps"], done.summary["seconds"]) if reached else (inf, inf)


def _steps_in_slots(seed, stages, how, rate, momentum):
    """Return the number of mini-batches until the mean loss of the last RECENT falls to LOW; MOST if it never does."""
    workload = digits.build(
        digits.Settings(model="residual", depth=14, width=32, activation="tanh"), np.dtype("float64")
    )
    recent = deque(maxlen=RECENT)
    with np.errstate(all="ignore"):
        trained = updates(workload, stages, rate, steps=MOST, batch=32, seed=seed, momentum=momentum, **how)
        for step, one in enumerate(trained, start=1):
            recent.append(one.loss)
            if not np.isfinite(one.loss):
                break
            if len(recent) == RECENT and np.mean(recent) <= LOW:
                return step
    return MOST


def clock(run, method):
    """Return a function that converts a number of mini-batches to seconds. It is derived from two short runs on four
    stages.
    """
    values = {**TIMED[method], **DEEP, "workers": 4, "learning_rate": 0.001}
    few, many = (run(**values, steps=steps).summary["seconds"] for steps in (20, 60))
    return lambda steps: few + (steps - 20) * (many - few) / 40


def tail(done, last=60):
    """Return the mean loss of the last mini-batches. It is infinite if the run diverged, or ended at twice the loss of
    guessing or more.
    """
    loss = float(done.losses["loss"][-last:].mean())
    return loss if done.status == "finished" and loss < 2 * GUESSING else float("inf")


@figure(
    "What is gained if a pipeline is never emptied?",
    source="Pétrowski, Dreyfus & Girault, 1993; Harlap et al., 2018",
    claims={
        "eight stages that never empty do the work of more than six machines, and GPipe's of about four": lambda rows: (
            value(rows, "speed-up", stages=8, pipeline="never emptied") > 6
            and value(rows, "speed-up", stages=8, pipeline="GPipe") < 4.2
        ),
        "the more stages, the more is gained": lambda rows: is_rising([_gain(rows, n) for n in (2, 4, 8)]),
        "at a small rate, all losses are about the same after the same number of mini-batches": lambda rows: all(
            row["loss"] < 1.05 * rows[0]["loss"] < 0.95 * GUESSING for row in rows
        ),
    },
    look=Look("stages", ("speed-up",), "pipeline", theory=("ideal",), title="times as fast as one machine"),
)
def never_empty(run):
    """Training on digits with 32 layers and momentum, for 100 mini-batches of 32 at a small learning rate. The network
    takes no time.

    GPipe cuts each mini-batch into eight micro-batches, and its pipeline empties before the next. `never emptied`: 1F1B
    without a flush, whole mini-batches, an update after each backward pass, and every pass on the current weights.
    """
    where = DEEP | {"depth": 30, "momentum": 0.9, "learning_rate": 0.001, "steps": 100}
    ways = {"GPipe": SYNCHRONOUS | {"chunks": 8}, "never emptied": NONE}
    alone = run(**SYNCHRONOUS, chunks=1, workers=1, **where).summary["samples_per_second"]
    for pipeline, how in ways.items():
        for stages in (2, 4, 8):
            done = run(**how, workers=stages, **where)
            speed = done.summary["samples_per_second"] / alone
            row = {"pipeline": pipeline, "stages": stages, "speed-up": speed, "ideal": stages}
            yield {**row, "loss": tail(done, 20)}


def _gain(rows, stages):
    """Return the speed of a pipeline that is never emptied, divided by GPipe's."""
    streams, flushed = (value(rows, "speed-up", stages=stages, pipeline=p) for p in ("never emptied", "GPipe"))
    return streams / flushed


PLAIN = {"model": "mlp", "hidden": ",".join(["64"] * 7), "activation": "relu", "learning_rate": 0.1}
RESIDUAL = {"model": "residual", "depth": 14, "width": 32, "learning_rate": 0.03}
NETS = {"smooth": RESIDUAL, "ReLU": PLAIN}


@figure(
    "At which weights is an update the gradient of the loss?",
    source="Harlap et al., 2018, section 3.4, on which weights a mini-batch reads; the measurement is ours",
    claims={
        "without a stash, an update is not the gradient at any of the three weights": lambda rows: all(
            value(rows, place, weights="none") > 0.02 for place in PLACES
        ),
        "with a stash, an update is the gradient at the weights of its forward pass": (
            lambda rows: value(rows, PLACES[0], weights="stash") < 1e-6
        ),
        "with vertical sync, an update is the gradient at one older version of the model": lambda rows: (
            value(rows, PLACES[1], weights="vertical sync") < 1e-6
        ),
        "an update is never the gradient at the newest weights": lambda rows: all(row[PLACES[2]] > 0.5 for row in rows),
    },
    look=Look("weights", PLACES, kind="bar", title="distance of an update from the gradient at these weights"),
)
def whose_gradient(run):
    """How far an update is from the gradient of its mini-batch at three sets of weights, as a multiple of that
    gradient's length.

    Eight dense layers with ReLU in four stages train on digits without momentum; values are means over mini-batches 24
    to 27. The weights are those that the forward pass read on each stage, the version that the first stage read, and
    the newest.
    """
    for weights, how in {"none": NONE, "stash": STASH, "vertical sync": VERTICAL}.items():
        far = distance(run, **how, workers=4, batch=32, **PLAIN, **EXACT)
        yield {"weights": weights, **far}


STALE = {
    "stash": STASH,
    "none": NONE,
    "vertical sync": VERTICAL,
    "SpecTrain": SPECTRAIN,
    "SpecTrain, own": SPECTRAIN_OWN,
}


@figure(
    "What do stale weights cost as the pipeline gets deeper?",
    source="Harlap et al., 2018; Chen, Yang & Cheng, 2018 (SpecTrain)",
    claims={
        "a pipeline that flushes learns the same at every depth": lambda rows: (
            np.ptp(column(rows, "synchronous")) < 1e-3
        ),
        "with stale weights, four stages end at over 0.8 times the loss of two, and eight above that of two": (
            lambda rows: all(
                0.8 * two < four and two < eight
                for two, four, eight in (column(rows, "loss", weights=w) for w in ("stash", "none", "vertical sync"))
            )
        ),
        "stale weights raise the loss by under a tenth on two stages, and by a third or more on eight": lambda rows: (
            value(rows, "loss", weights="stash", stages=2) < 1.1 * value(rows, "synchronous", weights="stash", stages=2)
            and value(rows, "loss", weights="stash", stages=8)
            > 4 / 3 * value(rows, "synchronous", weights="stash", stages=8)
        ),
        "vertical sync, the tidiest, is the worst: every stage is as stale as the first": lambda rows: (
            max(rows, key=lambda row: row["loss"])["weights"] == "vertical sync"
        ),
        "in this smooth net, stashing changes the loss on eight stages by less than a factor of two": lambda rows: (
            0.5 < ratio(rows, "loss", weights=("none", "stash"), stages=8) < 2
        ),
        "on eight stages, prediction recovers part of what stale weights lose": lambda rows: (
            _lost(rows, "SpecTrain", 8) < _lost(rows, "stash", 8)
        ),
    },
    look=Look(
        "stages",
        ("loss",),
        "weights",
        theory=("synchronous",),
        log="xy",
        title="loss of the last 60 mini-batches",
    ),
)
def stale_weights(run):
    """Training a residual tanh network of 16 layers on digits for 300 mini-batches, with momentum 0.9 and the same
    learning rate for all.

    On stage s of S, S-1-s updates lie between a mini-batch's forward pass and its own update; with vertical sync all
    stages are S-1 updates behind. SpecTrain predicts the weights at the end of the mini-batch; with `own`, a stage
    predicts those at its own backward pass.
    """
    synchronous = {n: loss_after(run, SYNCHRONOUS | {"chunks": 1}, n) for n in (2, 4, 8)}
    for weights, how in STALE.items():
        for stages, flushed in synchronous.items():
            loss = loss_after(run, how, stages)
            yield {"weights": weights, "stages": stages, "loss": loss, "synchronous": flushed}


def _lost(rows, weights, stages):
    """Return the loss with these weights and stages, minus the loss of synchronous training."""
    where = {"weights": weights, "stages": stages}
    return value(rows, "loss", **where) - value(rows, "synchronous", **where)


TUNED = {  # on how many stages weights are computed, how, and the steps to try
    "GPipe": (1, {}, (0.064, 0.128, 0.256, 0.512, 1.024)),
    "stash": (8, {"hops": 1, "stash": True}, TRIED[8]),
    "none": (8, {"hops": 1}, TRIED[8]),
    "vertical sync": (8, {"hops": 1, "stash": True, "vertical": True}, (0.008, *TRIED[8])),
}


@figure(
    "What if each method has its own best rate and momentum?",
    source="Harlap et al., 2018; the comparison is ours",
    claims={
        "GPipe ends at the lowest loss, under two thirds of that of stashing": lambda rows: (
            best(rows, weights="GPipe")["loss"] < 2 / 3 * best(rows, weights="stash")["loss"]
        ),
        "vertical sync is the worst with its own best rate and momentum, too": lambda rows: (
            best(rows, weights="vertical sync")["loss"] > max(best(rows, weights=w)["loss"] for w in ("stash", "none"))
        ),
        "stashing ends at a lower loss without momentum than with 0.9": lambda rows: (
            ratio(rows, "loss", weights="stash", momentum=(0.0, 0.9)) < 0.9
        ),
    },
    look=Look("weights", ("loss",), "momentum", kind="bar", title="loss of the last 30 mini-batches"),
)
def tidiest_at_best(run):
    """Training a residual tanh network of eight layers in eight stages, on digits for 300 mini-batches. Each method has
    its own best learning rate for each momentum. The weights are computed on one machine.
    """
    for weights, (stages, how, steps) in TUNED.items():
        train = partial(_train, run, stages, {"steps": 300, **how})
        for row in at_best(train, steps):
            yield {"weights": weights, **row}


def _train(run, stages, how, momentum, rate):
    return loss_in_slots(run, stages, rate, momentum=momentum, **how)


@figure(
    "When must a stage keep the weights that its forward pass read?",
    source="Harlap et al., 2018, who call stashing critical; the comparison is ours",
    claims={
        "without a stash an update is nearly a gradient in smooth residual nets, not in plain ReLU nets": lambda rows: (
            all(row["off"] < 0.05 for row in rows if row["net"].startswith("smooth"))
            and _trained(rows, "ReLU on 4 stages", "none", "off")
            > 2 * _trained(rows, "smooth on 4 stages", "none", "off")
            and _trained(rows, "ReLU on 8 stages", "none", "off") > 0.08
        ),
        "where an update is nearly a gradient, stashing changes the loss by less than a third": lambda rows: all(
            0.7 < _trained(rows, net, "none") / _trained(rows, net, "stash") < 1.4
            for net in ("smooth on 4 stages", "smooth on 8 stages")
        ),
        "with plain ReLU, four stages learn with a stash and without": lambda rows: all(
            _trained(rows, "ReLU on 4 stages", weights) < GUESSING / 2 for weights in ("stash", "none")
        ),
        "with plain ReLU, eight stages learn nothing without a stash, and something with one": lambda rows: (
            _trained(rows, "ReLU on 8 stages", "stash") < 0.97 * GUESSING < _trained(rows, "ReLU on 8 stages", "none")
        ),
        "without momentum SpecTrain has no basis for a prediction: on smooth nets it does not help": lambda rows: all(
            _trained(rows, net, "SpecTrain") >= _trained(rows, net, "none")
            for net in ("smooth on 4 stages", "smooth on 8 stages")
        ),
    },
    look=Look("net", ("loss",), "weights", kind="bar", title="loss of the last 60 mini-batches"),
)
def where_stashing_matters(run):
    """Two networks trained on digits for 300 mini-batches without momentum: eight dense layers of 64 units with ReLU,
    or 16 residual layers of 32 units with a smooth activation.

    A ReLU that was active in the forward pass may be inactive at the newest weights, and a plain net multiplies the
    error by every layer's weights in the backward pass: the products of old activations and new weights are not the
    gradient of anything. `off`: how far they are from the gradient at the weights that the forward pass read, as a
    multiple of its length. Where a bar is missing, training diverged.
    """
    where = {"batch": 32, "momentum": 0.0, "steps": 300, **EXACT}
    for net, layers in NETS.items():
        for stages in (4, 8):
            off = distance(run, **NONE, workers=stages, batch=32, **layers, **EXACT)[PLACES[0]]
            for weights, how in {"stash": STASH, "none": NONE, "SpecTrain": SPECTRAIN}.items():
                loss = tail(run(**how, workers=stages, **layers, **where))
                yield {"net": f"{net} on {stages} stages", "weights": weights, "loss": loss, "off": off}


def _trained(rows, net, weights, quantity="loss"):
    return value(rows, quantity, net=net, weights=weights)


KEPT = [HELD.index("parameters"), HELD.index("activations")]
HOLDS = {
    "GPipe": SYNCHRONOUS | {"chunks": 8, "batch": 64},
    "stash": STASH,
    "vertical sync": VERTICAL,
    "2BW": TWO_VERSIONS | {"chunks": 8, "batch": 64},
    "SpecTrain": SPECTRAIN,
    "PipeMare": PIPEMARE,
}


@figure(
    "What does a stage hold, and how stale are its gradients?",
    source="Harlap et al., 2018; Narayanan et al., 2021 (2BW); Yang et al., 2021 (PipeMare)",
    claims={
        "stage s of S holds S-s versions of its weights with stashing, S with vertical sync, two with 2BW, else one": (
            lambda rows: (
                column(rows, "versions of all") == ["1 1 1 1", "4 3 2 1", "4 4 4 4", "2 2 2 2", "1 1 1 1", "1 1 1 1"]
            )
        ),
        "stage s holds all micro-batches in GPipe, 2(S-s) in PipeMare, and S-s in all others": lambda rows: (
            column(rows, "micro-batches of all") == ["8 8 8 8", "4 3 2 1", "4 3 2 1", "4 3 2 1", "4 3 2 1", "8 6 4 2"]
        ),
        "a gradient is 0, S-1-s, S-1, 1, S-1-s or 2(S-1-s)+1 updates old, for the methods from left to right": (
            lambda rows: (
                column(rows, "delay of all") == ["0 0 0 0", "3 2 1 0", "3 3 3 3", "1 1 1 1", "3 2 1 0", "7 5 3 1"]
            )
        ),
    },
    look=Look(
        "method",
        ("versions", "micro-batches", "delay"),
        kind="bar",
        title="on the first stage: versions, micro-batches, or updates",
    ),
)
def what_a_stage_holds(run):
    """The most bytes that each of four stages holds at one time, for a model of 24 layers. The run counted them.

    `versions`: weights held, as a multiple of the stage's own; `micro-batches`: activations, as a multiple of those of
    one; `delay`: updates between reading weights and changing them. A micro-batch is 8 samples everywhere, and GPipe
    and 2BW update after eight of them.
    """
    where = DEEP | {"depth": 22, "batch": 8, "workers": 4}
    alone = run(**SYNCHRONOUS, learning_rate=0.1, chunks=1, steps=1, **where).peaks()[:, KEPT]
    for method, how in HOLDS.items():
        done = run(**where | how, learning_rate=0.001, momentum=0.9, steps=24)
        versions, batches = (done.peaks()[:, KEPT] / alone).T
        delays = [done.applied["staleness"][done.applied["rank"] == stage].max() for stage in range(4)]
        counts = {"versions": versions, "micro-batches": batches, "delay": delays}
        row = {"method": method, **{name: float(found[0]) for name, found in counts.items()}}
        yield row | {f"{name} of all": " ".join(f"{n:.3g}" for n in found) for name, found in counts.items()}


@figure(
    "Is a pipeline that never empties faster on every network?",
    source="Harlap et al., 2018; the latency of 1F1B is ours, and follows from Little's law",
    claims={
        "without latency PipeDream is about 11/8 times as fast as GPipe, whose 8 micro-batches leave a bubble": (
            lambda rows: 1.3 < _ahead(rows, 0) < 1.4
        ),
        "with latency PipeDream loses time in every mini-batch, since at most S are in flight": lambda rows: all(
            abs(row["PipeDream"] / row["(f+b) / (f+b + 2c (S-1)/S)"] - 1) < 0.05 for row in rows
        ),
        "GPipe pays for latency once per mini-batch, and is ahead if latency is high": (
            lambda rows: _ahead(rows, 4) < 0.85
        ),
        "with twice as many mini-batches in flight, PipeMare hides a latency as long as a forward pass": lambda rows: (
            _speed(rows, "PipeMare", 1) > 0.95 > 0.7 > _speed(rows, "PipeDream", 1)
        ),
        "2BW is as fast as PipeDream here: updating less often saves no time": lambda rows: all(
            abs(row["2BW"] / row["PipeDream"] - 1) < 0.04 for row in rows
        ),
    },
    look=Look(
        "latency",
        ("PipeDream", "GPipe", "2BW", "PipeMare"),
        theory=("(f+b) / (f+b + 2c (S-1)/S)",),
        title="share of the time that a stage computes",
    ),
)
def few_on_their_way(run):
    """The share of the time that each of four stages computes, against the latency of a message.

    The latency, c, is in units of f, the forward pass of one stage. A backward pass b takes 2 f. Values are measured in
    the middle of a run, when the pipelines are full.
    """
    where = DEEP | {"depth": 30, "batch": 64, "workers": 4, "learning_rate": 0.001}
    streams = {"PipeDream": STASH, "2BW": TWO_VERSIONS | {"chunks": 8, "batch": 512}, "PipeMare": PIPEMARE}
    busy = run(**STASH, steps=48, latency=0.0, **where).trace.busy()
    work = (busy[:, COMPUTE] + busy[:, UPDATE]).max() / 48  # of the slowest stage, f + b
    for latency in (0, 0.5, 1, 2, 4):
        where |= {"latency": latency * work / 3}
        row = {"latency": latency}
        for name, how in streams.items():
            chunks = how.get("chunks", 1)
            row[name] = chunks * work / _period(run(**where | how, steps=48 // chunks + 4))
        row["GPipe"] = 8 * work / _period(run(**where | SYNCHRONOUS | {"chunks": 8, "batch": 512}, steps=6))
        yield {**row, "(f+b) / (f+b + 2c (S-1)/S)": 3 / (3 + 2 * latency * 3 / 4)}


def _period(done):
    """Return the mean time between consecutive updates of the first stage, the slowest, in s, once the pipeline is
    full.
    """
    at = done.applied["seconds"][done.applied["rank"] == 0]
    first, last = len(at) // 3, len(at) * 5 // 6
    return float(at[last] - at[first]) / (last - first)


def _speed(rows, name, latency):
    return value(rows, name, latency=latency)


def _ahead(rows, latency):
    return _speed(rows, "PipeDream", latency) / _speed(rows, "GPipe", latency)


RATES = {0.0: (0.02, 0.04, 0.08, 0.16, 0.32), 0.9: (0.002, 0.004, 0.008, 0.016, 0.032, 0.064)}  # by momentum
DIVERGES = {"stash": 0.3, "2BW": 0.3, "SpecTrain": 0.6}  # from this rate / (1 - momentum) on: not tried


def _best(rows, method, **where):
    return min(matching(rows, method=method, **where), key=lambda row: row["seconds"])


def _faster(rows, **where):
    """Return the speed of GPipe divided by that of stashing. Each is at the best of the matching learning rates and
    momenta.
    """
    return _best(rows, "stash", **where)["seconds"] / _best(rows, "GPipe", **where)["seconds"]


@figure(
    "Which method is the first to reach a loss of 0.5?",
    source="Harlap et al., 2018; Chen, Yang & Cheng, 2018; Narayanan et al., 2021; the comparison is ours",
    claims={
        "at a small rate all methods need about the same number of mini-batches, but stashing is ahead of GPipe": (
            lambda rows: (
                max(column(rows, "steps", rate=0.002)) < 1.3 * min(column(rows, "steps", rate=0.002))
                and ratio(rows, "seconds", rate=0.002, method=("stash", "GPipe")) < 0.7
            )
        ),
        "the best rates of GPipe, stashing and 2BW are neither the smallest nor the largest tried": lambda rows: all(
            min(column(rows, "rate", method=m, momentum=_best(rows, m)["momentum"]))
            < _best(rows, m)["rate"]
            < max(column(rows, "rate", method=m, momentum=_best(rows, m)["momentum"]))
            for m in ("GPipe", "stash", "2BW")
        ),
        "with a momentum of 0.9 for all, GPipe is more than 1.3 times as fast as stashing": lambda rows: (
            _faster(rows, momentum=0.9) > 1.3
        ),
        "stashing needs no momentum, which its delay supplies: with 0 it is at most a tenth slower than with 0.9": (
            lambda rows: (
                _best(rows, "stash", momentum=0.0)["seconds"] < 1.1 * _best(rows, "stash", momentum=0.9)["seconds"]
            )
        ),
        "each at its own best rate and momentum, GPipe is at most a tenth behind stashing and SpecTrain": lambda rows: (
            all(_best(rows, "GPipe")["seconds"] < 1.1 * _best(rows, m)["seconds"] for m in ("stash", "SpecTrain"))
        ),
        "each at its best, GPipe is at most a quarter behind 2BW": lambda rows: (
            _best(rows, "GPipe")["seconds"] < 1.25 * _best(rows, "2BW")["seconds"]
        ),
        "GPipe needs fewer than two thirds of stashing's mini-batches: fresh gradients save steps": lambda rows: (
            _best(rows, "GPipe")["steps"] < 2 / 3 * _best(rows, "stash")["steps"]
        ),
    },
    look=Look("rate", ("seconds",), "method", slider="momentum", log="x", title="seconds until the loss is 0.5"),
)
def who_learns_first(run):
    """Training on digits with 16 layers in 4 stages, until the mean loss of 20 mini-batches is 0.5.

    Mini-batches are 32 samples for all; GPipe and 2BW cut each into four micro-batches. The network takes no time. A
    point is missing where a seed needs more than 400 mini-batches. Weights are computed on one machine, except
    SpecTrain's. At half the smallest learning rate, twice as many mini-batches would be needed.
    """
    clocks = {method: clock(run, method) for method in TIMED}
    for momentum, rates in RATES.items():
        for rate in rates:
            for method in TIMED:
                if rate / (1 - momentum) >= DIVERGES.get(method, np.inf):
                    continue
                steps, seconds = to_a_loss(run, method, rate, momentum, clocks[method])
                yield {"momentum": momentum, "rate": rate, "method": method, "steps": steps, "seconds": seconds}


@figure(
    "What should each of three machines hold?",
    source="Harlap et al., 2018, section 3.2: the partitioner, and plans such as 2-1-1 for VGG-16",
    claims={
        "a pipeline of three stages waits for the slowest: it is under 1.5 times as fast as one machine": lambda rows: (
            max(column(rows, "1-1-1")) < 1.5
        ),
        "giving the slowest stage two machines is fastest if the network is slow": lambda rows: all(
            row["2-1"] > 1.15 * max(row["data parallel"], row["1-1-1"])
            for row in rows
            if 1e8 <= row["bandwidth"] <= 1e9
        ),
        "three machines with the whole model each are fastest if the network is fast": lambda rows: (
            rows[-1]["data parallel"] > 1.1 * rows[-1]["2-1"]
        ),
        "the partitioner agrees: it plans 1-1-1, then 2-1, then data parallelism as the network gets faster": (
            lambda rows: [rows[0]["plan"], rows[2]["plan"], rows[-1]["plan"]] == ["1-1-1", "2-1", "3"]
        ),
    },
    look=Look(
        "bandwidth",
        ("data parallel", "1-1-1", "2-1"),
        theory=("planned",),
        log="x",
        title="times as fast as one machine",
    ),
)
def replicas(run):
    """A VGG in miniature: two convolutions do most of the work, and two dense layers have most of the weights.

    `2-1`: two machines take turns with the convolutions and sum the gradients of their few weights; the third has the
    dense layers. `plan`: what PipeDream's dynamic program (the form of 2018) computes from the layers' times and sizes
    for three machines; `planned`: the speed-up it expects. Bandwidth in bytes per second, no latency.
    """
    cnn = {"model": "cnn", "channels": 8}
    where = {"network": "ideal", "latency": 0.0, "device": "40e9:1e15:0", "batch": 8, "evaluations": 1, **cnn}
    where |= {"learning_rate": 0.1}
    workload = digits.build(digits.Settings(**cnn), np.dtype("float32"))
    profile = price_profile(workload, workload.batch(np.arange(8)), parse_device(where["device"]))
    ways = {
        "data parallel": {"algorithm": "sync_sgd", "steps": 60},
        "1-1-1": {"algorithm": "pipedream", "steps": 180},
        "2-1": {"algorithm": "pipedream", "replicas": "2,1", "cuts": "2,2", "steps": 180},
    }
    for bandwidth in (3e7, 1e8, 3e8, 1e9, 3e9, 1e10):
        net = where | {"bandwidth": bandwidth}
        alone = run(algorithm="sgd", workers=1, steps=60, **net).summary["samples_per_second"]
        row = {"bandwidth": bandwidth}
        for name, how in ways.items():
            row[name] = run(workers=3, **how, **net).summary["samples_per_second"] / alone
        plan = partition(profile, [(3, bandwidth)])
        yield {**row, "plan": plan.name, "planned": plan.speed_up}
