"""Answers to the quiz on training with little communication, computed by the simulator or by closed forms."""

from lessons.little_communication.experiments import (
    CENTRES,
    MODEL,
    down_a_valley,
    exchange_seconds,
    loss_of,
    outer,
)
from tracing import COMPUTE


def training(run, period: int, meeting: int) -> float:
    """Return the percentage of the time that workers spend training.

    A step takes one second, and an exchange after every `period` steps takes `meeting` seconds.
    """
    return 100 * period / (period + meeting)


def how_much(run, momentum: float) -> str:
    """Return whether DiLoCo with this outer momentum ends at a loss on digits that is "lower" than plain averaging's,
    "level" with it, or "higher".
    """
    part = loss_of(outer(run, momentum)) / loss_of(outer(run, 0.0))
    return "lower" if part < 2 / 3 else "level" if part < 4 / 3 else "higher"


def farthest(run, length: int) -> str:
    """Return the outer momentum that gets farthest down a valley of this length: none ("average"), "some" or "much"."""
    progress = {momentum: down_a_valley(run, length, momentum) for momentum in (0.0, 0.6, 0.9)}
    return {0.0: "average", 0.6: "some", 0.9: "much"}[max(progress, key=progress.get)]


def least_overlap(run, seconds: int, fragments: int) -> float:
    """Return the smallest overlap that hides the transfer of a fragment, in steps of one second."""
    return seconds / fragments


def images(run, speeds: str) -> float:
    """Return the ratio of the images that workers of these speeds process without a barrier to those they process with
    one.
    """
    each = [float(one) for one in speeds.replace(" and ", ", ").split(", ")]
    return sum(max(each) / one for one in each) / len(each)


def crash(run, method: str) -> str:
    """Return whether the training of the other workers "continues" or "stops" after a machine crashes at a third of the
    time.
    """
    algorithm, rank = {
        "DiLoCo": ("diloco", 2),
        "a server without a barrier; it is a worker that crashes": ("async_diloco", 2),
        "a server without a barrier; it is the server that crashes": ("async_diloco", 0),
        "exchanges in random pairs": ("noloco", 2),
    }[method]
    values = {"steps": 60, "period": 4, "workers": 4, "learning_rate": 0.01, "crash": f"{rank}:20"}
    done = run(algorithm=algorithm, **{**CENTRES, **values})
    return "stops" if done.status == "failed" else "continues"


def quorum(run, needed: int, away: int) -> str:
    """Return whether the other machines "continue" or "wait" while `away` of four are down. A quorum has `needed`
    machines.
    """
    crash = ",".join(f"{rank}:20-40" for rank in range(2, 2 + away))
    values = {"seconds": 60, "steps": 1000, "period": 8, "workers": 4, "learning_rate": 0.01, "network": "ideal"}
    done = run(algorithm="decoupled_diloco", quorum=needed, crash=crash, **MODEL, **values)
    spans = done.trace.spans
    meanwhile = (spans["rank"] == 1) & (spans["kind"] == COMPUTE) & (spans["start"] > 30) & (spans["start"] < 40)
    return "continue" if meanwhile.any() else "wait"


def missed(run, every: int, steps: int) -> float:
    """Return the percentage of the parameters that none of `steps` steps sends. Each step sends one parameter in
    `every`, drawn at random.
    """
    return 100 * (1 - 1 / every) ** steps


def pairs(run, places: int) -> float:
    """Return the ratio of the time of a sum around a ring to the time of an exchange in pairs."""
    return exchange_seconds(run, "sum of all", places) / exchange_seconds(run, "in pairs", places)


def dragged(run, workers: int, strength: int) -> float:
    """Return how far two liars among `workers` workers pull the mean of the gradients, as a multiple of the honest
    mean's length.
    """
    return 2 / workers * (1 + strength)
