"""Averaging: what workers gain and lose that train on their own and meet only now and then."""

from math import inf, log10

import numpy as np

import kernels
import workloads
from lessons.figure import Look, column, figure, interior, is_falling, is_rising, ratio, value

SMALL = {"hidden": "32"}  # the digits' model: 2,410 parameters
NOISY = {
    "workload": "quadratic", "condition": 4, "noise": 3.0, "dimension": 400, "points": 20_000,
    "batch": 1, "steps": 20, "learning_rate": 0.1, "evaluations": 2,
}  # fmt: skip
NO_NETWORK = {"network": "ideal", "device": "1e9:1e15:0"}  # only gradients take time


@figure(
    "Can models that were trained apart be averaged at the end?",
    source="Zinkevich, Weimer, Smola & Li, 2010",
    claims={
        "the loss is what theory says, bias + variance / N, to within a sixth": lambda rows: all(
            abs(row["loss"] / row["theory"] - 1) < 1 / 6 for row in rows
        ),
        "ten workers remove most of the variance, and ten times as many little more": lambda rows: (
            value(rows, "loss", workers=1) - value(rows, "loss", workers=10)
            > 5 * (value(rows, "loss", workers=10) - value(rows, "loss", workers=100))
        ),
        "the bias stays, however many workers there are": lambda rows: (
            value(rows, "loss", workers=100) > 0.95 * value(rows, "bias", workers=100)
        ),
    },
    look=Look("workers", ("loss",), theory=("theory", "bias"), log="x", title="loss of the average"),
)
def one_average(run):
    """A bowl of 400 coordinates, 20 noisy steps of every worker alone, one average at the end.

    The bias is how far even a worker without noise would still have to go; only more steps help against that. The
    paper's picture, on e-mail spam, has the same shape: much is gained from 1 to 10 machines, from 10 to 100 little.
    """
    steps, rate, noise = (NOISY[name] for name in ("steps", "learning_rate", "noise"))
    h = np.geomspace(1, 1 / NOISY["condition"], NOISY["dimension"])
    left = (1 - rate * h) ** steps
    bias = float(h @ left**2 / 2)
    variance = float(h @ (rate * h * noise**2 / (2 - rate * h) * (1 - left**2)) / 2)
    return [
        {"workers": workers, "loss": once_averaged(run, workers), "theory": bias + variance / workers, "bias": bias}
        for workers in (1, 3, 10, 30, 100)
    ]


def once_averaged(run, workers):
    """The loss of the average of so many workers, each of them alone in the noisy bowl until the end."""
    return run(algorithm="one_shot", workers=workers, **NOISY).summary["held_out_loss"]


@figure(
    "Does it matter for an average where the networks began?",
    source="Zinkevich et al., 2010, on convex problems; the barrier is ours",
    claims={
        "between networks with one start the loss is nowhere higher than at the worse end": lambda rows: (
            max(_line(rows, "the same")) <= max(_ends(rows, "the same")) * 1.01
        ),
        "and their mean is better than the two are on average": lambda rows: (
            value(rows, "loss", starts="the same", along=0.5) < np.mean(_ends(rows, "the same"))
        ),
        "half way between networks with two starts it is nearly twice as high or more": lambda rows: (
            value(rows, "loss", starts="different", along=0.5) > 1.8 * max(_ends(rows, "different"))
        ),
    },
    look=Look("along", ("loss",), "starts", title="held-out loss"),
)
def two_starts(run):
    """Digits; held-out loss along the line from one trained network to another, which saw other images.

    Hidden neurons can be numbered in any order. Networks from two starts have usually chosen two; their mean mixes
    neurons that have nothing to do with each other.
    """
    digits = workloads.find("digits")
    problem = digits.build(digits.Settings(**SMALL))
    values = {"batch": 8, "steps": 800, "learning_rate": 0.2, "evaluations": 2, **SMALL}
    pair = {"algorithm": "one_shot", "workers": 2, **values}
    mean = run(**pair).parameters
    first, other = (run(worker_override=_alone, **pair, **start).parameters for start in ({}, {"seed": 1}))
    for starts, end in (("the same", 2 * mean - first), ("different", other)):
        for along in (0.0, 0.25, 0.5, 0.75, 1.0):
            loss, accuracy = problem.evaluate((1 - along) * first + along * end)
            yield {"starts": starts, "along": along, "loss": loss, "accuracy": accuracy}


def _alone(comm, task, s):
    """Train like a worker of one-shot averaging that averages with nobody; ship what the first of them has."""
    w = task.start()  # (d,)
    for _ in task.steps():
        kernels.sgd(w, task.gradient(w)[1], s.learning_rate)
    if comm.rank == 0:
        task.report(w)
    return w


def _line(rows, starts):
    return column(rows, "loss", starts=starts)


def _ends(rows, starts):
    return [_line(rows, starts)[0], _line(rows, starts)[-1]]


@figure(
    "Do workers that average their models keep up with one worker that sees all the data?",
    source="Chen & Huo, 2016; Su & Chen, 2015",
    claims={
        "with model averaging, every doubling of the workers ends higher": lambda rows: is_rising(
            column(rows, "loss", method="model averaging")
        ),
        "16 of them end several times as high as one": lambda rows: (
            ratio(rows, "loss", method="model averaging", workers=(16, 1)) > 4
        ),
        "block momentum of 1 - 1/N keeps them near the single worker": lambda rows: (
            max(column(rows, "loss", method="BMUF")) < 2 * value(rows, "loss", method="BMUF", workers=1)
        ),
    },
    look=Look("workers", ("loss",), "method", log="xy", title="held-out loss"),
)
def more_workers(run):
    """Digits, 16 epochs whatever the number of workers, meetings every two mini-batches of 16 images.

    The images are shared, so each of N workers takes an N-th of the steps, and an average moves as far as one of them.
    The filter takes about N blocks to fill and has 40 of them with 16 workers; with fewer blocks it would bend, too.
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


def sharing(run, algorithm, workers):
    """What becomes of 16 epochs that so many workers share."""
    values = {"batch": 16, "epochs": 16, "period": 2, "learning_rate": 0.06, "evaluations": 2, **SMALL}
    return run(algorithm=algorithm, workers=workers, **values).summary


RATES = (0.06, 0.125, 0.25, 0.5, 1.0, 2.0)


def _lowest(rows, method):
    return min(column(rows, "loss", method=method))


@figure(
    "Would averages keep up if only the rate were larger?",
    source="Chen & Huo, 2016; the question is every student's",
    claims={
        "at a small rate, eight averaged workers end at more than three times the loss of one": lambda rows: all(
            ratio(rows, "loss", method=("averaging", "one worker"), rate=rate) > 3 for rate in (0.06, 0.125)
        ),
        "averaging keeps gaining up to a rate of 1": lambda rows: (
            ratio(rows, "loss", method="averaging", rate=(1.0, 0.25)) < 0.8
        ),
        "yet at its own best rate it still ends above one worker at its best": lambda rows: (
            _lowest(rows, "averaging") > _lowest(rows, "one worker")
        ),
        "block momentum ends below the best average, at a rate that suits one worker": lambda rows: (
            value(rows, "loss", method="block momentum", rate=0.5) < _lowest(rows, "averaging")
        ),
        "at a rate of 2 all three diverge": lambda rows: column(rows, "loss", rate=2.0) == [np.inf] * 3,
    },
    look=Look("rate", ("loss",), "method", log="xy", title="held-out loss"),
)
def best_rate(run):
    """Digits, six epochs: one worker with all the images, or eight that share them and meet every four steps.

    Averages move an eighth as far per image; a larger rate would make up for that if the loss were nowhere steep.
    Block momentum leaves the steps as short as they are and makes more of their mean. With the smallest rates it is
    late: its filter has 17 blocks, and takes about eight to fill. A loss counts as infinite where the rate throws the
    training out: it ends more than twice as high as with a smaller rate, and how high, the last bit decides. A rate of
    1 throws one worker out under four seeds of five. A point is missing where one seed or more is thrown out.
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


@figure(
    "Do natural gradients let workers be averaged more boldly?",
    source="Povey, Zhang & Khudanpur, 2015",
    claims={
        "averaging eight costs plain gradients a quarter or more": lambda rows: (
            ratio(rows, "loss", gradient="plain", workers=(8, 1)) > 5 / 4
        ),
        "eight workers with natural gradients end well below eight with plain ones": lambda rows: (
            ratio(rows, "loss", gradient=("natural", "plain"), workers=8) < 0.85
        ),
    },
    look=Look("workers", ("loss",), "gradient", kind="bar"),
)
def natural_gradient_and_averaging(run):
    """Digits, 12 epochs of all workers together, an average every ten steps; held-out loss at the best of four rates.

    The more workers, the fewer steps has each, so each likes a larger rate; N times as large it would have to be to
    move as far per image as one. Plain SGD does not tolerate such rates where the loss is steep, and steepness is what
    the Fisher matrices remove.
    """
    for gradient, smoothing in (("natural", 4.0), ("plain", 1e12)):
        for workers, rates in TURNED.items():
            values = {"workers": workers, "smoothing": smoothing, "batch": 16, "epochs": 12, "hidden": "64"}
            tried = {
                rate: run(algorithm="natural_gradient", learning_rate=rate, evaluations=2, **values) for rate in rates
            }
            yield {"gradient": gradient, "workers": workers, "loss": at_best(tried)}


TURNED = {1: (0.25, 0.5, 1.0, 2.0), 8: (0.5, 1.0, 2.0, 4.0)}  # rates tried, by number of workers


def at_best(tried):
    """The lowest held-out loss of runs by rate; ValueError if it is that of the smallest or the largest rate."""
    losses = {rate: done.summary["held_out_loss"] for rate, done in tried.items()}
    return losses[interior({rate: inf if loss is None else loss for rate, loss in losses.items()})]  # None: diverged


@figure(
    "Are the forms of block momentum in use the same?",
    source="Chen & Huo, 2016; CNTK's and fairseq's code",
    claims={
        "down a slope, 16 workers get 16 times as far as averages in both forms of the paper": lambda rows: all(
            abs(value(rows, "gain", form=form) - 16) < 0.1 for form in ("classical", "nesterov")
        ),
        "and 31 times in the form of the code": lambda rows: abs(value(rows, "gain", form="nesterov_code") - 31) < 0.2,
        "so it overshoots an optimum farther than the form that it is meant to be": lambda rows: (
            ratio(rows, "overshoot", form=("nesterov_code", "nesterov")) > 1.5
        ),
        "Nesterov's form overshoots least": lambda rows: (
            min(rows, key=lambda row: row["overshoot"])["form"] == "nesterov"
        ),
    },
    look=Look("form", ("gain",), kind="bar", title="times as far down a slope as model averaging"),
)
def block_forms(run):
    """A bowl of one coordinate and no noise, 16 workers, block momentum 15/16.

    gain: on its flank, with a rate so small that it looks like a slope. overshoot: with a larger rate, how far the
    model gets to the other side of the optimum, as a part of where it began.
    """
    for form in ("classical", "nesterov", "nesterov_code"):
        distance = _distances(run(form=form, period=5, learning_rate=0.02, steps=200, **BLOCKS))
        past = distance[int(np.argmax(distance < 0.25)) :]  # it is near for the first time on the way through
        yield {
            "form": form,
            "gain": gain(run, form=form),
            "overshoot": float(past.max()),
            "left after 40 blocks": float(distance[-1]),
        }


BLOCKS = {
    "algorithm": "bmuf", "workload": "quadratic", "dimension": 1, "points": 80, "workers": 16, "batch": 1,
    "precision": "float64", "evaluations": 1000,
}  # fmt: skip


def gain(run, **values):
    """How many times as far as model averaging block momentum gets down a slope, once its filter is full."""
    rate = 1e-7
    before, after = _distances(run(period=1, learning_rate=rate, steps=170, **BLOCKS, **values))[[-31, -1]]
    return float((before - after) / (30 * rate))


def _distances(done):
    """From the optimum at 0, after every block."""
    return np.sqrt(2 * done.evaluations["loss"])


@figure(
    "How rarely may workers meet?",
    source="Stich, 2019; Lin, Stich, Patel & Jaggi, 2020",
    claims={
        "the bytes fall as the period grows": lambda rows: all(
            abs(row["megabytes"] * row["period"] / rows[0]["megabytes"] - 1) < 0.02 for row in rows
        ),
        "on a slow network nearly all of the time is saved with them": lambda rows: (
            ratio(rows, "seconds", period=(256, 1)) < 0.25
        ),
        "the replicas are farther apart when they meet": lambda rows: is_rising(column(rows, "spread")),
        "the training loss rises a little": lambda rows: (
            value(rows, "training loss", period=1)
            < value(rows, "training loss", period=64)
            < value(rows, "training loss", period=1) + 0.1
        ),
        "the held-out loss does not": lambda rows: (
            max(column(rows, "held-out loss")) < 1.05 * value(rows, "held-out loss", period=1)
        ),
    },
    look=Look("period", ("time", "loss"), log="x", title="as a fraction of that with a meeting in every step"),
)
def local_period(run):
    """Digits, eight workers with 16 images each, 256 steps; 1 Gb Ethernet.

    spread: squared distance of the replicas from their mean when they meet. The training loss is that of the replicas,
    each on its own next mini-batch, in the last 32 steps. Drawn are the seconds and the held-out loss.
    """
    rows = []
    for period in (1, 4, 16, 64, 256):
        done = meeting(run, period)
        rows.append(
            {
                "period": period,
                "megabytes": done.summary["bytes"] / 1e6,
                "seconds": done.summary["seconds"],
                "spread": float(done.measured("spread")["value"].mean()),
                "training loss": float(done.losses["loss"][-8 * 32 :].mean()),
                "held-out loss": done.summary["held_out_loss"],
            }
        )
    always = rows[0]
    for row in rows:
        row["time"] = row["seconds"] / always["seconds"]
        row["loss"] = row["held-out loss"] / always["held-out loss"]
    return rows


UNLIKE = {
    "workload": "quadratic", "dimension": 1, "start": 0, "points": 64, "kinds": 2, "apart": 2, "unequal": 5,
    "workers": 2, "learning_rate": 0.1, "steps": 600,
}  # fmt: skip


def meeting(run, period):
    """The Run of eight workers who meet every `period` steps."""
    values = {"batch": 16, "steps": 256, "learning_rate": 0.2, "network": "1GbE", "evaluations": 2, "hidden": "64"}
    return run(algorithm="local_sgd", workers=8, period=period, **values)


@figure(
    "What if the workers' data are not alike?",
    source="Stich, 2019; the fixed point is ours, see local_sgd",
    claims={
        "it settles where the formula says": lambda rows: all(
            abs(row["settled"] - row["formula"]) < 1e-4 for row in rows
        ),
        "that is the optimum only if they meet in every step": lambda rows: (
            abs(value(rows, "settled", period=1) - rows[0]["optimum"]) < 1e-4
            and (np.diff(column(rows, "settled")) > 0.01).all()
        ),
        "every worker's own loss falls with the period, while the loss of their average rises": lambda rows: (
            is_falling(column(rows, "workers' loss")) and is_rising(column(rows, "loss"))
        ),
        "springs settle farther off still, and miss the optimum even with a visit in every step": lambda rows: all(
            row["elastic"] > row["settled"] + 0.03 for row in rows
        ),
    },
    look=Look("period", ("settled", "elastic"), theory=("formula", "optimum"), log="x", title="where it settles"),
)
def unlike_shards(run):
    """Two workers, each in a bowl of its own: curvatures 1 and 0.2, centres -1 and 1. Nothing is random.

    The optimum of both together is -2/3, near the steeper one's centre. In a long stretch of local steps both arrive
    at their own centres, and the average forgets who had the better reason. elastic: the centre of EASGD, whose
    springs let both stay apart for good.
    """
    rate, h, centres = UNLIKE["learning_rate"], np.array([1, 0.2]), np.array([-1, 1])
    for period in (1, 5, 20, 50):
        done = run(algorithm="local_sgd", period=period, **UNLIKE)
        elastic = run(algorithm="easgd", synchronous=True, period=period, **UNLIKE)
        q = 1 - (1 - rate * h) ** period
        yield {
            "period": period,
            "settled": float(done.parameters[0]),
            "elastic": float(elastic.parameters[0]),
            "formula": float(q @ centres / q.sum()),
            "optimum": float(h @ centres / h.sum()),
            "loss": done.summary["held_out_loss"],
            "workers' loss": float(done.losses["loss"][-2 * 100 :].mean()),
        }


@figure(
    "Does a smaller rate lead unlike workers to the optimum?",
    source="Stich, 2019; the fixed point is ours, see local_sgd",
    claims={
        "the smaller the rate, the nearer to the optimum they settle": lambda rows: is_falling(
            [abs(row["settled"] - row["optimum"]) for row in rows]
        ),
        "at a hundredth of the rate they are within a twentieth of it": lambda rows: (
            abs(rows[-1]["settled"] / rows[-1]["optimum"] - 1) < 0.05
        ),
        "it settles where the formula says": lambda rows: all(
            abs(row["settled"] - row["formula"]) < 1e-3 for row in rows
        ),
    },
    look=Look(
        "rate",
        ("settled",),
        theory=("formula", "optimum"),
        log="x",
        title="where it settles, with a meeting every 50 steps",
    ),
)
def unlike_shards_by_rate(run):
    """The two bowls again, with a meeting every 50 steps and as many more steps as the rate is smaller."""
    h, centres, period = np.array([1, 0.2]), np.array([-1, 1]), 50
    for rate in (0.1, 0.01, 0.001):
        steps = round(UNLIKE["steps"] * UNLIKE["learning_rate"] / rate)
        done = run(algorithm="local_sgd", period=period, **UNLIKE | {"learning_rate": rate, "steps": steps})
        q = 1 - (1 - rate * h) ** period
        yield {
            "rate": rate,
            "settled": float(done.parameters[0]),
            "formula": float(q @ centres / q.sum()),
            "optimum": float(h @ centres / h.sum()),
        }


@figure(
    "When should workers begin to meet seldom?",
    source="Lin, Stich, Patel & Jaggi, 2020, post-local SGD",
    claims={
        "meeting seldom from the start begins worst": lambda rows: (
            ratio(rows, "after 20 steps", meets=("seldom", "always")) > 1.1
        ),
        "post-local begins as if they always met, to the bit": lambda rows: (
            value(rows, "after 20 steps", meets="seldom later") == value(rows, "after 20 steps", meets="always")
        ),
        "in the end all three are level on held-out images": lambda rows: (
            max(column(rows, "held-out loss")) < 1.1 * min(column(rows, "held-out loss"))
        ),
        "post-local sends less than half as much as those who always meet": lambda rows: (
            ratio(rows, "megabytes", meets=("seldom later", "always")) < 0.5
        ),
    },
    look=Look("meets", ("after 20 steps", "training loss", "held-out loss"), kind="bar", log="y", title="loss"),
)
def post_local(run):
    """Digits, 16 workers with 16 images each, 200 steps at a large rate; the switch comes after twelve epochs.

    `after 20 steps` is the mean loss of the steps 20 to 29. The paper's gain on test images, for batches
    too large to generalise, is not seen here: these images are learned well by all three.
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


LATE = {"all are late now and then": ("exponential", 1), "one is always late": ("none", 3)}


@figure(
    "Do rare meetings end the waiting?",
    source="order statistics; Zhang, Choromanska & LeCun, 2015, on why to be asynchronous",
    claims={
        "eight machines do the work that order statistics predict, to within a tenth": lambda rows: all(
            abs(row["speed-up"] / row["theory"] - 1) < 0.1 for row in rows
        ),
        "if all are late now and then, most of the waiting averages out": lambda rows: (
            value(rows, "speed-up", late="all are late now and then", period=1) < 3.2
            and value(rows, "speed-up", late="all are late now and then", period=256) > 6.5
        ),
        "if one machine is slow, all others wait for it, however rarely they meet": lambda rows: (
            max(column(rows, "speed-up", late="one is always late")) < 2.7
        ),
    },
    look=Look("period", ("speed-up",), "late", theory=("theory",), log="x", title="times as fast as one machine"),
)
def waiting_to_meet(run):
    """Eight workers on a network that takes no time, so that there is nothing but gradients, and waiting.

    A gradient takes an exponential time; or always the same, but three times as long on one machine. The last of eight
    sums of H exponential times is less late, compared with H, the larger H is.
    """
    dice = np.random.default_rng(run.seed)
    for late, (_, slowest) in LATE.items():
        for period in (1, 4, 16, 64, 256):
            last = slowest if slowest > 1 else dice.gamma(period, size=(20_000, 8)).max(1).mean() / period
            yield {"late": late, "period": period, "speed-up": speed_up(run, late, period), "theory": float(8 / last)}


def speed_up(run, late, period):
    """How many times as much as one machine eight do that meet so often."""
    bowl = {"workload": "quadratic", "dimension": 20, "points": 512, "learning_rate": 0.2, "batch": 64}
    bowl |= {"evaluations": 1, **NO_NETWORK}
    jitter, slowest = LATE[late]
    values = {"period": period, "steps": 768, "jitter": jitter, "slow": f"7:{slowest}"}
    step = run(algorithm="local_sgd", workers=8, **values, **bowl).summary["seconds"] / 768
    alone = run(algorithm="sgd", workers=1, steps=10, **bowl).summary["seconds"] / 10
    return 8 * alone / step


CLUSTERS = {"quiet": ("none", 1), "noisy cloud": ("noisy cloud", 1), "one slow machine": ("none", 3)}


@figure(
    "Which is first, averaging at meetings or visiting a centre?",
    source="Zhang, Choromanska & LeCun, 2015",
    claims={
        "on quiet machines averaging is first": lambda rows: (
            ratio(rows, "seconds", cluster="quiet", method=("local SGD", "EASGD")) < 1
        ),
        "in a noisy cloud they are about level": lambda rows: (
            abs(ratio(rows, "seconds", cluster="noisy cloud", method=("local SGD", "EASGD")) - 1) < 0.15
        ),
        "one slow machine makes averaging take more than twice as long": lambda rows: (
            ratio(rows, "seconds", cluster=("one slow machine", "quiet"), method="local SGD") > 2
        ),
        "the centre hardly notices it": lambda rows: (
            ratio(rows, "seconds", cluster=("one slow machine", "quiet"), method="EASGD") < 1.2
        ),
    },
    look=Look("cluster", ("seconds",), "method", kind="bar", title="seconds to a held-out loss of 0.3"),
)
def who_is_first(run):
    """Digits, eight workers with 16 images each, a meeting or a visit every 16 steps; messages take no time.

    The slow machine takes three times as long for every gradient. Those who visit take its share of the work upon
    them; those who meet wait.
    """
    for cluster, (jitter, slowest) in CLUSTERS.items():
        for method, algorithm, last in (("local SGD", "local_sgd", 7), ("EASGD", "easgd", 8)):
            seconds = to_a_loss(run, algorithm, jitter, f"{last}:{slowest}")
            yield {"cluster": cluster, "method": method, "seconds": seconds}


def to_a_loss(run, algorithm, jitter, slow, loss=0.3):
    """Seconds until the held-out loss is this; infinite if it never is."""
    done = run(
        algorithm=algorithm, workers=8, batch=16, steps=480, period=16, learning_rate=0.2, jitter=jitter, slow=slow,
        evaluations=1000, **SMALL, **NO_NETWORK,
    )  # fmt: skip
    reached = np.flatnonzero(done.evaluations["loss"] <= loss)
    return float(done.evaluations["seconds"][reached[0]]) if len(reached) else np.inf


@figure(
    "How rarely may replicas visit a server?",
    source="Zhang, Choromanska & LeCun, 2015, figure 2",
    claims={
        "springs with momentum (EAMSGD) are ahead at every period, or about level": lambda rows: all(
            value(rows, "loss", method="EAMSGD", period=period) < 1.2 * min(column(rows, "loss", period=period))
            for period in PERIODS
        ),
        "without it they are about level with Downpour if visits come in every step": lambda rows: (
            1 / 1.6 < _against_springs(rows, 1) < 1.6
        ),
        "and far ahead of it if they come in every 16th step, or more rarely": lambda rows: (
            min(_against_springs(rows, 16), _against_springs(rows, 64)) > 2
        ),
        "with one in 16 or 64 Downpour ends at more than twice the loss": lambda rows: all(
            _kept_up(rows, "Downpour", period) > 2 for period in (16, 64)
        ),
        "up to 16 elastic averaging has lost far less": lambda rows: all(
            _kept_up(rows, method, 16) < _kept_up(rows, "Downpour", 16) / 2 for method in ("EASGD", "EAMSGD")
        ),
    },
    look=Look("period", ("loss",), "method", log="xy", title="held-out loss of the centre"),
)
def elastic_period(run):
    """Digits, four replicas with 16 images each and unequal steps, 256 steps each; loss of the server's model.

    Each method has the best of several rates at each period. A Downpour push is the sum of all gradients since the
    last one, taken along a path that the other three know nothing of: the longer the sums, the smaller the rate has to
    be. A spring never pulls farther than to where the replicas are. The paper's test error even improves with the
    period; on these few images it does not.
    """
    for period in PERIODS:
        for method in VISITORS:
            loss, sent = visiting(run, method, period)
            yield {"period": period, "method": method, "loss": loss, "megabytes": sent / 1e6}


def _against_springs(rows, period):
    """The loss of Downpour, in times of that of plain springs."""
    return ratio(rows, "loss", method=("Downpour", "EASGD"), period=period)


def _kept_up(rows, method, period):
    """How many times as high a method ends as with a visit in every step."""
    return ratio(rows, "loss", method=method, period=(period, 1))


PERIODS = (1, 4, 16, 64)
VISITORS = {
    "EASGD": {"algorithm": "easgd"},
    "EAMSGD": {"algorithm": "easgd", "momentum": 0.9},
    "Downpour": {"algorithm": "downpour", "update": "sgd"},
}
MEAN = {"AGN": {"algorithm": "agn"}}


def rates(method, period):
    """The rates that are tried."""
    if method == "Downpour":
        return (0.025, 0.05, 0.1, 0.2, 0.4) if period < 16 else (0.0015, 0.003, 0.006, 0.0125, 0.025, 0.05)
    return {"AGN": (0.2, 0.4, 0.8, 1.6), "EASGD": (0.2, 0.4, 0.8, 1.6), "EAMSGD": (0.05, 0.1, 0.2, 0.4, 0.8)}[method]


def visiting(run, method, period, workers=4):
    """(held-out loss at the best rate, bytes) of replicas that visit a server every `period` steps.

    They compute 1,024 gradients in all.
    """
    often = {"n_push": period, "n_fetch": period} if method == "Downpour" else {"period": period}
    values = {"batch": 16, "steps": 1024 // workers, "jitter": "cloud", "evaluations": 2, **SMALL, **often}
    visitor = {**(VISITORS | MEAN)[method], "workers": workers}
    tried = {rate: run(**visitor, **values, learning_rate=rate) for rate in rates(method, period)}
    return at_best(tried), next(iter(tried.values())).summary["bytes"]


@figure(
    "Should a visitor hand in the mean of its steps, or be tied by a spring?",
    source="Hermans, Spanakis & Moeckel, 2017, on AGN and asynchronous EASGD",
    claims={
        "with two or four workers the spring ends far lower": lambda rows: all(
            _against_means(rows, "EASGD", workers) < 2 / 3 for workers in (2, 4)
        ),
        "with eight the two are about level": lambda rows: 2 / 3 < _against_means(rows, "EASGD", 8) < 3 / 2,
        "with sixteen the mean is ahead, as its authors report": lambda rows: _against_means(rows, "EASGD", 16) > 3 / 2,
        "the mean ends at the same loss with all of them": lambda rows: (
            max(column(rows, "loss", method="AGN")) < 1.6 * min(column(rows, "loss", method="AGN"))
        ),
        "springs with momentum (EAMSGD) are ahead of it with up to eight": lambda rows: all(
            _against_means(rows, "EAMSGD", workers) < 3 / 4 for workers in (2, 4, 8)
        ),
        "and with sixteen level or ahead": lambda rows: _against_means(rows, "EAMSGD", 16) < 5 / 4,
    },
    look=Look("workers", ("loss",), "method", log="xy", title="held-out loss of the server's model"),
)
def mean_or_spring(run):
    """Digits, 1,024 gradients of 16 images in all, a visit in every 16th step, each method at its best rate.

    These are 64 visits, whoever makes them, and a visit of AGN moves the server by one step, the mean of 16. A spring
    of 0.9 / N is the slacker the more replicas there are, and the centre follows them at a greater distance.
    """
    return [
        {"workers": workers, "method": method, "loss": visiting(run, method, 16, workers)[0]}
        for workers in (2, 4, 8, 16)
        for method in ("AGN", "EASGD", "EAMSGD")
    ]


def _against_means(rows, method, workers):
    """The loss of a method, in times of that of AGN."""
    return ratio(rows, "loss", method=(method, "AGN"), workers=workers)


@figure(
    "What is a second momentum good for, between long stretches of local steps?",
    source="Wang, Tantia, Ballas & Rabbat, 2020 (SlowMo); Douillard et al., 2023 (DiLoCo)",
    claims={
        "down a narrow valley both get farther than local SGD": lambda rows: all(
            ratio(rows, "progress", method=(method, "local SGD"), rate=1.0) > 1.2 for method in ("SlowMo", "DiLoCo")
        ),
        "and farther than a larger rate could take it, with which it is about to diverge": lambda rows: all(
            value(rows, "progress", method=method, rate=1.0) > value(rows, "progress", method="local SGD", rate=1.95)
            for method in ("SlowMo", "DiLoCo")
        ),
    },
    look=Look("method", ("progress",), "rate", kind="bar", title="powers of ten that the loss fell"),
)
def outer_momentum(run):
    """A narrow bowl without noise, four workers, a meeting every 10 steps; progress is in powers of ten of the loss.

    Local steps must be short enough for the steepest direction: rate 2 is the limit. A momentum between meetings looks
    at ten steps together, in which the steep directions have come to rest, and speeds up what is left.
    """
    bowl = {"workload": "quadratic", "condition": 1000, "dimension": 20, "points": 64, "precision": "float64"}
    methods = (
        ("local SGD", 1.0, {"algorithm": "local_sgd"}),
        ("local SGD", 1.95, {"algorithm": "local_sgd"}),
        ("SlowMo", 1.0, {"algorithm": "slowmo", "slow_momentum": 0.8}),
        ("DiLoCo", 1.0, {"algorithm": "diloco", "update": "sgd"}),
    )
    for method, rate, values in methods:
        done = run(workers=4, batch=1, steps=600, period=10, learning_rate=rate, evaluations=2, **bowl, **values)
        loss = done.evaluations["loss"]
        yield {"method": method, "rate": rate, "progress": log10(loss[0] / loss[-1])}


@figure(
    "Does DiLoCo's outer step beat averaging what Adam has done?",
    source="Douillard et al., 2023",
    claims={
        "with a timid inner rate it is far ahead": lambda rows: (
            ratio(rows, "loss", outer=("Nesterov", "average"), rate=0.001) < 0.5
        ),
        "it is content with a wider range of rates": lambda rows: (
            max(column(rows, "loss", outer="Nesterov")) / min(column(rows, "loss", outer="Nesterov"))
            < 0.5 * max(column(rows, "loss", outer="average")) / min(column(rows, "loss", outer="average"))
        ),
        "with its best rate the plain average is no worse": lambda rows: (
            min(column(rows, "loss", outer="average")) < 1.05 * min(column(rows, "loss", outer="Nesterov"))
        ),
    },
    look=Look("rate", ("loss",), "outer", log="xy", title="held-out loss"),
)
def diloco_rates(run):
    """Digits, eight workers with 16 images each, Adam inside, a meeting every 32 of 256 steps.

    An outer rate of 0.7 with momentum 0.9 is, in the long run, a step seven times as long. Where the inner rate is
    too small that is what is missing; here a larger inner rate does as well. The paper's gains are on language models
    that are not learned in eight meetings.
    """
    for rate in (0.001, 0.002, 0.005, 0.01, 0.02):
        for outer, algorithm, more in (("average", "local_sgd", {"update": "adam"}), ("Nesterov", "diloco", {})):
            done = run(
                algorithm=algorithm, workers=8, batch=16, steps=256, period=32, learning_rate=rate, evaluations=2,
                **SMALL, **more,
            ).summary  # fmt: skip
            yield {"rate": rate, "outer": outer, "loss": done["held_out_loss"], "accuracy": done["accuracy"]}
