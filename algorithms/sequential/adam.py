"""Adam is momentum divided by the recent size of gradients, both corrected for starting at zero.

    m <- b1 m + (1 - b1) g(w)        v <- b2 v + (1 - b2) g^2
    w <- w - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)        t = 1, 2, ...

Without the corrections the first steps would be (1 - b1) / sqrt(1 - b2) times lr, three times as long with the usual
constants; with them the first step is lr.

Price: no communication; two more vectors, m and v. Staleness: none.
Source: Kingma & Ba, ICLR 2015, Algorithm 1.
"""

import kernels
from algorithms.algorithm import Knobs, knob, sequential


class Settings(Knobs):
    learning_rate: float = knob(0.002, "roughly how far each weight moves in a step", gt=0, le=1000)
    beta1: float = knob(0.9, "b1, decay rate of Adam's mean gradient", ge=0, lt=1)
    beta2: float = knob(0.999, "b2, decay rate of Adam's mean squared gradient", ge=0, lt=1)
    eps: float = knob(1e-8, "small constant that keeps the division finite", ge=0, le=1000)


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    m, v = kernels.state_like(w), kernels.state_like(w)
    updates = 0
    for _ in task.steps():
        _, g = task.gradient(w)
        if not task.is_usable(g):
            continue
        updates += 1
        kernels.adam(w, m, v, g, updates, s.learning_rate, s.beta1, s.beta2, s.eps)
        task.store(w)
        task.report(w)
    return w


ALGORITHM = sequential(worker, Settings, skips_overflow=True, stores_weights=True)
