"""Sandblaster: one step on the whole batch, split into small portions, and what such a step is worth."""

import numpy as np

from lessons.figure import Look, column, figure, is_falling, is_rising, ratio, value

IMAGES = 1437  # digits to train on
SIZES = 180, 90, 45, 23, 12, 6  # images in a portion
LBFGS = {"algorithm": "sandblaster", "learning_rate": 1.0}


def portions_computed(done):
    """Return how many portions were computed, including backup copies whose gradient was not used."""
    label = list(done.trace.labels).index("portion")
    return int((done.trace.spans["label"] == label).sum())


@figure(
    "How should a batch be split if one worker is slow?",
    source="Dean et al., NIPS 2012, section 4.2",
    claims={
        "if each worker has one equal share, all wait for the slow worker": lambda rows: all(
            ratio(rows, "milliseconds", slowed=(times, 1), shares="one each") > 0.7 * times for times in (3, 30)
        ),
        "with one slow worker, small portions save more than a third of the time of one equal share each": (
            lambda rows: all(
                value(rows, "milliseconds", slowed=times, shares="eight each")
                < value(rows, "milliseconds", slowed=times, shares="one each") * 2 / 3
                for times in (3, 30)
            )
        ),
        "if one worker is 30 times slower, a pass without backups takes more than twice as long as one with backups": (
            lambda rows: ratio(rows, "milliseconds", slowed=30, shares=("eight each", "eight each, backups")) > 2
        ),
        "with backups a slow worker costs less than half a pass": lambda rows: (
            ratio(rows, "milliseconds", slowed=(30, 1), shares="eight each, backups") < 1.5
        ),
        "backups add less than a quarter to the work": lambda rows: all(
            1 < row["work"] < 1.25 if "backups" in row["shares"] else row["work"] == 1 for row in rows
        ),
        "if all workers are equally fast, one share each is fastest": lambda rows: (
            value(rows, "milliseconds", slowed=1, shares="one each") == min(column(rows, "milliseconds"))
        ),
    },
    look=Look("slowed", ("milliseconds",), "shares", kind="bar", log="y", title="milliseconds of a pass"),
)
def shares_of_a_batch(run):
    """The time of one pass over all digits for 8 workers, one of which takes `slowed` times as long, on a network that
    takes no time. `work`: the number of portions computed, relative to the number in the batch.

    A small portion has 23 images here. Its gradient is as long as that of a large one and has to be summed as well, and
    a few images use a processor less efficiently than many. That is what small portions cost even if no worker is slow.
    """
    workers, ways = 8, {"one each": (1, False), "eight each": (8, False), "eight each, backups": (8, True)}
    for slowed in (1, 3, 30):
        for shares, (parts, backups) in ways.items():
            portion = -(-IMAGES // (workers * parts))
            portions = -(-IMAGES // portion)
            done = run(
                **LBFGS,
                workers=workers,
                portion=portion,
                backups=backups,
                every=1,
                memory=0,
                steps=4,
                slow=f"{workers + 1}:{slowed}",
                hidden="128,128",
                network="ideal",
                evaluations=4,
            )
            passes = portions_computed(done) // portions
            yield {
                "slowed": slowed,
                "shares": shares,
                "milliseconds": 1e3 * float(done.evaluations["seconds"][4]) / passes,
                "work": portions_computed(done) / passes / portions,
            }


@figure(
    "How small should a portion be?",
    source="Dean et al., NIPS 2012, section 4.2",
    claims={
        "if all workers are equally fast, the smaller the portion, the longer the pass": lambda rows: is_rising(
            [value(rows, "no backups", images=n, slowed=1) for n in SIZES]
        ),
        "if one worker is 30 times slower, cutting shares into eighths cuts the time to less than a quarter": (
            lambda rows: ratio(rows, "no backups", images=(180, 23), slowed=30) > 4
        ),
        "if one worker is 30 times slower, the smallest portions are not the fastest": lambda rows: (
            ratio(rows, "no backups", images=(6, 12), slowed=30) > 1.2
        ),
        "if one worker is 30 times slower, backups of any portions cut the time of equal shares to below a third": (
            lambda rows: all(
                3 * value(rows, "backups", images=n, slowed=30) < value(rows, "no backups", images=180, slowed=30)
                for n in SIZES
            )
        ),
        "if one worker is 30 times slower, portions of 45, a quarter of a share, are the fastest with backups": (
            lambda rows: (
                value(rows, "backups", images=45, slowed=30)
                == min(row["backups"] for row in rows if row["slowed"] == 30)
            )
        ),
        "if all workers are equally fast, copies of a whole share add over a quarter to the time": lambda rows: (
            value(rows, "backups", images=180, slowed=1) > 1.25 * value(rows, "no backups", images=180, slowed=1)
        ),
    },
    look=Look("images", ("no backups", "backups"), "slowed", log="xy", title="milliseconds of a pass"),
)
def size_of_a_portion(run):
    """The time of one pass over all digits, in portions from 180 images, an equal share, down to 6. One of the 8
    workers takes `slowed` times as long, and the network takes no time.

    However few images a portion has, its gradient is as long as the model, and has to be summed. If another worker
    finishes a copy of a portion first, the worker that has the original still completes it and is late for the next
    pass, so copies of large portions cost time.
    """
    for slowed in (1, 30):
        for images in SIZES:
            values = {
                **LBFGS, "workers": 8, "portion": images, "every": 1, "memory": 0, "steps": 2, "slow": f"9:{slowed}",
                "hidden": "128,128", "network": "ideal", "evaluations": 2,
            }  # fmt: skip
            alone, copied = (run(**values, backups=backups) for backups in (False, True))
            passes = portions_computed(alone) / -(-IMAGES // images)  # as many as with backups, which change no sum
            row = {"slowed": slowed, "images": images}
            for name, done in (("no backups", alone), ("backups", copied)):
                row[name] = 1e3 * float(done.evaluations["seconds"][2]) / passes
            yield row


@figure(
    "How many bytes does a pass over the data move?",
    source="Dean et al., NIPS 2012, section 4",
    claims={
        "Downpour's bytes hardly depend on the number of workers": lambda rows: (
            max(column(rows, "megabytes", method="Downpour")) < 1.15 * min(column(rows, "megabytes", method="Downpour"))
        ),
        "if each worker hands in its sum every 16 portions, Sandblaster's bytes grow with the number of workers": (
            lambda rows: is_rising(column(rows, "megabytes", method="Sandblaster, every 16"))
        ),
        "with 4 workers Sandblaster's bytes are less than a tenth of Downpour's": lambda rows: (
            ratio(rows, "megabytes", method=("Downpour", "Sandblaster, every 16"), workers=4) > 10
        ),
        "if every portion is handed in, Sandblaster's bytes are more than half of Downpour's": lambda rows: (
            ratio(rows, "megabytes", method=("Sandblaster, every portion", "Downpour"), workers=4) > 0.5
        ),
        "with 64 workers a batch of 90 portions is too small to save even 30 % of Downpour's bytes": lambda rows: (
            ratio(rows, "megabytes", method=("Sandblaster, every 16", "Downpour"), workers=64) > 0.7
        ),
    },
    look=Look("workers", ("megabytes",), "method", log="xy", title="megabytes of a pass"),
)
def bytes_of_a_pass(run):
    """Traffic of a pass over digits without backups. It has 90 portions or 90 mini-batches, each of 16 images.

    Downpour moves the whole model twice per mini-batch. Sandblaster sends it to every worker once per pass, and a
    gradient back whenever a worker hands in; the more portions a worker sums first, the more is lost with it. While one
    sum is in flight the next one grows, and near the end of a pass all workers hand in what they have. What a pass is
    worth is another question.
    """
    small = {"hidden": "32", "evaluations": 1, "network": "ideal"}
    for workers in (4, 16, 64):
        done = run(algorithm="downpour", update="sgd", learning_rate=0.01, workers=workers, batch=16, epochs=1, **small)
        passes = done.summary["samples"] / IMAGES
        yield {"workers": workers, "method": "Downpour", "megabytes": done.summary["bytes"] / passes / 1e6}
        for method, every in (("every portion", 1), ("every 16", 16)):
            batch = {"portion": 16, "every": every, "backups": False, "steps": 2, "memory": 0}
            done = run(**LBFGS, workers=workers, **batch, **small)
            megabytes = done.summary["bytes"] / (portions_computed(done) / 90) / 1e6
            yield {"workers": workers, "method": f"Sandblaster, {method}", "megabytes": megabytes}


@figure(
    "How much work is lost if a worker is lost?",
    source="Dean et al., NIPS 2012, section 4.2",
    claims={
        "the run continues, and ends with the same model up to rounding": lambda rows: all(
            row["status"] == "finished" and row["difference"] < 1e-5 for row in rows
        ),
        "what the worker had not handed in is recomputed, and nothing else": lambda rows: all(
            row["again"] == row["not handed in"] for row in rows
        ),
        "the less often a worker hands in its sum, the more is lost": lambda rows: (
            (np.diff(column(rows, "again")) >= 0).all() and column(rows, "again")[-1] >= 6
        ),
        "the more often a worker hands in its sum, the more bytes move": lambda rows: is_falling(
            column(rows, "megabytes")
        ),
    },
    look=Look("hands in every", ("not handed in", "again"), kind="bar", title="portions"),
)
def what_is_lost(run):
    """Training on digits with 4 workers and 90 portions of 16 images. In the second pass worker 2 is lost after its
    eighth portion, just before it finishes the ninth, which counts as not handed in.

    Three workers do the rest of the run. The loss of a shard or of the coordinator ends it.
    """
    lost = 4  # the rank of worker 2, after the coordinator and two shards
    for every in (1, 3, 16):
        values = {
            **LBFGS, "workers": 4, "shards": 2, "every": every, "portion": 16, "backups": False, "memory": 0,
            "steps": 6, "hidden": "32", "evaluations": 1, "network": "EDR",
        }  # fmt: skip
        whole = run(**values)
        label = list(whole.trace.labels).index("portion")
        spans = whole.trace.spans
        ends = np.sort(spans["end"][spans["label"] == label])
        mine = np.sort(spans["end"][(spans["label"] == label) & (spans["rank"] == lost)])
        moment = float(mine[mine > ends[89]][7:9] @ [0.1, 0.9])  # when the ninth is nearly done
        left = run(crash=f"{lost}:{moment:.9f}", **values)
        yield {
            "hands in every": every,
            "status": left.status,
            "not handed in": 1 + 8 % every,
            "again": portions_computed(left) - portions_computed(whole),
            "difference": float(np.abs(left.parameters - whole.parameters).max()),
            "megabytes": whole.summary["bytes"] / 1e6,
        }


@figure(
    "How many past steps should L-BFGS remember?",
    source="Liu & Nocedal, 1989; every sharded L-BFGS waits for scalars",
    claims={
        "a memory of three steps more than halves the loss, one of ten cuts it to less than a quarter": lambda rows: (
            ratio(rows, "f after 40 steps", memory=(3, 0)) < 1 / 2
            and ratio(rows, "f after 40 steps", memory=(10, 0)) < 1 / 4
        ),
        "a memory of ten steps ends at a lower loss than one of three": lambda rows: (
            value(rows, "f after 40 steps", memory=10) < value(rows, "f after 40 steps", memory=3)
        ),
        "with a memory of past steps, the same number of steps needs over 20 % fewer passes": lambda rows: (
            max(column(rows, "passes")[1:]) < 0.8 * rows[0]["passes"]
        ),
        "each step remembered takes about four more commands from the coordinator": lambda rows: (
            3.5 < (rows[-1]["commands"] - rows[0]["commands"]) / 10 < 5.5
        ),
        "on a network a memory of ten takes over 1.3 times as long as none, though fewer bytes move": lambda rows: (
            ratio(rows, "milliseconds", memory=(10, 0)) > 1.3
            and value(rows, "megabytes", memory=10) < value(rows, "megabytes", memory=0)
        ),
    },
    look=Look(
        "memory", ("f after 20 steps", "f after 40 steps"), kind="bar", log="y", title="loss on all training images"
    ),
)
def remembered_steps(run):
    """Training on digits with 4 workers for 40 steps from the same start, on 10 Gb Ethernet. f is the loss on all
    training images.

    `commands`: how many messages the coordinator sends its shard in a step. A dot product needs an answer, and the
    coordinator waits for each. With a model this small, that is most of the time.
    """
    for memory in (0, 3, 10):
        done = run(**LBFGS, workers=4, memory=memory, steps=41, hidden="32", evaluations=1, backups=False)
        sent = done.trace.messages
        yield {
            "memory": memory,
            "f after 20 steps": float(done.losses["loss"][20]),
            "f after 40 steps": float(done.losses["loss"][40]),
            "passes": portions_computed(done) // 17,
            "commands": float(((sent["src"] == 0) & (sent["dst"] == 1)).sum() / 41),
            "milliseconds": 1e3 * done.summary["seconds"],
            "megabytes": done.summary["bytes"] / 1e6,
        }


DIGITS = {"hidden": "32"}, {"batch": 16, "learning_rate": 0.3}  # data, and SGD's batch and rate
BOWL = (
    {"workload": "quadratic", "condition": 1000, "noise": 1, "dimension": 40, "points": 1024, "precision": "float64"},
    {"batch": 16, "learning_rate": 0.3},
)


def loss_after(done, passes):
    """Return the held-out loss of a Sandblaster run after this many passes over the data."""
    return _after(done, _batch_passes(done), passes)


def _after(done, passes_per_step, wanted):
    """Return the held-out loss after this many passes over the data."""
    return float(done.evaluations["loss"][int(np.searchsorted(passes_per_step, wanted, side="right")) - 1])


def _batch_passes(done):
    """Return the number of passes over the data before each evaluation of a Sandblaster run, (evaluations,)."""
    label = list(done.trace.labels).index("portion")
    began = np.sort(done.trace.spans["start"][done.trace.spans["label"] == label])
    per_pass = done.experiment.workers * 4  # portions, by default
    return np.searchsorted(began, done.evaluations["seconds"], side="right") / per_pass


@figure(
    "Do many small steps or few large ones descend faster?",
    source="Dean et al., NIPS 2012; Liu & Nocedal, 1989; Bottou & Bousquet, NIPS 2007",
    claims={
        "on digits SGD is ahead throughout": lambda rows: all(
            row["SGD"] < 0.9 * row["L-BFGS"] for row in rows if row["problem"] == "digits"
        ),
        "on the bowl SGD is ahead for the first 8 passes": lambda rows: all(
            row["SGD"] < row["L-BFGS"] for row in rows if row["problem"] == "bowl" and row["passes"] <= 8
        ),
        "on the bowl noise stops SGD: after 64 passes L-BFGS has less than a tenth of its loss": lambda rows: (
            value(rows, "L-BFGS", problem="bowl", passes=64) < value(rows, "SGD", problem="bowl", passes=64) / 10
        ),
        "from 8 to 32 passes, L-BFGS without memory (steepest descent) is behind L-BFGS and SGD": lambda rows: all(
            row["steepest descent"] > max(row["L-BFGS"], row["SGD"]) for row in rows if row["passes"] in (8, 16, 32)
        ),
    },
    look=Look("passes", ("SGD", "steepest descent", "L-BFGS"), "problem", log="xy", title="held-out loss"),
)
def per_pass(run):
    """Held-out loss on digits, and loss above the optimum on a narrow noisy bowl, after a number of passes over the
    data.

    SGD takes 90 steps of 16 images in a pass over digits; L-BFGS takes one on all images, or none where the line search
    rejects a step. Digits do not need the exact optimum of the training loss, and the many small steps win. On the bowl
    precision counts, and they win only at first. SGD's learning rate is 0.3 throughout.
    """
    problems = {"digits": (*DIGITS, IMAGES), "bowl": (*BOWL, 1024)}
    for problem, (data, small, samples) in problems.items():
        sgd = run(algorithm="sgd", workers=1, epochs=64, evaluations=10_000, **data, **small)
        batch = {m: run(**LBFGS, workers=4, memory=m, steps=60, evaluations=10_000, **data) for m in (0, 10)}
        for passes in (4, 8, 16, 32, 64):
            yield {
                "problem": problem,
                "passes": passes,
                "SGD": _after(sgd, sgd.evaluations["samples"] / samples, passes),
                "steepest descent": loss_after(batch[0], passes),
                "L-BFGS": loss_after(batch[10], passes),
            }


HEAVY = 300  # times as long as its FLOPs take: like the gradient of a large model, next to which messages are short


def _seconds(run, workers, servers, loss, **values):
    """Return the time in s until the held-out loss is at most this; infinite if it never is."""
    slow = ",".join(f"{servers + worker}:{HEAVY}" for worker in range(workers))
    done = run(
        workers=workers, slow=slow, jitter="cloud", network="EDR", hidden="32", batch=16, evaluations=120, **values
    )
    tried = done.evaluations
    return min(tried["seconds"][tried["loss"] <= loss], default=np.inf)


WAYS = {  # algorithm, rates to try by number of workers, other settings
    "SGD": ("sgd", {1: (0.3, 0.5)}, {}),
    "Downpour": ("downpour", {4: (0.1, 0.2), 64: (0.01, 0.03)}, {"update": "sgd"}),
    "Downpour, Adagrad": ("downpour", {4: (0.02, 0.05), 64: (0.01, 0.02)}, {"update": "adagrad"}),
    "Sandblaster": ("sandblaster", {4: (1.0,), 64: (1.0,)}, {}),
}


def to_a_half(run, method, workers):
    """Return the time in s until the held-out loss is 0.5, at the best of the method's learning rates."""
    algorithm, rates, more = WAYS[method]
    values, servers = {"algorithm": algorithm, **more, "steps": 800 // workers + 28, "shards": 4}, 4
    if method == "SGD":
        servers = 0
        del values["shards"]
    if method == "Sandblaster":
        servers = 5
        values |= {"steps": 13, "portion": -(-IMAGES // (2 * workers)), "every": 1}
    return float(min(_seconds(run, workers, servers, 0.5, learning_rate=rate, **values) for rate in rates[workers]))


@figure(
    "Which method makes the best use of many machines?",
    source="Dean et al., NIPS 2012, figures 4 and 5",
    claims={
        "on 4 machines Sandblaster is slower than SGD on one, and Downpour with Adagrad is faster": lambda rows: (
            value(rows, "seconds", method="Sandblaster", workers=4)
            > value(rows, "seconds", method="SGD")
            > value(rows, "seconds", method="Downpour, Adagrad", workers=4)
        ),
        "Sandblaster on 64 machines takes less than 4/3 of the time of Downpour with Adagrad on 4": lambda rows: (
            ratio(rows, "seconds", method=("Sandblaster", "Downpour, Adagrad"), workers=(64, 4)) < 4 / 3
        ),
        "16 times the machines make Downpour with Adagrad less than twice as fast": lambda rows: (
            ratio(rows, "seconds", method="Downpour, Adagrad", workers=(4, 64)) < 2
        ),
        "16 times the machines make Sandblaster more than three times as fast": lambda rows: (
            ratio(rows, "seconds", method="Sandblaster", workers=(4, 64)) > 3
        ),
    },
    look=Look("workers", ("seconds",), "method", log="xy", title="seconds until the held-out loss is 0.5"),
)
def few_and_many(run):
    """Seconds until the held-out loss on digits is 0.5, with mini-batches of 16 images. Each method is at the better of
    two learning rates, and Sandblaster at 1.

    In the paper, many machines means 200 replicas for Downpour and 2,000 for Sandblaster. Here there are 64 for both, a
    gradient takes 300 times as long as its FLOPs would, and the network is fast. This figure does not settle which of
    them is fastest with many machines: in the paper it is Downpour with Adagrad, here it depends on the seed. Downpour
    gains less from many replicas than in the paper: 64 times 16 images are most of this data set, and 63 gradients of
    other replicas arrive between a replica's fetch and its push. Sandblaster gains as long as there are images left to
    split.
    """
    return [
        {"method": method, "workers": workers, "seconds": to_a_half(run, method, workers)}
        for method, (_, rates, _) in WAYS.items()
        for workers in rates
    ]
