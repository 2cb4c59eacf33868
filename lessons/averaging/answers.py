"""Answers to the quiz on averaging, computed by the simulator."""

from lessons.averaging.experiments import keeping_up, meetings, momentum, once, springs, unlike, waiting
from lessons.figure import column, value


def left(run, workers: int) -> float:
    """Return the loss of the average of `workers` models, as a percentage of one worker's: bias + variance / N."""
    return 100 * (0.3 + 0.7 / workers)


def halfway(run, starts: str) -> str:
    """Return whether the loss of the mean of two networks is "better" than the mean of their losses, "between" that and
    the higher one, or "worse" than both.
    """
    rows = once.two_starts.rows(run)
    mean = value(rows, "loss", starts=starts, along=0.5)
    first, *_, last = column(rows, "loss", starts=starts)
    return "better" if mean < (first + last) / 2 else "between" if mean < max(first, last) else "worse"


def seldom(run, period: int, what: str) -> str:
    """Return how a quantity changes if eight workers average every `period` steps instead of every step: "higher",
    "lower" or "same".
    """
    often, now = (_quantity(meetings.meeting(run, p), what) for p in (1, period))
    return "same" if abs(now / often - 1) < 0.05 else "higher" if now > often else "lower"


def _quantity(done, what: str) -> float:
    if "apart" in what:
        return float(done.measurements("spread")["value"].mean())
    return done.summary["held_out_loss" if "loss" in what else "bytes"]


def share(run, workers: int, work: str) -> str:
    """Return how the held-out loss of averaging workers compares with a single worker's, if they share its steps or
    each take as many as it does: "lower", "same" or "higher".
    """
    epochs = 16 if work.startswith("In both") else 16 * workers
    together = keeping_up.sharing(run, "model_averaging", workers, epochs)["held_out_loss"]
    one = keeping_up.sharing(run, "model_averaging", 1)["held_out_loss"]
    return "lower" if together < 0.8 * one else "higher" if together > 1.5 * one else "same"


def gain(run, keep: float) -> float:
    """Return how many times as far as plain averaging block momentum gets, if it keeps the fraction `keep` of its last
    step.
    """
    return momentum.gain(run, form="classical", block_momentum=keep)


BOTH = {"all are late now and then, and one also takes three times as long": ("exponential", 3)}


def company(run, late: str) -> str:
    """Return how much of the waiting ends if eight machines average every 64 steps instead of every step: most
    ("goes"), none ("stays") or "part".
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
    """Return whether EASGD or Downpour ends with the better server model after 256 steps, if workers visit the server
    every `period` steps and each method runs at its best rate.
    """
    elastic, downpour = (springs.visiting(run, method, period)[0] for method in ("EASGD", "Downpour"))
    return "level" if 1 / 1.6 < downpour / elastic < 1.6 else "elastic" if elastic < downpour else "downpour"


def settles(run, often: str) -> str:
    """Return where the average of two workers with different data converges: to the "optimum", to the "middle" of the
    two workers' own optima, or "between" the two.
    """
    period = {"in every step": 1, "every 20 steps": 20, "every 200 steps": 200}[often]
    where = float(run(algorithm="local_sgd", period=period, **unlike.UNLIKE).parameters[0])
    return "optimum" if abs(where + 2 / 3) < 0.02 else "middle" if abs(where) < 0.05 else "between"


def correction(run, period: int, correct: str) -> float:
    """Return where the average of two workers with different data settles at a learning rate of 0.5, with or without
    SCAFFOLD's correction.
    """
    kind = "average" if correct.startswith("Nothing") else "scaffold"
    values = unlike.UNLIKE | {"learning_rate": 0.5, "steps": 60 * period, "precision": "float64"}
    return float(run(algorithm="scaffold", kind=kind, period=period, evaluations=1, **values).parameters[0])
