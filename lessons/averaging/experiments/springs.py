"""Replicas that visit a server from time to time, and springs that tie replicas to a server."""

from lessons.averaging.experiments import SMALL, at_best
from lessons.figure import Look, column, figure, ratio, value

PERIODS = (1, 4, 16, 64)
VISITORS = {
    "EASGD": {"algorithm": "easgd"},
    "EAMSGD": {"algorithm": "easgd", "momentum": 0.9},
    "Downpour": {"algorithm": "downpour", "update": "sgd"},
}
MEAN = {"AGN": {"algorithm": "agn"}}


@figure(
    "How rarely may replicas visit a server?",
    source="Zhang, Choromanska & LeCun, 2015, figure 2",
    claims={
        "springs with momentum (EAMSGD) have the lowest loss at every period, or nearly so": lambda rows: all(
            value(rows, "loss", method="EAMSGD", period=period) < 1.2 * min(column(rows, "loss", period=period))
            for period in PERIODS
        ),
        "without momentum, springs are about level with Downpour if replicas visit in every step": lambda rows: (
            1 / 1.6 < ratio(rows, "loss", method=("Downpour", "EASGD"), period=1) < 1.6
        ),
        "without momentum, springs are far ahead of Downpour if visits are 16 or more steps apart": lambda rows: (
            min(
                ratio(rows, "loss", method=("Downpour", "EASGD"), period=16),
                ratio(rows, "loss", method=("Downpour", "EASGD"), period=64),
            )
            > 2
        ),
        "with visits 16 or 64 steps apart, Downpour's loss is over twice that with a visit in every step": (
            lambda rows: all(ratio(rows, "loss", method="Downpour", period=(period, 1)) > 2 for period in (16, 64))
        ),
        "from period 1 to 16, the factor by which Downpour's loss grows is over twice that of springs": (
            lambda rows: all(
                ratio(rows, "loss", method=method, period=(16, 1))
                < ratio(rows, "loss", method="Downpour", period=(16, 1)) / 2
                for method in ("EASGD", "EAMSGD")
            )
        ),
    },
    look=Look("period", ("loss",), "method", log="xy", title="held-out loss of the centre"),
)
def elastic_period(run):
    """Four replicas of unequal speed train on digits for 256 steps of 16 images each. The loss is the loss of the
    server's model.

    Each method runs at the best of several rates for each period. A Downpour push is the sum of all gradients since the
    last one, taken along a path that ignores the other three: the longer the sums, the smaller the rate has to be. A
    spring never pulls the centre beyond the replicas. The paper's test error even improves with the period; on these
    few images it does not.
    """
    for period in PERIODS:
        for method in VISITORS:
            loss, sent = visiting(run, method, period)
            yield {"period": period, "method": method, "loss": loss, "megabytes": sent / 1e6}


def rates(method, period):
    if method == "Downpour":
        return (0.025, 0.05, 0.1, 0.2, 0.4) if period < 16 else (0.0015, 0.003, 0.006, 0.0125, 0.025, 0.05, 0.1)
    return {"AGN": (0.2, 0.4, 0.8, 1.6), "EASGD": (0.2, 0.4, 0.8, 1.6), "EAMSGD": (0.05, 0.1, 0.2, 0.4, 0.8)}[method]


def visiting(run, method, period, workers=4):
    """Return the held-out loss at the best learning rate, and the bytes sent, for replicas that visit a server every
    `period` steps.

    The replicas compute 1,024 gradients in all.
    """
    often = {"n_push": period, "n_fetch": period} if method == "Downpour" else {"period": period}
    values = {"batch": 16, "steps": 1024 // workers, "jitter": "cloud", "evaluations": 2, **SMALL, **often}
    visitor = {**(VISITORS | MEAN)[method], "workers": workers}
    tried = {rate: run(**visitor, **values, learning_rate=rate) for rate in rates(method, period)}
    return at_best(tried), next(iter(tried.values())).summary["bytes"]


@figure(
    "Should a replica push the mean of its steps, or be tied by a spring?",
    source="Hermans, Spanakis & Moeckel, 2017, on AGN and asynchronous EASGD",
    claims={
        "with two or four workers EASGD ends at a far lower loss than AGN": lambda rows: all(
            ratio(rows, "loss", method=("EASGD", "AGN"), workers=workers) < 2 / 3 for workers in (2, 4)
        ),
        "with eight workers EASGD and AGN end at about the same loss": lambda rows: (
            2 / 3 < ratio(rows, "loss", method=("EASGD", "AGN"), workers=8) < 3 / 2
        ),
        "with sixteen workers AGN ends at a lower loss than EASGD, as the authors of AGN report": lambda rows: (
            ratio(rows, "loss", method=("EASGD", "AGN"), workers=16) > 3 / 2
        ),
        "AGN's loss varies by less than a factor of 1.6 with the number of workers": lambda rows: (
            max(column(rows, "loss", method="AGN")) < 1.6 * min(column(rows, "loss", method="AGN"))
        ),
        "with up to eight workers, EAMSGD (a spring with momentum) ends at a lower loss than AGN": lambda rows: all(
            ratio(rows, "loss", method=("EAMSGD", "AGN"), workers=workers) < 3 / 4 for workers in (2, 4, 8)
        ),
        "with sixteen workers EAMSGD ends at less than 1.25 times the loss of AGN": lambda rows: (
            ratio(rows, "loss", method=("EAMSGD", "AGN"), workers=16) < 5 / 4
        ),
    },
    look=Look("workers", ("loss",), "method", log="xy", title="held-out loss of the server's model"),
)
def mean_or_spring(run):
    """Replicas train on digits and visit the server every 16th step. Each method uses 1,024 gradients of 16 images in
    all, and its best learning rate.

    That makes 64 visits in all. A visit of AGN moves the server by one step, the mean of 16. The more replicas there
    are, the slacker a spring of 0.9 / N, and the farther the centre trails behind them.
    """
    return [
        {"workers": workers, "method": method, "loss": visiting(run, method, 16, workers)[0]}
        for workers in (2, 4, 8, 16)
        for method in ("AGN", "EASGD", "EAMSGD")
    ]
