"""How much traffic a server and its link can carry."""

import numpy as np

from cluster.network import NETWORKS
from lessons.figure import Look, column, figure, value


@figure(
    "How many workers can a server feed?",
    source="Patarasuk & Yuan, 2009, for the ring; the limit is arithmetic",
    claims={
        "one server feeds no more than its link carries": lambda rows: (
            abs(value(rows, "one server", workers=64) / rows[0]["limit of one"] - 1) < 0.05
        ),
        "four servers feed four times as many workers": lambda rows: (
            abs(value(rows, "four servers", workers=64) / value(rows, "one server", workers=64) - 4) < 0.3
        ),
        "with far fewer workers than the limit, one server is enough": lambda rows: (
            value(rows, "one server", workers=4) > 0.9 * value(rows, "four servers", workers=4)
        ),
        "a ring's throughput keeps growing, though less and less": lambda rows: (
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
        title="gradients computed in the time of one",
    ),
)
def server_bottleneck(run):
    """How many gradients all workers compute in the time T of one gradient, with Downpour and with synchronous SGD over
    a ring. A model has M bytes.

    A push and a fetch move M bytes each, and links here are full duplex, B bytes a second each way: S servers feed S B
    T / M workers, half as many if pushes and fetches share the link. In a ring a link carries 2 M in a step, for any
    number of workers; but a step is 2 (N-1) messages, and their latency bends the curve.
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
    "When are a gradient's factors shorter than the gradient?",
    source="Chilimbi, Suzue, Apacible & Kalyanaraman, 2014",
    claims={
        "a push is as short as arithmetic predicts": lambda rows: all(row["numbers"] == row["theory"] for row in rows),
        "with a batch below m n / (m + n), 32 in the first layer, factors are shorter": lambda rows: all(
            row["numbers"] < 0.75 * row["gradient"] for row in rows if row["batch"] <= 16
        ),
        "with a batch above m n / (m + n), factors are not sent": lambda rows: all(
            row["numbers"] == row["gradient"] for row in rows if row["batch"] > 33
        ),
        "the model is the same, bit for bit": lambda rows: not any(column(rows, "apart")),
    },
    look=Look("batch", ("numbers",), theory=("theory", "gradient"), log="x", title="numbers in a push"),
)
def factors(run):
    """Project Adam on digits with one hidden layer of 64 units: the dense layers have 64 x 64 and 64 x 10 weights.

    The gradient of a dense layer is inputs times errors, k rows of m numbers and k rows of n: k (m + n) instead of
    m n numbers, and n biases. `apart`: the largest difference between two models trained with factors and without.
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
