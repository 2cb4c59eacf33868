"""Large batches: which learning rate a batch k times as large needs, and what gradient noise is good for."""

from functools import partial
from itertools import pairwise

import numpy as np

from experiments.runs.scaling import scaling
from lessons.figure import Look, column, figure, interior, is_falling, is_rising, ratio, value

EPOCHS = 18  # of a growing batch
NESTEROV = {"algorithm": "large_batch", "workers": 1, "learning_rate": 0.01}  # a rate for 16 images
AT_ONCE = {"warm_up": "none", "milestones": ""}  # the same rate from the first step to the last
ENDS = (6, 12, 25, 50, 100, 220, 440, 890, 1780)  # steps; 100, 440 and 1,780 are 20 epochs of 256, 64 and 16 images
NOISE = {"workload": "quadratic", "dimension": 400, "condition": 1, "noise": 4.0}  # a critical batch of 4.0 ** 2


@figure(
    "What does a model learn if only the batch grows?",
    source="Goyal et al., 2017, section 2.1",
    claims={
        "after the same number of steps the loss hardly depends on the batch": lambda rows: all(
            _apart(column(rows, "loss", steps=steps)) < 1.5 for steps in ENDS[1:]
        ),
        "after the same number of epochs, the loss with 256 images a step is over 10 times that with 16": lambda rows: (
            column(rows, "loss", batch="256")[-1] > 10 * column(rows, "loss", batch="16")[-1]
        ),
    },
    look=Look("steps", ("loss",), "batch", log="xy", title="training loss"),
)
def left_behind(run):
    """Training on digits for 20 epochs with each batch size, all at one learning rate. Each point is the mean loss
    since the previous point.

    Lines end after 20 epochs: with a large batch these are few steps.
    """
    for batch in (16, 64, 256):
        losses = at_the_same_rate(run, batch)
        for begin, end in pairwise(ENDS):
            if end <= len(losses):
                yield {"batch": str(batch), "steps": end, "loss": float(losses[begin:end].mean())}


@figure(
    "How much faster are 16 workers than one, if the batch grows, and if it does not?",
    source="Goyal et al., 2017, section 2.1",
    claims={
        "strong scaling is fastest with 8 workers, and over a tenth slower with 16 workers": lambda rows: (
            max(column(rows, "speed_up", scaling="strong")) == value(rows, "speed_up", scaling="strong", workers=8)
            and ratio(rows, "speed_up", scaling="strong", workers=(16, 8)) < 0.9
        ),
        "weak scaling gains with each doubling, and with 16 workers is over five times as fast as strong scaling": (
            lambda rows: (
                is_rising(column(rows, "speed_up", scaling="weak"))
                and ratio(rows, "speed_up", scaling=("weak", "strong"), workers=16) > 5
            )
        ),
        "strong scaling leaves the held-out loss unchanged, within 1 %": lambda rows: (
            _apart(column(rows, "loss", scaling="strong")) < 1.01
        ),
        "after the same number of epochs, weak scaling to 16 workers ends at over five times the loss of one": (
            lambda rows: ratio(rows, "loss", scaling="weak", workers=(16, 1)) > 5
        ),
    },
    look=Look("workers", ("speed_up",), "scaling", log="xy", title="samples per second, relative to one worker"),
)
def two_ways_to_scale(run):
    """Training on digits for eight epochs at one learning rate, with workers on EDR InfiniBand. Strong scaling: the
    workers divide a batch of 64 images. Weak scaling: each worker takes 64 images.

    The table also shows the duration of a step in ms, and the held-out loss at the end.
    """
    workers = (1, 2, 4, 8, 16)
    for name in ("strong", "weak"):
        done = [
            run(
                algorithm="sync_sgd", workers=n, batch=64 // n if name == "strong" else 64, learning_rate=0.1, epochs=8,
                network="EDR", device="laptop", evaluations=2,
            )
            for n in workers
        ]  # fmt: skip
        for n, one, figures in zip(workers, done, scaling([[one] for one in done], ["workers"]), strict=True):
            step, faster, efficiency = figures
            loss = one.summary["held_out_loss"]
            yield (
                {"scaling": name, "workers": n, "speed_up": faster, "ms": 1000 * step, "efficiency": efficiency}
                | {"loss": loss}
            )


@figure(
    "Does it matter how many workers share a batch of 32 images?",
    source="Ioffe & Szegedy, 2015",
    claims={
        "with one image each, the distance to one worker's model is more than a quarter of that worker's path": (
            lambda rows: value(rows, "distance", over="own", images=1) > 25
        ),
        "with one image each, the distance to one worker's model is more than twice as long as with 16 each": (
            lambda rows: ratio(rows, "distance", over="own", images=(1, 16)) > 2
        ),
        "with synchronised norms, the distance to one worker's model is less than 0.001 % of that worker's path": (
            lambda rows: max(column(rows, "distance", over="all")) < 1e-3
        ),
        "a step of 32 workers takes more than twice as long with synchronised norms as with their own": lambda rows: (
            ratio(rows, "ms", over=("all", "own"), images=1) > 2
        ),
    },
    look=Look("images", ("distance",), "over", log="x", title="distance from one worker's model, percent of its path"),
)
def parts_of_a_batch(run):
    """A model with two batch norms, trained on digits for ten steps of 32 images that 2 to 32 workers share. Each
    worker has `images` of them.

    A batch norm normalises over a worker's own images, or over those of all workers. The table also shows the duration
    of a step on 10 GbE, in ms.
    """
    values = {"algorithm": "sync_sgd", "model": "cnn_bn", "channels": 4, "steps": 10, "learning_rate": 0.1}
    start = run(**values, workers=1, batch=32, evaluations=1, worker_override=_start).parameters
    path = run(**values, workers=1, batch=32, evaluations=1).parameters - start
    for over in ("own", "all"):
        for images in (16, 8, 4, 2, 1):
            done = run(
                **values, workers=32 // images, batch=images, evaluations=1, network="10GbE", device="laptop",
                sync_batch_norm=over == "all",
            )  # fmt: skip
            apart = np.linalg.norm(done.parameters - start - path) / np.linalg.norm(path)
            ms = 1000 * done.trace.seconds() / values["steps"]
            yield {"over": over, "images": images, "distance": 100 * float(apart), "ms": ms}


def _start(comm, task, s):
    """Report and return the initial model, without training."""
    w = task.start()
    task.report(w)
    return w


@figure(
    "Should the rate grow with the batch, or with its square root?",
    source="Krizhevsky, 2014; Hoffer et al., 2017; Goyal et al., 2017",
    claims={
        "with 128 and 256 images the root rule has more than twice the linear rule's training loss": lambda rows: all(
            ratio(rows, "loss", rule=("root of k", "k times"), batch=batch) > 2 for batch in (128, 256)
        ),
        "with 1,024 images the root rule has less than half the linear rule's error": lambda rows: (
            ratio(rows, "error", rule=("root of k", "k times"), batch=1024) < 0.5
        ),
        "with 1,024 images the root rule has more than twice its own error with 128": lambda rows: (
            ratio(rows, "error", rule="root of k", batch=(1024, 128)) > 2
        ),
    },
    look=Look("batch", ("error",), "rule", log="xy", title="held-out error, percent"),
)
def two_rules(run):
    """The error after 20 epochs on digits, in percent, with a gradual warm-up over five epochs. Values are means of two
    seeds.

    The learning rate is that of 16 images times k, or times the root of k. A batch of 512 images is left out: whether
    the linear rule trains there is a matter of luck.
    """
    for rule in ("k times", "root of k"):
        for batch in (64, 128, 256, 1024):
            error, loss = train_at_scaled_rate(run, batch, base_batch(rule, batch))
            yield {"rule": rule, "batch": batch, "error": error, "loss": loss}


@figure(
    "How long is the best step of a batch?",
    source="McCandlish et al., 2018",
    claims={
        "the best rate, and what it gains, are within 30 % of the formula": lambda rows: all(
            1 / 1.3 < row[name] / row["theory"] < 1.3 for row in rows for name in ("rate", "gain")
        ),
        "from 1 sample to 4 the rate grows more than 2.5-fold, from 256 to 1,024 by less than a fifth": lambda rows: (
            ratio(rows, "rate", batch=(4, 1)) > 2.5 and ratio(rows, "rate", batch=(1024, 256)) < 1.2
        ),
        "at the critical batch a step gains half of the largest possible gain": lambda rows: (
            abs(value(rows, "gain", batch=16) - 0.5) < 0.1
        ),
    },
    look=Look("batch", ("rate", "gain"), theory=("theory",), log="xy", title="best rate, and what a step gains"),
)
def best_step(run):
    """One step on a bowl of curvature 1 in 400 directions, from the point whose coordinates are all 1. Values are means
    of sixteen batches.

    The loss after a step is a parabola in the learning rate. It is measured at learning rates of 0, 1/2 and 1; these
    three points determine where it is lowest. The noise of a sample is 16 times the squared gradient, so the critical
    batch is 16. The gain is the fraction of the loss that is gone; in theory it is 1 / (1 + 16 / batch) for both.
    """
    for batch in (1, 4, 16, 64, 256, 1024):
        (start, half), (_, whole) = (
            np.mean([_one_step(run, batch, rate, seed) for seed in range(16)], axis=0) for rate in (0.5, 1.0)
        )
        bend, slope = 2 * (whole + start - 2 * half), 4 * half - whole - 3 * start
        theory = 1 / (1 + NOISE["noise"] ** 2 / batch)
        best, gain = -slope / (2 * bend), slope**2 / (4 * bend) / start
        yield {"batch": batch, "rate": float(best), "gain": float(gain), "theory": theory}


def _one_step(run, batch, rate, seed):
    values = {"algorithm": "sgd", "workers": 1, "steps": 1, "evaluations": 2, "seed": seed}
    return run(**NOISE, **values, batch=batch, learning_rate=rate).evaluations["loss"]


@figure(
    "How far can a batch grow if the rate grows with it?",
    source="Goyal et al., 2017, figure 1 and section 2.1",
    claims={
        "if the rate grows with the batch, the errors differ by under 1.5 points up to 16 times the batch": (
            lambda rows: np.ptp(column(rows, "error", rate="rate k times")[:5]) < 1.5
        ),
        "beyond 16 times the batch the error rises, to more than ten times as much with 1,024 images a step": (
            lambda rows: (
                column(rows, "error", rate="rate k times")[5] > max(column(rows, "error", rate="rate k times")[:5])
                and column(rows, "error", rate="rate k times")[6]
                > 10 * max(column(rows, "error", rate="rate k times")[:5])
            )
        ),
        "at the same rate for all, the larger the batch, the higher the loss after the same number of epochs": (
            lambda rows: is_rising(column(rows, "loss", rate="same rate"))
        ),
        "at 16 times the batch, 16 times the rate has less than half the error of the unchanged rate": lambda rows: (
            column(rows, "error", rate="rate k times")[4] < 0.5 * column(rows, "error", rate="same rate")[4]
        ),
    },
    look=Look("batch", ("error",), "rate", log="xy", title="held-out error, percent"),
)
def linear_scaling(run):
    """The error after 20 epochs on digits, in percent, for each batch size, with a gradual warm-up over five epochs.
    Values are means of two seeds.

    ImageNet's knee lies near 8,192 images of 1.3 million; here there are 1,437 images in all, and it lies near 400.
    """
    for rate in ("rate k times", "same rate"):
        for batch in (16, 32, 64, 128, 256, 512, 1024):
            error, loss = train_at_scaled_rate(run, batch, 16 if rate == "rate k times" else batch)
            yield {"rate": rate, "batch": batch, "error": error, "loss": loss}


NOTCH = 2**0.5  # from one rate tried to the next


@figure(
    "What is the largest rate at which a model learns, for each batch?",
    source="Ma, Bassily & Belkin, 2018; Wu, Ma & E, 2018",
    claims={
        "with 256 images a step, the largest rate is over 1.9 times that with 4": lambda rows: (
            ratio(rows, "rate", batch=(256, 4)) > 1.9
        ),
        "from 64 images to all 1,437, the largest rate changes by at most one step, a factor of 1.4": lambda rows: (
            max(late := [row["rate"] for row in rows if row["batch"] >= 64]) / min(late) < 1.01 * NOTCH
        ),
    },
    look=Look("batch", ("rate",), log="xy", title="largest rate at which the loss falls below 1"),
)
def longest_step_of_a_batch(run):
    """Plain SGD on digits for 200 steps, at learning rates up to 3.2 that are a factor of 1.4 apart. The batch of 1,437
    holds all images.
    """
    for batch in (4, 16, 64, 256, 1437):
        rate = 3.2
        while rate > 0.1 and not _learns(run, batch, rate):
            rate /= NOTCH
        yield {"batch": batch, "rate": rate}


def _learns(run, batch, rate):
    """Return whether the held-out loss is below 1 after 200 steps. Guessing has a loss of 2.3."""
    done = run(algorithm="sgd", workers=1, hidden="32", steps=200, evaluations=2, batch=batch, learning_rate=rate)
    loss = done.summary["held_out_loss"]
    return loss is not None and loss < 1


LOWEST = {"adam": {16: 0.004, 64: 0.012, 256: 0.024}, "sgd": {16: 0.3, 64: 0.3, 256: 0.3}}  # of seven rates


@figure(
    "How does the best rate grow with the batch?",
    source="Malladi, Lyu, Panigrahi & Arora, NeurIPS 2022",
    claims={
        "from 16 images to 256 Adam's best rate more than doubles, but grows less than 13-fold": lambda rows: (
            2 < ratio(rows, "rate", rule="adam", batch=(256, 16)) < 13
        ),
        "Adam's best rate grows over 1.5 times as much as SGD's": lambda rows: (
            ratio(rows, "rate", rule="adam", batch=(256, 16)) > 1.5 * ratio(rows, "rate", rule="sgd", batch=(256, 16))
        ),
    },
    look=Look("batch", ("rate",), "rule", log="xy", title="best rate"),
)
def best_rate_of_a_batch(run):
    """Training on digits for 15 epochs with each batch size, at seven learning rates a factor of 1.4 apart. The
    training loss is that of the last epoch, and the mean of two seeds.

    `rate` is the minimum of the parabola through the logarithms of the losses at the best of these learning rates and
    at its two neighbours.
    """
    for rule, batches in LOWEST.items():
        for batch, lowest in batches.items():
            rates = [lowest * NOTCH**notch for notch in range(7)]
            tried = {rate: _ends_at(run, rule, batch, rate) for rate in rates}
            middle = rates.index(interior(tried))
            left, here, right = np.log([tried[rate] for rate in rates[middle - 1 : middle + 2]])
            off = (left - right) / 2 / (left - 2 * here + right)  # in notches
            yield {"rule": rule, "batch": batch, "rate": float(rates[middle] * NOTCH**off)}


def _ends_at(run, rule, batch, rate):
    """Return the training loss of the last of 15 epochs, capped at 10, averaged over two seeds."""
    values = {"algorithm": rule, "workers": 1, "hidden": "32", "batch": batch, "learning_rate": rate, "epochs": 15}
    return float(np.minimum(np.nan_to_num(_ended(run, 2, **values)[:, 1], nan=10), 10).mean())


RULES = {  # with and without rescaling, in the same program
    "SGD": {"rule": "lars", "adapt": "none"},
    "LARS": {"rule": "lars", "adapt": "matrices"},
    "Adam": {"rule": "lamb", "adapt": "none"},
    "LAMB": {"rule": "lamb", "adapt": "matrices"},
}
LOWEST_TRIED = {  # the lowest of five rates, a factor of two apart
    "digits, 64": {"SGD": 0.04, "LARS": 0.0005, "Adam": 0.008, "LAMB": 0.0015},
    "digits, 256": {"SGD": 0.08, "LARS": 0.002, "Adam": 0.016, "LAMB": 0.004},
    "digits, 1,024": {"SGD": 0.16, "LARS": 0.006, "Adam": 0.016, "LAMB": 0.016},
    "text, 64": {"SGD": 0.12, "LARS": 0.006, "Adam": 0.016, "LAMB": 0.016},
}


@figure(
    "Does it help to rescale the step of each layer?",
    source="You, Gitman & Ginsburg, 2017; You et al., 2020; Nado et al., 2021",
    claims={
        "on digits LAMB's loss is more than a tenth above Adam's, on average over three batch sizes": lambda rows: (
            geometric_mean(loss_ratios(rows, "LAMB")[:3]) > 1.1
        ),
        "on text LAMB's loss is more than a hundredth above Adam's": lambda rows: loss_ratios(rows, "LAMB")[3] > 1.01,
        "on digits LARS's loss is at most a sixth below SGD's, on average over three batch sizes": lambda rows: (
            geometric_mean(loss_ratios(rows, "LARS")[:3]) > 5 / 6
        ),
        "on text LARS's loss differs from SGD's by less than a tenth": lambda rows: (
            abs(loss_ratios(rows, "LARS")[3] - 1) < 0.1
        ),
    },
    look=Look("problem", ("ratio",), "rule", kind="bar", title="held-out loss, relative to the loss without rescaling"),
)
def rescaled_steps(run):
    """LARS compared with SGD with momentum 0.9, and LAMB compared with Adam, without a warm-up.

    Digits are trained in batches of 64, 256 and 1,024 for 20 epochs each, and a small transformer on text for 40 steps
    of 64 sequences. Each rule has the best of at least five learning rates, which is never the first or the last. The
    table also shows both losses and both learning rates.
    """
    for problem in LOWEST_TRIED:
        for rule, plain in (("LARS", "SGD"), ("LAMB", "Adam")):
            (rate, loss), (plain_rate, plain_loss) = (_best(run, problem, one) for one in (rule, plain))
            yield {
                "problem": problem, "rule": rule, "ratio": loss / plain_loss, "loss": loss, "loss without": plain_loss,
                "rate": rate, "rate without": plain_rate,
            }  # fmt: skip


def _best(run, problem, rule):
    """Return (best learning rate, its held-out loss). Five learning rates are tried, and more as long as the best is
    the lowest or the highest.
    """
    lowest = LOWEST_TRIED[problem][rule]
    losses = {rate: _held_out(run, problem, rule, rate) for rate in (lowest * 2**notch for notch in range(5))}
    while (best := min(losses, key=losses.get)) in (min(losses), max(losses)):
        beyond = best / 2 if best == min(losses) else best * 2
        losses[beyond] = _held_out(run, problem, rule, beyond)
    return best, losses[best]


def _held_out(run, problem, rule, rate):
    """Return the held-out loss, or infinity if training fails."""
    batch = int(problem.split(", ", 1)[1].replace(",", ""))
    text = {"workload": "text", "width": 16, "heads": 2, "depth": 1, "steps": 40}
    values = text if problem.startswith("text") else {"hidden": "32", "epochs": 20}
    done = run(
        **values, **RULES[rule], algorithm="lamb", workers=1, batch=batch, base_batch=batch, learning_rate=rate,
        warm_up="none", evaluations=2,
    )  # fmt: skip
    return np.inf if (loss := done.summary["held_out_loss"]) is None else loss


def loss_ratios(rows, rule):
    return column(rows, "ratio", rule=rule)


def geometric_mean(ratios):
    return float(np.exp(np.mean(np.log(ratios))))


@figure(
    "By how much do the steps of a model's matrices differ, relative to their weights?",
    source="You, Gitman & Ginsburg, 2017",
    claims={
        "on digits SGD's two relative steps differ by less than a factor of 4": lambda rows: (
            spread_of(rows, "digits, SGD") < 4
        ),
        "in the transformer SGD's relative steps differ by more than a factor of 100": lambda rows: (
            spread_of(rows, "text, SGD") > 100
        ),
        "in the transformer Adam's relative steps differ by a factor of 10 to 30": lambda rows: (
            10 < spread_of(rows, "text, Adam") < 30
        ),
    },
    look=Look("matrix", ("step",), "of", log="y", title="step relative to weights, divided by the model's smallest"),
)
def steps_of_matrices(run):
    """The first step of SGD and of Adam for each matrix of a small dense model and a small transformer.

    A matrix's relative step is the length of its step divided by the length of its weights. The smallest one of each
    model and rule is set to 1. With LARS or LAMB all would be 1. The last matrix computes the output.
    """
    for name, values in {
        "digits": {"hidden": "32", "batch": 256},
        "text": {"workload": "text", "width": 16, "heads": 2, "depth": 1, "batch": 64},
    }.items():
        lengths = []
        run(
            **values, algorithm="sgd", workers=1, steps=1, learning_rate=0.1, evaluations=1,
            worker_override=partial(_measure_matrices, lengths),
        )  # fmt: skip
        for rule, steps in zip(("SGD", "Adam"), np.transpose(lengths), strict=True):
            for matrix, step in enumerate(steps / steps.min(), 1):
                yield {"of": f"{name}, {rule}", "matrix": matrix, "step": float(step)}


def _measure_matrices(lengths, comm, task, s):
    """Append to `lengths` each matrix's relative steps with SGD and with Adam, whose first step is sign(g)."""
    w = task.start()
    for _ in task.steps():
        g = task.gradient(w)[1]
        for place, shape in task.tensors:
            if len(shape) > 1:
                of_weights = np.linalg.norm(w[place])
                lengths.append([np.linalg.norm(one[place]) / of_weights for one in (g, np.sign(g))])
        task.report(w)


def spread_of(rows, of):
    return max(column(rows, "step", of=of))


@figure(
    "Does it matter how training reaches a rate 16 times as large?",
    source="Goyal et al., 2017, table 1 and figure 2",
    claims={
        "with a gradual warm-up the median error is less than 3 points above that of the small batch": lambda rows: (
            value(rows, "median", warm_up="gradual") < 3 + value(rows, "error", warm_up="small batch")
        ),
        "the median error of a constant warm-up is above that of a gradual one": lambda rows: (
            value(rows, "median", warm_up="constant") > value(rows, "median", warm_up="gradual")
        ),
        "the jump of a constant warm-up drives the loss to more than twice the highest of the others": lambda rows: (
            value(rows, "worst", warm_up="constant")
            > 2 * max(value(rows, "worst", warm_up=other) for other in ("gradual", "none"))
        ),
    },
    look=Look("warm_up", ("error", "median"), kind="bar", title="held-out error after 20 epochs, percent"),
)
def warm_up(run):
    """Eight workers with 32 images each, compared with one worker with 16 images, over 20 epochs of digits with a
    warm-up over five. Values are means of six seeds; the small batch has one seed.

    `worst` is the median over the six of a run's highest mini-batch loss. The order is that of the paper, whose errors
    on ImageNet are 24.84 % without warm-up, 25.88 with a constant one, 23.74 with a gradual one and 23.60 with the
    small batch; the jump is rougher here. With every kind of start some runs diverge for good, most often with a
    constant warm-up, which is worse than none under most seeds, but not under all.
    """
    values = {"algorithm": "large_batch", "base_batch": 16, "learning_rate": 0.02, "milestones": "15", "epochs": 20}
    for kind in ("none", "constant", "gradual"):
        yield {"warm_up": kind, **_of_six(_ended(run, 6, workers=8, batch=32, warm_up=kind, **values))}
    yield {"warm_up": "small batch", **_of_six(_ended(run, 1, workers=1, batch=16, **values))}


def _of_six(ended):
    """Return the mean error over runs, and the medians over runs of the error and of the highest mini-batch loss.

    A diverged run dominates a mean, but hardly moves a median.
    """
    error, _, worst = np.median(ended, axis=0)
    return {"error": float(ended[:, 0].mean()), "median": float(error), "worst": float(worst)}


@figure(
    "Can RMSprop carry a very large batch through the first epochs?",
    source="Akiba, Suzuki & Fukuda, 2017",
    claims={
        "after three epochs RMSprop's loss is over a quarter below that of either other start": lambda rows: all(
            ratio(rows, "after 3 epochs", start=("RMSprop", start)) < 0.75 for start in ("none", "gradual")
        ),
        "RMSprop ends at under half the gradual warm-up's loss, and at under twice the sudden start's": lambda rows: (
            ratio(rows, "after 20 epochs", start=("RMSprop", "gradual")) < 0.5
            and ratio(rows, "after 20 epochs", start=("RMSprop", "none")) < 2
        ),
    },
    look=Look("start", ("after 3 epochs", "after 20 epochs"), kind="bar", log="y", title="training loss"),
)
def rmsprop_start(run):
    """Training on digits in batches of 512, a third of all images, at 32 times the base learning rate. An epoch has two
    steps, and values are means of six seeds.

    The length of RMSprop's steps depends on its own learning rate, not on the slope; momentum SGD takes over around
    epoch 3. The gradual warm-up takes five epochs, as in its paper, which are ten steps here.
    """
    starts = {
        "none": {"algorithm": "large_batch", "warm_up": "none", "milestones": ""},
        "gradual": {"algorithm": "large_batch", "warm_up": "gradual", "milestones": ""},
        "RMSprop": {"algorithm": "rmsprop_warmup", "centre": 3, "period": 1},
    }
    for start, values in starts.items():
        done = [
            run(workers=1, batch=512, base_batch=16, learning_rate=0.01, epochs=20, seed=seed, evaluations=2, **values)
            for seed in range(6)
        ]
        losses = np.array([one.losses["loss"] for one in done])  # (seeds, steps), two steps an epoch
        yield {
            "start": start,
            "after 3 epochs": float(losses[:, 6:8].mean()),
            "after 20 epochs": float(losses[:, -2:].mean()),
        }


@figure(
    "Must the rate decay, or can the batch grow instead?",
    source="Smith, Kindermans, Ying & Le, 2018, figures 1 to 3",
    claims={
        "after epoch 10, hybrid and growing batches have losses within 25 % of a decaying rate's": lambda rows: all(
            np.allclose(_from_epoch_11(rows, other), _from_epoch_11(rows, "decay"), rtol=0.25)
            for other in ("hybrid", "grow")
        ),
        "decay, hybrid and growth end at less than a hundredth of the loss of their first epoch": lambda rows: all(
            ratio(rows, "loss", schedule=name, epoch=(EPOCHS - 1, 0)) < 1 / 100 for name in ("decay", "hybrid", "grow")
        ),
        "from decay to larger momentum, each schedule needs fewer updates than the one before": lambda rows: is_falling(
            [row["updates"] for row in rows if row["epoch"] == EPOCHS - 1 and row["schedule"] != "neither"]
        ),
        "growth takes about half the updates of decay, a larger first rate a quarter, and more momentum even fewer": (
            lambda rows: (
                2 * _updates(rows, "grow") < 1.1 * _updates(rows, "decay")
                and 4 * _updates(rows, "larger_rate") < 1.2 * _updates(rows, "decay")
                and 1.5 * _updates(rows, "larger_momentum") < _updates(rows, "larger_rate")
            )
        ),
        "if neither the rate falls nor the batch grows, the loss ends at under half that of decay, hybrid or growth": (
            lambda rows: all(
                ratio(rows, "loss", schedule=("neither", name), epoch=EPOCHS - 1) < 0.5
                for name in ("decay", "hybrid", "grow")
            )
        ),
        "in the first epoch the loss is highest with the larger momentum": lambda rows: (
            value(rows, "loss", schedule="larger_momentum", epoch=0)
            > 1.2 * max(row["loss"] for row in rows if row["epoch"] == 0 and row["schedule"] != "larger_momentum")
        ),
    },
    look=Look("epoch", ("loss",), "schedule", log="y", title="training loss"),
)
def growing_batch(run):
    """Five ways to halve the gradient noise at epochs 6, 10 and 14, on digits with an initial batch of 16. The control,
    `neither`, halves nothing. Values are means of two seeds.

    The noise, learning rate / (batch (1 - momentum)), is the same in all five at any time, so their curves over epochs
    nearly coincide. The exceptions are the first epochs of the last two, since large steps start badly and a long
    memory fills slowly, and the epoch after a change, in which a larger batch takes fewer steps. The batch stays below
    a tenth of the images (`largest`), as the paper advises.
    """
    for schedule in ("neither", "decay", "hybrid", "grow", "larger_rate", "larger_momentum"):
        how = (
            {"schedule": "decay", "milestones": ""}
            if schedule == "neither"
            else {"schedule": schedule, "milestones": "6,10,14"}
        )
        done = [
            run(
                **how, algorithm="batch_growth", workers=1, batch=16, learning_rate=0.03, factor=2,
                largest=8, epochs=EPOCHS, seed=seed, evaluations=2,
            )
            for seed in range(2)
        ]  # fmt: skip
        losses = np.mean([one.losses["loss"] for one in done], axis=0).reshape(EPOCHS, -1)  # (epochs, mini-batches)
        stepped = done[0].measurements("batch size")["step"]
        for epoch, loss in enumerate(losses.mean(axis=1)):
            updates = int(np.searchsorted(stepped, (epoch + 1) * losses.shape[1]))
            yield {"schedule": schedule, "epoch": epoch, "loss": float(loss), "updates": updates}


def _from_epoch_11(rows, schedule):
    return column(rows, "loss", schedule=schedule)[11:]


def at_the_same_rate(run, batch, base_batch=None):
    """Return the training losses of all steps of 20 epochs with this batch size, (steps,).

    The learning rate is scaled by batch / base_batch; without a `base_batch` it is not scaled.
    """
    rated = {"batch": batch, "base_batch": base_batch or batch}
    return run(**NESTEROV, **AT_ONCE, **rated, epochs=20, evaluations=2).losses["loss"]


def train_at_scaled_rate(run, batch, base_batch):
    """Return (error in percent, training loss) after 20 epochs. The learning rate is that of 16 images times batch /
    base_batch.
    """
    ended = _ended(run, 2, **NESTEROV, batch=batch, base_batch=base_batch, epochs=20, milestones="15,18")
    return ended.mean(axis=0)[:2].tolist()


def base_batch(rule, batch):
    """Return the base batch that scales the learning rate by this rule. The factor, batch / base batch, is k = batch /
    16 or, by the other rule, the square root of k.
    """
    return 16 if rule == "k times" else round(16 * (batch / 16) ** 0.5)


def _apart(losses):
    """Return the ratio of the highest of these losses to the lowest."""
    return max(losses) / min(losses)


def _updates(rows, schedule):
    return value(rows, "updates", schedule=schedule, epoch=EPOCHS - 1)


def _ended(run, seeds, **values):
    """Return an array (seeds, 3) with a row for each run: its error in percent, its training loss in the last epoch,
    and its highest mini-batch loss.
    """
    found = []
    for seed in range(seeds):
        done = run(seed=seed, evaluations=2, **values)
        loss, samples = done.losses["loss"], done.losses["samples"]
        last = samples > (1 - 1 / values["epochs"]) * samples.max()
        found.append((100 * (1 - done.summary["accuracy"]), loss[last].mean(), loss.max()))
    return np.array(found)
