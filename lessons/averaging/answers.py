"""Answers to the quiz on averaging, computed by the simulator."""

from lessons.averaging.experiments import keeping_up, meetings, momentum, once, springs, unlike, waiting
from lessons.figure import column, value


def left(run, workers: int) -> float:
    """Return the loss of the average of so many workers, in percent of one worker's: bias + variance / N."""
    return 100 * (0.3 + 0.7 / workers)


def halfway(run, starts: str) -> str:
    """Return how the mean of two networks compares with the two."""
    rows = once.two_starts.rows(run)
    mean = value(rows, "loss", starts=starts, along=0.5)
    first, *_, last = column(rows, "loss", starts=starts)
    return "better" if mean < (first + last) / 2 else "between" if mean < max(first, last) else "worse"


def seldom(run, period: int) -> str:
    """Return how the held-out loss changes if eight workers average every `period` steps instead of every step."""
    often, now = (meetings.meeting(run, p).summary["held_out_loss"] for p in (1, period))
    return "same" if abs(now / often - 1) < 0.05 else "higher" if now > often else "lower"


def share(run, workers: int) -> str:
    """Return how workers that share the images and average compare with one worker that sees them all."""
    together, one = (keeping_up.sharing(run, "model_averaging", n)["held_out_loss"] for n in (workers, 1))
    return "lower" if together < 0.8 * one else "higher" if together > 1.5 * one else "same"


def gain(run, keep: float) -> float:
    """Return how many times as far as averages block momentum gets, keeping this part of its last step."""
    return momentum.gain(run, form="classical", block_momentum=keep)


def company(run, late: str) -> str:
    """Return what becomes of the waiting if eight machines average every 64 steps instead of every step."""
    often, seldom = (waiting.speed_up(run, late, period) for period in (1, 64))
    return "goes" if seldom > 2 * often else "stays" if abs(seldom / often - 1) < 0.05 else "grows"


def first(run, cluster: str) -> str:
    """Return which method reaches the loss first."""
    jitter, slowest = waiting.CLUSTERS[cluster]
    meeting = waiting.to_a_loss(run, "local_sgd", jitter, f"7:{slowest}")
    visiting = waiting.to_a_loss(run, "easgd", jitter, f"8:{slowest}")
    return "meeting" if meeting < 0.98 * visiting else "visiting" if visiting < 0.9 * meeting else "level"


def spring(run, period: int) -> str:
    """Return which method has the better centre after 256 steps, with visits every `period` steps, at its best rate."""
    elastic, downpour = (springs.visiting(run, method, period)[0] for method in ("EASGD", "Downpour"))
    return "elastic" if elastic < downpour else "downpour"


def settles(run, often: str) -> str:
    """Return where the average of two unlike workers converges."""
    period = {"in every step": 1, "every 20 steps": 20, "every 200 steps": 200}[often]
    where = float(run(algorithm="local_sgd", period=period, **unlike.UNLIKE).parameters[0])
    return "optimum" if abs(where + 2 / 3) < 0.02 else "middle" if abs(where) < 0.05 else "between"
