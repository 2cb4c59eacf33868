"""How often a long run should save its state, if machines fail at random.

A run computes for `work` seconds, saves for `saving` seconds, and so on. Failures come at random, every `between`
seconds on average. After one, the run restarts from what was saved last, which takes `restart` seconds, in which
nothing fails. With x = work + saving, computing for `work` seconds and saving once takes on average

    (between + restart) (exp(x / between) - 1)    seconds

since exp(x / between) - 1 attempts fail for each that succeeds. For x far below `between`, the lost share is
saving / work + work / (2 between) + restart / between, which is smallest if the first two are equal:

    work = sqrt(2 saving between)

Source: Young, Communications of the ACM 17(9), 1974 (the square root); Daly, Future Generation Computer Systems 22(3),
2006 (the expectation, and the next terms). Ours differs from Daly's in that nothing fails during a restart.
"""

import numpy as np


def seconds_to_save(work, saving: float, between: float, restart: float = 0.0):
    """Return the average time, in s, until `work` seconds of computation have been done and saved."""
    return (between + restart) * np.expm1((work + saving) / between)


def lost_share(work, saving: float, between: float, restart: float = 0.0):
    """Return the average share of the time that is not spent on `work`, but on saving, lost work and restarts."""
    return 1 - work / seconds_to_save(work, saving, between, restart)


def young_interval(saving: float, between: float) -> float:
    """Return the best amount of work between two checkpoints, in s, by Young's formula."""
    return float(np.sqrt(2 * saving * between))


def daly_interval(saving: float, between: float) -> float:
    """Return the best amount of work between two checkpoints, in s, by Daly's formula. It is better than Young's if
    failures are frequent.
    """
    if saving >= 2 * between:
        return between
    x = saving / (2 * between)
    return float(np.sqrt(2 * saving * between) * (1 + np.sqrt(x) / 3 + x / 9) - saving)
