"""How much waiting remains when workers average rarely, and which method reaches a given loss first."""

import numpy as np

from lessons.averaging.experiments import NO_NETWORK, SMALL
from lessons.figure import Look, column, figure, ratio, value

LATE = {"all are late now and then": ("exponential", 1), "one is always late": ("none", 3)}


@figure(
    "Does averaging rarely end the waiting?",
    source="order statistics; Zhang, Choromanska & LeCun, 2015, on why to be asynchronous",
    claims={
        "eight machines are as fast as order statistics predict, within a tenth": lambda rows: all(
            abs(row["speed-up"] / row["theory"] - 1) < 0.1 for row in rows
        ),
        "if all machines are late now and then, most of the waiting averages out": lambda rows: (
            value(rows, "speed-up", late="all are late now and then", period=1) < 3.2
            and value(rows, "speed-up", late="all are late now and then", period=256) > 6.5
        ),
        "if one machine is slow, all others wait for it, however rarely they average": lambda rows: (
            max(column(rows, "speed-up", late="one is always late")) < 2.7
        ),
    },
    look=Look("period", ("speed-up",), "late", theory=("theory",), log="x", title="times as fast as one machine"),
)
def waiting_to_meet(run):
    """Eight workers train on a network that takes no time, so only gradients and waiting remain.

    The time of a gradient is exponentially distributed, or it is constant but three times as long on one machine. Each
    machine takes H steps between two averages. The larger H, the less the longest of the eight machines' times exceeds
    their mean, relative to that mean.
    """
    dice = np.random.default_rng(run.seed)
    for late, (_, slowest) in LATE.items():
        for period in (1, 4, 16, 64, 256):
            last = slowest if slowest > 1 else dice.gamma(period, size=(20_000, 8)).max(1).mean() / period
            yield {
                "late": late,
                "period": period,
                "speed-up": speed_up(run, *LATE[late], period),
                "theory": float(8 / last),
            }


def speed_up(run, jitter, slowest, period):
    """Return the speed of eight machines that average every `period` steps, as a multiple of one machine's."""
    bowl = {"workload": "quadratic", "dimension": 20, "points": 512, "learning_rate": 0.2, "batch": 64}
    bowl |= {"evaluations": 1, **NO_NETWORK}
    values = {"period": period, "steps": 768, "jitter": jitter, "slow": f"7:{slowest}"}
    step = run(algorithm="local_sgd", workers=8, **values, **bowl).summary["seconds"] / 768
    alone = run(algorithm="sgd", workers=1, steps=10, **bowl).summary["seconds"] / 10
    return 8 * alone / step


CLUSTERS = {"quiet": ("none", 1), "noisy cloud": ("noisy cloud", 1), "one slow machine": ("none", 3)}


@figure(
    "Which is faster, averaging or visiting a centre?",
    source="Zhang, Choromanska & LeCun, 2015",
    claims={
        "on quiet machines averaging is faster than visiting": lambda rows: (
            ratio(rows, "seconds", cluster="quiet", method=("local SGD", "EASGD")) < 1
        ),
        "in a noisy cloud averaging and visiting are about level": lambda rows: (
            abs(ratio(rows, "seconds", cluster="noisy cloud", method=("local SGD", "EASGD")) - 1) < 0.15
        ),
        "averaging takes more than twice as long with one slow machine as on quiet ones": lambda rows: (
            ratio(rows, "seconds", cluster=("one slow machine", "quiet"), method="local SGD") > 2
        ),
        "visiting takes hardly any longer with one slow machine than on quiet ones": lambda rows: (
            ratio(rows, "seconds", cluster=("one slow machine", "quiet"), method="EASGD") < 1.2
        ),
    },
    look=Look("cluster", ("seconds",), "method", kind="bar", title="seconds to a held-out loss of 0.3"),
)
def who_is_first(run):
    """Eight workers train on digits with 16 images each, and average or visit the server every 16 steps. Messages take
    no time.

    The slow machine takes three times as long for every gradient. With visits, the other workers take over its share of
    the work. With averaging, they wait for it.
    """
    for cluster, (jitter, slowest) in CLUSTERS.items():
        for method, algorithm, last in (("local SGD", "local_sgd", 7), ("EASGD", "easgd", 8)):
            seconds = to_a_loss(run, algorithm, jitter, f"{last}:{slowest}")
            yield {"cluster": cluster, "method": method, "seconds": seconds}


def to_a_loss(run, algorithm, jitter, slow, loss=0.3):
    """Return the seconds until the held-out loss reaches `loss`, or infinity if it never does."""
    done = run(
        algorithm=algorithm, workers=8, batch=16, steps=480, period=16, learning_rate=0.2, jitter=jitter, slow=slow,
        evaluations=1000, **SMALL, **NO_NETWORK,
    )  # fmt: skip
    reached = np.flatnonzero(done.evaluations["loss"] <= loss)
    return float(done.evaluations["seconds"][reached[0]]) if len(reached) else np.inf
