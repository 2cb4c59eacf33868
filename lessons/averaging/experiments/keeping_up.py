"""Whether workers that average their models keep up with a single worker that sees all the data."""

import numpy as np

from lessons.averaging.experiments import SMALL, at_best
from lessons.figure import Look, column, figure, is_rising, ratio, value


@figure(
    "Do workers that average their models keep up with one worker that sees all the data?",
    source="Chen & Huo, 2016; Su & Chen, 2015",
    claims={
        "with model averaging, every doubling of the workers raises the loss": lambda rows: is_rising(
            column(rows, "loss", method="model averaging")
        ),
        "16 workers end at more than four times the loss of one": lambda rows: (
            ratio(rows, "loss", method="model averaging", workers=(16, 1)) > 4
        ),
        "with a block momentum of 1 - 1/N, N workers end at less than twice the loss of one": lambda rows: (
            max(column(rows, "loss", method="BMUF")) < 2 * value(rows, "loss", method="BMUF", workers=1)
        ),
    },
    look=Look("workers", ("loss",), "method", log="xy", title="held-out loss"),
)
def more_workers(run):
    """Workers train on digits for 16 epochs in all, however many they are. They average their models every two
    mini-batches of 16 images.

    The images are shared, so each of N workers takes 1/N of the steps, and an average moves only as far as one worker.
    BMUF's filter takes about N blocks to fill. With 16 workers there are 40 blocks; with fewer blocks, its curve would
    rise, too.
    """
    methods = {"model averaging": "model_averaging", "BMUF": "bmuf"}
    for workers in (1, 2, 4, 8, 16):
        for method, algorithm in methods.items():
            done = sharing(run, algorithm, workers)
            yield {
                "workers": workers,
                "method": method,
                "loss": done["held_out_loss"],
                "accuracy": done["accuracy"],
            }


def sharing(run, algorithm, workers, epochs=16):
    """Return the summary of a run on digits, in which all workers together take `epochs` epochs."""
    values = {"batch": 16, "epochs": epochs, "period": 2, "learning_rate": 0.06, "evaluations": 2, **SMALL}
    return run(algorithm=algorithm, workers=workers, **values).summary


RATES = (0.06, 0.125, 0.25, 0.5, 1.0, 2.0)


@figure(
    "Would averaging keep up at a larger learning rate?",
    source="Chen & Huo, 2016; students tend to ask this",
    claims={
        "at a small rate, eight averaged workers end at more than three times the loss of one": lambda rows: all(
            ratio(rows, "loss", method=("averaging", "one worker"), rate=rate) > 3 for rate in (0.06, 0.125)
        ),
        "averaging ends at a lower loss with a rate of 1 than with a rate of 0.25": lambda rows: (
            ratio(rows, "loss", method="averaging", rate=(1.0, 0.25)) < 0.8
        ),
        "averaging at its own best rate still ends at a higher loss than one worker at its best": lambda rows: (
            min(column(rows, "loss", method="averaging")) > min(column(rows, "loss", method="one worker"))
        ),
        "at a rate of 0.5, block momentum ends at a lower loss than averaging at its best rate": lambda rows: (
            value(rows, "loss", method="block momentum", rate=0.5) < min(column(rows, "loss", method="averaging"))
        ),
        "at a rate of 2 all three methods diverge": lambda rows: column(rows, "loss", rate=2.0) == [np.inf] * 3,
    },
    look=Look("rate", ("loss",), "method", log="xy", title="held-out loss"),
)
def best_rate(run):
    """Training on digits for six epochs: one worker sees all the images, or eight workers share them and average their
    models every four steps.

    Per image, averages move an eighth as far. A larger rate would make up for that if the loss were nowhere steep.
    Block momentum leaves the steps as short as they are and amplifies their mean. At the smallest rates it lags: its
    filter takes about eight blocks to fill, and there are only 17. A loss more than twice as high as at a smaller rate
    counts as infinite, i.e. as diverged, because how high it gets depends on the last bit. At a rate of 1 one worker
    diverges under four seeds of five. A point is missing where training diverges under one seed or more.
    """
    methods = {
        "one worker": {"algorithm": "sgd", "workers": 1},
        "averaging": {"algorithm": "model_averaging", "workers": 8, "period": 4},
        "block momentum": {"algorithm": "bmuf", "workers": 8, "period": 4},
    }
    for method, values in methods.items():
        lowest = np.inf  # with a smaller rate
        for rate in RATES:
            done = run(batch=16, epochs=6, learning_rate=rate, evaluations=2, **SMALL, **values).summary
            loss = done["held_out_loss"]
            yield {"method": method, "rate": rate, "loss": np.inf if loss > 2 * lowest else loss}
            lowest = min(loss, lowest)


TURNED = {1: (0.125, 0.25, 0.5, 1.0, 2.0), 8: (0.5, 1.0, 2.0, 4.0)}  # rates tried, by number of workers


@figure(
    "Do natural gradients reduce what averaging costs?",
    source="Povey, Zhang & Khudanpur, 2015",
    claims={
        "with plain gradients, the average of eight workers ends with a loss over a quarter above that of one": (
            lambda rows: ratio(rows, "loss", gradient="plain", workers=(8, 1)) > 5 / 4
        ),
        "eight workers end at a far lower loss with natural gradients than with plain ones": lambda rows: (
            ratio(rows, "loss", gradient=("natural", "plain"), workers=8) < 0.85
        ),
    },
    look=Look("workers", ("loss",), "gradient", kind="bar"),
)
def natural_gradient_and_averaging(run):
    """Workers share 12 epochs of digits and average their models every ten steps. The figure shows the held-out loss at
    the best learning rate.

    The more workers, the fewer steps each takes, and the larger its best rate: to move as far per image as one worker,
    N workers would need N times the rate. Plain SGD does not tolerate such rates where the loss is steep, and steepness
    is what the Fisher matrices remove.
    """
    for gradient, smoothing in (("natural", 4.0), ("plain", 1e12)):
        for workers, rates in TURNED.items():
            values = {"workers": workers, "smoothing": smoothing, "batch": 16, "epochs": 12, "hidden": "64"}
            tried = {
                rate: run(algorithm="natural_gradient", learning_rate=rate, evaluations=2, **values) for rate in rates
            }
            yield {"gradient": gradient, "workers": workers, "loss": at_best(tried)}
