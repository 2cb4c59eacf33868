"""How old gradients are when they arrive."""

from lessons.figure import Look, figure, value
from lessons.staleness.experiments import BOWL, TIMES, slow, time_of


@figure(
    "How are the ages of gradients distributed?",
    source="Mitliagkas et al., 2016, for exponential times",
    claims={
        "if times are exponential, ages are geometric: the youngest is the most frequent": lambda rows: all(
            abs(row["share"] - row["geometric"]) < 0.015 for row in rows if row["times"] == "exponential"
        ),
        "if times are nearly equal, almost all ages are near N-1": lambda rows: (
            sum(row["share"] for row in rows if row["times"] == "nearly alike" and 5 <= row["age"] <= 9) > 0.9
        ),
        "a heavy tail, too, leaves most ages near N-1": lambda rows: (
            sum(row["share"] for row in rows if row["times"] == "heavy tail" and 5 <= row["age"] <= 9) > 0.5
        ),
    },
    look=Look("age", ("share",), slider="times", theory=("geometric",), title="share of all gradients"),
)
def ages(run):
    """Asynchronous SGD on a bowl with 8 workers. The age of a gradient is the number of updates that others made since
    the worker's fetch.

    The mean is 7 in all three clusters. If all workers take exactly the same time, every age is 7.
    """
    workers = 8
    seconds = time_of(run, 10_000 / workers, 1)
    for times in ("nearly alike", "heavy tail", "exponential"):
        where = {"slow": slow(workers), "jitter": TIMES[times], "seconds": seconds}
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
        "a gradient is N-1 updates old on average, whatever the times and speeds": lambda rows: all(
            abs(row["mean"] / (row["workers"] - 1) - 1) < 0.02 for row in rows
        ),
        "in a round robin every single gradient is N-1 updates old": lambda rows: all(
            row["youngest"] == row["oldest"] == row["workers"] - 1
            for row in rows
            if row["times"] == "all alike" and row["slowest"] == 1
        ),
        "with exponential times about one gradient in N is not old at all, and some are very old": lambda rows: all(
            abs(row["fresh"] * row["workers"] - 1) < 0.3 and row["oldest"] > 5 * row["workers"]
            for row in rows
            if row["times"] == "exponential"
        ),
        "a heavy tail makes a few gradients older still, and leaves hardly any fresh": lambda rows: all(
            value(rows, "oldest", times="heavy tail", workers=n) > value(rows, "oldest", times="exponential", workers=n)
            and value(rows, "fresh", times="heavy tail", workers=n) < 0.1
            for n in (4, 16)
        ),
    },
    look=Look(
        "times", ("mean", "oldest"), "workers+slowest", kind="bar", log="y", title="age of a gradient, in updates"
    ),
)
def how_old(run):
    """The age of gradients in asynchronous SGD on a bowl: the server counts the updates between a worker's fetch and
    its push.

    `slowest`: the time of the slowest worker, relative to the fastest. Fast workers push young gradients, and often;
    slow workers push old gradients, and rarely. Between two of its own pushes, a worker that makes the share r of all
    pushes sees (1 - r) / r others, and r (1 - r) / r, summed over all workers, is N-1.
    """
    for workers in (4, 16):
        seconds = time_of(run, 6000 / workers, 1)
        for times, slowest in (*((times, 1) for times in TIMES), ("all alike", 10)):
            where = {"slow": slow(workers, slowest), "jitter": TIMES[times], "seconds": seconds}
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
