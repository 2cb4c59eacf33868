"""Stragglers: what waiting for the slowest costs, what not waiting costs, and how many workers are worthwhile."""

import numpy as np

from lessons.figure import Look, column, figure, is_falling, is_rising, ratio, value
from theory import order_statistics

HEAVY = 300  # times as long as its few numbers take: a large model's gradient, next to which all else takes no time
BOWL = {"workload": "quadratic", "batch": 1, "network": "ideal"}
BACKUPS = (0, 1, 2, 4, 8)
CLOUDS = {"quiet": "none", "cloud": "cloud", "noisy cloud": "noisy cloud"}
SIZES = (1, 2, 8, 32)
LAWS = {
    "exponential": order_statistics.exponential,
    "shifted exponential": lambda n, k: order_statistics.exponential(n, k, mean=0.2, shift=0.8),
    "cloud": lambda n, k: order_statistics.lognormal(n, k, sigma=0.15),
}


def slow(workers, many=0, times=3):
    """Return the setting `slow` that makes gradients expensive. They are `times` times as expensive on the last `many`
    workers.
    """
    return ",".join(f"{rank}:{HEAVY * (times if rank > workers - many else 1)}" for rank in range(1, workers + 1))


@figure(
    "How much of the time of N machines is used?",
    source="Valiant, 1990 (supersteps); Chen et al., 2016",
    claims={
        "32 quiet machines use more than seven eighths of their time": lambda rows: (
            value(rows, "used", cluster="quiet", workers=32) > 87.5
        ),
        "in a noisy cloud 32 machines use less than three fifths of their time": lambda rows: (
            value(rows, "used", cluster="noisy cloud", workers=32) < 60
        ),
        "the more machines there are, the smaller the share of their time that is used": lambda rows: all(
            is_falling(column(rows, "used", cluster=cluster)) for cluster in CLOUDS
        ),
        "the loss is bit-identical on all three clusters": lambda rows: all(
            len({row["loss"] for row in rows if row["workers"] == workers}) == 1 for workers in SIZES
        ),
    },
    look=Look("workers", ("used",), "cluster", log="x", title="share of the machines' time that is used, %"),
)
def more_machines(run):
    """Synchronous SGD over a server on digits, with 32 images per worker and 10 Gb Ethernet.

    Every gradient is made as slow as that of a large model, so that messages hardly count. On average all machines are
    equally fast. In the cloud their times vary a little from step to step; in the noisy cloud, in addition, one step in
    a hundred takes four times as long. 100 % would be N times the images in the time of one machine.
    """
    for cluster, jitter in CLOUDS.items():
        for workers in SIZES:
            done = run(
                algorithm="backup", workers=workers, backups=0, learning_rate=0.2, slow=slow(workers), jitter=jitter,
                steps=100, evaluations=2,
            )  # fmt: skip
            rate = workers / float(done.evaluations["seconds"][-1])
            if workers == 1:
                alone = rate
            row = {"cluster": cluster, "workers": workers, "used": 100 * rate / alone / workers}
            yield {**row, "speed-up": rate / alone, "loss": done.summary["held_out_loss"]}


def _step(run, workers, backups, steps, jitter):
    """Return the mean time of a step, in units of an undisturbed gradient."""
    values = {"algorithm": "backup", "learning_rate": 0.2, "dimension": 4, "points": 256, "evaluations": 2, **BOWL}
    alone = run(**values, workers=1, slow=slow(1), steps=10).evaluations["seconds"][-1] / 10
    done = run(**values, workers=workers, backups=backups, slow=slow(workers), steps=steps, jitter=jitter)
    return float(done.evaluations["seconds"][-1] / steps / alone)


@figure(
    "What does it cost to wait for everybody?",
    source="Chen et al., 2016; order statistics",
    claims={
        "the mean step takes as long as theory predicts for the slowest of N, within a tenth": lambda rows: all(
            abs(row["step"] / row["theory"] - 1) < 0.1 for row in rows
        ),
        "under every law, more workers make a step longer": lambda rows: all(
            is_rising(column(rows, "step", law=law)) for law in LAWS
        ),
        "with exponential times 32 workers do the work of fewer than 9": lambda rows: (
            value(rows, "speed-up", law="exponential", workers=32) < 9
        ),
        "in the cloud 32 workers do the work of more than 20": lambda rows: (
            value(rows, "speed-up", law="cloud", workers=32) > 20
        ),
    },
    look=Look(
        "workers", ("step",), "law", theory=("theory",), log="x", title="time of a step, in units of one gradient"
    ),
)
def waiting_for_everybody(run):
    """Synchronous SGD over a server, on a network that takes no time, so that only computing takes time.

    A step is measured in units of one gradient; the speed-up is the number of gradients that arrive in that time. All
    laws have a mean of 1: the cost depends not on how slow workers are, but on how much they vary.
    """
    for law, slowest in LAWS.items():
        for workers in (2, 8, 32):
            step = _step(run, workers, 0, 150 + 3000 // workers, law)
            theory = slowest(workers, workers)
            yield {"law": law, "workers": workers, "step": step, "theory": theory, "speed-up": workers / step}


@figure(
    "How much time do backup workers save?",
    source="Chen et al., 2016; order statistics; that stragglers finish is our addition to the formula",
    claims={
        "one backup among 25 workers cuts the step by more than a fifth": lambda rows: (
            ratio(rows, "step", backups=(1, 0)) < 0.8
        ),
        "each further backup saves less than the one before": lambda rows: (
            np.diff(np.diff(column(rows, "step")) / np.diff(column(rows, "backups"))) > 0
        ).all(),
        "the step is as long as theory predicts if stragglers finish what they began": lambda rows: all(
            abs(row["step"] / row["stragglers finish"] - 1) < 0.05 for row in rows
        ),
        "the step is longer than H(N) - H(b), the formula if all workers begin every step together": lambda rows: all(
            row["step"] > row["all begin together"] for row in rows if row["backups"]
        ),
        "more gradients a second are used with backups than without, though some are thrown away": lambda rows: (
            min(column(rows, "used")[1:]) > 1.2 * value(rows, "used", backups=0)
        ),
    },
    look=Look(
        "backups",
        ("step",),
        theory=("stragglers finish", "all begin together"),
        title="time of a step, in units of one gradient",
    ),
)
def waiting_for_fewer(run):
    """Synchronous SGD with 25 workers whose times are exponential. The server waits for all but b of them.

    `used` counts the gradients that enter the model in the time of one gradient. The well-known formula holds for the
    first step; later the stragglers of one step are late for the next as well.
    """
    workers = 25
    for backups in BACKUPS:
        step = _step(run, workers, backups, 400, "exponential")
        yield {
            "backups": backups,
            "step": step,
            "stragglers finish": order_statistics.backup_step(workers, backups),
            "all begin together": order_statistics.exponential(workers, workers - backups),
            "used": (workers - backups) / step,
        }


CLUSTERS = {"quiet": ("hpc", 0), "noisy": ("noisy cloud", 0), "one slow machine": ("hpc", 1)}
"""{name: (jitter, number of machines that are three times as slow as the others)}."""


def _best(rows, cluster):
    return min((row for row in rows if row["cluster"] == cluster), key=lambda row: row["seconds"])["backups"]


@figure(
    "How many backup workers are worth their waste?",
    source="Chen et al., 2016, where 4 of 100 machines were best",
    claims={
        "without stragglers the best number of backups is none": lambda rows: _best(rows, "quiet") == 0,
        "with one slow machine the best number of backups is exactly one": (
            lambda rows: _best(rows, "one slow machine") == 1
        ),
        "with one slow machine, training with one backup takes less than half the time of training without": (
            lambda rows: ratio(rows, "seconds", cluster="one slow machine", backups=(1, 0)) < 1 / 2
        ),
        "if any machine may be late now and then, a few backups are best": lambda rows: 1 <= _best(rows, "noisy") <= 4,
        "every backup adds steps to the training, and half of all machines are too many": lambda rows: all(
            is_rising(column(rows, "steps", cluster=cluster))
            and value(rows, "seconds", cluster=cluster, backups=8) > value(rows, "seconds", cluster=cluster, backups=1)
            for cluster in CLUSTERS
        ),
    },
    look=Look("backups", ("seconds",), "cluster", title="seconds until the loss is a tenth of what it was"),
)
def backups_against_the_tail(run):
    """Training on a noisy bowl with 16 machines, until the loss is a tenth of what it was. The server does not wait for
    b of them.

    A mean of fewer gradients is noisier, so the learning rate shrinks in proportion. Then all end with the same noise,
    here a third of the target loss.
    """
    for cluster in CLUSTERS:
        for backups in BACKUPS:
            steps, seconds = to_a_tenth(run, cluster, backups)
            yield {"cluster": cluster, "backups": backups, "steps": steps, "seconds": seconds}


MORE_CLUSTERS = {
    "two slow machines": ("hpc", 2),
    "eight slow machines": ("hpc", 8),
    "eight machines that are a tenth slower": ("hpc", 8, 1.1),
}  # asked for in the quiz


def to_a_tenth(run, cluster, backups, machines=16):
    """Return (steps, seconds) until the loss is a tenth of what it was. The server waits for all machines except
    `backups`.
    """
    jitter, *slowed = (CLUSTERS | MORE_CLUSTERS)[cluster]
    share = (machines - backups) / machines
    done = run(
        **BOWL,
        algorithm="backup",
        dimension=200,
        condition=4,
        noise=9,
        points=4096,
        evaluations=400,
        workers=machines,
        backups=backups,
        learning_rate=0.02 * share,
        jitter=jitter,
        slow=slow(machines, *slowed),
        steps=int(180 / share),
    )
    return _until(done, 0.1 * done.evaluations["loss"][0])


def _until(done, loss):
    """Return (steps, seconds) until the held-out loss is at most this; infinite if it never is."""
    tried = done.evaluations
    reached = np.flatnonzero(tried["loss"] <= loss)
    if not len(reached):
        return np.inf, np.inf
    return int(reached[0]), float(tried["seconds"][reached[0]])


@figure(
    "What do four backups among a hundred machines save?",
    source="Chen et al., 2016, whose best setting was 4 of 100",
    claims={
        "four backups of a hundred save more than a third of the time to the target loss": lambda rows: (
            value(rows, "time to the loss", backups=4) < 2 / 3
        ),
        "a step gets shorter with each backup": lambda rows: is_falling(column(rows, "time of a step")),
        "with 32 backups training takes longer than with eight": lambda rows: (
            ratio(rows, "time to the loss", backups=(32, 8)) > 1.05
        ),
        "more gradients per second enter the model with 8 backups than with 32": lambda rows: (
            value(rows, "gradients used per second", backups=8) > value(rows, "gradients used per second", backups=32)
        ),
    },
    look=Look(
        "backups",
        ("time to the loss", "gradients used per second", "time of a step"),
        title="relative to waiting for all machines",
    ),
)
def a_hundred_machines(run):
    """Training on a noisy bowl with 100 machines in the noisy cloud, until the loss is a tenth of what it was.

    The learning rate shrinks in proportion to the gradients per step. Everything is relative to waiting for all
    hundred.
    """
    machines, made = 100, {}
    for backups in (0, 2, 4, 8, 16, 32):
        steps, seconds = to_a_tenth(run, "noisy", backups, machines)
        made[backups] = {
            "time to the loss": seconds,
            "gradients used per second": (machines - backups) * steps / seconds,
            "time of a step": seconds / steps,
        }
    return [{"backups": backups, **{name: one[name] / made[0][name] for name in one}} for backups, one in made.items()]


@figure(
    "Is a larger batch worth more, the longer one has trained?",
    source="McCandlish et al., 2018",
    claims={
        "the loss falls and, from the second epoch on, the noise scale grows": lambda rows: (
            is_falling(column(rows, "loss")) and is_rising(column(rows, "noise scale")[1:])
        ),
        "the noise scale grows to more than three times its first value": lambda rows: (
            column(rows, "noise scale")[-1] > 3 * column(rows, "noise scale")[0]
        ),
        "the true gradient shrinks faster than its noise": lambda rows: (
            rows[-1]["signal"] / rows[0]["signal"] < rows[-1]["noise"] / rows[0]["noise"] < 1
        ),
    },
    look=Look("epochs", ("noise scale",), kind="bar"),
)
def noise_grows(run):
    """The gradient noise scale on digits, with 8 workers of 8 images each. Synchronous SGD can measure it at no extra
    cost.

    Noise is tr(C), signal |G|^2; both are averaged over the epochs of a row and over four trainings, and only then
    divided: later on the signal is a small difference of large numbers.
    """
    epochs, values = 16, {"workers": 8, "batch": 8, "learning_rate": 0.1, "memory": 0, "hidden": "64"}
    tried = [run(algorithm="noise_scale", epochs=epochs, seed=seed, **values) for seed in range(4)]
    per_epoch = (tried[0].losses["step"].max() + 1) / epochs

    def mean(tables, name, first, last):
        inside = [(table["step"] >= first * per_epoch) & (table["step"] < last * per_epoch) for table in tables]
        return float(np.mean([table[name][some].mean() for table, some in zip(tables, inside, strict=True)]))

    for first, last in ((0, 1), (1, 2), (2, 4), (4, 8), (8, 16)):
        noise, signal = (
            mean([done.measurements(quantity) for done in tried], "value", first, last)
            for quantity in ("noise", "signal")
        )
        loss = mean([done.losses for done in tried], "loss", first, last)
        yield {
            "epochs": f"{first}-{last}",
            "loss": loss,
            "noise": noise,
            "signal": signal,
            "noise scale": noise / signal,
        }


@figure(
    "How many steps does a larger batch save?",
    source="McCandlish et al., 2018",
    claims={
        "from 2 to 8 images, four times the batch saves more than a third of the steps": lambda rows: (
            value(rows, "steps", batch=8) < value(rows, "steps", batch=2) * 2 / 3
        ),
        "from 128 to 512 images, four times the batch saves less than a third of the steps": lambda rows: (
            value(rows, "steps", batch=512) > value(rows, "steps", batch=128) * 2 / 3
        ),
        "the steps lie near K (1 + B / batch), with K and B fitted": lambda rows: all(
            abs(row["steps"] / row["fit"] - 1) < 0.5 for row in rows
        ),
        "the fitted B is between 5 and 40 images": lambda rows: 5 < rows[0]["B"] < 40,
        "batches of 512 need over ten times as many images as batches of 2": lambda rows: (
            ratio(rows, "images", batch=(512, 2)) > 10
        ),
    },
    look=Look("batch", ("steps",), theory=("fit",), log="xy", title="steps to a held-out loss of 0.4"),
)
def steps_against_batch(run):
    """Steps until the held-out loss on digits is 0.4, with the best of five learning rates for each batch size.

    Choosing the learning rate by a formula would assume what is to be shown. B is the critical batch, at which twice as
    many steps are needed as with all images at once. It plays the role of the noise scale, though it is smaller here.
    """
    batches, steps = (2, 8, 32, 128, 512), []
    for batch in batches:
        most = 40 + 1200 // batch
        tried = [
            _until(run(algorithm="sgd", workers=1, batch=batch, learning_rate=rate, steps=most, evaluations=most,
                       hidden="64"), 0.4)[0]
            for rate in (0.1, 0.2, 0.4, 0.8, 1.2)
        ]  # fmt: skip
        steps.append(min(tried))
    slope, least = np.polyfit(1 / np.array(batches), steps, 1, w=1 / np.array(steps))
    return [
        {
            "batch": batch,
            "steps": taken,
            "images": batch * taken,
            "K": float(least),
            "B": float(slope / least),
            "fit": float(least + slope / batch),
        }
        for batch, taken in zip(batches, steps, strict=True)
    ]
