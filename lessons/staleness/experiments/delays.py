"""What an old gradient does on a bowl, and how large the learning rate may be."""

from itertools import pairwise

import numpy as np

from lessons.figure import Look, column, figure, is_falling, is_rising, ratio
from lessons.staleness.ensemble import mean_course
from lessons.staleness.experiments import BOWL, TIMES, slow, time_of
from theory.delay import largest_rate

CURVATURES = 200


def try_rates(run, workers, highest, lowest, **where):
    """Return the Run of asynchronous SGD on a bowl without noise, with all learning rates from `lowest` to `highest` at
    once.

    Rate r on curvature h is rate r h on curvature 1, so one bowl with many curvatures tries them all with one rate and
    the same delays.
    """
    tried = {"learning_rate": highest, "condition": highest / lowest, "dimension": CURVATURES}
    return run(algorithm="asgd", workers=workers, slow=slow(workers), **tried, **where, **BOWL)


def critical_rate(done):
    """Return the learning rate, among those tried, above which parameters grow. Raise ValueError if they grow with none
    of the learning rates, or with all of them.
    """
    grown = int((np.abs(done.parameters) > 1).sum())
    if grown in (0, CURVATURES):
        raise ValueError(f"{grown} of {CURVATURES} curvatures are unstable; try other rates.")
    experiment = done.experiment
    return experiment.settings["learning_rate"] * experiment.data["condition"] ** (-grown / CURVATURES)


@figure(
    "What does an old gradient do?",
    source="the theory of linear recursions with a delay",
    claims={
        "with one worker, w falls steadily": lambda rows: is_falling(column(rows, "w", workers=1)),
        "with four workers w oscillates, and comes to rest": lambda rows: (
            min(column(rows, "w", workers=4)) < -0.3 and abs(column(rows, "w", workers=4)[-1]) < 0.1
        ),
        "with eight workers w swings farther each time": lambda rows: (
            max(column(rows, "w", workers=8)[20:]) > 1 > 0 > -0.9 > min(column(rows, "w", workers=8)[:20])
        ),
    },
    look=Look("update", ("w",), slider="workers"),
)
def overshoot(run):
    """The bowl w^2/2, from w = 1 at a learning rate of 0.3. All workers are equally fast and take turns, so a gradient
    is N-1 updates old.
    """
    return [
        {"workers": workers, "update": update, "w": float(w)}
        for workers in (1, 4, 8)
        for update, w in enumerate(mean_course(0, workers, 0.3, "none", 40, 1))
    ]


@figure(
    "How large may the rate be if gradients are old?",
    source="the theory of linear recursions with a delay",
    claims={
        "the largest rate on curvature 1 is 2 sin(pi / (2 (2 s + 1))), for every staleness s": lambda rows: all(
            abs(row["critical rate"] / row["theory"] - 1) < 0.01 for row in rows
        ),
        "for larger s the rate is nearly pi / (2 s + 1): twice the workers, half the rate": lambda rows: all(
            abs(more["critical rate"] / fewer["critical rate"] - 0.5) < 0.06
            for fewer, more in pairwise(rows)
            if fewer["workers"] > 1
        ),
    },
    look=Look("workers", ("critical rate",), theory=("theory",), log="xy"),
)
def critical_delay(run):
    """The critical learning rate on a bowl without noise, for workers of equal speed in a round robin. Every gradient
    is s = N-1 updates old.

    It is found by trying 200 learning rates between 1.25 / N and 2.5 / N.
    """
    for workers in (1, 2, 4, 8, 16):
        done = try_rates(run, workers, 2.5 / workers, 1.25 / workers, steps=400)
        stale, theory = workers - 1, largest_rate(workers - 1)
        yield {"workers": workers, "staleness": stale, "critical rate": critical_rate(done), "theory": theory}


@figure(
    "Is the mean staleness all that matters?",
    source="Mitliagkas et al., 2016; the critical rates are ours",
    claims={
        "at the same mean, the more the times vary, the higher the critical rate": lambda rows: all(
            is_rising(column(rows, "critical rate", workers=n)) for n in (4, 16)
        ),
        "exponential times tolerate over twice the rate of a round robin with 4 workers, over 3 times with 16": (
            lambda rows: (
                ratio(rows, "critical rate", times=("exponential", "all alike"), workers=4) > 2
                and ratio(rows, "critical rate", times=("exponential", "all alike"), workers=16) > 3
            )
        ),
        "the oldest gradients are not what matters: with 16 workers and heavy tails they are over half as old as with "
        "exponential times, but the critical rate is less than half": lambda rows: (
            ratio(rows, "oldest", times=("heavy tail", "exponential"), workers=16) > 1 / 2
            and ratio(rows, "critical rate", times=("heavy tail", "exponential"), workers=16) < 1 / 2
        ),
        "in the same order of times, the share of young gradients never falls": lambda rows: all(
            (np.diff(column(rows, "young", workers=n)) >= 0).all() for n in (4, 16)
        ),
    },
    look=Look("times", ("critical rate",), "workers", kind="bar"),
)
def equal_means(run):
    """Critical learning rates on curvature 1, among 200 tried, for times that differ from step to step. `young`: the
    share of gradients less than N/2 updates old.

    In a round robin the whole response to a step comes at once, and too late. With mixed ages, young gradients begin to
    brake while old ones still push.
    """
    for workers in (4, 16):
        seconds = time_of(run, 200, CURVATURES)
        for times, jitter in TIMES.items():
            done = try_rates(run, workers, 10 / workers, 1 / workers, jitter=jitter, seconds=seconds)
            staleness = done.applied["staleness"]
            yield {
                "workers": workers,
                "times": times,
                "mean": float(staleness[4 * workers :].mean()),
                "young": float((staleness[4 * workers :] < workers / 2).mean()),
                "oldest": int(staleness.max()),
                "critical rate": critical_rate(done),
            }
