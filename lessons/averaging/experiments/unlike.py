"""Workers whose data differ."""

import numpy as np

from lessons.figure import Look, column, figure, is_falling, is_rising, value

UNLIKE = {
    "workload": "quadratic", "dimension": 1, "start": 0, "points": 64, "kinds": 2, "apart": 2, "unequal": 5,
    "workers": 2, "learning_rate": 0.1, "steps": 600,
}  # fmt: skip


@figure(
    "What if the workers' data differ?",
    source="Stich, 2019; Karimireddy et al., 2020; the fixed point is ours, see local_sgd",
    claims={
        "it settles where the formula says": lambda rows: all(
            abs(row["settled"] - row["formula"]) < 1e-4 for row in rows
        ),
        "that is the optimum only if they meet in every step": lambda rows: (
            abs(value(rows, "settled", period=1) - rows[0]["optimum"]) < 1e-4
            and (np.diff(column(rows, "settled")) > 0.01).all()
        ),
        "every worker's own loss falls with the period, while the loss of their average rises": lambda rows: (
            is_falling(column(rows, "workers' loss")) and is_rising(column(rows, "loss"))
        ),
        "with SCAFFOLD's correction they settle at the optimum, however rarely they meet": lambda rows: all(
            abs(row["corrected"] - row["optimum"]) < 1e-3 for row in rows
        ),
        "springs settle even farther off, and miss the optimum even with a visit in every step": lambda rows: all(
            row["elastic"] > row["settled"] + 0.03 for row in rows
        ),
    },
    look=Look(
        "period",
        ("settled", "elastic", "corrected"),
        theory=("formula", "optimum"),
        log="x",
        title="where it settles",
    ),
)
def unlike_shards(run):
    """Two workers, each in a bowl of its own: curvatures 1 and 0.2, centres -1 and 1. Nothing is random.

    The optimum of both together is -2/3, near the steeper one's centre. In a long stretch of local steps both reach
    their own centres, and the average forgets which bowl was steeper. elastic: the centre of EASGD, whose springs let
    the two stay apart forever. corrected: SCAFFOLD, with all workers in each meeting.
    """
    rate, h, centres = UNLIKE["learning_rate"], np.array([1, 0.2]), np.array([-1, 1])
    for period in (1, 5, 20, 50):
        done = run(algorithm="local_sgd", period=period, **UNLIKE)
        elastic = run(algorithm="easgd", synchronous=True, period=period, **UNLIKE)
        q = 1 - (1 - rate * h) ** period
        yield {
            "period": period,
            "settled": float(done.parameters[0]),
            "elastic": float(elastic.parameters[0]),
            "corrected": float(
                run(algorithm="local_sgd", period=period, worker_override=_scaffold, **UNLIKE).parameters[0]
            ),
            "formula": float(q @ centres / q.sum()),
            "optimum": float(h @ centres / h.sum()),
            "loss": done.summary["held_out_loss"],
            "workers' loss": float(done.losses["loss"][-2 * 100 :].mean()),
        }


def _scaffold(comm, task, s):
    """Train like a worker of local SGD, with each step corrected by its own mean slope in the last stretch.

    SCAFFOLD by Karimireddy et al., 2020, its second choice of c_i; `own` is c_i, and `common` their mean c.
    """
    w = task.start()  # (d,)
    met, own, common = w.copy(), np.zeros_like(w), np.zeros_like(w)
    for step in task.steps(together=True):
        w -= s.learning_rate * (task.gradient(w)[1] - own + common)
        if step % s.period == 0:
            own += (met - w) / (s.period * s.learning_rate) - common  # the mean gradient since they met
            common[:] = own
            comm.all_reduce(w, op="mean")
            comm.all_reduce(common, op="mean")
            met[:] = w
            if comm.rank == 0:
                task.report(w)
    return w


@figure(
    "Does a smaller rate lead workers with different data to the optimum?",
    source="Stich, 2019; the fixed point is ours, see local_sgd",
    claims={
        "the smaller the rate, the nearer to the optimum they settle": lambda rows: is_falling(
            [abs(row["settled"] - row["optimum"]) for row in rows]
        ),
        "at a hundredth of the rate they are within a twentieth of it": lambda rows: (
            abs(rows[-1]["settled"] / rows[-1]["optimum"] - 1) < 0.05
        ),
        "it settles where the formula says": lambda rows: all(
            abs(row["settled"] - row["formula"]) < 1e-3 for row in rows
        ),
    },
    look=Look(
        "rate",
        ("settled",),
        theory=("formula", "optimum"),
        log="x",
        title="where it settles, with a meeting every 50 steps",
    ),
)
def unlike_shards_by_rate(run):
    """The two bowls again, with a meeting every 50 steps, and more steps in proportion as the rate falls."""
    h, centres, period = np.array([1, 0.2]), np.array([-1, 1]), 50
    for rate in (0.1, 0.01, 0.001):
        steps = round(UNLIKE["steps"] * UNLIKE["learning_rate"] / rate)
        done = run(algorithm="local_sgd", period=period, **UNLIKE | {"learning_rate": rate, "steps": steps})
        q = 1 - (1 - rate * h) ** period
        yield {
            "rate": rate,
            "settled": float(done.parameters[0]),
            "formula": float(q @ centres / q.sum()),
            "optimum": float(h @ centres / h.sum()),
        }
