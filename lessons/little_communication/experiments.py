"""Training with little communication: two data centres, one slow line, and what to send over it, and when."""

from math import inf, log10

import numpy as np

from algorithms.synchronous import robust
from lessons.figure import Look, column, figure, interior, is_falling, is_rising, ratio, value

PARAMETERS = 64 * 32 + 32 + 32 * 32 + 32 + 32 * 10 + 10  # of the digits' model
MODEL = {"hidden": "32,32", "batch": 16, "evaluations": 2, "device": "3e5:1e15:0"}  # a step takes about a second
LATENCY, PER_CENTRE, WORKERS = 0.05, 4, 8
PERIOD = 32
ADAM = (0.00125, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16)  # rates tried
SGD = (0.06, 0.125, 0.25, 0.5, 1.0, 2.0)


def line(seconds):
    """Return the settings of a network whose line between data centres carries the whole model in this many seconds."""
    return {"latency": LATENCY, "bandwidth": 4 * PARAMETERS / seconds}


CENTRES = {**MODEL, **line(4), "workers": WORKERS, "per_node": PER_CENTRE}


def best(run, rates, **values):
    """Return the Run with the lowest held-out loss among these learning rates. Raise ValueError if its learning rate is
    the smallest or the largest.
    """
    tried = {rate: run(learning_rate=rate, **values) for rate in rates}
    return tried[interior({rate: loss_of(done) for rate, done in tried.items()})]


def loss_of(done):
    """Return the held-out loss of a run. It is infinite if training diverged."""
    loss = done.summary["held_out_loss"]
    return inf if loss is None else loss


def across(done):
    """Return how many bytes crossed the line between the two data centres, in both directions together."""
    sent = done.trace.traffic()
    centre = np.arange(len(sent)) // PER_CENTRE
    return float(sent[centre[:, None] != centre].sum())


@figure(
    "What share of their time do two data centres spend training?",
    source="Douillard et al., 2023",
    claims={
        "if the line takes a second per model, averaging in every step leaves under half of the time to train": (
            lambda rows: value(rows, "training", line=1.0, meet="every step") < 0.5
        ),
        "if the line takes a second per model, averaging every 64 steps leaves over 95 % of the time to train": (
            lambda rows: value(rows, "training", line=1.0, meet="every 64 steps") > 0.95
        ),
        "on a line ten times as slow, even averaging every 64 steps costs over a fifth of the time": lambda rows: (
            value(rows, "training", line=10.0, meet="every 64 steps") < 0.8
        ),
    },
    look=Look("line", ("training",), "meet", log="x", title="share of the time spent training"),
)
def busy(run):
    """Training on digits in two data centres of four workers each. A step takes about a second, and a message takes 50
    ms plus its transfer time.

    `line` is the time in seconds in which the line between the two carries the whole model. The ring of eight sends 7/4
    of the model over it each way.
    """
    values = {**MODEL, "algorithm": "local_sgd", "workers": WORKERS, "steps": 64, "learning_rate": 0.1}
    step = run(network="ideal", period=64, **values).summary["seconds"] / 64
    for period in (1, 8, 64):
        for seconds in (0.01, 0.1, 1.0, 10.0):
            took = run(period=period, per_node=PER_CENTRE, **line(seconds), **values).summary["seconds"] / 64
            yield {
                "line": seconds,
                "meet": "every step" if period == 1 else f"every {period} steps",
                "training": step / took,
            }


@figure(
    "How much outer momentum is best on digits?",
    source="Douillard et al., 2023",
    claims={
        "with the paper's momentum of 0.9, training ends at over 1.4 times the loss of plain averaging": lambda rows: (
            value(rows, "loss", momentum=0.9) > 1.4 * value(rows, "loss", momentum=0.0)
        ),
        "with a momentum of 0.5, training ends at less than 1.2 times the loss of plain averaging": lambda rows: (
            value(rows, "loss", momentum=0.5) < 1.2 * value(rows, "loss", momentum=0.0)
        ),
        "the accuracies with any two momenta differ by less than 0.07": lambda rows: (
            max(column(rows, "accuracy")) - min(column(rows, "accuracy")) < 0.07
        ),
    },
    look=Look("momentum", ("loss", "training loss"), title="loss"),
)
def how_much_momentum(run):
    """Training on digits with eight workers and Adam as the inner optimizer. Models are averaged every 32 steps, eight
    times, and each row is at its own best inner learning rate.

    With a momentum of 0 the outer learning rate is 1, which is plain averaging; otherwise it is 0.7. The training loss
    is that of the workers during the last 32 steps.
    """
    for momentum in (0.0, 0.3, 0.5, 0.7, 0.9):
        done = outer(run, momentum)
        yield {
            "momentum": momentum,
            "loss": loss_of(done),
            "training loss": float(done.losses["loss"][-WORKERS * PERIOD :].mean()),
            "accuracy": done.summary["accuracy"],
        }


def outer(run, momentum):
    """Return the Run of DiLoCo with this outer momentum, at its best inner learning rate. Without momentum it is plain
    averaging.
    """
    values = {"outer_momentum": momentum, "outer_rate": 0.7 if momentum else 1.0}
    rates = 0.0003125, 0.000625, *ADAM
    return best(run, rates, algorithm="diloco", steps=256, period=PERIOD, **values, **CENTRES)


@figure(
    "Where does outer momentum get farther than plain averaging?",
    source="Douillard et al., 2023; Wang, Tantia, Ballas & Rabbat, 2020",
    claims={
        "in a valley ten times as long as wide, averaging gets more than twice as far as a momentum of 0.9": (
            lambda rows: ratio(rows, "progress", length=10, outer=("average", "0.9")) > 2
        ),
        "in a valley a thousand times as long as wide, a momentum of 0.9 gets a quarter farther than averaging": (
            lambda rows: ratio(rows, "progress", length=1000, outer=("0.9", "average")) > 1.25
        ),
        "the longer the valley, the larger the best momentum": lambda rows: (
            [
                max((row for row in rows if row["length"] == length), key=lambda row: row["progress"])["outer"]
                for length in (10, 100, 1000)
            ]
            == ["average", "0.6", "0.9"]
        ),
    },
    look=Look("length", ("progress",), "outer", log="xy", title="powers of ten by which the loss fell"),
)
def valley(run):
    """A bowl of 20 coordinates without noise, on which 4 workers take 40 outer steps, each after ten inner ones.
    `length` is the largest curvature divided by the smallest.

    The inner optimizer is SGD, at the best of four learning rates up to just below 2, the largest stable one. With
    momentum the outer learning rate is 0.7; an average is an outer learning rate of 1 without momentum.
    """
    for length in (10, 100, 1000):
        for momentum in (0.0, 0.6, 0.9):
            yield {
                "length": length,
                "outer": f"{momentum:g}" if momentum else "average",
                "progress": down_a_valley(run, length, momentum),
            }


def down_a_valley(run, length, momentum):
    """Return by how many powers of ten the loss falls at the best inner learning rate."""
    bowl = {
        "workload": "quadratic", "condition": length, "dimension": 20, "points": 64, "precision": "float64",
        "batch": 1, "evaluations": 2, "workers": 4, "steps": 400, "period": 10,
    }  # fmt: skip
    left = {}
    for rate in (0.5, 1.0, 1.5, 1.9, 2.1):
        values = {"outer_momentum": momentum, "outer_rate": 0.7 if momentum else 1.0, "learning_rate": rate}
        before, after = run(algorithm="diloco", update="sgd", **values, **bowl).evaluations["loss"][[0, -1]]
        left[rate] = after / before if np.isfinite(after) else inf
    return -log10(left[interior(left)])


@figure(
    "How many training steps must overlap the transfer of a fragment?",
    source="Douillard et al., 2025",
    claims={
        "with an overlap of four or more steps, training takes at most a thirtieth longer than on an ideal network": (
            lambda rows: all(row["slowdown"] < 1 + 1 / 30 for row in rows if row["overlap"] >= 4)
        ),
        "without overlap two fragments take longer than the whole model at once": lambda rows: (
            value(rows, "slowdown", overlap=0) > value(rows, "DiLoCo", overlap=0)
        ),
        "with an overlap of eight steps, training ends at less than 1.5 times DiLoCo's loss": lambda rows: (
            value(rows, "loss", overlap=8) < 1.5 * value(rows, "DiLoCo's loss", overlap=8)
        ),
    },
    look=Look("overlap", ("slowdown",), theory=("DiLoCo",), title="time, relative to an ideal network"),
)
def travelling(run):
    """Training on digits in two data centres for 256 steps of about a second. The line between them carries the model
    in 4 s, and each row is at its own best inner learning rate.

    Two fragments take turns, and each is averaged every 32 steps. `overlap` is the number of steps for which a fragment
    travels. The grey line is DiLoCo, which sends the whole model every 32 steps and waits for it. The outer momentum is
    0.5 for all.
    """
    values = {"algorithm": "diloco", "learning_rate": 0.01, "steps": 256, "period": PERIOD, "workers": WORKERS}
    free = run(network="ideal", **values, **MODEL).summary["seconds"]
    whole = outer(run, 0.5)
    for overlap in (0, 2, 4, 8, 15):
        done = streaming(run, overlap)
        yield {
            "overlap": overlap,
            "slowdown": done.summary["seconds"] / free,
            "DiLoCo": whole.summary["seconds"] / free,
            "loss": loss_of(done),
            "DiLoCo's loss": loss_of(whole),
        }


def streaming(run, overlap):
    """Return the Run of streaming DiLoCo at its best inner learning rate."""
    values = {"steps": 256, "period": PERIOD, "outer_momentum": 0.5, "overlap": overlap}
    return best(run, ADAM[1:], algorithm="streaming_diloco", **values, **CENTRES)


SPEEDS = 0.58, 0.75, 1.51, 3.33  # s per step
ALIKE = 4 / sum(1 / seconds for seconds in SPEEDS)  # s per step; four of these have the same total speed
CLUSTERS = {
    "four alike": ((ALIKE,) * 4, False), "four speeds": (SPEEDS, False), "four speeds, one crashes": (SPEEDS, True)
}  # fmt: skip
ROUNDS = {"four alike": 13, "four speeds": 5, "four speeds, one crashes": 5}  # of DiLoCo, to end closest to 300 s
METHODS = {"DiLoCo": ("diloco", {"outer_momentum": 0.3}), "no barrier": ("async_diloco", {"outer_momentum": 0.3})}


@figure(
    "What do four speeds and a crash cost, with a barrier and without?",
    source="Liu, Chhaparia, Douillard et al., 2024",
    claims={
        "at four speeds, training without a barrier processes more than twice DiLoCo's images": lambda rows: (
            ratio(rows, "images", cluster="four speeds", method=("no barrier", "DiLoCo")) > 2
        ),
        "at four speeds, training without a barrier ends at a lower loss than DiLoCo": lambda rows: (
            ratio(rows, "loss", cluster="four speeds", method=("no barrier", "DiLoCo")) < 1
        ),
        "if all workers are alike, DiLoCo's loss is at most a third above that without a barrier": lambda rows: (
            ratio(rows, "loss", cluster="four alike", method=("DiLoCo", "no barrier")) < 4 / 3
        ),
        "with a crash, DiLoCo ends at over four times the loss of training without a barrier": lambda rows: (
            ratio(rows, "loss", cluster="four speeds, one crashes", method=("DiLoCo", "no barrier")) > 4
        ),
        "without a crash, both methods take between 290 and 330 s": lambda rows: all(
            290 < row["seconds"] < 330 for row in rows if not CLUSTERS[row["cluster"]][1]
        ),
    },
    look=Look("cluster", ("loss",), "method", kind="bar", log="y", title="held-out loss after 300 s"),
)
def four_speeds(run):
    """Training on digits for 300 s with four workers in four places, which exchange every 16 steps. Each method is at
    its own best inner learning rate, and the line carries the model in 4 s.

    A step takes 0.58, 0.75, 1.51 and 3.33 s or, if the four are alike, equally long, with the same total speed. In the
    last cluster, the second slowest crashes for good after 100 s. `images` counts the images whose gradients were
    computed. DiLoCo takes the number of whole rounds that ends closest to 300 s. With a budget in seconds its workers
    would have to agree in every step whether to stop, so none could run ahead of the slowest.
    """
    for cluster in CLUSTERS:
        for method in METHODS:
            done = at_speeds(run, cluster, method)
            images = done.summary["samples"]
            seconds = done.summary["seconds"]
            yield {"cluster": cluster, "method": method, "loss": loss_of(done), "images": images, "seconds": seconds}


def at_speeds(run, cluster, method):
    """Return the Run of a method on a cluster, at the method's best inner learning rate."""
    (speeds, crashes), (algorithm, more) = CLUSTERS[cluster], METHODS[method]
    first = int(algorithm == "async_diloco")  # rank 0 is the server
    slow = ",".join(f"{rank}:{seconds}" for rank, seconds in enumerate(speeds, first))
    values = {"slow": slow, "crash": f"{first + 2}:100" if crashes else "", **budget(algorithm, ROUNDS[cluster])}
    return best(run, ADAM, algorithm=algorithm, period=16, workers=4, **values, **more, **line(4), **MODEL)


def budget(algorithm, rounds):
    """Return the settings that end a run: after this many rounds for DiLoCo, after 300 s for any other algorithm."""
    return {"steps": 16 * rounds} if algorithm == "diloco" else {"seconds": 300, "steps": 10_000}


AWAY = (40, 100), (100, 160), (130, 220), (60, 120)  # s, from and to, for each of the four workers
POSSIBLE = MODEL["batch"] * sum(
    (300 - back + gone) / seconds for (gone, back), seconds in zip(AWAY, SPEEDS, strict=True)
)  # images that the machines can process while they are up
QUORUM = {"outer_momentum": 0.3, "overlap": 7, "grace": 7}
CHAOS = {
    **METHODS,
    "quorum of 1": ("decoupled_diloco", {**QUORUM, "quorum": 1}),
    "quorum of 2": ("decoupled_diloco", {**QUORUM, "quorum": 2}),
    "quorum of all": ("decoupled_diloco", {**QUORUM, "quorum": 4}),
}


@figure(
    "How much does training suffer if each of four machines is down once?",
    source="Douillard et al., 2026",
    claims={
        "a quorum of one has more than twice DiLoCo's goodput": lambda rows: (
            ratio(rows, "goodput", method=("quorum of 1", "DiLoCo")) > 2
        ),
        "a quorum of one ends at less than nine tenths of DiLoCo's loss": lambda rows: (
            ratio(rows, "loss", method=("quorum of 1", "DiLoCo")) < 9 / 10
        ),
        "the loss of a quorum of one is within a factor of 1.5 of the loss without a barrier": lambda rows: (
            2 / 3 < ratio(rows, "loss", method=("quorum of 1", "no barrier")) < 3 / 2
        ),
        "the larger the quorum, the lower the goodput": lambda rows: is_falling(
            [value(rows, "goodput", method=f"quorum of {name}") for name in (1, 2, "all")]
        ),
        "a quorum of all ends at more than 1.25 times the loss of a quorum of one": lambda rows: (
            ratio(rows, "loss", method=("quorum of all", "quorum of 1")) > 5 / 4
        ),
        "all methods take between 300 and 330 s": lambda rows: all(300 <= row["seconds"] < 330 for row in rows),
    },
    look=Look("goodput", ("loss",), "method", log="y", title="held-out loss after 300 s"),
)
def chaos(run):
    """Four workers of four speeds train on digits for 300 s in periods of 16 steps. Each method is at its own best
    inner learning rate, and the line carries the model in 4 s.

    Each machine crashes once, and returns without memory after 60 or 90 s. DiLoCo's machines only pause, and keep their
    memory. `goodput` is the number of images processed, as a share of those that the machines could process while they
    are up. With a quorum, each of two fragments travels for at most seven steps, and the grace is also seven steps.
    DiLoCo takes four whole rounds.
    """
    for method in CHAOS:
        done = in_chaos(run, method)
        goodput = done.summary["samples"] / POSSIBLE
        yield {"method": method, "goodput": goodput, "loss": loss_of(done), "seconds": done.summary["seconds"]}


def in_chaos(run, method):
    """Return the Run of a method at its best inner learning rate. Each machine is down once."""
    algorithm, more = CHAOS[method]
    first = int(algorithm != "diloco")  # rank 0 is the server
    slow = ",".join(f"{rank}:{seconds}" for rank, seconds in enumerate(SPEEDS, first))
    away = ",".join(f"{rank}:{gone}-{back}" for rank, (gone, back) in enumerate(AWAY, first))
    values = {"slow": slow, "crash" if first else "pause": away, **budget(algorithm, rounds=4)}
    return best(run, ADAM[2:7], algorithm=algorithm, period=16, workers=4, **values, **more, **line(4), **MODEL)


@figure(
    "For the same bytes: send a few parameters in every step, or all of them rarely?",
    source="Beton et al., 2025",
    claims={
        "sending one parameter in 256 in every step ends at a lower loss than sending all of them every 256 steps": (
            lambda rows: ratio(rows, "loss", share=1 / 256, send=("few, always", "all, seldom")) < 1
        ),
        "with a quarter of the parameters per step, neither way ends at over one and a half times the other's loss": (
            lambda rows: 2 / 3 < ratio(rows, "loss", share=1 / 4, send=("few, always", "all, seldom")) < 3 / 2
        ),
        "sending all every 256 steps ends at least a fifth above the loss of sending all every fourth step": (
            lambda rows: ratio(rows, "loss", share=(1 / 256, 1 / 4), send="all, seldom") > 1.2
        ),
    },
    look=Look("share", ("loss",), "send", log="xy", title="held-out loss"),
)
def few_or_seldom(run):
    """Training on digits with four workers for 256 steps of Adam. Each row is at its own best learning rate.

    `share` is the share of the parameters that a worker sends per step on average: either a random share of this size
    in every step, or all of them every 1/share steps. In both cases there is one average at the end.
    """
    for period in (4, 32, 256):
        for send in ("few, always", "all, seldom"):
            yield {"share": 1 / period, "send": send, "loss": loss_of(train_sparing(run, send, period))}


def train_sparing(run, send, period):
    """Return the Run that sends 1 / period of the parameters per step on average, at its best learning rate."""
    how = {"algorithm": "sparta", "fraction": 1 / period}
    if send == "all, seldom":
        how = {"algorithm": "local_sgd", "period": period}
    values = {"steps": 256, "update": "adam", "workers": 4, "network": "ideal", **MODEL}
    return best(run, ADAM, **how, **values)


@figure(
    "How long does an exchange between many places take?",
    source="Kolehmainen et al., 2025; Koloskova, Stich & Jaggi, 2019",
    claims={
        "the more places there are, the longer a sum of all takes": lambda rows: is_rising(
            column(rows, "seconds", exchange="sum of all")
        ),
        "an exchange in pairs takes no longer with more places": lambda rows: (
            max(column(rows, "seconds", exchange="in pairs")) < 1.02 * min(column(rows, "seconds", exchange="in pairs"))
        ),
        "with four places a sum of all and an exchange in pairs take equally long": lambda rows: (
            abs(ratio(rows, "seconds", places=4, exchange=("sum of all", "in pairs")) - 1) < 0.05
        ),
        "with 64 places the sum takes more than six times as long as an exchange in pairs": lambda rows: (
            ratio(rows, "seconds", places=64, exchange=("sum of all", "in pairs")) > 6
        ),
        "both times agree with the formulas within 2 %": lambda rows: all(
            abs(row["seconds"] / row["theory"] - 1) < 0.02 for row in rows
        ),
    },
    look=Look("places", ("seconds",), "exchange", theory=("theory",), log="xy", title="seconds for an exchange"),
)
def many_places(run):
    """The duration of an exchange between places that have one worker each. A place's own line carries the model in a
    second, and a message takes 0.1 s more.

    The duration is the time from one outer step to the next, minus that of the inner steps. The sum goes around a ring:
    2 (N - 1) messages, one after the other, of an N-th of the model. Partners of a pair send each other two vectors.
    """
    for places in (4, 8, 16, 32, 64):
        for exchange in ("sum of all", "in pairs"):
            yield {
                "places": places,
                "exchange": exchange,
                "seconds": exchange_seconds(run, exchange, places),
                "theory": 2 * (places - 1) * (0.1 + 1 / places) if exchange == "sum of all" else 0.1 + 2,
            }


def exchange_seconds(run, exchange, places):
    """Return the duration of an exchange in s: the time that four more exchanges take, divided by four."""
    bowl = {
        "workload": "quadratic", "dimension": 1024, "points": 64, "batch": 1, "evaluations": 1, "learning_rate": 0.01,
        "device": "1e12:1e15:0", "latency": 0.1, "bandwidth": 4096.0, "period": 1, "update": "sgd", "workers": places,
        "algorithm": "diloco" if exchange == "sum of all" else "noloco",
    }  # fmt: skip
    few, many = (run(steps=steps, **bowl).summary["seconds"] for steps in (4, 8))
    return (many - few) / 4


LEDGER = {
    "every step": ("sync_sgd", ADAM[1:], {"update": "adam"}),
    "averages": ("local_sgd", ADAM[1:], {"update": "adam", "period": 16}),
    "DiLoCo": ("diloco", ADAM, {"period": 16, "outer_momentum": 0.5}),
    "streaming": ("streaming_diloco", ADAM, {"period": 16, "outer_momentum": 0.5, "overlap": 4}),
    "no barrier": ("async_diloco", ADAM, {"period": 16, "outer_momentum": 0.3}),
    "few, always": ("sparta", ADAM[1:7], {"update": "adam", "fraction": 1 / 16}),
    "a few frequencies": ("demo", ADAM[:6], {"fraction": 1 / 64}),
    "in pairs": ("noloco", ADAM, {"period": 16}),
    "neighbours, compressed": ("choco", SGD, {"fraction": 0.1}),
}


@figure(
    "What does each method learn in the same number of steps, and what does it send for that?",
    source="all papers of this chapter",
    claims={
        "each method that saves traffic sends under a quarter of what exchanging in every step sends": lambda rows: all(
            row["kB"] < value(rows, "kB", method="every step") / 4 for row in rows if row["method"] != "every step"
        ),
        "methods that send whole models every 16 steps send less than a tenth of what exchanging in every step sends": (
            lambda rows: all(
                value(rows, "kB", method=name) < value(rows, "kB", method="every step") / 10
                for name in ("averages", "DiLoCo", "streaming", "no barrier", "in pairs")
            )
        ),
        "all methods but the neighbours' plain SGD end at less than twice the loss of exchanging in every step": (
            lambda rows: all(
                ratio(rows, "loss", method=(row["method"], "every step")) < 2
                for row in rows
                if row["method"] != "neighbours, compressed"
            )
        ),
        "a server sends more than twice as much over the line as a sum does": lambda rows: (
            ratio(rows, "kB over the line", method=("no barrier", "DiLoCo")) > 2
        ),
    },
    look=Look("kB", ("loss",), "method", log="x", title="held-out loss"),
)
def ledger(run):
    """Training on digits in two data centres of four workers, with 128 steps of each worker. Each method is at its own
    best inner learning rate.

    `kB` is what a worker sends per step on average; `kB over the line` is what all send per step from one data centre
    to the other, both ways; `seconds` is the duration of a step, on a line that carries the model in 4 s.
    """
    for method in LEDGER:
        done = entry(run, method)
        yield {
            "method": method,
            "kB": done.summary["bytes"] / 128 / WORKERS / 1e3,
            "kB over the line": across(done) / 128 / 1e3,
            "loss": loss_of(done),
            "seconds": done.summary["seconds"] / 128,
        }


def entry(run, method):
    """Return the Run of a method in the ledger at its best learning rate."""
    algorithm, rates, more = LEDGER[method]
    return best(run, rates, algorithm=algorithm, steps=128, **more, **CENTRES)


LIES = {
    "backwards": {"lie": "flip", "strength": 1.0},
    "backwards, tenfold": {"lie": "flip", "strength": 10.0},
    "backwards, a hundredfold": {"lie": "flip", "strength": 100.0},
    "a little off": {"lie": "little", "strength": 1.0},
}
AGGREGATES = ("mean", "trimmed", "median", "krum")


@figure(
    "How far can two liars among ten workers pull a step?",
    source="Blanchard et al., 2017; Yin et al., 2018; Baruch, Baruch & Goldberg, 2019",
    claims={
        "liars can pull the mean as far as they like: a hundredfold lie pulls it over 40 times as far as a plain one": (
            lambda rows: ratio(rows, "pulled", aggregate="mean", lie=("backwards, a hundredfold", "backwards")) > 40
        ),
        "trimmed mean, median and Krum hardly depend on the size of a lie": lambda rows: all(
            ratio(rows, "pulled", aggregate=name, lie=("backwards, a hundredfold", "backwards")) < 1.2
            for name in ("trimmed", "median", "krum")
        ),
        "a lie that is a little off pulls trimmed mean, median and Krum farther than the mean": lambda rows: all(
            ratio(rows, "pulled", aggregate=(name, "mean"), lie="a little off") > 1.5
            for name in ("trimmed", "median", "krum")
        ),
    },
    look=Look("lie", ("pulled",), "aggregate", kind="bar", log="y", title="distance from the honest mean"),
)
def pull(run):
    """Ten gradients of 100 numbers, two of which come from workers that lie. The true mean has length 1, and so has the
    noise of each gradient.

    The liars send the opposite of their gradients, once, tenfold or a hundredfold; or, in every number, the honest mean
    minus one standard deviation of the honest gradients. Values are means over 40 draws; `trimmed` leaves out the two
    largest and smallest.
    """
    dice = np.random.default_rng(run.seed)
    for lie in LIES:
        for aggregate in AGGREGATES:
            yield {"lie": lie, "aggregate": aggregate, "pulled": pull_distance(dice, aggregate, lie)}


def pull_distance(dice, aggregate, lie, times=40):
    """Return how far an aggregate of ten gradients is from the honest mean, averaged over `times` draws. Two of the
    gradients are lies.
    """
    s = robust.Settings(liars=2, tolerated=2, **LIES[lie])
    found = []
    for _ in range(times):
        rows = 0.1 + dice.normal(0, 0.1, (10, 100))
        honest, out = rows[:8].mean(0), np.zeros(100)
        robust.tell(rows, honest, 8, s, dice)
        robust.AGGREGATES[aggregate](out, rows, s)
        found.append(np.linalg.norm(out - honest))
    return float(np.mean(found))
