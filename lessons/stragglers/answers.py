"""Answers to the quiz on stragglers, computed by the simulator or by closed forms that it is tested against."""

from __future__ import annotations

from lessons.stragglers.experiments import LAWS, to_a_tenth
from theory import order_statistics


def speed_up(run, workers: int) -> float:
    """Return the speed-up of workers whose times are exponential."""
    return workers / order_statistics.exponential(workers, workers)


def dearest(run, workers: int) -> str:
    """Return the distribution under which waiting for all workers costs most."""
    return max(LAWS, key=lambda law: LAWS[law](workers, workers))


def elsewhere(run, workers: int, cluster: str) -> str:
    """Return whether the model changes if the same training runs on other machines."""
    losses = [
        run(workers=workers, learning_rate=0.2, steps=20, evaluations=1, jitter=jitter).summary["held_out_loss"]
        for jitter in ("none", cluster)
    ]
    return "same" if losses[0] == losses[1] else "other"


def saved(run, workers: int, backups: int) -> float:
    """Return the percentage of a step's time that backup workers save if stragglers finish what they began."""
    return 100 * (1 - order_statistics.backup_step(workers, backups) / order_statistics.exponential(workers, workers))


def wasted(run, workers: int, backups: int) -> float:
    """Return the percentage of gradients that are computed and dropped."""
    return 100 * backups / workers


def best(run, cluster: str) -> str:
    """Return how many backups among 16 machines train fastest."""
    seconds = {backups: to_a_tenth(run, cluster, backups)[1] for backups in (0, 1, 2, 4, 8)}
    return {0: "none", 1: "one", 8: "half"}.get(min(seconds, key=seconds.get), "few")
