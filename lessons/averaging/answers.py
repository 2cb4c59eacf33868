"""Answers to the quiz on averaging, by the simulator."""

from __future__ import annotations

from lessons.averaging import experiments
from lessons.figure import column, run_now, value


def left(workers: int) -> float:
    """Percent of one worker's loss that is left in the average of so many."""
    return 100 * experiments.once_averaged(run_now, workers) / experiments.once_averaged(run_now, 1)


def halfway(starts: str) -> str:
    """How good the mean of two networks is, beside the two."""
    rows = experiments.two_starts.rows()
    mean = value(rows, "loss", starts=starts, along=0.5)
    first, *_, last = column(rows, "loss", starts=starts)
    return "better" if mean < min(first, last) else "between" if mean < max(first, last) else "worse"


def seldom(period: int) -> str:
    """What becomes of the held-out loss if eight workers meet every `period` steps instead of in all of them."""
    often, now = (experiments.meeting(run_now, p).summary["held_out_loss"] for p in (1, period))
    return "same" if abs(now / often - 1) < 0.05 else "higher" if now > often else "lower"


def share(workers: int) -> str:
    """Where workers end who share the images and average, beside one worker who sees them all."""
    together, one = (experiments.sharing(run_now, "model_averaging", n)["held_out_loss"] for n in (workers, 1))
    return "lower" if together < 0.8 * one else "higher" if together > 2 * one else "same"


def gain(keep: float) -> float:
    """How many times as far as averages block momentum gets that keeps so much of its last step."""
    return experiments.gain(run_now, form="classical", block_momentum=keep)


def company(late: str) -> str:
    """What becomes of the waiting if eight machines meet every 64 steps instead of in all of them."""
    often, seldom = (experiments.speed_up(run_now, late, period) for period in (1, 64))
    return "goes" if seldom > 2 * often else "stays" if abs(seldom / often - 1) < 0.05 else "grows"


def first(cluster: str) -> str:
    """Who reaches the loss first."""
    jitter, slowest = experiments.CLUSTERS[cluster]
    meeting = experiments.to_a_loss(run_now, "local_sgd", jitter, f"7:{slowest}")
    visiting = experiments.to_a_loss(run_now, "easgd", jitter, f"8:{slowest}")
    return "meeting" if meeting < 0.9 * visiting else "visiting" if visiting < 0.9 * meeting else "level"


def spring(period: int) -> str:
    """Whose centre is better after 256 steps, if replicas visit so seldom."""
    elastic, downpour = (
        experiments.visiting(run_now, method, period).summary["held_out_loss"] for method in ("EASGD", "Downpour")
    )
    return "elastic" if elastic < downpour else "downpour"


def settles(often: str) -> str:
    """Where the average of two unlike workers comes to rest."""
    period = {"in every step": 1, "every 20 steps": 20, "every 200 steps": 200}[often]
    where = float(run_now(algorithm="local_sgd", period=period, **experiments.UNLIKE).parameters[0])
    return "optimum" if abs(where + 2 / 3) < 0.02 else "middle" if abs(where) < 0.05 else "between"
