"""Pipelined back-propagation: what is gained by never waiting for an error signal, and what a late one costs."""

from math import inf

import numpy as np

import workloads
from lessons.figure import Look, column, figure, is_rising, matching, ratio, value
from lessons.pipelined_backprop.slots import updates
from theory.balance import striped_speed_up
from theory.delay import largest_rate
from workloads import digits

SMOOTH = "1e9:1e15:0"  # a device that takes time for arithmetic and nothing else
RESIDUAL = {"model": "residual", "depth": 6, "width": 32, "activation": "tanh"}  # eight layers
EIGHT = {**RESIDUAL, "batch": 32, "device": SMOOTH, "network": "ideal", "precision": "float32", "evaluations": 1}
SHORT = 120  # mini-batches
NEVER = {"algorithm": "chen"}
LOST = 4.6  # twice the loss of guessing


def loss_after(run, how, stages, rate, momentum=0.9):
    """Return the mean loss of the last 30 of 120 mini-batches. It is infinite if training diverged."""
    done = run(**{**EIGHT, **how}, workers=stages, momentum=momentum, learning_rate=rate, steps=SHORT)
    return _end(done.losses["loss"] if done.status == "finished" else [inf], 30)


def loss_in_slots(run, stages, rate, last=30, **how):
    """Return the mean of the `last` final losses of a pipeline that never waits, computed on one machine.

    This equals `loss_after`, in a third of the time.
    """
    workload = workloads.find("digits").build(digits.Settings(**RESIDUAL), np.dtype("float32"))
    how = {"momentum": 0.9, "steps": SHORT, "batch": 32, "seed": run.seed} | how
    losses = []
    with np.errstate(all="ignore"):
        for one in updates(workload, stages, rate, **how):
            losses.append(one.loss)
            if not np.isfinite(one.loss):
                break
    return _end(losses, last)


def _end(losses, last):
    """Return the mean of the final `last` losses; infinite if training diverged."""
    mean = float(np.mean(losses[-last:]))
    return mean if np.isfinite(losses).all() and mean < LOST else inf


WAYS = {
    "waits": {"algorithm": "gpipe", "chunks": 1},
    "GPipe": {"algorithm": "gpipe", "chunks": 16, "steps": 6},
    "never waits": NEVER,
}


@figure(
    "What is gained if no stage ever waits for an error?",
    source="Pétrowski, Dreyfus & Girault, 1993; Chen et al., 2012",
    claims={
        "with one mini-batch at a time, eight machines are no faster than one": lambda rows: (
            max(column(rows, "speed-up", order="waits")) < 1.1
        ),
        "if no stage waits, two, four and eight machines do the work of at least 1.7, 3.2 and 5": lambda rows: (
            _speed(rows, "never waits", 2) > 1.7
            and _speed(rows, "never waits", 4) > 3.2
            and _speed(rows, "never waits", 8) > 5
        ),
        "GPipe, which empties its pipeline, is slower than never waiting and faster than one mini-batch at a time": (
            lambda rows: all(
                _speed(rows, "waits", n) < _speed(rows, "GPipe", n) < _speed(rows, "never waits", n) for n in (2, 4, 8)
            )
        ),
    },
    look=Look("machines", ("speed-up",), "order", theory=("ideal",), title="times as fast as one machine"),
)
def never_waiting(run):
    """Training on digits with 16 layers for 40 mini-batches of 32; messages take no time. GPipe cuts each mini-batch
    into 16 micro-batches, and its pipeline is empty before the next mini-batch begins.
    """
    where = {**EIGHT, "depth": 14, "learning_rate": 0.001, "steps": 40}
    alone = run(**WAYS["waits"], workers=1, **where).summary["samples_per_second"]
    for order, how in WAYS.items():
        for machines in (1, 2, 4, 8):
            speed = run(**{**where, **how}, workers=machines).summary["samples_per_second"] / alone
            yield {"order": order, "machines": machines, "speed-up": speed, "ideal": machines}


def _speed(rows, order, machines):
    return value(rows, "speed-up", order=order, machines=machines)


MOMENTA = 0.0, 0.5, 0.9  # every method is tried with each


def losses_by_momentum(train, steps):
    """Return {momentum: {learning rate: loss}} of `train(momentum, rate)`.

    Momentum m applies each gradient 1 / (1 - m) times over, so the learning rates are `steps` times 1 - m.
    """
    return {m: {round((1 - m) * step, 6): train(m, round((1 - m) * step, 6)) for step in steps} for m in MOMENTA}


def at_best(train, steps):
    """Yield a row for each momentum: its lowest loss, the learning rate of that loss, and the lowest loss over all
    momenta.
    """
    found = losses_by_momentum(train, steps)
    least = min(min(losses.values()) for losses in found.values())
    for momentum, losses in found.items():
        rate = min(losses, key=lambda one: losses[one])
        yield {"momentum": momentum, "loss": losses[rate], "rate": rate, "least": least}


def best(rows, **where):
    """Return the row with the lowest loss among those that match `where`."""
    return min(matching(rows, **where), key=lambda row: row["loss"])


def is_inside(row, steps):
    """True if both larger and smaller learning rates than this row's were tried."""
    return 1.01 * min(steps) < row["rate"] / (1 - row["momentum"]) < 0.99 * max(steps)


TRIED = {
    1: (0.016, 0.064, 0.128, 0.256, 0.512, 1.024),
    2: (0.016, 0.064, 0.128, 0.256, 0.512, 1.024),
    4: (0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024),
    8: (0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024),
}


@figure(
    "How well does a deeper pipeline learn at each rate?",
    source="Chen et al., 2012; the depths and the rates are ours",
    claims={
        "at the smallest rate that all depths were given, all reach the same loss, within 6 %": lambda rows: all(
            max(column(rows, "loss", momentum=m, rate=rate)) < 1.06 * min(column(rows, "loss", momentum=m, rate=rate))
            for m, rate in ((0.0, 0.016), (0.9, 0.0016))
        ),
        "each at its own best rate and momentum, two stages end at over 1.3 times the loss of one": lambda rows: (
            _least(rows, 2) > 1.3 * _least(rows, 1)
        ),
        "four stages end at a higher loss than two, and eight at over 1.5 times the loss of two": lambda rows: (
            _least(rows, 2) < _least(rows, 4) and 1.5 * _least(rows, 2) < _least(rows, 8)
        ),
        "eight stages end at over four times the loss of one": lambda rows: _least(rows, 8) > 4 * _least(rows, 1),
        "with a momentum of 0.9 the best rate of eight stages is at most a quarter of that of one": lambda rows: (
            best(rows, stages=8, momentum=0.9)["rate"] <= best(rows, stages=1, momentum=0.9)["rate"] / 4
        ),
        "with a momentum of 0.9, the rates on both sides of each best rate are worse": lambda rows: all(
            is_inside(best(rows, stages=stages, momentum=0.9), steps) for stages, steps in TRIED.items()
        ),
    },
    look=Look("rate", ("loss",), "stages", slider="momentum", log="xy", title="loss of the last 30 mini-batches"),
)
def deeper(run):
    """Chen's pipeline training a residual tanh network of eight layers on digits, for 120 mini-batches of 32. The
    weights are computed on one machine, and one stage is plain SGD with momentum. `best` and `least`: the learning rate
    of the lowest loss at this momentum, and that loss.
    """
    for stages, steps in TRIED.items():
        found = losses_by_momentum(
            lambda momentum, rate, n=stages: loss_in_slots(run, n, rate, momentum=momentum), steps
        )
        for momentum, losses in found.items():
            lowest = min(losses, key=lambda rate: losses[rate])
            for rate, loss in losses.items():
                yield {"momentum": momentum, "stages": stages, "rate": rate, "loss": min(loss, LOST),
                       "best": lowest, "least": losses[lowest]}  # fmt: skip


def _least(rows, stages):
    return best(rows, stages=stages)["loss"]


@figure(
    "How large may a step be if its gradient is late?",
    source="Yang et al., 2021 (PipeMare), lemma 1; with momentum, by trial",
    claims={
        "without momentum the largest rate on curvature 1 is 2 sin(pi / (4 t + 2)), for every delay t": (
            lambda rows: all(
                abs(row["largest rate"] / row["theory"] - 1) < 0.01 for row in rows if row["momentum"] == 0
            )
        ),
        "without momentum the largest rate falls as one over the delay": (
            lambda rows: 1.9 < _rate(rows, 0, 10) / _rate(rows, 0, 20) < 2.1
        ),
        "without delay, a momentum of m tolerates a rate of 2 (1 + m), nearly twice that without momentum": (
            lambda rows: abs(_rate(rows, 0.9, 0) / 3.8 - 1) < 0.01
        ),
        "at a delay of six updates, a momentum of 0.9 tolerates under a tenth of the rate without momentum": (
            lambda rows: _rate(rows, 0.9, 6) < _rate(rows, 0, 6) / 10
        ),
    },
    look=Look("delay", ("largest rate",), slider="momentum", theory=("theory",), log="y"),
)
def stability(run):
    """The largest of 200 learning rates that does not diverge, on a bowl without noise and with gradients of a fixed
    age. The learning rates are half a percent apart, or two percent with momentum and a delay.

    In a pipeline the delay is 2(S-1-s) on stage s for the pipelines of 1993 and 2012, 2(S-1-s) + 1 for PipeMare and
    S-1-s for 1F1B. Rate r on curvature h is rate r h on curvature 1, so one bowl with 200 curvatures tries all rates at
    once.
    """
    for momentum in (0.0, 0.9):
        for delay in (0, 1, 2, 4, 6, 10, 14, 20):
            highest = 4.2 if not delay else 2.2 / delay
            lowest = highest / (40 if momentum and delay else 3)
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


PLACES = "the weights of its forward pass", "the newest weights"
PLAIN = {"model": "mlp", "hidden": ",".join(["48"] * 7), "activation": "tanh"}  # eight layers


@figure(
    "At which weights is an update the gradient of the loss?",
    source="Pétrowski, Dreyfus & Girault, 1993, for the order; the measurement is ours",
    claims={
        "with one stage an update is the gradient at the weights of its forward pass": lambda rows: (
            max(value(rows, place, stages=1) for place in PLACES) < 1e-4
        ),
        "with more stages, an update is neither the gradient at the weights of its forward pass nor at the newest": (
            lambda rows: all(row[place] > 0.01 for row in rows if row["stages"] > 1 for place in PLACES)
        ),
        "an update is less than a third as far from the gradient at the weights of its forward pass as from that at "
        "the newest weights": (
            lambda rows: all(3 * row[PLACES[0]] < row[PLACES[1]] for row in rows if row["stages"] > 1)
        ),
        "the deeper the pipeline, the farther an update is from the gradient at the weights of its forward pass": (
            lambda rows: is_rising(column(rows, PLACES[0]))
        ),
        "an update is over half a gradient's length away from the gradient at the newest weights": lambda rows: all(
            row[PLACES[1]] > 0.5 for row in rows if row["stages"] > 1
        ),
    },
    look=Look("stages", PLACES, kind="bar", title="distance of an update from the gradient at these weights"),
)
def whose(run):
    """How far an update is from the true gradient of its mini-batch, as a multiple of that gradient's length.

    Eight dense layers of 48 neurons (tanh) train on digits at a learning rate of 0.05, without momentum. Values are
    means over mini-batches 30 to 49.
    """
    return [
        {"stages": stages, **dict(zip(PLACES, distances(run, stages, 50, after=30)[:2], strict=True))}
        for stages in (1, 2, 4, 8)
    ]


def distances(run, stages, steps, after=5, **how):
    """Return how far updates are from the gradients at PLACES and halfway between, as fractions of the gradient's
    length. Values are averages from update `after` on.
    """
    workload, far = workloads.find("digits").build(digits.Settings(**PLAIN), np.dtype("float64")), []
    for one in list(updates(workload, stages, 0.05, steps=steps, batch=32, seed=run.seed, **how))[after:]:
        gradients = (workload.gradient(w, one.samples)[1] for w in (one.met, one.newest, (one.met + one.newest) / 2))
        far.append([np.linalg.norm(one.g - g) / np.linalg.norm(g) for g in gradients])
    return np.mean(far, axis=0).tolist()


SLOTS = TRIED[8]
REMEDIES = {  # how it is run, or computed in slots, and the steps to try
    "one rate": ({"hops": 2}, SLOTS),
    "half as late": ({"hops": 1}, SLOTS),
    "half as late, with a stash": ({"hops": 1, "stash": True}, SLOTS),
    "half as late, predicted": ({"algorithm": "spectrain"}, (0.016, 0.032, 0.064, 0.128)),
    "a rate each, at first": ({"algorithm": "pipemare", "rescale": 60, "correct": False}, (0.032, 0.064, 0.128)),
    "a rate each": ({"algorithm": "pipemare", "rescale": 10_000_000, "correct": False}, (0.128, 0.256, 0.512)),
    "half as late, a rate each": ({"hops": 1, "divided": True}, (0.128, 0.256, 0.512, 1.024)),
}


@figure(
    "What helps a pipeline of eight stages?",
    source="Chen, Yang & Cheng, 2018 (SpecTrain); Yang et al., 2021 (PipeMare, T1); the comparison is ours",
    claims={
        "with half the delay, the final loss is lower than with the whole delay": lambda rows: (
            _with(rows, "half as late") < _with(rows, "one rate")
        ),
        "with a momentum of 0.9, adding a stash changes the loss by less than 8 %": lambda rows: (
            abs(ratio(rows, "loss", momentum=0.9, remedy=("half as late, with a stash", "half as late")) - 1) < 0.08
        ),
        "adding a prediction to half the delay lowers the loss by less than a third": lambda rows: (
            _with(rows, "half as late, predicted") > 0.67 * _with(rows, "half as late")
        ),
        "a rate for each stage lowers the loss by a tenth or more": lambda rows: (
            _with(rows, "a rate each") < 0.9 * _with(rows, "one rate")
        ),
        "the final loss is higher if rates return to their full value than if they stay divided": lambda rows: (
            _with(rows, "a rate each, at first") > _with(rows, "a rate each")
        ),
        "half the delay and a rate for each stage together lower the loss by a sixth or more": lambda rows: (
            _with(rows, "half as late, a rate each") < 5 / 6 * _with(rows, "one rate")
        ),
        "no remedy comes close to one machine: all end at over twice its loss": lambda rows: all(
            row["loss"] > 2 * row["one machine"] for row in rows
        ),
        "at the best momentum of each remedy, the rates on both sides of the best one are worse": lambda rows: all(
            is_inside(best(rows, remedy=remedy), steps) for remedy, (_, steps) in REMEDIES.items()
        ),
    },
    look=Look("remedy", ("loss",), "momentum", kind="bar", theory=("one machine",),
              title="loss of the last 30 mini-batches"),
)  # fmt: skip
def remedies(run):
    """The network of eight layers in eight stages, trained for 120 mini-batches. Each remedy is at its own best
    learning rate for each momentum.

    `one rate`: Chen's pipeline. `half as late`: 1F1B without a stash; with a stash it is PipeDream, with prediction
    SpecTrain. `a rate each`: PipeMare's order of passes, where the learning rate of each stage is divided by its delay;
    `at first` does so only for the first 60 updates. `one machine`: at its own best learning rate and momentum.
    Learning rates are a factor of two apart; a remedy with few of them, such as SpecTrain with four, was given those
    around its best one.
    """
    alone = min(row["loss"] for row in at_best(lambda m, rate: loss_in_slots(run, 1, rate, momentum=m), TRIED[1]))
    for remedy, (how, steps) in REMEDIES.items():
        for row in at_best(lambda m, rate, how=how: _remedied(run, how, m, rate), steps):
            yield {"remedy": remedy, **row, "one machine": alone}


def _remedied(run, how, momentum, rate):
    if "algorithm" in how:
        return loss_after(run, how, 8, rate, momentum)
    return loss_in_slots(run, 8, rate, momentum=momentum, **how)


def _with(rows, remedy):
    """Return the loss of a remedy at its best learning rate and momentum."""
    return best(rows, remedy=remedy)["loss"]


STEPS = tuple(0.008 * 2**n for n in range(10))  # 0.008 to 4.096
SAME_TIME = {  # how it is timed, on how many stages its weights are computed, how, and the steps to try
    "one machine": (None, 1, {}, STEPS[3:8]),
    "GPipe on eight": (WAYS["GPipe"], 1, {}, STEPS[4:]),
    "never waits": (NEVER, 8, {}, STEPS[:7]),
    "and a rate each": (NEVER, 8, {"divided": True}, STEPS[3:9]),
    "half as late": (NEVER, 8, {"hops": 1}, STEPS[1:8]),
    "both": (NEVER, 8, {"hops": 1, "divided": True}, STEPS[3:9]),
}


@figure(
    "Which method has learned most after the same time?",
    source="Chen et al., 2012; Yang et al., 2021 (PipeMare, T1); the comparison is ours",
    claims={
        "with a momentum of 0.9 eight machines that never wait end at over 1.5 times the loss of one": (
            lambda rows: ratio(rows, "loss", momentum=0.9, method=("never waits", "one machine")) > 1.5
        ),
        "eight machines that never wait end a fifth or more lower without momentum than with a momentum of 0.9": (
            lambda rows: ratio(rows, "loss", method="never waits", momentum=(0.0, 0.9)) < 0.8
        ),
        "each at its best rate and momentum, eight machines with half the delay end below the loss of one": (
            lambda rows: _after(rows, "half as late") < 0.8 * _after(rows, "one machine")
        ),
        "with half the delay and a rate for each stage, eight machines end at under two thirds of the loss of one": (
            lambda rows: _after(rows, "both") < 2 / 3 * _after(rows, "one machine")
        ),
        "with one learning rate for all stages, eight machines that wait (GPipe) end at under half the loss of eight "
        "that never wait": (lambda rows: _after(rows, "GPipe on eight") < 0.5 * _after(rows, "never waits")),
        "GPipe ends at most a tenth above eight machines with both remedies": lambda rows: (
            _after(rows, "GPipe on eight") < 1.1 * _after(rows, "both")
        ),
        "at the best momentum of each method, the rates on both sides of the best one are worse": lambda rows: all(
            is_inside(best(rows, method=method), steps) for method, (*_, steps) in SAME_TIME.items()
        ),
    },
    look=Look("method", ("loss",), "momentum", kind="bar", title="loss of the last 20 mini-batches"),
)
def same_time(run):
    """The network of eight layers, trained for the same time by each method at its own best learning rate for each
    momentum. One machine gets 60 mini-batches; the table shows how many the other methods do in that time.

    The methods that never wait are Chen's pipeline and, with half the delay, 1F1B without a stash. `a rate each`: the
    learning rate divided by the stage's delay plus one. Weights are computed on one machine, and GPipe's are the same
    as without a pipeline.
    """
    where = {**EIGHT, "learning_rate": 0.001, "steps": 40}
    alone = run(**where, **WAYS["waits"], workers=1).summary["samples_per_second"]
    for method, (timed, stages, how, steps) in SAME_TIME.items():
        speed = run(**{**where, **timed}, workers=8).summary["samples_per_second"] / alone if timed else 1.0
        count = round(60 * speed)
        losses = {"last": 20, "steps": count, **how}
        for row in at_best(lambda m, rate, n=stages, how=losses: loss_in_slots(run, n, rate, momentum=m, **how), steps):
            yield {"method": method, **row, "mini-batches": count}


def _after(rows, method):
    """Return the loss of a method at its best learning rate and momentum."""
    return best(rows, method=method)["loss"]


@figure(
    "What if the last layer alone is as much work as all the others?",
    source="Chen et al., 2012, who measured 1.9 times with two and 3.3 times with four; the sizes are ours",
    claims={
        "with stripes, two machines are 1.9 times as fast as one, and four 3.5 times": lambda rows: (
            abs(_striped(rows, 2) - 1.9) < 0.05 and abs(_striped(rows, 4) - 3.5) < 0.1
        ),
        "without stripes the last layer is the slowest stage, and more than three machines gain nothing": lambda rows: (
            ratio(rows, "speed-up", machines=(8, 3), top="whole") < 1.05
        ),
        "with stripes, four machines do the work of more than three": lambda rows: _striped(rows, 4) > 3,
        "with two machines, stripes change the speed by less than a tenth": lambda rows: (
            abs(_striped(rows, 2) / value(rows, "speed-up", machines=2, top="whole") - 1) < 0.1
        ),
    },
    look=Look("machines", ("speed-up",), "top", theory=("ideal",), title="times as fast as one machine"),
)
def stripes(run):
    """A full pipeline of seven layers of 2,000 neurons and a last one of 10,000 classes, as in large speech models of
    the time.

    The work of a layer is the number of its weights. Striped: the classes are split into half as many stripes as
    machines, rounded up, each a layer of its own.
    """
    work = [500 * 2000, *[2000 * 2000] * 6, 2000 * 10_000]
    for machines in (1, 2, 3, 4, 6, 8):
        for top, stripes in (("whole", 1), ("striped", (machines + 1) // 2)):
            speed_up = striped_speed_up(work, machines, stripes)
            yield {"machines": machines, "top": top, "speed-up": speed_up, "ideal": machines}


def _striped(rows, machines):
    return value(rows, "speed-up", machines=machines, top="striped")
