"""Pipelined back-propagation: what is gained by never waiting for an error, and what so late an error costs."""

from math import inf

import numpy as np

import workloads
from lessons.figure import Look, column, figure, interior, is_rising, ratio, value
from lessons.pipelined_backprop.slots import updates
from theory.balance import striped_speed_up
from theory.delay import largest_rate
from workloads import digits

SMOOTH = "1e9:1e15:0"  # a device that takes time for arithmetic and nothing else
RESIDUAL = {"model": "residual", "depth": 6, "width": 32, "activation": "tanh"}  # eight layers
EIGHT = {**RESIDUAL, "batch": 32, "device": SMOOTH, "network": "ideal", "precision": "float32", "evaluations": 1}
SHORT = 120  # mini-batches
NEVER = {"algorithm": "chen"}


def loss_after(run, how, stages, rate, momentum=0.9):
    """Return the mean loss of the last 30 of 120 mini-batches; infinite if it diverged."""
    done = run(**{**EIGHT, **how}, workers=stages, momentum=momentum, learning_rate=rate, steps=SHORT)
    return _end(done.losses["loss"] if done.status == "finished" else [inf], 30)


def loss_in_slots(run, stages, rate, last=30, **how):
    """Return the mean of the `last` losses of a pipeline that never waits, as `updates` computes it on one machine.

    It is that of `loss_after`, in a third of the time.
    """
    workload = workloads.find("digits").build(digits.Settings(**RESIDUAL), np.dtype("float32"))
    how = {"momentum": 0.9, "steps": SHORT, "batch": 32, "seed": run.seed} | how
    with np.errstate(all="ignore"):
        return _end([one.loss for one in updates(workload, stages, rate, **how)], last)


def _end(losses, last):
    """Return the mean of the `last` losses; infinite if training diverged."""
    mean = float(np.mean(losses[-last:]))
    return mean if np.isfinite(losses).all() and mean < 4.6 else inf  # twice that of guessing


WAYS = {
    "waits": {"algorithm": "gpipe", "chunks": 1},
    "GPipe": {"algorithm": "gpipe", "chunks": 16, "steps": 6},
    "never waits": NEVER,
}


@figure(
    "What is gained if no stage ever waits for an error?",
    source="Pétrowski, Dreyfus & Girault, 1993; Chen et al., 2012",
    claims={
        "a mini-batch at a time, eight machines are no faster than one": lambda rows: (
            max(column(rows, "speed-up", order="waits")) < 1.1
        ),
        "if nobody waits two, four and eight machines do the work of 1.7, 3.2 and 5 or more": lambda rows: (
            _speed(rows, "never waits", 2) > 1.7
            and _speed(rows, "never waits", 4) > 3.2
            and _speed(rows, "never waits", 8) > 5
        ),
        "GPipe, which empties its pipeline, lies in between": lambda rows: all(
            _speed(rows, "waits", n) < _speed(rows, "GPipe", n) < _speed(rows, "never waits", n) for n in (2, 4, 8)
        ),
    },
    look=Look("machines", ("speed-up",), "order", theory=("ideal",), title="times as fast as one machine"),
)
def never_waiting(run):
    """Digits, 16 layers, 40 mini-batches of 32; messages take no time. GPipe cuts each mini-batch in 16, and
    is empty before the next begins."""
    where = {**EIGHT, "depth": 14, "learning_rate": 0.001, "steps": 40}
    alone = run(**WAYS["waits"], workers=1, **where).summary["samples_per_second"]
    for order, how in WAYS.items():
        for machines in (1, 2, 4, 8):
            speed = run(**{**where, **how}, workers=machines).summary["samples_per_second"] / alone
            yield {"order": order, "machines": machines, "speed-up": speed, "ideal": machines}


def _speed(rows, order, machines):
    return value(rows, "speed-up", order=order, machines=machines)


TRIED = {
    1: (0.0016, 0.0128, 0.0256, 0.0512, 0.1024),
    2: (0.0016, 0.0064, 0.0128, 0.0256),
    4: (0.0016, 0.0032, 0.0064, 0.0128),
    8: (0.0016, 0.0032, 0.0064, 0.0128),
}


@figure(
    "What does a deeper pipeline learn, at each rate?",
    source="Chen et al., 2012; the depths and the rates are ours",
    claims={
        "at the smallest rate that all were given, all have learned as much, within 5 %": lambda rows: (
            max(column(rows, "loss", rate=0.0016)) < 1.05 * min(column(rows, "loss", rate=0.0016))
        ),
        "each at its own best rate, two stages end over one and a half times as high as one": lambda rows: (
            _least(rows, 2) > 1.5 * _least(rows, 1)
        ),
        "four end higher than two, and eight higher than four": lambda rows: (
            _least(rows, 2) < _least(rows, 4) < _least(rows, 8)
        ),
        "eight end over four times as high as one": lambda rows: _least(rows, 8) > 4 * _least(rows, 1),
        "the best rate of eight is at most a quarter of that of one": lambda rows: (
            _best(rows, 8)["rate"] <= _best(rows, 1)["rate"] / 4
        ),
        "each best rate has a worse one on both sides": lambda rows: all(
            min(TRIED[n]) < _best(rows, n)["rate"] < max(TRIED[n]) for n in TRIED
        ),
    },
    look=Look("rate", ("loss",), "stages", log="xy", title="loss of the last 30 mini-batches"),
)
def deeper(run):
    """Digits, a residual network of eight layers (tanh), 120 mini-batches of 32, momentum 0.9, Chen's pipeline, its
    weights computed on one machine. One stage is plain momentum. best and least: the rate of the lowest loss, and that
    loss."""
    rows = [
        {"stages": stages, "rate": rate, "loss": loss_in_slots(run, stages, rate)}
        for stages, rates in TRIED.items()
        for rate in rates
    ]
    return [{**row, "best": _best(rows, row["stages"])["rate"], "least": _least(rows, row["stages"])} for row in rows]


def _best(rows, stages):
    """Return the row of the lowest loss on so many stages."""
    return min((row for row in rows if row["stages"] == stages), key=lambda row: row["loss"])


def _least(rows, stages):
    return _best(rows, stages)["loss"]


@figure(
    "How large may a step be, if it is late?",
    source="Yang et al., 2021 (PipeMare), lemma 1; with momentum by trying",
    claims={
        "without momentum less than 2 sin(pi / (4 t + 2)) on curvature 1, for every delay t": lambda rows: all(
            abs(row["largest rate"] / row["theory"] - 1) < 0.01 for row in rows if row["momentum"] == 0
        ),
        "that rate falls as one over the delay": lambda rows: 1.9 < _rate(rows, 0, 10) / _rate(rows, 0, 20) < 2.1,
        "without delay, momentum tolerates larger steps": lambda rows: _rate(rows, 0.9, 0) > _rate(rows, 0, 0),
        "with delay, only far smaller ones: a tenth already at six updates": lambda rows: (
            _rate(rows, 0.9, 6) < _rate(rows, 0, 6) / 10
        ),
    },
    look=Look("delay", ("largest rate",), slider="momentum", theory=("theory",), log="y"),
)
def stability(run):
    """A bowl without noise and gradients of a fixed age: the largest of 200 rates that does not diverge.

    In a pipeline the delay is 2(S-1-s) on stage s for the pipelines of 1993 and 2012, 2(S-1-s) + 1 for PipeMare and
    S-1-s for 1F1B. Rate r on curvature h is rate r h on curvature 1, so one bowl with 200 curvatures tries all rates at
    once.
    """
    for momentum in (0.0, 0.9):
        for delay in (0, 1, 2, 4, 6, 10, 14, 20):
            highest = 4.2 if not delay else 2.2 / delay
            lowest = highest / (600 if momentum else 3)
            bowl = {"workload": "quadratic", "dimension": 200, "condition": highest / lowest, "points": 64, "batch": 1}
            done = run(
                algorithm="delayed", workers=1, delay=delay, update="momentum" if momentum else "sgd",
                momentum=momentum, learning_rate=highest, steps=1500, network="ideal", precision="float64",
                evaluations=1, **bowl,
            )  # fmt: skip
            grown = int((~(np.abs(done.parameters) < 1)).sum())
            rate = highest * (lowest / highest) ** (grown / 200)
            yield {"momentum": momentum, "delay": delay, "largest rate": rate, "theory": largest_rate(delay)}


def _rate(rows, momentum, delay):
    return value(rows, "largest rate", momentum=momentum, delay=delay)


PLACES = "the weights it met", "the newest weights"
PLAIN = {"model": "mlp", "hidden": ",".join(["48"] * 7), "activation": "tanh"}  # eight layers


@figure(
    "Whose gradient is an update?",
    source="Pétrowski, Dreyfus & Girault, 1993, for the order; the measurement is ours",
    claims={
        "on one stage it is the gradient": lambda rows: max(value(rows, place, stages=1) for place in PLACES) < 1e-4,
        "on more it is the gradient neither at the weights it met nor at the newest": lambda rows: all(
            row[place] > 0.01 for row in rows if row["stages"] > 1 for place in PLACES
        ),
        "it is far nearer to that at the weights it met: less than a third as far": lambda rows: all(
            3 * row[PLACES[0]] < row[PLACES[1]] for row in rows if row["stages"] > 1
        ),
        "the deeper, the farther from that": lambda rows: is_rising(column(rows, PLACES[0])),
        "from the gradient at the newest weights it is over half that gradient's length": lambda rows: all(
            row[PLACES[1]] > 0.5 for row in rows if row["stages"] > 1
        ),
    },
    look=Look("stages", PLACES, kind="bar", title="distance from the gradient there"),
)
def whose(run):
    """Digits, eight dense layers of 48 neurons (tanh), rate 0.05, without momentum; the mean of mini-batches 30 to 49.
    The distance of an update from the true gradient of its mini-batch, as a multiple of that gradient's length."""
    return [
        {"stages": stages, **dict(zip(PLACES, distances(run, stages, 50, after=30)[:2], strict=True))}
        for stages in (1, 2, 4, 8)
    ]


def distances(run, stages, steps, after=5, **how):
    """Return how far updates are from the gradient at PLACES and halfway between, the mean from `after` on."""
    workload, far = workloads.find("digits").build(digits.Settings(**PLAIN), np.dtype("float64")), []
    for one in list(updates(workload, stages, 0.05, steps=steps, batch=32, seed=run.seed, **how))[after:]:
        gradients = (workload.gradient(w, one.samples)[1] for w in (one.met, one.newest, (one.met + one.newest) / 2))
        far.append([np.linalg.norm(one.g - g) / np.linalg.norm(g) for g in gradients])
    return np.mean(far, axis=0).tolist()


REMEDIES = {  # how it is run, or computed in slots, and rates to try
    "one rate": ({"hops": 2}, (0.0016, 0.0032, 0.0064, 0.0128)),
    "half as late": ({"hops": 1}, (0.0016, 0.0032, 0.0064, 0.0128)),
    "half as late, with a stash": ({"hops": 1, "stash": True}, (0.0016, 0.0032, 0.0064, 0.0128)),
    "half as late, predicted": ({"algorithm": "spectrain"}, (0.0016, 0.0032, 0.0064, 0.0128)),
    "a rate each, at first": ({"algorithm": "pipemare", "rescale": 60, "correct": False}, (0.0032, 0.0064, 0.0128)),
    "a rate each": (
        {"algorithm": "pipemare", "rescale": 10_000_000, "correct": False},
        (0.0064, 0.0128, 0.0256, 0.0512),
    ),
}


@figure(
    "What helps a pipeline of eight stages?",
    source="Chen, Yang & Cheng, 2018 (SpecTrain); Yang et al., 2021 (PipeMare, T1); the comparison is ours",
    claims={
        "half as late, it ends lower": lambda rows: _with(rows, "half as late") < _with(rows, "one rate"),
        "adding a stash changes it by less than 8 %": lambda rows: (
            abs(_with(rows, "half as late, with a stash") / _with(rows, "half as late") - 1) < 0.08
        ),
        "half as late and predicted, lower than with one rate, too": lambda rows: (
            _with(rows, "half as late, predicted") < _with(rows, "one rate")
        ),
        "a rate for each stage ends a tenth below one rate, and at most a tenth above half as late": lambda rows: (
            _with(rows, "a rate each") < 0.9 * _with(rows, "one rate")
            and _with(rows, "a rate each") < 1.1 * _with(rows, "half as late")
        ),
        "if the rates come back in full, it ends higher than if they stay divided": lambda rows: (
            _with(rows, "a rate each, at first") > _with(rows, "a rate each")
        ),
        "none comes near one machine: all end over twice as high": lambda rows: all(
            row["loss"] > 2 * row["one machine"] for row in rows
        ),
        "each best rate has a worse one on both sides": lambda rows: all(
            min(REMEDIES[row["remedy"]][1]) < row["rate"] < max(REMEDIES[row["remedy"]][1]) for row in rows
        ),
    },
    look=Look("remedy", ("loss",), kind="bar", theory=("one machine",), title="loss of the last 30 mini-batches"),
)
def remedies(run):
    """The network of eight layers, in eight stages, 120 mini-batches, momentum 0.9; each remedy at its own best rate.

    one rate: Chen's pipeline. half as late: 1F1B without a stash; with one: PipeDream; predicted: SpecTrain. a rate
    each: PipeMare's order, the rate of a stage divided by its delay; at first: in full again after 60 updates. one
    machine: at rate 0.0256.
    """
    alone = loss_in_slots(run, 1, 0.0256)
    for remedy, (how, rates) in REMEDIES.items():
        losses = {
            rate: loss_after(run, how, 8, rate) if "algorithm" in how else loss_in_slots(run, 8, rate, **how)
            for rate in rates
        }
        rate = interior(losses)
        yield {"remedy": remedy, "loss": losses[rate], "rate": rate, "one machine": alone}


def _with(rows, remedy):
    return value(rows, "loss", remedy=remedy)


SAME_TIME = {  # how it is timed, on how many stages its weights are computed, and rates to try
    "one machine": (None, 1, False, (0.0128, 0.0256, 0.0512, 0.1024, 0.2048)),
    "GPipe on eight": (WAYS["GPipe"], 1, False, (0.0064, 0.0128, 0.0256, 0.0512, 0.1024, 0.2048, 0.4096)),
    "never waits": (NEVER, 8, False, (0.0004, 0.0008, 0.0016, 0.0032, 0.0064)),
    "and a rate each": (NEVER, 8, True, (0.0032, 0.0064, 0.0128, 0.0256, 0.0512)),
}


@figure(
    "Who has learned most after the same time?",
    source="Chen et al., 2012; Yang et al., 2021 (PipeMare, T1); the comparison is ours",
    claims={
        "eight machines that wait, as GPipe's, end at under half of the loss of those that never do": lambda rows: (
            2 * _after(rows, "GPipe on eight") < _after(rows, "never waits")
        ),
        "a rate each brings those down, but not to GPipe's": lambda rows: (
            1.5 * _after(rows, "GPipe on eight") < _after(rows, "and a rate each")
        ),
        "with one rate, eight that never wait end over one and a half times as high as one machine": lambda rows: (
            _after(rows, "never waits") > 1.5 * _after(rows, "one machine")
        ),
        "each best rate has a worse one on both sides": lambda rows: all(
            min(SAME_TIME[row["method"]][-1]) < row["rate"] < max(SAME_TIME[row["method"]][-1]) for row in rows
        ),
    },
    look=Look("method", ("loss",), kind="bar", title="loss of the last 20 mini-batches"),
)
def same_time(run):
    """The network of eight layers, momentum 0.9, each at its own best rate. One machine gets 60 mini-batches, the
    others as many as they do meanwhile (in the rows). Those that never wait are Chen's pipeline; a rate each: over the
    delay of the stage plus one. Weights are computed on one machine; GPipe's are those of one machine."""
    where = {**EIGHT, "learning_rate": 0.001, "steps": 40}
    alone = run(**where, **WAYS["waits"], workers=1).summary["samples_per_second"]
    for method, (timed, stages, divided, rates) in SAME_TIME.items():
        speed = run(**{**where, **timed}, workers=8).summary["samples_per_second"] / alone if timed else 1.0
        steps = round(60 * speed)
        losses = {rate: loss_in_slots(run, stages, rate, 20, divided=divided, steps=steps) for rate in rates}
        rate = interior(losses)
        yield {"method": method, "loss": losses[rate], "mini-batches": steps, "rate": rate}


def _after(rows, method):
    return value(rows, "loss", method=method)


@figure(
    "What if the last layer alone is as much work as all the others?",
    source="Chen et al., 2012, who measured 1.9 times with two and 3.3 times with four; the sizes are ours",
    claims={
        "striped, two machines are worth 1.9 and four 3.5, as the paper's were worth 1.9 and 3.3": lambda rows: (
            abs(_striped(rows, 2) - 1.9) < 0.05 and abs(_striped(rows, 4) - 3.5) < 0.1
        ),
        "whole, it is the slowest stage, and a fourth machine gains nothing": lambda rows: (
            ratio(rows, "speed-up", machines=(8, 3), top="whole") < 1.05
        ),
        "striped, four machines are worth more than three": lambda rows: _striped(rows, 4) > 3,
        "with two machines it makes no difference": lambda rows: (
            abs(_striped(rows, 2) / value(rows, "speed-up", machines=2, top="whole") - 1) < 0.1
        ),
    },
    look=Look("machines", ("speed-up",), "top", theory=("ideal",), title="times as fast as one machine"),
)
def stripes(run):
    """Seven layers of 2,000 neurons and 10,000 classes, as large speech models had them, in a full pipeline.

    The work of a layer is the number of its weights. Striped: the classes are dealt to half of the machines, rounded
    up, each with stages of its own.
    """
    work = [500 * 2000, *[2000 * 2000] * 6, 2000 * 10_000]
    for machines in (1, 2, 3, 4, 6, 8):
        for top, stripes in (("whole", 1), ("striped", (machines + 1) // 2)):
            speed_up = striped_speed_up(work, machines, stripes)
            yield {"machines": machines, "top": top, "speed-up": speed_up, "ideal": machines}


def _striped(rows, machines):
    return value(rows, "speed-up", machines=machines, top="striped")
