"""Stochastic gradient descent: why step before all data have been seen, and how long a step may be."""

from math import inf, sqrt

import numpy as np

import algorithms
import kernels
from lessons.figure import Look, column, figure, interior, is_falling, is_rising, ratio, value

# one step for all the data, or many


IMAGES = 1437  # digits to train on
BATCHES = {16: (0.1, 0.4, 1.6), 128: (0.2, 0.8, 3.2), IMAGES: (0.2, 0.8, 3.2)}  # rates that are tried for each
PASSES = 1, 2, 4, 8, 16


@figure(
    "What is a step along the whole gradient worth?",
    source="Bottou & Bousquet, NIPS 2007; Bottou, Curtis & Nocedal, 2018",
    claims={
        "after two passes, batches of 16 have a lower loss than the full batch after sixteen": lambda rows: (
            value(rows, "loss", batch=16, passes=2) < value(rows, "loss", batch=IMAGES, passes=16)
        ),
        "up to eight passes, batches of 16 and of 128 have a lower loss than the full batch": lambda rows: all(
            value(rows, "loss", batch=batch, passes=passes) < value(rows, "loss", batch=IMAGES, passes=passes)
            for passes in PASSES[:4]
            for batch in (16, 128)
        ),
        "for each batch size, the middle of the three rates tried is best": lambda rows: all(
            row["rate"] == BATCHES[row["batch"]][1] for row in rows
        ),
    },
    look=Look("passes", ("loss",), "batch", log="xy", title="held-out loss"),
)
def one_step_or_many(run):
    """Held-out loss on digits after a number of passes over the images. Each batch size has the best of three learning
    rates, a factor of four apart. The largest batch, of 1,437 images, is the whole data set: it takes one step per
    pass.
    """
    for batch, rates in BATCHES.items():
        tried = {
            rate: run(
                algorithm="sgd", workers=1, hidden="32", batch=batch, epochs=PASSES[-1], learning_rate=rate,
                evaluations=10_000,
            ).evaluations
            for rate in rates
        }  # fmt: skip
        best = interior({rate: np.mean(done["loss"][-len(done["loss"]) // 4 :]) for rate, done in tried.items()})
        done = tried[best]
        for passes in PASSES:
            last = np.searchsorted(done["samples"], passes * IMAGES, side="right") - 1
            yield {"batch": batch, "passes": passes, "loss": float(done["loss"][last]), "rate": best}


# the longest step

MOMENTA = 0.0, 0.3, 0.6, 0.9
EDGES = {"heavy ball": lambda mu: 2 * (1 + mu), "Nesterov": lambda mu: 2 * (1 + mu) / (1 + 2 * mu)}  # at curvature 1


@figure(
    "How long may a step be?",
    source="Polyak, 1964; Nesterov, 1983",
    claims={
        "without momentum the longest stable rate is 2 divided by the largest curvature": lambda rows: all(
            abs(row["rate"] - 2) < 0.02 for row in rows if row["momentum"] == 0
        ),
        "heavy ball and Nesterov diverge where theory says, within 1 %": lambda rows: all(
            abs(row["rate"] / row["theory"] - 1) < 0.01 for row in rows
        ),
        "with more momentum heavy ball tolerates a larger rate, and Nesterov a smaller one": lambda rows: (
            is_rising(column(rows, "rate", method="heavy ball")) and is_falling(column(rows, "rate", method="Nesterov"))
        ),
    },
    look=Look("momentum", ("rate",), "method", theory=("theory",), title="largest stable rate at curvature 1"),
)
def longest_step(run):
    """The learning rate above which the loss on a bowl without noise does not fall in 400 steps, found by bisection.
    The largest curvature is 1. The grey lines are 2 (1 + momentum), and the same divided by 1 + 2 momentum.
    """
    for method, edge in EDGES.items():
        algorithm = {"heavy ball": "momentum", "Nesterov": "nesterov"}[method]
        for mu in MOMENTA:
            low, high = 0.5, 6.0
            while high - low > 0.004:
                rate = (low + high) / 2
                low, high = (rate, high) if falls(run, algorithm, rate, mu) else (low, rate)
            yield {"method": method, "momentum": mu, "rate": (low + high) / 2, "theory": edge(mu)}


def falls(run, algorithm, rate, mu):
    """Return whether the loss is lower after 400 steps on a bowl without noise than at the start."""
    loss = run(
        algorithm=algorithm, workers=1, batch=1, steps=400, evaluations=2, precision="float64", learning_rate=rate,
        momentum=mu, workload="quadratic", dimension=2, condition=2, points=64,
    ).evaluations["loss"]  # fmt: skip
    return bool(loss[-1] < loss[0])


# noise

NOISY = {
    "workload": "quadratic", "condition": 10, "dimension": 400, "noise": 1, "points": 20_000, "workers": 1, "batch": 1,
}  # fmt: skip
CURVATURES = np.geomspace(1, 1 / NOISY["condition"], NOISY["dimension"])
FLAT = CURVATURES[-1]
STEPS = 2048


def expected_loss(rates) -> np.ndarray:
    """Return the loss above the optimum that theory predicts after each step with these learning rates, (steps,).

    A step leaves 1 - rate h of the distance from the optimum along an axis of curvature h, and adds the noise of the
    gradient, h times that of a sample's own optimum.
    """
    square, found = np.ones(NOISY["dimension"]), []  # of the distance, expected, for each axis
    for rate in rates:
        square = (1 - rate * CURVATURES) ** 2 * square + (rate * CURVATURES * NOISY["noise"]) ** 2
        found.append(CURVATURES @ square / 2)
    return np.array(found)


def floor(rate: float) -> float:
    """Return the loss above the optimum at which SGD with a constant learning rate settles."""
    return float((rate * CURVATURES**2 * NOISY["noise"] ** 2 / (2 - rate * CURVATURES)).sum() / 2)


FALLS = "1 / root of t"
COURSES = {"1": (1.0, 0.0), "0.1": (0.1, 0.0), "0.01": (0.01, 0.0), FALLS: (1.0, 0.5)}  # rate, decay


@figure(
    "At what loss does a constant rate settle?",
    source="Robbins & Monro, 1951; Bottou, Curtis & Nocedal, 2018",
    claims={
        "of the constant rates, first the largest has the lowest loss, then the middle one, then the smallest": (
            lambda rows: all(first(rows, steps) == rate for steps, rate in ((4, "1"), (64, "0.1"), (STEPS, "0.01")))
        ),
        "from 8 to 256 steps the falling rate is ahead of every constant one": lambda rows: all(
            value(rows, "loss", steps=steps, rate=FALLS) == min(column(rows, "loss", steps=steps))
            for steps in (8, 16, 32, 64, 128, 256)
        ),
        "the falling rate's loss keeps falling, though the squares of its rates add up to infinity": lambda rows: (
            ratio(rows, "loss", rate=FALLS, steps=(STEPS, STEPS // 8)) < 0.6
        ),
        "the loss follows theory all the way, within 60 % at each point and 12 % on average": lambda rows: (
            max(misses(rows)) < 0.6 and np.mean(misses(rows)) < 0.12
        ),
    },
    look=Look("steps", ("loss",), "rate", theory=("theory",), log="xy", title="loss above the optimum"),
)
def where_it_stalls(run):
    """SGD on a noisy bowl of 400 coordinates, with one sample per step and curvatures from 1 to a tenth."""
    for name, (rate, decay) in COURSES.items():
        done = run(
            algorithm="polyak", average="exponential", weight=1, after=0, decay=decay, learning_rate=rate, steps=STEPS,
            evaluations=10_000, **NOISY,
        ).evaluations  # fmt: skip
        theory = expected_loss(rate * np.arange(1, STEPS + 1) ** -decay)
        for steps in 2 ** np.arange(STEPS.bit_length()):
            loss = float(done["loss"][np.searchsorted(done["samples"], steps)])
            yield {"rate": name, "steps": int(steps), "loss": loss, "theory": float(theory[steps - 1])}


def misses(rows):
    """Return the relative distance of each loss from the one that theory predicts."""
    return [abs(row["loss"] / row["theory"] - 1) for row in rows]


def first(rows, steps):
    """Return the constant learning rate with the lowest loss after this many steps."""
    return min((row for row in rows if row["steps"] == steps and row["rate"] != FALLS), key=lambda row: row["loss"])[
        "rate"
    ]


GUESSES = 0.125, 0.25, 0.5, 1.0, 2.0, 4.0
HALF = 1250  # of 2,500 steps


@figure(
    "What if the curvature is not what you thought?",
    source="Polyak & Juditsky, 1992; Nemirovski, Juditsky, Lan & Shapiro, 2009",
    claims={
        "the losses of the mean model at any two guesses differ by less than a quarter": lambda rows: (
            max(column(rows, "mean")) < 1.25 * min(column(rows, "mean"))
        ),
        "at a guess of a half, the 1 / t rate is about as good as the mean model": lambda rows: (
            0.75 < value(rows, "1 / t", guess=0.5) / value(rows, "mean", guess=0.5) < 1.2
        ),
        "at the 1 / t rate, a guess of an eighth ends at over eight times the loss of a guess of a half, and a guess "
        "of four at over three times": (
            lambda rows: ratio(rows, "1 / t", guess=(0.125, 0.5)) > 8 and ratio(rows, "1 / t", guess=(4, 0.5)) > 3
        ),
        "every loss agrees with theory within a third": lambda rows: all(
            abs(row[name] / row[f"{name}, theory"] - 1) < 1 / 3 for row in rows for name in ("1 / t", "mean")
        ),
    },
    look=Look(
        "guess", ("1 / t", "mean"), theory=("1 / t, theory", "mean, theory"), log="xy", title="loss above the optimum"
    ),
)
def wrong_curvature(run):
    """SGD on the noisy bowl for 2,500 steps, at learning rates that follow from a guess. No learning rate is above 1.

    `1 / t`: the last model if the learning rate is guess / t, divided by the smallest curvature; theory recommends a
    guess slightly above a half. `mean`: the mean of the models of the second half, at a constant learning rate of a
    quarter of the guess.
    """
    for guess in GUESSES:

        def falling(comm, task, s, guess=guess):
            w = task.start()
            for step in task.steps():
                kernels.sgd(w, task.gradient(w)[1], tame(guess, step + 1))
                task.report(w)
            return w

        values = {"steps": 2 * HALF, "evaluations": 2, **NOISY}
        alone = run(worker_override=falling, algorithm="sgd", learning_rate=1, **values)
        rate = min(1.0, guess / 4)
        mean = run(algorithm="polyak", after=HALF, learning_rate=rate, **values)
        yield {
            "guess": guess,
            "1 / t": alone.summary["held_out_loss"],
            "mean": mean.summary["held_out_loss"],
            "1 / t, theory": float(expected_loss(tame(guess, t) for t in range(1, 2 * HALF + 1))[-1]),
            "mean, theory": mean_of(rate, HALF),
        }


def tame(guess, t):
    """Return the learning rate of step t: `guess` / (t * the smallest curvature), but 1 at most."""
    return min(1.0, guess / (FLAT * t))


def mean_of(rate, models):
    """Return the expected loss above the optimum of the mean of `models` consecutive models, once SGD is stationary."""
    left = 1 - rate * CURVATURES  # correlation of a model with the next
    variance = rate * CURVATURES * NOISY["noise"] ** 2 / (2 - rate * CURVATURES)
    mean = variance / models * ((1 + left) / (1 - left) - 2 * left * (1 - left**models) / (models * (1 - left) ** 2))
    return float(CURVATURES @ mean / 2)


@figure(
    "Is the last model the best one to ship?",
    source="Polyak & Juditsky, 1992; Ruppert, 1988",
    claims={
        "the larger the rate, the farther from the optimum the last model ends": lambda rows: is_rising(
            column(rows, "loss", ships="last model")
        ),
        "at every rate the mean of all models since step 500 has under a tenth of the last model's loss": lambda rows: (
            all(
                mean < last / 10
                for mean, last in zip(
                    column(rows, "loss", ships="mean"), column(rows, "loss", ships="last model"), strict=True
                )
            )
        ),
        "the loss of the mean hardly depends on the rate": lambda rows: (
            max(column(rows, "loss", ships="mean")) < 1.2 * min(column(rows, "loss", ships="mean"))
        ),
        "the loss of the mean is within a third of the theory's: the sum of the curvatures over 2T, for T models": (
            lambda rows: all(abs(row["loss"] / row["theory"] - 1) < 1 / 3 for row in rows if row["ships"] == "mean")
        ),
        "the loss of an exponential average lies between that of the mean and that of the last model": lambda rows: all(
            value(rows, "loss", ships="mean", rate=rate)
            < value(rows, "loss", ships="exponential", rate=rate)
            < value(rows, "loss", ships="last model", rate=rate)
            for rate in column(rows, "rate", ships="mean")
        ),
    },
    look=Look("rate", ("loss",), "ships", theory=("theory",), log="xy", title="loss above the optimum"),
)
def time_average(run):
    """SGD on a noisy bowl of 400 coordinates, for 2,500 steps with one sample each at a constant learning rate. `mean`:
    the mean of all models since step 500; `exponential`: an average in which the newest model has a weight of 0.005.
    """
    steps, after, condition, dimension = 2500, 500, 10, 400
    curvatures = np.geomspace(1, 1 / condition, dimension).sum()
    bowl = {"workload": "quadratic", "condition": condition, "dimension": dimension, "noise": 1, "points": 20_000}
    ships = {
        "last model": {"algorithm": "sgd"},
        "mean": {"algorithm": "polyak", "after": after},
        "exponential": {"algorithm": "polyak", "after": after, "average": "exponential", "weight": 0.005},
    }
    for rate in (0.05, 0.2, 0.5, 1.0):
        for what, values in ships.items():
            done = run(learning_rate=rate, workers=1, batch=1, steps=steps, evaluations=10, **bowl, **values)
            yield {
                "rate": rate,
                "ships": what,
                "loss": done.summary["held_out_loss"],
                "theory": float(curvatures / (2 * (steps - after))),
            }


# valleys

ADAPTIVE = "adagrad", "adam"
RULES = ("sgd", "momentum", "nesterov", "adagrad", "adam")


@figure(
    "Which update rules make progress in a narrow valley?",
    source="Polyak, 1964; Nesterov, 1983; Duchi, Hazan & Singer, 2011; Kingma & Ba, 2015",
    claims={
        "from condition 100 to 1,000 SGD loses more than three quarters of its progress": lambda rows: (
            ratio(rows, "progress", rule="sgd", condition=(1000, 100)) < 0.25
        ),
        "in every valley Nesterov makes over 1.5 times SGD's progress, and heavy ball even more": lambda rows: all(
            value(rows, "progress", rule="momentum", condition=narrow)
            > value(rows, "progress", rule="nesterov", condition=narrow)
            > 1.5 * value(rows, "progress", rule="sgd", condition=narrow)
            for narrow in (10, 100, 1000)
        ),
        "the condition makes no difference to the adaptive rules": lambda rows: all(
            np.ptp(column(rows, "progress", rule=rule)) < 0.01 for rule in ADAPTIVE
        ),
    },
    look=Look("condition", ("progress",), "rule", log="xy", title="powers of ten by which the loss fell in 400 steps"),
)
def rules_on_a_bowl(run):
    """Optimizers on a noise-free bowl whose valley gets narrower and narrower. Progress is the number of powers of ten
    by which the loss falls in 400 steps.

    SGD and both kinds of momentum use the learning rates that are best in theory for each bowl. Each adaptive rule uses
    one learning rate for all; the axes of this bowl are the coordinates, the case that adaptive rules are made for.
    """
    for condition in (10, 100, 1000):
        root = sqrt(condition)
        best = {
            "sgd": {"learning_rate": 2 / (1 + 1 / condition)},
            "momentum": {"learning_rate": 4 / (1 + 1 / root) ** 2, "momentum": ((root - 1) / (root + 1)) ** 2},
            "nesterov": {"learning_rate": 1, "momentum": (root - 1) / (root + 1)},
            "adagrad": {"learning_rate": 0.5},
            "adam": {"learning_rate": 0.1},
        }
        bowl = {"workload": "quadratic", "condition": condition, "dimension": 20, "points": 64}
        for rule in RULES:
            loss = run(
                algorithm=rule, workers=1, batch=1, steps=400, evaluations=2, precision="float64", **bowl, **best[rule]
            ).evaluations["loss"]
            yield {"condition": condition, "rule": rule, "progress": float(np.log10(loss[0] / loss[-1]))}


# rates for each weight

TURNED = {
    "sgd": (2 / (1 + 1 / 100),),
    "momentum": (4 / (1 + 1 / 10) ** 2,),
    "adagrad": (0.125, 0.5, 2.0, 8.0, 32.0),
    "adam": (0.008, 0.05, 0.3, 1.8, 10.8),
}  # rates tried; those of the first two are the best in theory
LOWER = 1e-6  # of the loss at the start
CONDITION, MOST = 100, 800  # of the valley; steps
NARROW = "adam, condition 10,000"


@figure(
    "What if the valley does not run along a coordinate?",
    source="Duchi, Hazan & Singer, 2011",
    claims={
        "rotating the valley changes the number of steps of SGD and heavy ball by at most one": lambda rows: all(
            abs(row["along a coordinate"] - row["rotated"]) <= 1 for row in rows if row["rule"] in ("sgd", "momentum")
        ),
        "along a coordinate AdaGrad is the fastest by far; in the rotated valley it takes over ten times the steps": (
            lambda rows: (
                3 * value(rows, "along a coordinate", rule="adagrad") < min(column(rows, "rotated"))
                and value(rows, "rotated", rule="adagrad") > 10 * value(rows, "along a coordinate", rule="adagrad")
            )
        ),
        "in the rotated valley, heavy ball is over twice as fast as either adaptive rule": lambda rows: all(
            ratio(rows, "rotated", rule=(rule, "momentum")) > 2 for rule in ADAPTIVE
        ),
        "in the rotated valley, Adam takes as many steps as along a coordinate, within a third": (
            lambda rows: 2 / 3 < _lost(rows, "adam") < 4 / 3
        ),
        "rotating a valley of condition 10,000 more than triples Adam's steps": lambda rows: _lost(rows, NARROW) > 3,
    },
    look=Look(
        "rule", ("along a coordinate", "rotated"), kind="bar", title="steps until the loss has fallen a millionfold"
    ),
)
def turned_valley(run):
    """Optimizers on a bowl of condition number 100 without noise, from a random start. The axes of the bowl are the
    coordinates, or are rotated at random.

    SGD and heavy ball have the learning rates that are best in theory; AdaGrad and Adam have the best of five, a factor
    of four or six apart. The last bars are Adam's in a valley of condition number 10,000.
    """
    dice = np.random.default_rng(run.seed)
    start, rotation = dice.standard_normal(20), np.linalg.qr(dice.standard_normal((20, 20)))[0]
    for rule, rates in TURNED.items():
        row = {"rule": rule}
        for name, axes in (("along a coordinate", np.eye(20)), ("rotated", rotation)):
            tried = {rate: steps_down(run, rule, rate, start, axes) for rate in rates}
            row[name] = min(tried.values())
            if rule == "adam":
                interior(tried)  # AdaGrad is hardly affected: however large its rate, the first steps divide it away
        yield row
    row = {"rule": NARROW}
    for name, axes, rates in (("along a coordinate", np.eye(20), (0.3,)), ("rotated", rotation, (0.3, 1.8, 10.8))):
        row[name] = min(steps_down(run, "adam", rate, start, axes, 10_000, 2000) for rate in rates)
    yield row


def _lost(rows, rule):
    """Return the ratio of an optimizer's steps in the rotated valley to its steps in the valley along the
    coordinates.
    """
    return value(rows, "rotated", rule=rule) / value(rows, "along a coordinate", rule=rule)


def steps_down(run, rule, rate, start, rotation, condition=CONDITION, most=MOST):
    """Return how many steps a rule takes until the loss has fallen by a factor of a million; infinite if more than
    `most`.
    """
    worker = algorithms.find(rule).worker

    def play(comm, task, s):
        return worker(comm, Turned(task, start, rotation), s)

    momentum = {"momentum": (9 / 11) ** 2} if rule == "momentum" else {}
    done = run(
        worker_override=play, algorithm=rule, workers=1, batch=1, steps=most, evaluations=10_000, precision="float64",
        learning_rate=rate, workload="quadratic", condition=condition, dimension=20, points=64, **momentum,
    )  # fmt: skip
    reached = np.flatnonzero(done.evaluations["loss"] < LOWER * (np.geomspace(1, 1 / condition, 20) @ start**2 / 2))
    return int(done.evaluations["samples"][reached[0]]) if len(reached) else inf


class Turned:
    """A task whose parameters are rotated, v = rotation w, and which starts from another point."""

    def __init__(self, task, start, rotation):
        self.task, self.origin, self.rotation = task, start, rotation
        self.steps, self.is_usable, self.store = task.steps, task.is_usable, task.store

    def start(self):
        return self.rotation @ self.origin

    def gradient(self, v):
        loss, g = self.task.gradient(self.rotation.T @ v)
        return loss, self.rotation @ g

    def report(self, v):
        self.task.report(self.rotation.T @ v)


RARE = {"workload": "sparse", "batch": 4, "rows": 2048, "features": 1000, "nonzeros": 16, "judged": "gap", "epochs": 2}
SKEWS = {"equally frequent": 0, "as words are": 1}
FALLING = {"average": "exponential", "weight": 1, "after": 0, "decay": 0.5}  # SGD with rate / root of t
METHODS = {
    "sgd": ("sgd", {}, (2, 4, 8, 16, 32)),
    "sgd, falling rate": ("polyak", FALLING, (32, 64, 128, 256)),
    "adagrad": ("adagrad", {}, (0.4, 0.8, 1.6, 3.2)),
    "adam": ("adam", {}, (0.01, 0.02, 0.04, 0.08)),
}


@figure(
    "When does it help to give every weight its own rate?",
    source="Duchi, Hazan & Singer, 2011",
    claims={
        "if some features are rare AdaGrad's loss is lowest; if none is, no rule ends over a tenth below AdaGrad": (
            lambda rows: all(
                min(column(rows, "loss", features=features))
                >= share * value(rows, "loss", features=features, rule="adagrad")
                for features, share in (("as words are", 1), ("equally frequent", 0.9))
            )
        ),
        "if features are as uneven as words, either form of SGD ends at over 1.25 times AdaGrad's loss": (
            lambda rows: all(
                ratio(rows, "loss", features="as words are", rule=(rule, "adagrad")) > 1.25
                for rule in ("sgd", "sgd, falling rate")
            )
        ),
    },
    look=Look("features", ("loss",), "rule", kind="bar", title="training loss above the minimum"),
)
def rare_features(run):
    """Logistic regression on rows with 16 of 1,000 features, trained for two passes in batches of four. Either all
    features are equally frequent, or their frequencies differ as those of words do: the tenth is a tenth as frequent as
    the first.

    Each rule has the best of four or five learning rates, a factor of two apart, for each data set.
    """
    for features, skew in SKEWS.items():
        for rule, (algorithm, values, rates) in METHODS.items():
            tried = {
                rate: run(
                    algorithm=algorithm, learning_rate=rate, skew=skew, workers=1, evaluations=2, **RARE, **values
                ).summary["held_out_loss"]
                for rate in rates
            }
            best = interior({rate: inf if loss is None else loss for rate, loss in tried.items()})
            yield {"features": features, "rule": rule, "loss": tried[best]}
