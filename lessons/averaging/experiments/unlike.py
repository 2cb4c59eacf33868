"""Workers whose data differ, and methods that correct their drift."""

from itertools import product

import numpy as np

from lessons.averaging.experiments import NO_NETWORK, SMALL, at_best
from lessons.figure import Look, column, figure, is_falling, is_rising, matching, ratio, value

UNLIKE = {
    "workload": "quadratic", "dimension": 1, "start": 0, "points": 64, "kinds": 2, "apart": 2, "unequal": 5,
    "workers": 2, "learning_rate": 0.1, "steps": 600,
}  # fmt: skip
CURVATURES, CENTRES = np.array([1, 0.2]), np.array([-1, 1])
OPTIMUM = float(CURVATURES @ CENTRES / CURVATURES.sum())


@figure(
    "What if the workers' data differ?",
    source="Stich, 2019; Karimireddy et al., 2020; the fixed point is ours, see local_sgd",
    claims={
        "the average settles where the formula says": lambda rows: all(
            abs(row["settled"] - row["formula"]) < 1e-4 for row in rows
        ),
        "the average settles at the optimum only if it is taken in every step": lambda rows: (
            abs(value(rows, "settled", period=1) - rows[0]["optimum"]) < 1e-4
            and (np.diff(column(rows, "settled")) > 0.01).all()
        ),
        "the workers' mean loss on their own data falls with the period, but their average's loss rises": lambda rows: (
            is_falling(column(rows, "workers' loss")) and is_rising(column(rows, "loss"))
        ),
        "springs settle farther from the optimum than averages, and miss it even with a visit in every step": (
            lambda rows: all(row["elastic"] > row["settled"] + 0.03 for row in rows)
        ),
    },
    look=Look(
        "period",
        ("settled", "elastic"),
        theory=("formula", "optimum"),
        log="x",
        title="where the workers settle",
    ),
)
def unlike_shards(run):
    """Each of two workers has its own bowl, with curvature 1 and centre -1, or curvature 0.2 and centre 1. Nothing is
    random.

    The optimum of both together is -2/3, near the steeper bowl's centre. In a long stretch of local steps each worker
    reaches its own centre, and the average forgets which bowl was steeper. `elastic` is the centre of EASGD, whose
    springs let the two stay apart forever.
    """
    rate, h, centres = UNLIKE["learning_rate"], CURVATURES, CENTRES
    for period in (1, 5, 20, 50):
        done = run(algorithm="local_sgd", period=period, **UNLIKE)
        elastic = run(algorithm="easgd", synchronous=True, period=period, **UNLIKE)
        q = 1 - (1 - rate * h) ** period
        yield {
            "period": period,
            "settled": float(done.parameters[0]),
            "elastic": float(elastic.parameters[0]),
            "formula": float(q @ centres / q.sum()),
            "optimum": OPTIMUM,
            "loss": done.summary["held_out_loss"],
            "workers' loss": float(done.losses["loss"][-2 * 100 :].mean()),
        }


@figure(
    "Does a smaller rate lead workers with different data to the optimum?",
    source="Stich, 2019; the fixed point is ours, see local_sgd",
    claims={
        "the smaller the rate, the nearer to the optimum the average settles": lambda rows: is_falling(
            [abs(row["settled"] - row["optimum"]) for row in rows]
        ),
        "with the rate divided by 100, the average settles less than 5 % away from the optimum": lambda rows: (
            abs(rows[-1]["settled"] / rows[-1]["optimum"] - 1) < 0.05
        ),
        "the average settles where the formula says": lambda rows: all(
            abs(row["settled"] - row["formula"]) < 1e-3 for row in rows
        ),
    },
    look=Look(
        "rate",
        ("settled",),
        theory=("formula", "optimum"),
        log="x",
        title="where the average settles, if taken every 50 steps",
    ),
)
def unlike_shards_by_rate(run):
    """The two bowls again, with models averaged every 50 steps. The smaller the learning rate, the more steps: their
    product stays the same.
    """
    h, centres, period = CURVATURES, CENTRES, 50
    for rate in (0.1, 0.01, 0.001):
        steps = round(UNLIKE["steps"] * UNLIKE["learning_rate"] / rate)
        done = run(algorithm="local_sgd", period=period, **UNLIKE | {"learning_rate": rate, "steps": steps})
        q = 1 - (1 - rate * h) ** period
        yield {
            "rate": rate,
            "settled": float(done.parameters[0]),
            "formula": float(q @ centres / q.sum()),
            "optimum": OPTIMUM,
        }


MEETINGS = 10
METHODS = {"average": "averages", "prox": "with a spring (FedProx)", "scaffold": "corrected (SCAFFOLD)"}
RATES = tuple(1.6 / 2**k for k in range(10))
SPRINGS = (0.1, 0.3, 1.0)


def distance_after(kind, rate, period, prox=0.0):
    """Return how far the workers' average is from the optimum after ten rounds of averaging. It is computed by
    iterating the update formulas.
    """
    x, own = 0.0, np.zeros(2)
    for _ in range(MEETINGS):
        turn = own.mean() - own if kind == "scaffold" else 0.0
        y = np.full(2, x)
        for _ in range(period):
            y = y - rate * (CURVATURES * (y - CENTRES) + turn + prox * (y - x))
        own = own - own.mean() + (x - y) / (period * rate)
        x = y.mean()
    return abs(x - OPTIMUM)


@figure(
    "What removes the drift of workers with different data?",
    source="Karimireddy et al., 2020; Li et al., 2020; the measurements on these two bowls are ours",
    claims={
        "averaging and FedProx end more than 0.01 from the optimum at every period": lambda rows: all(
            row["off"] > 0.01 for row in rows if row["method"] != METHODS["scaffold"]
        ),
        "SCAFFOLD ends less than 0.001 from the optimum, over a hundred times closer than averaging or FedProx": (
            lambda rows: all(
                row["off"] < 1e-3 and 100 * row["off"] < min(column(rows, "off", period=row["period"], method=other))
                for row in matching(rows, method=METHODS["scaffold"])
                for other in (METHODS["average"], METHODS["prox"])
            )
        ),
        "the best rate of averaging and of SCAFFOLD falls as the period grows": lambda rows: all(
            is_falling(column(rows, "rate", method=METHODS[kind])) for kind in ("average", "scaffold")
        ),
        "every distance is the one that the formulas predict": lambda rows: all(
            abs(row["off"] - row["formula"]) < 1e-9 for row in rows
        ),
    },
    look=Look(
        "period", ("off",), "method", kind="bar", log="y",
        title="distance from the optimum after averaging ten times",
    ),
)  # fmt: skip
def ten_meetings(run):
    """The two bowls again, with models averaged ten times. Each row uses the best of ten learning rates, a factor of
    two apart. FedProx also uses the best of three spring stiffnesses.

    Rates and stiffnesses are chosen by iterating the update formulas. The distance from the optimum is 2/3 at the
    start.
    """
    for period, (kind, method) in product((2, 5, 10, 20, 50), METHODS.items()):
        tried = {
            (rate, prox): distance_after(kind, rate, period, prox)
            for rate, prox in product(RATES, SPRINGS if kind == "prox" else (0.0,))
        }
        rate, prox = min(tried, key=tried.__getitem__)
        values = {"kind": kind} | ({"prox": prox} if kind == "prox" else {})
        values |= UNLIKE | {"learning_rate": rate, "steps": MEETINGS * period, "precision": "float64"}
        done = run(algorithm="scaffold", period=period, evaluations=1, **values)
        yield {
            "period": period,
            "method": method,
            "rate": rate,
            "off": abs(float(done.parameters[0]) - OPTIMUM),
            "formula": tried[rate, prox],
        }


@figure(
    "Does SCAFFOLD's correction help if the workers' data are alike?",
    source="Karimireddy et al., 2020; that it does not help here is our own finding",
    claims={
        "with each method at its own best rate, the correction lowers the loss by less than 15 %": lambda rows: (
            ratio(rows, "loss", method=("corrected", "averages")) > 0.85
        ),
        "with the correction, workers send exactly twice as many bytes as without": lambda rows: (
            ratio(rows, "megabytes", method=("corrected", "averages")) == 2
        ),
    },
    look=Look("method", ("loss",), kind="bar", title="held-out loss"),
)
def alike_shards(run):
    """Eight workers train on shuffled shards of digits with batches of 16, and are averaged 12 times, after ten steps
    each. Each method runs at its own best learning rate.

    The best rate is one of four, a factor of two apart, and neither the smallest nor the largest.
    """
    for kind, method in (("average", "averages"), ("scaffold", "corrected")):
        tried = {
            rate: run(
                algorithm="scaffold", kind=kind, period=10, learning_rate=rate, workers=8, batch=16, steps=120,
                evaluations=1, **SMALL, **NO_NETWORK,
            )
            for rate in (0.2, 0.4, 0.8, 1.6)
        }  # fmt: skip
        yield {"method": method, "loss": at_best(tried), "megabytes": tried[0.2].summary["bytes"] / 1e6}
