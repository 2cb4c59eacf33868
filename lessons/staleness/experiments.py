"""Staleness: what it costs that a gradient is old when it arrives, and the ways to live with it."""

from itertools import pairwise

import numpy as np

from cluster.network import NETWORKS
from lessons.figure import Look, column, figure, is_falling, is_rising, ratio, value
from lessons.staleness.ensemble import mean_course
from theory.delay import largest_rate
from tracing import WAIT

HEAVY = 300  # times as long as its few numbers take: a gradient of a large model, beside which the server takes no time
BOWL = {"workload": "quadratic", "batch": 1, "network": "ideal", "precision": "float64", "evaluations": 2, "points": 64}
DIGITS = {"hidden": "32", "batch": 16, "jitter": "cloud", "evaluations": 2}  # 2,410 parameters
GUESSING = float(np.log(10))  # the loss of a model that takes every digit for as likely
NOTHING = 0.65 * GUESSING  # a model that has learned little or nothing
LEARNED = 0.5  # a loss that a model only has when it can read
CURVATURES = 200
TIMES = {"all alike": "none", "nearly alike": "cloud", "heavy tail": "pareto", "exponential": "exponential"}


def _slow(workers, slowest=1):
    """The setting `slow` for heavy gradients, the last worker's `slowest` times as heavy; rank 0 is the server."""
    factors = HEAVY * np.linspace(1 / slowest, 1, workers)
    return ",".join(f"{worker}:{factor:g}" for worker, factor in enumerate(factors, 1))


def _seconds(run, gradients, dimension):
    """The time of so many undisturbed heavy gradients, one after the other, in a bowl."""
    done = run(algorithm="asgd", workers=1, learning_rate=0.05, steps=10, slow=_slow(1), dimension=dimension, **BOWL)
    return gradients / 10 * float(done.evaluations["seconds"][-1])


def _loss(done):
    """The held-out loss in the end; infinite if the run diverged."""
    loss = done.summary["held_out_loss"]
    return float("inf") if loss is None else loss


@figure(
    "How much work do machines do if they never wait?",
    source="Dean et al., 2012; Chen et al., 2016",
    claims={
        "32 machines that wait for each other do the work of fewer than 20": lambda rows: (
            value(rows, "speed-up", method="synchronous", workers=32) < 20
        ),
        "if nobody waits they do the work of 32, to within a tenth": lambda rows: all(
            abs(row["speed-up"] / row["workers"] - 1) < 0.1 for row in rows if row["method"] == "asynchronous"
        ),
        "with as many gradients each, at the same rate, they learn far more than those that wait": lambda rows: (
            ratio(rows, "loss", method=("asynchronous", "synchronous"), workers=32) < 1 / 5
        ),
    },
    look=Look("workers", ("speed-up",), "method", title="times as fast as one machine"),
)
def nobody_waits(run):
    """Digits on a noisy cloud, 100 gradients of 16 images by each worker, at a timid rate; messages take no time.

    Synchronous SGD makes a step of N gradients, asynchronous SGD N steps. Gradients are counted up to where four fifths
    of them have come: in the end machines stop one after the other.
    """
    cloud = DIGITS | {"jitter": "noisy cloud", "network": "ideal", "learning_rate": 0.025}
    alone = _pace(run(algorithm="asgd", workers=1, slow=_slow(1), steps=2000, **cloud))
    for method, algorithm, more in (("synchronous", "backup", {"backups": 0}), ("asynchronous", "asgd", {})):
        for workers in (1, 2, 4, 8, 16, 32):
            done = run(algorithm=algorithm, workers=workers, slow=_slow(workers), steps=100, **more, **cloud)
            yield {"method": method, "workers": workers, "speed-up": _pace(done) / alone, "loss": _loss(done)}


def _pace(done):
    """Gradients a second, while most workers are busy."""
    most = len(done.losses["seconds"]) * 4 // 5
    return most / float(np.sort(done.losses["seconds"])[most - 1])


@figure(
    "How many workers may push at a given rate?",
    source="Hermans, 2017, where Downpour is fine with 10 workers and diverges with 20",
    claims={
        "two workers learn at any of these rates, and at the smaller ones about as well as one": lambda rows: (
            max(column(rows, "loss", workers=2)) < LEARNED
            and all(ratio(rows, "loss", rate=rate, workers=(2, 1)) < 1.4 for rate in RATES[1:])
        ),
        "many workers learn little or nothing": lambda rows: all(
            row["loss"] > NOTHING for row in rows if row["rate"] * row["workers"] > 2
        ),
        "a quarter of the rate cures it: four times the workers learn": lambda rows: (
            [_most(rows, rate) for rate in RATES] == [2, 8, 32]
        ),
    },
    look=Look("workers", ("loss",), "rate", log="x", title="held-out loss"),
)
def too_many_workers(run):
    """Digits; the same 1,536 gradients of 16 images, made by one worker or shared among many. Guessing costs 2.3.

    Up to a limit staleness hardly matters. Beyond it the first steps, where the loss is steepest, throw the network
    to where no neuron answers, and no later gradient brings it back.
    """
    for rate in RATES:
        for workers in (1, 2, 8, 32):
            done = run(algorithm="asgd", workers=workers, learning_rate=rate, steps=1536 // workers, **DIGITS)
            yield {"rate": rate, "workers": workers, "loss": _loss(done)}


RATES = (0.32, 0.08, 0.02)


def _most(rows, rate):
    return max(row["workers"] for row in rows if row["rate"] == rate and row["loss"] < GUESSING / 2)


@figure(
    "Which ages do gradients have?",
    source="Mitliagkas et al., 2016, for exponential times",
    claims={
        "if times are exponential, ages are geometric: the youngest is the most frequent": lambda rows: all(
            abs(row["share"] - row["geometric"]) < 0.015 for row in rows if row["times"] == "exponential"
        ),
        "if times are nearly alike, almost all are near N-1": lambda rows: (
            sum(row["share"] for row in rows if row["times"] == "nearly alike" and 5 <= row["age"] <= 9) > 0.9
        ),
        "a heavy tail, too, leaves most of them near N-1": lambda rows: (
            sum(row["share"] for row in rows if row["times"] == "heavy tail" and 5 <= row["age"] <= 9) > 0.5
        ),
    },
    look=Look("age", ("share",), slider="times", theory=("geometric",), title="share of all gradients"),
)
def ages(run):
    """Asynchronous SGD in a bowl with 8 workers; age is how many updates others made since the worker looked.

    The mean is 7 in all three. If all take exactly the same time, every age is 7.
    """
    workers = 8
    seconds = _seconds(run, 10_000 / workers, 1)
    for times in ("nearly alike", "heavy tail", "exponential"):
        where = {"slow": _slow(workers), "jitter": TIMES[times], "seconds": seconds}
        done = run(algorithm="asgd", workers=workers, learning_rate=0.01, dimension=1, **where, **BOWL)
        staleness = done.applied["staleness"][10 * workers :]
        for age in range(3 * workers):
            geometric = (1 / workers) * (1 - 1 / workers) ** age
            share = float((staleness == age).mean())
            yield {"times": times, "age": age, "share": share, "geometric": geometric}


@figure(
    "How old is a gradient when it arrives?",
    source="Mitliagkas et al., 2016; Hermans, 2017; the proof is ours",
    claims={
        "N-1 updates on average, whatever the times and speeds": lambda rows: all(
            abs(row["mean"] / (row["workers"] - 1) - 1) < 0.02 for row in rows
        ),
        "in a round robin every single gradient is that old": lambda rows: all(
            row["youngest"] == row["oldest"] == row["workers"] - 1
            for row in rows
            if row["times"] == "all alike" and row["slowest"] == 1
        ),
        "with exponential times about one in N is not old at all, and some are very old": lambda rows: all(
            abs(row["fresh"] * row["workers"] - 1) < 0.3 and row["oldest"] > 5 * row["workers"]
            for row in rows
            if row["times"] == "exponential"
        ),
        "a heavy tail makes a few older still, and hardly any fresh": lambda rows: all(
            value(rows, "oldest", times="heavy tail", workers=n) > value(rows, "oldest", times="exponential", workers=n)
            and value(rows, "fresh", times="heavy tail", workers=n) < 0.1
            for n in (4, 16)
        ),
    },
    look=Look("times", ("mean", "oldest"), "workers+slowest", kind="bar", log="y", title="updates in between"),
)
def how_old(run):
    """Asynchronous SGD in a bowl; the server counts the updates between a worker's look and its push.

    slowest: how many times as long as the fastest worker the slowest one takes. Fast workers push often, and young
    gradients, slow ones seldom, and old ones. A worker that makes the share r of all pushes sees (1 - r) / r others go
    by between two of its own, and r (1 - r) / r, summed over all workers, is N-1.
    """
    for workers in (4, 16):
        seconds = _seconds(run, 6000 / workers, 1)
        for times, slowest in (*((times, 1) for times in TIMES), ("all alike", 10)):
            where = {"slow": _slow(workers, slowest), "jitter": TIMES[times], "seconds": seconds}
            done = run(algorithm="asgd", workers=workers, learning_rate=0.01, dimension=1, **where, **BOWL)
            staleness = done.applied["staleness"][10 * workers :]
            yield {
                "workers": workers,
                "times": times,
                "slowest": slowest,
                "mean": float(staleness.mean()),
                "fresh": float((staleness == 0).mean()),
                "youngest": int(staleness.min()),
                "oldest": int(staleness.max()),
            }


def _stability(run, workers, highest, lowest, **where):
    """Asynchronous SGD with all rates between these two at once, on a bowl without noise.

    Rate r on curvature h is rate r h on curvature 1, so one bowl with many curvatures tries them all with one rate and
    the same delays.
    """
    tried = {"learning_rate": highest, "condition": highest / lowest, "dimension": CURVATURES}
    return run(algorithm="asgd", workers=workers, slow=_slow(workers), **tried, **where, **BOWL)


def _critical(done):
    """The rate, of all that were tried, above which parameters grow. ValueError if none does, or all do."""
    grown = int((np.abs(done.parameters) > 1).sum())
    if grown in (0, CURVATURES):
        raise ValueError(f"{grown} of {CURVATURES} curvatures are unstable; try other rates.")
    experiment = done.experiment
    return experiment.settings["learning_rate"] * experiment.data["condition"] ** (-grown / CURVATURES)


@figure(
    "What does an old gradient do?",
    source="the theory of linear recursions with a delay",
    claims={
        "alone, w goes straight down": lambda rows: is_falling(column(rows, "w", workers=1)),
        "with four workers it oscillates, and comes to rest": lambda rows: (
            min(column(rows, "w", workers=4)) < -0.3 and abs(column(rows, "w", workers=4)[-1]) < 0.1
        ),
        "with eight it swings farther each time": lambda rows: (
            max(column(rows, "w", workers=8)[20:]) > 1 > 0 > -0.9 > min(column(rows, "w", workers=8)[:20])
        ),
    },
    look=Look("update", ("w",), slider="workers"),
)
def overshoot(run):
    """The bowl w^2/2 from w = 1 at rate 0.3; workers are all alike and take turns, so a gradient is N-1 updates old."""
    return [
        {"workers": workers, "update": update, "w": float(w)}
        for workers in (1, 4, 8)
        for update, w in enumerate(mean_course(0, workers, 0.3, "none", 40, 1))
    ]


@figure(
    "How large may the rate be, if gradients are old?",
    source="the theory of linear recursions with a delay",
    claims={
        "2 sin(pi / (2 (2 s + 1))) on curvature 1, for every staleness s": lambda rows: all(
            abs(row["critical rate"] / row["theory"] - 1) < 0.01 for row in rows
        ),
        "which soon is nearly pi / (2 s + 1): twice the workers, half the rate": lambda rows: all(
            abs(more["critical rate"] / fewer["critical rate"] - 0.5) < 0.06
            for fewer, more in pairwise(rows)
            if fewer["workers"] > 1
        ),
    },
    look=Look("workers", ("critical rate",), theory=("theory",), log="xy"),
)
def critical_delay(run):
    """A bowl without noise and workers that are all alike, a round robin: every gradient is s = N-1 updates old.

    Found by trying 200 rates between 1.25 / N and 2.5 / N.
    """
    for workers in (1, 2, 4, 8, 16):
        done = _stability(run, workers, 2.5 / workers, 1.25 / workers, steps=400)
        stale, theory = workers - 1, largest_rate(workers - 1)
        yield {"workers": workers, "staleness": stale, "critical rate": _critical(done), "theory": theory}


@figure(
    "Is the mean staleness all that matters?",
    source="Mitliagkas et al., 2016; the critical rates are ours",
    claims={
        "no: the mean is the same, and the more unlike the times, the higher the critical rate": lambda rows: all(
            is_rising(column(rows, "critical rate", workers=n)) for n in (4, 16)
        ),
        "with exponential times more than twice that of a round robin for 4 workers, three times for 16": lambda rows: (
            _gain(rows, 4) > 2 and _gain(rows, 16) > 3
        ),
        "the oldest does not matter: heavy tails have ones as old as exponential times": lambda rows: (
            ratio(rows, "oldest", times=("heavy tail", "exponential"), workers=16) > 1 / 2
            and ratio(rows, "critical rate", times=("heavy tail", "exponential"), workers=16) < 1 / 2
        ),
        "the young ones do": lambda rows: all((np.diff(column(rows, "young", workers=n)) >= 0).all() for n in (4, 16)),
    },
    look=Look("times", ("critical rate",), "workers", kind="bar"),
)
def equal_means(run):
    """Critical rates on curvature 1, as before, for times that differ from step to step; young: less than N/2 old.

    In a round robin the whole answer to a step comes at once, and too late. Where ages are mixed the young gradients
    have begun to brake before the old ones push on.
    """
    for workers in (4, 16):
        seconds = _seconds(run, 200, CURVATURES)
        for times, jitter in TIMES.items():
            done = _stability(run, workers, 10 / workers, 1 / workers, jitter=jitter, seconds=seconds)
            staleness = done.applied["staleness"]
            yield {
                "workers": workers,
                "times": times,
                "mean": float(staleness[4 * workers :].mean()),
                "young": float((staleness[4 * workers :] < workers / 2).mean()),
                "oldest": int(staleness.max()),
                "critical rate": _critical(done),
            }


def _gain(rows, workers):
    rates = column(rows, "critical rate", workers=workers)
    return rates[-1] / rates[0]


@figure(
    "Does asynchrony beget momentum?",
    source="Mitliagkas, Zhang, Hadjis & Ré, 2016, theorem 3",
    claims={
        "with exponential times the mean course is that of a momentum 1 - 1/N": lambda rows: all(
            abs(row["momentum"] - (1 - 1 / row["workers"])) < 0.03 for row in rows if row["times"] == "exponential"
        ),
        "and of a rate of about lr/N": lambda rows: all(
            abs(row["N rate / lr"] - 1) < 0.3 for row in rows if row["times"] == "exponential"
        ),
        "that recursion tells where it goes": lambda rows: all(
            row["off by"] < 0.1 for row in rows if row["times"] == "exponential"
        ),
        "in a round robin it does not": lambda rows: all(
            row["off by"] > 0.2 and row["N rate / lr"] > 1.4 for row in rows if row["times"] == "all alike"
        ),
    },
    look=Look("workers", ("momentum",), "times", theory=("1 - 1/N",), title="momentum of the mean course"),
)
def begets_momentum(run):
    """The bowl w^2/2 from w = 1 at rate 1.2/N: asynchronous SGD, the mean of 200 clusters.

    Fitted by least squares is w(t+1) - w(t) = momentum (w(t) - w(t-1)) - rate w(t), over 16 updates. off by: the
    largest distance to what the theorem's own momentum and rate predict. A fixed delay can be fitted, too, but by other
    numbers, and it swings wider.
    """
    for times, clusters in (("exponential", 200), ("all alike", 1)):
        for workers in (2, 4, 8):
            rate = 1.2 / workers
            w = mean_course(run.seed, workers, rate, TIMES[times], 16, clusters)
            momentum, fitted = fit(w)
            predicted = [w[0], w[1]]
            while len(predicted) < len(w):
                step = (1 - 1 / workers) * (predicted[-1] - predicted[-2]) - rate / workers * predicted[-1]
                predicted.append(predicted[-1] + step)
            yield {
                "times": times,
                "workers": workers,
                "1 - 1/N": 1 - 1 / workers,
                "momentum": float(momentum),
                "N rate / lr": float(workers * fitted / rate),
                "off by": float(np.abs(w - predicted).max()),
            }


def fit(w):
    """(momentum, rate) of the recursion w(t+1) - w(t) = momentum (w(t) - w(t-1)) - rate w(t) that is nearest to w."""
    steps = np.diff(w)
    return np.linalg.lstsq(np.stack([steps[:-1], -w[1:-1]], 1), steps[1:], rcond=None)[0]


@figure(
    "How much momentum should a server add?",
    source="Mitliagkas, Zhang, Hadjis & Ré, 2016",
    claims={
        "the more workers the less: most for one, less for two, hardly any or less than none for eight": lambda rows: (
            _favourite(rows, 1)["added"] > _favourite(rows, 2)["added"] > _favourite(rows, 8)["added"] < 0.1
        ),
        "one worker gets less than half as far without it": lambda rows: (
            value(rows, "progress", workers=1, added=0.0) < 0.5 * _favourite(rows, 1)["progress"]
        ),
        "eight need none: with a little less than they beget they get nearly as far as with the best": lambda rows: (
            value(rows, "progress", workers=8, **{"in all": 0.8}) > 0.8 * _favourite(rows, 8)["progress"]
        ),
        "0.6 in all, with what asynchrony begets, takes any of them two thirds as far as the best": lambda rows: all(
            value(rows, "progress", workers=n, **{"in all": 0.6}) > 2 / 3 * _favourite(rows, n)["progress"]
            for n in (1, 2, 4, 8)
        ),
    },
    look=Look("added", ("progress",), "workers", log="y", title="powers of ten that the loss falls by"),
)
def negative_momentum(run):
    """A bowl 20 times as steep one way as the other, exponential times; 160 updates, each time with the best rate.

    Progress is in powers of ten of the loss, the mean of four clusters that differ in their times. Of the momentum in
    all, N workers beget 1 - 1/N; the server adds the rest. For eight the summit is flat, and where exactly it lies
    differs from seed to seed.
    """
    for workers in (1, 2, 4, 8):
        for momentum in MOMENTA:
            row = {"workers": workers, "in all": momentum, "added": momentum - (1 - 1 / workers)}
            yield {**row, "progress": progress(run, workers, momentum)}


MOMENTA = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95)


def progress(run, workers, momentum):
    """By how many powers of ten the loss falls in 160 updates with this momentum in all, at the best of five rates."""
    bowl = BOWL | {"dimension": 20, "condition": 20, "jitter": "exponential"}
    where = {"workers": workers, "steps": 160 // workers, "slow": _slow(workers), **bowl}
    clusters = range(4 if workers > 1 else 1)  # a worker alone waits for nobody, whatever its times
    fallen = [
        [
            _fallen(run(algorithm="implicit_momentum", momentum=momentum, learning_rate=rate, seed=cluster, **where))
            for cluster in clusters
        ]
        for rate in (2.0, 1.4, 1.0, 0.7, 0.5)
    ]
    return float(np.mean(fallen, axis=1).max())


def _fallen(done):
    """The powers of ten that the loss has fallen by."""
    return np.log10(done.evaluations["loss"][0] / _loss(done))


def _favourite(rows, workers):
    return max((row for row in rows if row["workers"] == workers), key=lambda row: row["progress"])


@figure(
    "Can a server keep the rate of one worker, however many push?",
    source="Zhang, Gupta, Lian & Liu, 2016; Jiang, Cui, Zhang & Yu, 2017",
    claims={
        "asynchronous SGD cannot": lambda rows: all(
            row["loss"] > 1.5 for row in rows if row["method"] == "asynchronous SGD" and row["workers"] > 1
        ),
        "if it divides each step by its age it can": lambda rows: all(
            row["loss"] < 1.3 * rows[0]["loss"] for row in rows if row["method"] != "asynchronous SGD"
        ),
        "a step of all workers then does little more than one of one worker did": lambda rows: all(
            row["loss"] > 0.45 * rows[0]["loss"] for row in rows if row["method"] != "asynchronous SGD"
        ),
    },
    look=Look("workers", ("loss",), "method", log="x", title="held-out loss"),
)
def staleness_aware(run):
    """Digits, 100 steps of 16 images by each worker, all at the rate that suits a single one, 0.4.

    N gradients, each at 1/N of the rate, are about one step of a batch N times as large: nobody waits, but as many
    steps are needed as with synchronous SGD.
    """
    methods = {"asynchronous SGD": "asgd", "softsync, divided": "softsync", "DynSGD": "dynsgd"}
    for method, algorithm in methods.items():
        for workers in (1, 8, 16, 32):
            more = {"splits": workers} if algorithm == "softsync" else {}
            done = run(algorithm=algorithm, workers=workers, learning_rate=0.4, steps=100, **more, **DIGITS)
            yield {"method": method, "workers": workers, "loss": _loss(done)}


@figure(
    "Can a late gradient be brought up to date?",
    source="Zheng et al., 2017",
    claims={
        "with a lam of 1 the adaptive form does no harm, and as a rule makes a part of it good": lambda rows: (
            value(rows, "loss", form="adaptive", lam=1) < 1.1 * _plain(rows)
        ),
        "with a lam that is far too large it is much worse than none": lambda rows: (
            value(rows, "loss", form="adaptive", lam=100) > 3 * _plain(rows)
        ),
        "the adaptive form is about best at a lam of 1, the constant one still at ten times as much": lambda rows: all(
            value(rows, "loss", form=form, lam=lam) < 1.25 * _best(rows, form)
            for form, lam in (("adaptive", 1), ("constant", 10))
        ),
    },
    look=Look("lam", ("loss",), "form", kind="bar", log="y", title="held-out loss"),
)
def compensated(run):
    """Digits, 8 workers at 0.15, nearly as much as asynchronous SGD can stand; 768 updates, the median of 7 seeds.

    lam 0 is asynchronous SGD. Well below that rate there is nothing to be won here. The mean gradient of 16 images is
    short, and so is its square, which stands in for the curvature: the constant lam has to be larger than the paper's
    0.04. Worse than guessing counts as guessing. `no delay` is one worker.
    """
    yield {"form": "no delay", "lam": 0, "loss": _median_loss(run, algorithm="sgd", workers=1, steps=768)}
    for form in FORMS:
        for lam in (0, 1, 10, 100):
            late = {"algorithm": "dc_asgd", "form": form, "compensation": lam, "workers": 8, "steps": 96}
            yield {"form": form, "lam": lam, "loss": _median_loss(run, **late)}


FORMS = ("constant", "adaptive")


def _median_loss(run, **values):
    tried = [_loss(run(learning_rate=0.15, seed=seed, **values, **DIGITS)) for seed in range(7)]
    return float(np.median(np.minimum(tried, GUESSING)))


def _plain(rows):
    return value(rows, "loss", form="constant", lam=0)


def _best(rows, form):
    return min(column(rows, "loss", form=form))


@figure(
    "Should workers wait for each other?",
    source="Ho et al., 2013",
    claims={
        "if all take the same time nobody waits, and little or nothing is won by being stale": lambda rows: (
            max(column(rows, "waiting", times="all alike")) < 0.03
            and ratio(rows, "time", times="all alike", bound=(16, 0)) > 0.8
        ),
        "if their times differ a little, no bound is twice as fast as another": lambda rows: (
            max(column(rows, "time", times="nearly alike")) < 2 * min(column(rows, "time", times="nearly alike"))
        ),
        "though the farthest apart wait for less than a fifth as long": lambda rows: (
            ratio(rows, "waiting", times="nearly alike", bound=(0, 16)) > 5
        ),
        "if they differ much, no: not to wait is more than twice as fast": lambda rows: (
            ratio(rows, "time", times="exponential", bound=(0, 16)) > 2
        ),
        "the farther they may be apart the less they wait, or as little": lambda rows: all(
            (np.diff(column(rows, "waiting", times=times)) < 0.01).all() for times in WAITED
        ),
    },
    look=Look("bound", ("time",), "times", kind="bar", title="time until the loss is 0.4"),
)
def bounded_staleness(run):
    """Digits, 8 workers, until the loss is 0.4; SSP, which lets a worker be `bound` steps ahead of the slowest.

    Bound 0 is synchronous SGD over a server. The rate is bold, 1.0 for a step of all workers. Time is in times of a
    gradient; waiting is the share of the workers' time; means of two seeds. If times are exponential, ages are so
    mixed that staleness even helps, as momentum does: fewer gradients are needed, not more.
    """
    alone = run(algorithm="asgd", workers=1, learning_rate=0.05, steps=10, slow=_slow(1), evaluations=2, **READER)
    gradient = float(alone.evaluations["seconds"][-1]) / 10
    for times in WAITED:
        for bound in (0, 1, 4, 16):
            seconds, gradients, waiting = until_it_reads(run, times, bound)
            row = {"times": times, "bound": bound, "time": seconds / gradient}
            yield {**row, "gradients": gradients, "waiting": waiting}


WAITED = ("all alike", "nearly alike", "exponential")
READER = {"hidden": "32", "batch": 16}


def until_it_reads(run, times, bound):
    """(seconds, gradients) until the held-out loss is below 0.4, and the share of waiting; mean of two seeds of SSP."""
    where = {"jitter": TIMES[times], "slow": _slow(8), "steps": 80, "evaluations": 80, **READER}
    both = [run(algorithm="ssp", bound=bound, workers=8, learning_rate=1.0, seed=seed, **where) for seed in (0, 1)]
    return tuple(float(mean) for mean in np.mean([_reached(done) for done in both], axis=0))


def _reached(done):
    """(seconds, gradients) until the held-out loss is below 0.4, infinite if it never is, and the share of waiting."""
    tried, busy = done.evaluations, done.trace.busy()[1:].sum(axis=0)
    waiting = busy[WAIT] / busy.sum()
    there = np.flatnonzero(tried["loss"] < 0.4)
    if not len(there):
        return np.inf, np.inf, waiting
    return tried["seconds"][there[0]], tried["samples"][there[0]] / 16, waiting


@figure(
    "What do Adagrad and a warm start do for Downpour?",
    source="Dean et al., 2012, section 4.1",
    claims={
        "a warm start takes some of Adagrad's loss away at a bold rate, a quarter at twice that": lambda rows: (
            _warmed(rows, "adagrad", 0.04) < 0.95 and _warmed(rows, "adagrad", 0.08) < 3 / 4
        ),
        "it does not harm Adagrad at any rate up to that": lambda rows: all(
            _warmed(rows, "adagrad", rate) < 1.1 for rate in (0.01, 0.04, 0.08)
        ),
        "each with its best rate, Adagrad is about level with SGD or ahead after a warm start": lambda rows: (
            _at_best(rows, "adagrad", 128) < 1.3 * _at_best(rows, "sgd", 128)
        ),
        "without one it is behind, or at most a third ahead": lambda rows: (
            _at_best(rows, "adagrad", 0) > 2 / 3 * _at_best(rows, "sgd", 0)
        ),
        "with too small a rate it is ahead": lambda rows: all(
            ratio(rows, "loss", update=("adagrad", "sgd"), rate=0.01, warm=warm) < 0.95 for warm in (0, 128)
        ),
        "with too large a one it ends below guessing after a warm start, and SGD at over half of that": lambda rows: (
            value(rows, "loss", update="adagrad", rate=0.16, warm=128) < GUESSING
            and value(rows, "loss", update="sgd", rate=0.16, warm=128) > GUESSING / 2
        ),
    },
    look=Look("rate", ("loss",), "update+warm", log="xy", title="training loss"),
)
def warm_adagrad(run):
    """Digits, 16 replicas with 128 steps of 16 images each; `warm` is how many the first one makes alone.

    Early gradients are the longest, and sixteen stale ones at once go far astray. Adagrad begins with steps as long as
    the rate in every weight and shortens them as gradients add up, most where they are large. The paper could use ten
    times the rate with it, which is not seen on so small a network.
    """
    for update in ("sgd", "adagrad"):
        for rate in BOLDER:
            for warm in (0, 128):
                where = {"workers": 16, "steps": 128, **DIGITS}
                done = run(algorithm="downpour", update=update, learning_rate=rate, warm=warm, **where)
                yield {"update": update, "rate": rate, "warm": warm, "loss": _loss(done)}


BOLDER = (0.01, 0.04, 0.08, 0.16)


def _warmed(rows, update, rate):
    """The loss after a warm start, as a part of that without."""
    warm, cold = (value(rows, "loss", update=update, rate=rate, warm=steps) for steps in (128, 0))
    return warm / cold


def _at_best(rows, update, warm):
    return min(column(rows, "loss", update=update, warm=warm))


@figure(
    "What should a worker that has taken several steps by itself commit?",
    source="Hermans, Spanakis & Moeckel, 2017; Hermans, 2017, chapters 3 and 4",
    claims={
        "not their sum: four workers can after every step, sixteen cannot after several": lambda rows: (
            value(rows, "Downpour: the sum", workers=4, period=1) < LEARNED
            and min(column(rows, "Downpour: the sum", workers=16)[1:]) > 3 * LEARNED
        ),
        "nor four, if they make many steps": lambda rows: (
            value(rows, "Downpour: the sum", workers=4, period=16) > GUESSING / 2
        ),
        "where the sum of several fails the mean ends lower": lambda rows: all(
            row["AGN: the mean"] < 0.9 * row["Downpour: the sum"]
            for row in rows
            if row["Downpour: the sum"] > LEARNED and row["period"] > 1
        ),
        "where many workers commit every step it takes the distance that weights have moved meanwhile": lambda rows: (
            value(rows, "ADAG: by distance", workers=16, period=1) < LEARNED
        ),
        "that costs little with four workers, or after many steps": lambda rows: all(
            row["ADAG: by distance"] < 1.5 * row["AGN: the mean"]
            for row in rows
            if row["workers"] == 4 or row["period"] == 16
        ),
    },
    look=Look(
        "period",
        ("Downpour: the sum", "AGN: the mean", "ADAG: by distance"),
        "workers",
        log="xy",
        title="training loss",
    ),
)
def commits(run):
    """Digits, a commit every `period` steps at rate 0.1; 2,048 gradients of 16 images in all.

    Where the sum holds it is faster: the mean of many steps is only one step. Many workers that commit every step are
    the corner of Hermans' thesis: there the mean, too, fails under most seeds; at twice the rate dividing by distance
    is not enough either.
    """
    methods = {"Downpour: the sum": "downpour", "AGN: the mean": "agn", "ADAG: by distance": "adag"}
    for workers in (4, 16):
        for period in (1, 4, 16):
            row = {"workers": workers, "period": period}
            for method, algorithm in methods.items():
                sums = {"update": "sgd", "n_push": period, "n_fetch": period}
                often = sums if algorithm == "downpour" else {"period": period}
                where = {"workers": workers, "steps": 2048 // workers, **DIGITS}
                row[method] = _loss(run(algorithm=algorithm, learning_rate=0.1, **often, **where))
            yield row


@figure(
    "How many workers does a server feed?",
    source="Patarasuk & Yuan, 2009, for the ring; the limit is arithmetic",
    claims={
        "one server no more than its link carries": lambda rows: (
            abs(value(rows, "one server", workers=64) / rows[0]["limit of one"] - 1) < 0.05
        ),
        "four servers four times as many": lambda rows: (
            abs(value(rows, "four servers", workers=64) / value(rows, "one server", workers=64) - 4) < 0.3
        ),
        "far below the limit one is enough": lambda rows: (
            value(rows, "one server", workers=4) > 0.9 * value(rows, "four servers", workers=4)
        ),
        "a ring goes on growing, though less and less": lambda rows: (
            1.2 * value(rows, "ring", workers=32)
            < value(rows, "ring", workers=64)
            < 1.6 * value(rows, "ring", workers=32)
        ),
    },
    look=Look(
        "workers",
        ("one server", "four servers", "ring"),
        theory=("limit of one",),
        log="xy",
        title="gradients in the time of one",
    ),
)
def server_bottleneck(run):
    """Downpour, and synchronous SGD over a ring; gradients in the time T of one gradient. A model has M bytes.

    A push and a fetch move M bytes each, and links here are full duplex, B bytes a second each way: S servers feed
    S B T / M workers, half as many if pushes and fetches share the link. In a ring a link carries 2 M in a step,
    however many there are; but a step is 2 (N-1) messages, whose latency is what bends it.
    """
    parameters, batch = 4000, 64
    bowl = {"workload": "quadratic", "dimension": parameters, "batch": batch, "latency": 1e-6, "learning_rate": 0.01}

    def rate(**values):
        done = run(points=batch * values["workers"], evaluations=1, steps=12, **bowl, **values).summary
        return done["samples"] / batch / done["seconds"]

    alone = rate(algorithm="asgd", workers=1, network="ideal")
    limit = NETWORKS["10GbE"].between.bandwidth / (4 * parameters) / alone
    downpour, ring = {"algorithm": "downpour", "update": "sgd"}, {"algorithm": "sync_sgd", "collective": "ring"}
    return [
        {
            "workers": workers,
            "one server": rate(workers=workers, **downpour) / alone,
            "four servers": rate(workers=workers, shards=4, **downpour) / alone,
            "ring": rate(workers=workers, **ring) / alone,
            "limit of one": limit,
        }
        for workers in (1, 4, 8, 16, 32, 64)
    ]


@figure(
    "When is a gradient's recipe shorter than the gradient?",
    source="Chilimbi, Suzue, Apacible & Kalyanaraman, 2014",
    claims={
        "a push is as short as arithmetic says": lambda rows: all(row["numbers"] == row["theory"] for row in rows),
        "below k = m n / (m + n), 32 in the first layer, factors are shorter": lambda rows: all(
            row["numbers"] < 0.75 * row["gradient"] for row in rows if row["batch"] <= 16
        ),
        "above it they are not sent": lambda rows: all(
            row["numbers"] == row["gradient"] for row in rows if row["batch"] > 33
        ),
        "the model is the same, bit for bit": lambda rows: not any(column(rows, "apart")),
    },
    look=Look("batch", ("numbers",), theory=("theory", "gradient"), log="x", title="numbers in a push"),
)
def factors(run):
    """Project Adam on digits, one hidden layer of 64: dense layers of 64 x 64 and 64 x 10 weights.

    The gradient of a dense layer is inputs times errors, k rows of m numbers and k rows of n: k (m + n) instead of
    m n numbers, and n biases. apart: the largest difference between two models trained with factors and without.
    """
    layers = ((64, 64), (64, 10))
    for batch in (4, 8, 16, 32, 34, 64):
        values = {
            "workers": 1, "batch": batch, "steps": 5, "learning_rate": 0.05, "hidden": "64", "evaluations": 1,
        }  # fmt: skip
        whole, done = (run(algorithm="project_adam", factors=factors, **values) for factors in (False, True))
        numbers, gradient = (int(one.trace.traffic()[1, 0]) // 5 // 4 for one in (done, whole))
        yield {
            "batch": batch,
            "numbers": numbers,
            "gradient": gradient,
            "theory": sum(min(batch * (m + n), m * n + n) for m, n in layers),
            "apart": float(np.abs(done.parameters - whole.parameters).max()),
        }


@figure(
    "What if a worker dies?",
    source="Dean et al., 2012, section 4.1",
    claims={
        "training continues, and says who was lost": lambda rows: all(
            row["status"] == "finished" and row["lost"] for row in rows
        ),
        "with (N-1)/N of the updates in the same time": lambda rows: all(
            abs(row["kept"] - (1 - 1 / row["workers"])) < 0.03 for row in rows
        ),
        "and the loss goes on falling": lambda rows: all(
            row["loss in the end"] < 0.9 * row["loss then"] for row in rows
        ),
    },
    look=Look("workers", ("kept",), "method", kind="bar", title="updates a second, as a fraction of those before"),
)
def lost_worker(run):
    """Digits; worker 2 is lost half way. kept: updates a second after that, as a part of those before."""
    for method, algorithm, more in (
        ("asynchronous SGD", "asgd", {"learning_rate": 0.05}),
        ("Downpour", "downpour", {"update": "sgd", "learning_rate": 0.05}),
    ):
        for workers in (2, 4, 8):
            values = {"algorithm": algorithm, "workers": workers, "slow": _slow(workers), **DIGITS, **more}
            end = float(run(steps=800 // workers, **values).summary["seconds"])
            done = run(seconds=end, crash=f"2:{end / 2}", **(values | {"evaluations": 50}))
            seconds, tried = done.applied["seconds"], done.evaluations
            then = int(np.searchsorted(tried["seconds"], end / 2))
            yield {
                "method": method,
                "workers": workers,
                "kept": float(((seconds > end / 2) & (seconds <= end)).sum() / (seconds <= end / 2).sum()),
                "loss then": float(tried["loss"][then]),
                "loss in the end": float(tried["loss"][-1]),
                "status": done.status,
                "lost": 2 in done.trace.lost(),
            }
