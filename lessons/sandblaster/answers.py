"""Answers to the quiz on Sandblaster, from the work queue, L-BFGS, closed forms, and the chapter's runs."""

import heapq

from algorithms.parts.lbfgs import direction
from algorithms.parts.work_queue import WorkQueue
from lessons.sandblaster.experiments import BOWL, DIGITS, LBFGS, loss_after, portions_computed, to_a_half


def pass_time(run, slowed: int) -> float:
    """Return how long a pass over 64 portions takes, in s.

    Seven workers need 1 s for a portion, and the eighth needs `slowed` s.
    """
    queue, seconds = WorkQueue(64, every=1, backups=False), [1] * 7 + [slowed]
    busy = [(0, worker) for worker in range(len(seconds))]  # when each is free
    ends = 0
    while busy:
        now, worker = heapq.heappop(busy)
        if worker in queue.assigned:
            queue.complete(worker)
            ends = now
        if queue.assign(worker) is not None:
            heapq.heappush(busy, (now + seconds[worker], worker))
    return ends


def price(run, portions: str, workers: str) -> str:
    """Return how backups near the end of a pass change it for eight workers: the pass gets "longer" or "shorter", or
    only more "work" is done, or "nothing" changes.
    """
    values = {
        **LBFGS, "workers": 8, "portion": 23 if "small" in portions else 180, "every": 1, "memory": 0, "steps": 2,
        "hidden": "128,128", "network": "ideal", "evaluations": 2, "slow": "8:30" if "thirty" in workers else "",
    }  # fmt: skip
    alone, copied = (run(**values, backups=backups) for backups in (False, True))
    ratio = float(copied.evaluations["seconds"][2] / alone.evaluations["seconds"][2])
    if ratio > 1.1 or ratio < 0.9:
        return "longer" if ratio > 1 else "shorter"
    return "work" if portions_computed(copied) > portions_computed(alone) else "nothing"


def fewer(run, workers: int, hands_in: str) -> float:
    """Return the ratio of the numbers that Downpour moves in a pass of 120 portions or batches to those that
    Sandblaster moves.
    """
    return 2 * 120 / (workers + 120 / (10 if "ten" in hands_in else 1))


def lost(run, every: int, at: int) -> float:
    """Return how many of a worker's portions become pending again if the worker is lost during its portion
    number `at`.
    """
    queue = WorkQueue(64, every=every)
    for _ in range(at - 1):
        queue.assign(0)
        queue.complete(0)
        if queue.push_due(0):
            queue.confirm(0)
    queue.assign(0)
    pending = len(queue.pending)
    queue.forget_worker(0)
    return len(queue.pending) - pending


def answers(run, memory: int) -> float:
    """Return how many dot products L-BFGS takes to find its direction with this many pairs."""

    class Counted:
        dots = 0

        def dot(self, x, y):
            self.dots += 1
            return 1.0

        def axpy(self, a, x, y):
            pass

        scale = copy = lambda *_: None

    vectors = Counted()
    direction(vectors, "g", "p", [("s", "y")] * memory)
    return vectors.dots


def ahead(run, problem: str, passes: int) -> str:
    """Return the method with the lower loss after this many passes: SGD ("sgd"), L-BFGS ("batch") or neither
    ("alike").
    """
    data, small = BOWL if "bowl" in problem else DIGITS
    sgd = run(algorithm="sgd", workers=1, epochs=passes, evaluations=1, **data, **small).summary["held_out_loss"]
    batch = run(**LBFGS, workers=4, memory=10, steps=passes, evaluations=10_000, **data)
    ratio = sgd / loss_after(batch, passes)
    return "alike" if 0.9 < ratio < 1.1 else "sgd" if ratio < 1 else "batch"


def machines(run, method: str) -> str:
    """Return how much faster the method is on 64 machines than on 4: "hardly", "some", or "nearly" 16 times."""
    few, many = (to_a_half(run, method.replace(" with", ","), workers) for workers in (4, 64))
    return "hardly" if few < 2.5 * many else "some" if few < 8 * many else "nearly"
