"""The idle time of a pipeline that is drained in every step, if stages do not take equally long.

The catalogue's formulas assume equal stages. Here the list simulator runs the schedule with the stages of a model. A
rank begins its next step as soon as it has ended this one, so a step takes as long as the longest span of a rank.
"""

from functools import cache

import algorithms
from lessons.survey import costs
from theory import schedules
from theory.schedule_timing import simulate

OTHERS = {"zb_auto": "zb_2p", "three_d": "1f1b", "five_d": "1f1b"}
"""{method: its schedule}, for methods that do not train with their first declared schedule."""


def is_drained(name: str) -> bool:
    """Return whether a method drains its pipeline in every step, i.e. has a schedule for a mini-batch with one update
    at the end.
    """
    return costs.every()[name].staleness == "0" and (name in OTHERS or bool(algorithms.find(name).schedules))


@cache
def of_stages(name: str, work: tuple[float, ...], ranks: int, chunks: int) -> float | None:
    """Return the average share of the time that ranks are idle, or None if there is no schedule for these numbers.

    `work` is the time of each stage's forward pass, in any unit; I and W take as long. Messages take no time.
    """
    try:
        lists = schedules.lists(OTHERS.get(name) or next(iter(algorithms.find(name).schedules)), ranks, chunks)
    except ValueError:
        return None
    prices = {}
    for stage, forward in enumerate(work):
        prices |= {("F", stage): forward, ("B", stage): 2 * forward, ("I", stage): forward, ("W", stage): forward}
    times = simulate(lists, prices)
    return 1 - sum(times.busy) / (ranks * max(times.span))
