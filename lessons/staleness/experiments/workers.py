"""How many workers may push without waiting, and what happens if one dies."""

import numpy as np

from lessons.figure import Look, column, figure, ratio, value
from lessons.staleness.experiments import DIGITS, GUESSING, LEARNED, NOTHING, end_loss, slow


@figure(
    "How much work do machines do if they never wait?",
    source="Dean et al., 2012; Chen et al., 2016",
    claims={
        "32 machines that wait for each other do the work of fewer than 20": lambda rows: (
            value(rows, "speed-up", method="synchronous", workers=32) < 20
        ),
        "N machines that never wait do the work of N, within a tenth": lambda rows: all(
            abs(row["speed-up"] / row["workers"] - 1) < 0.1 for row in rows if row["method"] == "asynchronous"
        ),
        "with the same number of gradients per worker, at the same rate, workers that never wait learn far more": (
            lambda rows: ratio(rows, "loss", method=("asynchronous", "synchronous"), workers=32) < 1 / 5
        ),
    },
    look=Look("workers", ("speed-up",), "method", title="times as fast as one machine"),
)
def nobody_waits(run):
    """Synchronous and asynchronous SGD on digits in a noisy cloud. Each worker computes 100 gradients of 16 images at a
    small learning rate, and messages take no time.

    Synchronous SGD takes a step of N gradients, asynchronous SGD N steps. Gradients are counted until four fifths of
    them have arrived: near the end machines stop one after the other.
    """
    cloud = DIGITS | {"jitter": "noisy cloud", "network": "ideal", "learning_rate": 0.025}
    alone = _pace(run(algorithm="asgd", workers=1, slow=slow(1), steps=2000, **cloud))
    for method, algorithm, more in (("synchronous", "backup", {"backups": 0}), ("asynchronous", "asgd", {})):
        for workers in (1, 2, 4, 8, 16, 32):
            done = run(algorithm=algorithm, workers=workers, slow=slow(workers), steps=100, **more, **cloud)
            yield {"method": method, "workers": workers, "speed-up": _pace(done) / alone, "loss": end_loss(done)}


def _pace(done):
    """Return the gradients per second while most workers are busy."""
    most = len(done.losses["seconds"]) * 4 // 5
    return most / float(np.sort(done.losses["seconds"])[most - 1])


RATES = (0.32, 0.08, 0.02)


def _most(rows, rate):
    return max(row["workers"] for row in rows if row["rate"] == rate and row["loss"] < GUESSING / 2)


@figure(
    "How many workers may push at a given rate?",
    source="Hermans, 2017, where Downpour is fine with 10 workers and diverges with 20",
    claims={
        "two workers learn at any of these rates, and at the smaller ones about as well as one": lambda rows: (
            max(column(rows, "loss", workers=2)) < LEARNED
            and all(ratio(rows, "loss", rate=rate, workers=(2, 1)) < 1.4 for rate in RATES[1:])
        ),
        "if the rate times the number of workers exceeds 2, they learn little or nothing": lambda rows: all(
            row["loss"] > NOTHING for row in rows if row["rate"] * row["workers"] > 2
        ),
        "with a quarter of the rate, four times as many workers learn": lambda rows: (
            [_most(rows, rate) for rate in RATES] == [2, 8, 32]
        ),
    },
    look=Look("workers", ("loss",), "rate", log="x", title="held-out loss"),
)
def too_many_workers(run):
    """Training on digits with 1,536 gradients of 16 images, computed by one worker or shared among many. Guessing has a
    loss of 2.3.

    Up to a limit staleness hardly matters. Beyond it the first steps, where the loss is steepest, throw the network to
    where no neuron is active, and no later gradient brings it back.
    """
    for rate in RATES:
        for workers in (1, 2, 8, 32):
            done = run(algorithm="asgd", workers=workers, learning_rate=rate, steps=1536 // workers, **DIGITS)
            yield {"rate": rate, "workers": workers, "loss": end_loss(done)}


@figure(
    "What if a worker dies?",
    source="Dean et al., 2012, section 4.1",
    claims={
        "training continues, and the run names the lost worker": lambda rows: all(
            row["status"] == "finished" and row["lost"] for row in rows
        ),
        "updates continue at (N-1)/N of their former rate": lambda rows: all(
            abs(row["kept"] - (1 - 1 / row["workers"])) < 0.03 for row in rows
        ),
        "the loss keeps falling": lambda rows: all(row["loss in the end"] < 0.9 * row["loss then"] for row in rows),
    },
    look=Look(
        "workers", ("kept",), "method", kind="bar", title="updates per second after the worker dies, relative to before"
    ),
)
def lost_worker(run):
    """Training on digits, where worker 2 is lost halfway. `kept`: updates per second after that, as a fraction of those
    before.
    """
    for method, algorithm, more in (
        ("asynchronous SGD", "asgd", {"learning_rate": 0.05}),
        ("Downpour", "downpour", {"update": "sgd", "learning_rate": 0.05}),
    ):
        for workers in (2, 4, 8):
            values = {"algorithm": algorithm, "workers": workers, "slow": slow(workers), **DIGITS, **more}
            end = float(run(steps=800 // workers, **values).summary["seconds"])
            done = run(seconds=end, crash=f"2:{end / 2}", **(values | {"evaluations": 50}))
            seconds, tried = done.applied["seconds"], done.evaluations
            then = int(np.searchsorted(tried["seconds"], end / 2))
            yield {
                "method": method,
                "workers": workers,
                "kept": float(((seconds > end / 2) & (seconds <= end)).sum() / (seconds <= end / 2).sum()),
                "loss then": float(tried["loss"][then]),
                "loss in the end": float(tried["loss"][-1]),
                "status": done.status,
                "lost": 2 in done.trace.lost_ranks(),
            }
