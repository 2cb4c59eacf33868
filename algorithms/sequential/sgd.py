"""SGD takes one mini-batch after another and steps down the gradient: the reference for everything else.

    w <- w - lr g(w)

Like all methods of this family it trains on one worker; it is what parallel training must beat.

Price: no communication, no memory beyond w and g. Staleness: none.
Source: Robbins & Monro, Annals of Mathematical Statistics 22(3), 1951.
"""

import kernels
from algorithms.algorithm import Knobs, knob, sequential


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    for _ in task.steps():
        _, g = task.gradient(w)
        if not task.is_usable(g):
            continue
        kernels.sgd(w, g, s.learning_rate)
        task.store(w)
        task.report(w)
    return w


ALGORITHM = sequential(worker, Settings, skips_overflow=True, stores_weights=True)
