"""Answers to the quiz on stragglers, computed by the simulator or by closed forms that it is tested against."""

from lessons.stragglers.experiments import BACKUPS, BOWL, slow, to_a_tenth
from theory import order_statistics


def speed_up(run, workers: int) -> float:
    """Return the speed-up of synchronous workers whose step times are exponential."""
    return workers / order_statistics.exponential(workers, workers)


def dearest(run, workers: int) -> str:
    """Return the cluster with the longer mean step: "restless" or "rarely late". A gradient takes 1 s on average on
    both.

    On the restless cluster times are uniform from 0.5 to 1.5 s; on the other, one time in a hundred is ten times as
    long as the rest.
    """
    restless = 0.5 + workers / (workers + 1)  # the mean of the largest of this many
    usual = 1 / (0.99 + 0.01 * 10)
    rarely_late = usual * (1 + 9 * (1 - 0.99**workers))
    return "restless" if restless > rarely_late else "rarely late"


def elsewhere(run, workers: int, cluster: str, waits: str) -> str:
    """Return whether the same training on other machines gives the "same" model, or one that differs by "noise"."""
    some = {"algorithm": "backup", "backups": 4} if "but four" in waits else {}
    losses = [
        run(workers=workers, learning_rate=0.2, steps=20, evaluations=1, jitter=jitter, **some).summary["held_out_loss"]
        for jitter in ("none", cluster)
    ]
    return "same" if losses[0] == losses[1] else "noise"


def saved(run, workers: int, backups: int) -> float:
    """Return the percentage of a step's time that backup workers save, if stragglers finish what they began."""
    return 100 * (1 - order_statistics.backup_step(workers, backups) / order_statistics.exponential(workers, workers))


def wasted(run, workers: int) -> float:
    """Return the percentage of gradients that are computed and dropped. One machine is three times as slow as the
    others, and there is one backup.
    """
    steps = 400
    done = run(
        **BOWL, algorithm="backup", dimension=4, points=256, evaluations=2, learning_rate=0.02, workers=workers,
        backups=1, slow=slow(workers, 1), steps=steps,
    )  # fmt: skip
    return 100 * (1 - (workers - 1) * steps / done.summary["samples"])


def best(run, cluster: str) -> str:
    """Return the number of backups with which 16 machines train fastest: "none", "one", "two" or "half"."""
    seconds = {backups: to_a_tenth(run, cluster, backups)[1] for backups in BACKUPS}
    return {0: "none", 1: "one", 2: "two"}.get(min(seconds, key=seconds.get), "half")
