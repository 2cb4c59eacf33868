"""The momentum that asynchrony adds implicitly, and how much a server should add."""

import numpy as np

from lessons.figure import Look, figure, value
from lessons.staleness.ensemble import mean_course
from lessons.staleness.experiments import BOWL, TIMES, end_loss, slow


@figure(
    "Does asynchrony beget momentum?",
    source="Mitliagkas, Zhang, Hadjis & Ré, 2016, theorem 3",
    claims={
        "with exponential times the mean path is that of a momentum of 1 - 1/N": lambda rows: all(
            abs(row["momentum"] - (1 - 1 / row["workers"])) < 0.03 for row in rows if row["times"] == "exponential"
        ),
        "with exponential times the rate of the mean path is about lr/N": lambda rows: all(
            abs(row["N rate / lr"] - 1) < 0.3 for row in rows if row["times"] == "exponential"
        ),
        "with exponential times the theorem's recursion predicts the mean path": lambda rows: all(
            row["off by"] < 0.1 for row in rows if row["times"] == "exponential"
        ),
        "in a round robin the theorem's recursion does not predict the mean path": lambda rows: all(
            row["off by"] > 0.2 and row["N rate / lr"] > 1.4 for row in rows if row["times"] == "all alike"
        ),
    },
    look=Look("workers", ("momentum",), "times", theory=("1 - 1/N",), title="momentum of the mean path"),
)
def begets_momentum(run):
    """The mean course of asynchronous SGD over 200 clusters, on the bowl w^2/2 from w = 1 at a learning rate of 1.2/N.

    The fit, by least squares over 16 updates, is w(t+1) - w(t) = momentum (w(t) - w(t-1)) - rate w(t). `off by`: the
    largest distance from what the theorem's own momentum and rate predict. A fixed delay can be fitted, too, but with
    other numbers, and it swings wider.
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
    """Return (momentum, rate) of w(t+1) - w(t) = momentum (w(t) - w(t-1)) - rate w(t), fitted to w."""
    steps = np.diff(w)
    return np.linalg.lstsq(np.stack([steps[:-1], -w[1:-1]], 1), steps[1:], rcond=None)[0]


MOMENTA = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95)


@figure(
    "How much momentum should a server add?",
    source="Mitliagkas, Zhang, Hadjis & Ré, 2016",
    claims={
        "the more workers, the smaller the best momentum to add: for eight workers it is below 0.1": (
            lambda rows: (
                _favourite(rows, 1)["added"] > _favourite(rows, 2)["added"] > _favourite(rows, 8)["added"] < 0.1
            )
        ),
        "one worker gets less than half as far without momentum as with its best momentum": lambda rows: (
            value(rows, "progress", workers=1, added=0.0) < 0.5 * _favourite(rows, 1)["progress"]
        ),
        "eight workers need none added: a total of 0.8, just below asynchrony's 7/8, is nearly as good as the best": (
            lambda rows: value(rows, "progress", workers=8, **{"in all": 0.8}) > 0.8 * _favourite(rows, 8)["progress"]
        ),
        "a total momentum of 0.6, asynchrony's included, gets any number of workers over 2/3 as far as the best": (
            lambda rows: all(
                value(rows, "progress", workers=n, **{"in all": 0.6}) > 2 / 3 * _favourite(rows, n)["progress"]
                for n in (1, 2, 4, 8)
            )
        ),
    },
    look=Look("added", ("progress",), "workers", log="y", title="powers of ten by which the loss falls"),
)
def negative_momentum(run):
    """The progress of 160 updates on a bowl 20 times as steep one way as the other, with exponential times. Every point
    is at its best learning rate.

    Progress is in powers of ten of the loss, the mean of four clusters that differ in their times. Of the total
    momentum, N workers beget 1 - 1/N; the server adds the rest. For eight the peak is flat, and its exact position
    differs from seed to seed.
    """
    for workers in (1, 2, 4, 8):
        for momentum in MOMENTA:
            row = {"workers": workers, "in all": momentum, "added": momentum - (1 - 1 / workers)}
            yield {**row, "progress": progress(run, workers, momentum)}


def progress(run, workers, momentum):
    """Return by how many powers of ten the loss falls in 160 updates with this total momentum, at the best of five
    learning rates.
    """
    bowl = BOWL | {"dimension": 20, "condition": 20, "jitter": "exponential"}
    where = {"workers": workers, "steps": 160 // workers, "slow": slow(workers), **bowl}
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
    """Return by how many powers of ten the loss has fallen by the end of the run."""
    return np.log10(done.evaluations["loss"][0] / end_loss(done))


def _favourite(rows, workers):
    return max((row for row in rows if row["workers"] == workers), key=lambda row: row["progress"])
