"""Several steps between pushes, adaptive learning rates and a warm start."""

from lessons.figure import Look, column, figure, ratio, value
from lessons.staleness.experiments import DIGITS, GUESSING, LEARNED, end_loss

BOLDER = (0.01, 0.04, 0.08, 0.16)


@figure(
    "What do Adagrad and a warm start do for Downpour?",
    source="Dean et al., 2012, section 4.1",
    claims={
        "a warm start lowers Adagrad's loss somewhat at a rate of 0.04, and by a quarter at 0.08": lambda rows: (
            ratio(rows, "loss", update="adagrad", rate=0.04, warm=(128, 0)) < 0.95
            and ratio(rows, "loss", update="adagrad", rate=0.08, warm=(128, 0)) < 3 / 4
        ),
        "a warm start does not harm Adagrad at any rate up to 0.08": lambda rows: all(
            ratio(rows, "loss", update="adagrad", rate=rate, warm=(128, 0)) < 1.1 for rate in (0.01, 0.04, 0.08)
        ),
        "after a warm start, each at its best rate, Adagrad is about level with SGD or ahead of it": lambda rows: (
            min(column(rows, "loss", update="adagrad", warm=128))
            < 1.3 * min(column(rows, "loss", update="sgd", warm=128))
        ),
        "without a warm start, each at its best rate, Adagrad is behind SGD, or at most a third ahead": lambda rows: (
            min(column(rows, "loss", update="adagrad", warm=0))
            > 2 / 3 * min(column(rows, "loss", update="sgd", warm=0))
        ),
        "with too small a rate Adagrad is ahead of SGD": lambda rows: all(
            ratio(rows, "loss", update=("adagrad", "sgd"), rate=0.01, warm=warm) < 0.95 for warm in (0, 128)
        ),
        "at too large a rate, after a warm start, Adagrad ends below the loss of guessing, SGD above half that loss": (
            lambda rows: (
                value(rows, "loss", update="adagrad", rate=0.16, warm=128) < GUESSING
                and value(rows, "loss", update="sgd", rate=0.16, warm=128) > GUESSING / 2
            )
        ),
    },
    look=Look("rate", ("loss",), "update+warm", log="xy", title="training loss"),
)
def warm_adagrad(run):
    """Training on digits with 16 replicas, each with 128 steps of 16 images. `warm`: how many pushes the first replica
    makes alone.

    Early gradients are the longest, and sixteen stale ones at once go far astray. Adagrad's first step changes every
    weight by the learning rate. Its steps get shorter as gradients add up, most for weights with large gradients. In
    the paper it allowed ten times the learning rate; on so small a network it does not.
    """
    for update in ("sgd", "adagrad"):
        for rate in BOLDER:
            for warm in (0, 128):
                where = {"workers": 16, "steps": 128, **DIGITS}
                done = run(algorithm="downpour", update=update, learning_rate=rate, warm=warm, **where)
                yield {"update": update, "rate": rate, "warm": warm, "loss": end_loss(done)}


@figure(
    "What should a worker that has taken several steps by itself commit?",
    source="Hermans, Spanakis & Moeckel, 2017; Hermans, 2017, chapters 3 and 4",
    claims={
        "four workers can commit the sum after every step, sixteen cannot commit the sum of several steps": (
            lambda rows: (
                value(rows, "Downpour: the sum", workers=4, period=1) < LEARNED
                and min(column(rows, "Downpour: the sum", workers=16)[1:]) > 3 * LEARNED
            )
        ),
        "four workers cannot commit the sum of many steps": lambda rows: (
            value(rows, "Downpour: the sum", workers=4, period=16) > GUESSING / 2
        ),
        "where the sum of several steps fails, their mean ends at a lower loss": lambda rows: all(
            row["AGN: the mean"] < 0.9 * row["Downpour: the sum"]
            for row in rows
            if row["Downpour: the sum"] > LEARNED and row["period"] > 1
        ),
        "if sixteen workers commit every step, dividing by how far the weights have moved works": lambda rows: (
            value(rows, "ADAG: by distance", workers=16, period=1) < LEARNED
        ),
        "dividing by distance costs little with four workers, or after many steps": lambda rows: all(
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
    """Training on digits with a commit every `period` steps at a learning rate of 0.1, and with 2,048 gradients of 16
    images in all.

    Where the sum works it is faster: the mean of many steps is only one step. Hermans' thesis is about many workers
    that commit every step: there the mean, too, fails under most seeds, and at twice the learning rate even dividing by
    distance is not enough.
    """
    methods = {"Downpour: the sum": "downpour", "AGN: the mean": "agn", "ADAG: by distance": "adag"}
    for workers in (4, 16):
        for period in (1, 4, 16):
            row = {"workers": workers, "period": period}
            for method, algorithm in methods.items():
                sums = {"update": "sgd", "n_push": period, "n_fetch": period}
                often = sums if algorithm == "downpour" else {"period": period}
                where = {"workers": workers, "steps": 2048 // workers, **DIGITS}
                row[method] = end_loss(run(algorithm=algorithm, learning_rate=0.1, **often, **where))
            yield row
