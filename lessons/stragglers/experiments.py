"""Stragglers: what waiting for the slowest costs, what not waiting costs, and how many workers are worth while."""

import numpy as np

from lessons.figure import Look, column, figure, value
from theory import order_statistics

HEAVY = 300  # times as long as its few numbers take: a gradient of a large model, beside which all else takes no time
BOWL = {"workload": "quadratic", "batch": 1, "network": "ideal"}
CLOUDS = {"quiet": "none", "cloud": "cloud", "noisy cloud": "noisy cloud"}
SIZES = (1, 2, 8, 32)
LAWS = {
    "exponential": order_statistics.exponential,
    "shifted exponential": lambda n, k: order_statistics.exponential(n, k, mean=0.2, shift=0.8),
    "cloud": lambda n, k: order_statistics.lognormal(n, k, sigma=0.15),
}


def _slow(workers, slowest=1):
    """The setting `slow` that makes every worker's gradient heavy, and that of the last worker so much heavier."""
    return ",".join(f"{rank}:{HEAVY * (slowest if rank == workers else 1)}" for rank in range(1, workers + 1))


@figure(
    "How many times as fast are N machines as one?",
    source="Valiant, 1990 (supersteps); Chen et al., 2016",
    claims={
        "on quiet machines 32 are more than 28 times as fast as one": lambda rows: (
            value(rows, "speed-up", cluster="quiet", workers=32) > 28
        ),
        "in a noisy cloud the same 32 do the work of fewer than 18": lambda rows: (
            value(rows, "speed-up", cluster="noisy cloud", workers=32) < 18
        ),
        "the more machines, the smaller the part of them that is left": lambda rows: all(
            (np.diff([row["speed-up"] / row["workers"] for row in rows if row["cluster"] == cluster]) < 0).all()
            for cluster in CLOUDS
        ),
        "what they learn is the same to the bit, wherever they run": lambda rows: all(
            len({row["loss"] for row in rows if row["workers"] == workers}) == 1 for workers in SIZES
        ),
    },
    look=Look("workers", ("speed-up",), "cluster", theory=("ideal",), log="xy", title="times as fast as one machine"),
)
def more_machines(run):
    """Synchronous SGD over a server on digits, 10 Gb Ethernet, gradients so heavy that messages hardly count.

    A machine is as fast as any other on average; in the cloud it takes a little longer or shorter from step to step,
    and in the noisy one every hundredth step takes four times as long.
    """
    rows = []
    for cluster, jitter in CLOUDS.items():
        for workers in SIZES:
            done = run(
                algorithm="backup", workers=workers, backups=0, learning_rate=0.2, slow=_slow(workers), jitter=jitter,
                steps=100, evaluations=2,
            )  # fmt: skip
            rate = workers / float(done.evaluations["seconds"][-1])
            if workers == 1:
                alone = rate
            row = {"cluster": cluster, "workers": workers, "speed-up": rate / alone, "ideal": workers}
            rows.append({**row, "loss": done.summary["held_out_loss"]})
    return rows


def _step(run, workers, backups, steps, jitter):
    """The mean time of a step, in times of an undisturbed gradient."""
    values = {"algorithm": "backup", "learning_rate": 0.2, "dimension": 4, "points": 256, "evaluations": 2, **BOWL}
    alone = run(**values, workers=1, slow=_slow(1), steps=10).evaluations["seconds"][-1] / 10
    done = run(**values, workers=workers, backups=backups, slow=_slow(workers), steps=steps, jitter=jitter)
    return float(done.evaluations["seconds"][-1] / steps / alone)


@figure(
    "What does it cost to wait for everybody?",
    source="Chen et al., 2016; order statistics",
    claims={
        "the mean step is as long as theory says the slowest of N takes, to a tenth": lambda rows: all(
            abs(row["step"] / row["theory"] - 1) < 0.1 for row in rows
        ),
        "whatever the law, the more workers the longer the step": lambda rows: all(
            (np.diff(column(rows, "step", law=law)) > 0).all() for law in LAWS
        ),
        "if times are exponential 32 workers do the work of fewer than 9": lambda rows: (
            value(rows, "speed-up", law="exponential", workers=32) < 9
        ),
        "in the cloud they do the work of more than 20": lambda rows: (
            value(rows, "speed-up", law="cloud", workers=32) > 20
        ),
    },
    look=Look(
        "workers", ("step",), "law", theory=("theory",), log="x", title="time of a step, in times of one gradient"
    ),
)
def waiting_for_everybody(run):
    """Synchronous SGD over a server, on a network that takes no time, so that computing alone does.

    A step is measured in times of one gradient; the speed-up is how many gradients come in that time. In all laws the
    mean is 1: what costs is not how slow workers are, but how differently slow.
    """
    rows = []
    for law, slowest in LAWS.items():
        for workers in (2, 8, 32):
            step = _step(run, workers, 0, 150 + 3000 // workers, law)
            theory = slowest(workers, workers)
            rows.append({"law": law, "workers": workers, "step": step, "theory": theory, "speed-up": workers / step})
    return rows


@figure(
    "How much time do backup workers save?",
    source="Chen et al., 2016; order statistics; that stragglers finish is our addition to the formula",
    claims={
        "one backup of 25 workers takes more than a fifth off the step": lambda rows: (
            value(rows, "step", backups=1) < 0.8 * value(rows, "step", backups=0)
        ),
        "every further one takes off less": lambda rows: (
            np.diff(np.diff(column(rows, "step")) / np.diff(column(rows, "backups"))) > 0
        ).all(),
        "the step is as long as theory says, if stragglers finish what they began": lambda rows: all(
            abs(row["step"] / row["stragglers finish"] - 1) < 0.05 for row in rows
        ),
        "it lies above H(N+b) - H(b), which has all begin every step anew": lambda rows: all(
            row["step"] > row["all begin anew"] for row in rows if row["backups"]
        ),
        "more gradients a second are used with backups than without, though some are thrown away": lambda rows: (
            min(column(rows, "used")[1:]) > 1.2 * value(rows, "used", backups=0)
        ),
    },
    look=Look(
        "backups",
        ("step",),
        theory=("stragglers finish", "all begin anew"),
        title="time of a step, in times of one gradient",
    ),
)
def waiting_for_fewer(run):
    """25 workers whose times are exponential; the server waits for all but b of them.

    `used` counts the gradients that entered the model in the time of one gradient. The well-known formula is right
    for the first step; later the stragglers of one step come late to the next, too.
    """
    workers, rows = 25, []
    for backups in (0, 1, 2, 4, 8):
        step = _step(run, workers, backups, 400, "exponential")
        rows.append(
            {
                "backups": backups,
                "step": step,
                "stragglers finish": order_statistics.backup_step(workers, backups),
                "all begin anew": order_statistics.exponential(workers, workers - backups),
                "used": (workers - backups) / step,
            }
        )
    return rows


@figure(
    "What would it save not to wait for four of a hundred?",
    source="Chen et al., 2016, whose best setting was 4 of 100; order statistics",
    claims={
        "waiting for all, a hundred machines do the work of fewer than 20": lambda rows: rows[0]["used"] < 20,
        "without the last four a step takes a third less": lambda rows: (
            value(rows, "stragglers finish", backups=4) < 0.7 * value(rows, "stragglers finish", backups=0)
        ),
        "and more than a third more gradients are used per second": lambda rows: (
            value(rows, "used", backups=4) > 1.35 * value(rows, "used", backups=0)
        ),
        "the first backup saves most": lambda rows: (
            np.diff(np.diff(column(rows, "stragglers finish")) / np.diff(column(rows, "backups"))) > 0
        ).all(),
    },
    look=Look(
        "backups",
        ("stragglers finish",),
        theory=("all begin anew",),
        title="time of a step, in times of one gradient",
    ),
)
def a_hundred_machines(run):
    """100 machines whose times are exponential, by formula alone; `used` counts gradients in the time of one.

    Real clusters have a shorter tail than this law, so take the shape and not the numbers.
    """
    machines, rows = 100, []
    for backups in (0, 1, 2, 4, 8, 16, 32):
        step = order_statistics.backup_step(machines, backups)
        anew = order_statistics.exponential(machines, machines - backups)
        used = (machines - backups) / step
        rows.append({"backups": backups, "stragglers finish": step, "all begin anew": anew, "used": used})
    return rows


CLUSTERS = {"quiet": ("hpc", 1), "noisy": ("noisy cloud", 1), "one slow machine": ("hpc", 3)}


def _best(rows, cluster):
    return min((row for row in rows if row["cluster"] == cluster), key=lambda row: row["seconds"])["backups"]


@figure(
    "How many backup workers are worth their waste?",
    source="Chen et al., 2016, where 4 of 100 machines were best",
    claims={
        "without stragglers none": lambda rows: _best(rows, "quiet") == 0,
        "with one slow machine exactly one": lambda rows: _best(rows, "one slow machine") == 1,
        "and that one saves more than half the time": lambda rows: (
            value(rows, "seconds", cluster="one slow machine", backups=1)
            < value(rows, "seconds", cluster="one slow machine", backups=0) / 2
        ),
        "where any machine may be late now and then, a few": lambda rows: 1 <= _best(rows, "noisy") <= 4,
        "with every backup training needs more steps, and half of all machines is too many": lambda rows: all(
            (np.diff(column(rows, "steps", cluster=cluster)) > 0).all()
            and value(rows, "seconds", cluster=cluster, backups=8) > value(rows, "seconds", cluster=cluster, backups=1)
            for cluster in CLUSTERS
        ),
    },
    look=Look("backups", ("seconds",), "cluster", title="seconds until the loss is a tenth"),
)
def backups_against_the_tail(run):
    """16 machines on a noisy bowl, until the loss is a tenth of what it was; b of them are not waited for.

    With fewer gradients in the mean there is more noise in it, so the rate has to be smaller, in proportion: then all
    end with the same noise, here a third of the loss that is aimed at.
    """
    rows = []
    for cluster in CLUSTERS:
        for backups in (0, 1, 2, 4, 8):
            steps, seconds = to_a_tenth(run, cluster, backups)
            rows.append({"cluster": cluster, "backups": backups, "steps": steps, "seconds": seconds})
    return rows


def to_a_tenth(run, cluster, backups, machines=16):
    """(steps, seconds) until the loss is a tenth, if so many of the machines are not waited for."""
    jitter, slowest = CLUSTERS[cluster]
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
        slow=_slow(machines, slowest),
        steps=int(180 / share),
    )
    return _until(done, 0.1 * done.evaluations["loss"][0])


def _until(done, loss):
    """(steps, seconds) until the held-out loss is at most this; infinite if it never is."""
    tried = done.evaluations
    reached = np.flatnonzero(tried["loss"] <= loss)
    if not len(reached):
        return np.inf, np.inf
    return int(reached[0]), float(tried["seconds"][reached[0]])


@figure(
    "Is a larger batch worth more, the longer one has trained?",
    source="McCandlish et al., 2018",
    claims={
        "the loss falls and, from the second epoch on, the noise scale grows": lambda rows: (
            (np.diff(column(rows, "loss")) < 0).all() and (np.diff(column(rows, "noise scale")[1:]) > 0).all()
        ),
        "to more than three times what it was": lambda rows: (
            column(rows, "noise scale")[-1] > 3 * column(rows, "noise scale")[0]
        ),
        "since the true gradient fades faster than the noise in it": lambda rows: (
            rows[-1]["signal"] / rows[0]["signal"] < rows[-1]["noise"] / rows[0]["noise"] < 1
        ),
    },
    look=Look("epochs", ("noise scale",), kind="bar"),
)
def noise_grows(run):
    """Digits, 8 workers with 8 images each: what synchronous SGD learns about its own noise, for nothing.

    Noise is tr(C), signal |G|^2; both are averaged over the epochs of a row and over four trainings, and only then
    divided: later on the signal is a small difference of large numbers.
    """
    epochs, values = 16, {"workers": 8, "batch": 8, "learning_rate": 0.1, "memory": 0, "hidden": "64"}
    tried = [run(algorithm="noise_scale", epochs=epochs, seed=seed, **values) for seed in range(4)]
    per_epoch = (tried[0].losses["step"].max() + 1) / epochs

    def mean(tables, name, first, last):
        inside = [(table["step"] >= first * per_epoch) & (table["step"] < last * per_epoch) for table in tables]
        return float(np.mean([table[name][some].mean() for table, some in zip(tables, inside, strict=True)]))

    rows = []
    for first, last in ((0, 1), (1, 2), (2, 4), (4, 8), (8, 16)):
        noise, signal = (
            mean([done.measured(quantity) for done in tried], "value", first, last) for quantity in ("noise", "signal")
        )
        loss = mean([done.losses for done in tried], "loss", first, last)
        rows.append(
            {"epochs": f"{first}-{last}", "loss": loss, "noise": noise, "signal": signal, "noise scale": noise / signal}
        )
    return rows


@figure(
    "How many steps does a larger batch save?",
    source="McCandlish et al., 2018",
    claims={
        "from 2 to 8 images, four times the batch saves more than a third of the steps": lambda rows: (
            value(rows, "steps", batch=8) < value(rows, "steps", batch=2) * 2 / 3
        ),
        "from 128 to 512 it saves less than a third": lambda rows: (
            value(rows, "steps", batch=512) > value(rows, "steps", batch=128) * 2 / 3
        ),
        "all lie near S (1 + B / batch), with S and B fitted": lambda rows: all(
            abs(row["steps"] / row["fit"] - 1) < 0.5 for row in rows
        ),
        "below B the images are well used, above it the steps": lambda rows: (
            value(rows, "images", batch=512) > 10 * value(rows, "images", batch=2)
        ),
    },
    look=Look("batch", ("steps",), theory=("fit",), log="xy", title="steps to a held-out loss of 0.4"),
)
def steps_against_batch(run):
    """Digits, until the held-out loss is 0.4, with the best of five rates for each batch.

    To choose the rate by a formula would assume what is to be shown. B is the critical batch: there twice as many
    steps are needed as with all images at once. It is of the kind of the noise scale, though smaller than that here.
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
            "S": float(least),
            "B": float(slope / least),
            "fit": float(least + slope / batch),
        }
        for batch, taken in zip(batches, steps, strict=True)
    ]
