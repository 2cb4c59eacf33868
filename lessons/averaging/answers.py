"""Answers to the quiz on averaging, computed by the simulator or in closed form."""

from lessons.averaging.experiments import keeping_up, meetings, momentum, once, springs, unlike, waiting
from lessons.figure import column, value


def left(run, workers: int) -> float:
    """Return the loss of the average of `workers` models, as a percentage of the loss of one worker's model.

    It is computed as bias + variance / N.

    It is computed as bias + variance / N.
    """
    return 100 * (0.3 + 0.7 / workers)


def halfway(run, starts: str) -> str:
    """Compare the loss of the mean of two networks with the losses of the two networks.

    Return "better" if it is below the mean of their losses, "worse" if it is above both losses, and "between"
    otherwise.

    Return "better" if it is below the mean of their losses, "worse" if it is above both losses, and "between"
    otherwise.
    """
    rows = once.two_starts.rows(run)
    mean = value(rows, "loss", starts=starts, along=0.5)
    first, *_, last = column(rows, "loss", starts=starts)
    return "better" if mean < (first + last) / 2 else "between" if mean < max(first, last) else "worse"


def seldom(run, period: int, what: str) -> str:
    """Compare averaging every `period` steps with averaging in every step, with eight workers.

    Return "higher", "lower" or "same" for the quantity that `what` names, such as the loss.

    Return "higher", "lower" or "same" for the quantity that `what` names, such as the loss.
    """
    often, now = (_quantity(meetings.meeting(run, p), what) for p in (1, period))
    return "same" if abs(now / often - 1) < 0.05 else "higher" if now > often else "lower"


def _quantity(done, what: str) -> float:
    if "apart" in what:
        return float(done.measurements("spread")["value"].mean())
    return done.summary["held_out_loss" if "loss" in what else "bytes"]


def share(run, workers: int, work: str) -> str:
    """Compare the held-out loss of workers that average their models with the loss of a single worker.

    `work` says whether the workers share the single worker's steps or each take as many as it does. Return "lower",
    "same" or "higher".

    `work` says whether the workers share the single worker's steps or each take as many as it does. Return "lower",
    "same" or "higher".
    """
    epochs = 16 if work.startswith("In both") else 16 * workers
    together = keeping_up.sharing(run, "model_averaging", workers, epochs)["held_out_loss"]
    one = keeping_up.sharing(run, "model_averaging", 1)["held_out_loss"]
    return "lower" if together < 0.8 * one else "higher" if together > 1.5 * one else "same"


def gain(run, keep: float) -> float:
    """Return how far block momentum gets, as a multiple of the distance that plain averaging covers. It keeps the
    fraction `keep` of its last step.
    """
    return momentum.gain(run, form="classical", block_momentum=keep)


BOTH = {"all are late now and then, and one also takes three times as long": ("exponential", 3)}


def company(run, late: str) -> str:
    """Return how much of the waiting disappears if eight machines average every 64 steps instead of every step.

    The answer is "goes" if most of it disappears, "stays" if none does, and "part" otherwise.

    The answer is "goes" if most of it disappears, "stays" if none does, and "part" otherwise.
    """
    often, seldom = (waiting.speed_up(run, *(waiting.LATE | BOTH)[late], period) for period in (1, 64))
    return "goes" if seldom > 2 * often else "stays" if abs(seldom / often - 1) < 0.05 else "part"


def first(run, cluster: str) -> str:
    """Return which method reaches the target loss first on `cluster`: local SGD ("meeting") or EASGD ("visiting")."""
    jitter, slowest = waiting.CLUSTERS[cluster]
    meeting = waiting.to_a_loss(run, "local_sgd", jitter, f"7:{slowest}")
    visiting = waiting.to_a_loss(run, "easgd", jitter, f"8:{slowest}")
    return "meeting" if meeting < visiting else "visiting"


def spring(run, period: int) -> str:
    """Return which method ends with the better server model after 256 steps: "elastic" (EASGD), "downpour", or "level".

    Workers visit the server every `period` steps, and each method runs at its best learning rate.

    Workers visit the server every `period` steps, and each method runs at its best learning rate.
    """
    elastic, downpour = (springs.visiting(run, method, period)[0] for method in ("EASGD", "Downpour"))
    return "level" if 1 / 1.6 < downpour / elastic < 1.6 else "elastic" if elastic < downpour else "downpour"


def settles(run, often: str) -> str:
    """Return where the average of two workers with different data converges.

    The answer is "optimum", "middle" for the middle of the two workers' own optima, or "between" for a point between
    these two.

    The answer is "optimum", "middle" for the middle of the two workers' own optima, or "between" for a point between
    these two.
    """
    period = {"in every step": 1, "every 20 steps": 20, "every 200 steps": 200}[often]
    where = float(run(algorithm="local_sgd", period=period, **unlike.UNLIKE).parameters[0])
    return "optimum" if abs(where + 2 / 3) < 0.02 else "middle" if abs(where) < 0.05 else "between"


def correction(run, period: int, correct: str) -> float:
    """Return the parameter at which the average of two workers with different data settles, at a learning rate of 0.5.

    SCAFFOLD's correction is used unless `correct` begins with "Nothing".

    SCAFFOLD's correction is used unless `correct` begins with "Nothing".
    """
    kind = "average" if correct.startswith("Nothing") else "scaffold"
    values = unlike.UNLIKE | {"learning_rate": 0.5, "steps": 60 * period, "precision": "float64"}
    return float(run(algorithm="scaffold", kind=kind, period=period, evaluations=1, **values).parameters[0])
