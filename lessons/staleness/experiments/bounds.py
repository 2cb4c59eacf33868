"""How far ahead of the slowest a worker may run."""

import numpy as np

from lessons.figure import Look, column, figure, ratio
from lessons.staleness.experiments import TIMES, slow
from tracing import WAIT

WAITED = ("all alike", "nearly alike", "exponential")
READER = {"hidden": "32", "batch": 16}


@figure(
    "Should workers wait for each other?",
    source="Ho et al., 2013",
    claims={
        "if all workers take the same time, nobody waits, and a looser bound gains little or nothing": lambda rows: (
            max(column(rows, "waiting", times="all alike")) < 0.03
            and ratio(rows, "time", times="all alike", bound=(16, 0)) > 0.8
        ),
        "if workers' times differ a little, no bound is twice as fast as another": lambda rows: (
            max(column(rows, "time", times="nearly alike")) < 2 * min(column(rows, "time", times="nearly alike"))
        ),
        "if times differ a little, workers wait less than a fifth as long with the loosest bound as with 0": (
            lambda rows: ratio(rows, "waiting", times="nearly alike", bound=(0, 16)) > 5
        ),
        "if workers' times differ a lot, a bound of 16 is more than twice as fast as a bound of 0": lambda rows: (
            ratio(rows, "time", times="exponential", bound=(0, 16)) > 2
        ),
        "a looser bound never makes workers wait longer": lambda rows: all(
            (np.diff(column(rows, "waiting", times=times)) < 0.01).all() for times in WAITED
        ),
    },
    look=Look("bound", ("time",), "times", kind="bar", title="time until the loss is 0.4"),
)
def bounded_staleness(run):
    """SSP on digits with 8 workers, until the loss is 0.4. A worker may run `bound` steps ahead of the slowest.

    Bound 0 is synchronous SGD over a server. The learning rate is large, 1.0 for a step of all workers. The unit of
    time is one gradient; waiting is a share of the workers' time; values are means of two seeds. If times are
    exponential, ages are so mixed that staleness even helps, as momentum does: fewer gradients are needed, not more.
    """
    alone = run(algorithm="asgd", workers=1, learning_rate=0.05, steps=10, slow=slow(1), evaluations=2, **READER)
    gradient = float(alone.evaluations["seconds"][-1]) / 10
    for times in WAITED:
        for bound in (0, 1, 4, 16):
            seconds, gradients, waiting = until_it_reads(run, times, bound)
            row = {"times": times, "bound": bound, "time": seconds / gradient}
            yield {**row, "gradients": gradients, "waiting": waiting}


def until_it_reads(run, times, bound):
    """Return (seconds, gradients, share of waiting) of SSP, each as a mean of two seeds. Seconds and gradients are
    counted until the held-out loss is below 0.4.
    """
    where = {"jitter": TIMES[times], "slow": slow(8), "steps": 80, "evaluations": 80, **READER}
    both = [run(algorithm="ssp", bound=bound, workers=8, learning_rate=1.0, seed=seed, **where) for seed in (0, 1)]
    return tuple(float(mean) for mean in np.mean([_reached(done) for done in both], axis=0))


def _reached(done):
    """Return (seconds, gradients, share of waiting). Seconds and gradients are counted until the held-out loss is below
    0.4, and are infinite if it never is.
    """
    tried, busy = done.evaluations, done.trace.busy()[1:].sum(axis=0)
    waiting = busy[WAIT] / busy.sum()
    there = np.flatnonzero(tried["loss"] < 0.4)
    if not len(there):
        return np.inf, np.inf, waiting
    return tried["seconds"][there[0]], tried["samples"][there[0]] / 16, waiting
