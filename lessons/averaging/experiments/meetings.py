"""How rarely workers may average their models, and when to switch to averaging rarely."""

from lessons.figure import Look, column, figure, is_rising, ratio, value


@figure(
    "How rarely may workers average their models?",
    source="Stich, 2019; Lin, Stich, Patel & Jaggi, 2020",
    claims={
        "the bytes sent are inversely proportional to the period": lambda rows: all(
            abs(row["megabytes"] * row["period"] / rows[0]["megabytes"] - 1) < 0.02 for row in rows
        ),
        "on a slow network, a period of 256 takes less than a quarter of the time of averaging in every step": (
            lambda rows: ratio(rows, "seconds", period=(256, 1)) < 0.25
        ),
        "the longer the period, the farther apart the replicas are before they are averaged": (
            lambda rows: is_rising(column(rows, "spread"))
        ),
        "the training loss rises a little with the period": lambda rows: (
            value(rows, "training loss", period=1)
            < value(rows, "training loss", period=64)
            < value(rows, "training loss", period=1) + 0.1
        ),
        "the held-out loss does not rise with the period": lambda rows: (
            max(column(rows, "held-out loss")) < 1.05 * value(rows, "held-out loss", period=1)
        ),
    },
    look=Look("period", ("time", "loss"), log="x", title="relative to averaging in every step"),
)
def local_period(run):
    """Eight workers train on digits for 256 steps of 16 images each, over 1 Gb Ethernet.

    `spread` is the squared distance of the replicas from their mean just before they are averaged. The training loss is
    the loss of the replicas, each on its own next mini-batch, over the last 32 steps. The chart shows the seconds and
    the held-out loss.
    """
    rows = []
    for period in (1, 4, 16, 64, 256):
        done = meeting(run, period)
        rows.append(
            {
                "period": period,
                "megabytes": done.summary["bytes"] / 1e6,
                "seconds": done.summary["seconds"],
                "spread": float(done.measurements("spread")["value"].mean()),
                "training loss": float(done.losses["loss"][-8 * 32 :].mean()),
                "held-out loss": done.summary["held_out_loss"],
            }
        )
    always = rows[0]
    for row in rows:
        row["time"] = row["seconds"] / always["seconds"]
        row["loss"] = row["held-out loss"] / always["held-out loss"]
    return rows


def meeting(run, period):
    """Return the Run of eight workers that average their models every `period` steps."""
    values = {"batch": 16, "steps": 256, "learning_rate": 0.2, "network": "1GbE", "evaluations": 2, "hidden": "64"}
    return run(algorithm="local_sgd", workers=8, period=period, **values)


@figure(
    "When should workers begin to average rarely?",
    source="Lin, Stich, Patel & Jaggi, 2020, post-local SGD",
    claims={
        "workers that average rarely from the start have the highest loss at first": lambda rows: (
            ratio(rows, "after 20 steps", meets=("seldom", "always")) > 1.1
        ),
        "post-local SGD begins exactly as if workers averaged in every step, bit for bit": lambda rows: (
            value(rows, "after 20 steps", meets="seldom later") == value(rows, "after 20 steps", meets="always")
        ),
        "in the end all three ways to average have about the same held-out loss": lambda rows: (
            max(column(rows, "held-out loss")) < 1.1 * min(column(rows, "held-out loss"))
        ),
        "post-local SGD sends less than half as many bytes as averaging in every step": lambda rows: (
            ratio(rows, "megabytes", meets=("seldom later", "always")) < 0.5
        ),
    },
    look=Look("meets", ("after 20 steps", "training loss", "held-out loss"), kind="bar", log="y", title="loss"),
)
def post_local(run):
    """Sixteen workers train on digits at a large learning rate, for 200 steps of 16 images each. Post-local SGD
    switches to rare averaging after twelve epochs.

    `after 20 steps` is the mean loss of steps 20 to 29. The paper's gain is on test images, with batches so large that
    models generalise worse. It is not seen here: all three methods learn these images well.
    """
    ways = {"always": {"period": 1}, "seldom": {"period": 64}, "seldom later": {"period": 64, "switch": 12}}
    for meets, values in ways.items():
        done = run(
            algorithm="local_sgd",
            workers=16,
            batch=16,
            steps=200,
            learning_rate=0.3,
            evaluations=2,
            hidden="64",
            **values,
        )
        step, loss = done.losses["step"], done.losses["loss"]
        yield {
            "meets": meets,
            "after 20 steps": float(loss[(step >= 20) & (step < 30)].mean()),
            "training loss": float(loss[step >= 190].mean()),
            "held-out loss": done.summary["held_out_loss"],
            "megabytes": done.summary["bytes"] / 1e6,
        }
