"""Momentum keeps moving in its direction: gradients that agree add up, those that alternate cancel.

    v <- mu v + g(w)        w <- w - lr v

Under a constant gradient the terminal speed is 1 / (1 - mu) times that of SGD. On a quadratic of curvature h it
converges for lr h < 2 (1 + mu), where plain SGD needs lr h < 2.

The rate is outside v, as in PyTorch. Caffe has it inside, u <- mu u - lr g and w <- w + u. With a constant rate
the two are the same, u = -lr v; when the rate changes, Caffe's u has to be multiplied by new rate / old rate
("momentum correction"), or the old rate remains in effect for 1 / (1 - mu) steps. Here no correction is needed.

Price: no communication; one more vector, v. Staleness: none.
Source: Polyak, USSR Computational Mathematics and Mathematical Physics 4(5), 1964; Goyal et al., arXiv:1706.02677
(momentum correction).
"""

import kernels
from algorithms.algorithm import Equivalence, Knobs, knob, sequential


class Settings(Knobs):
    learning_rate: float = knob(0.05, "step size", gt=0, le=1000)
    momentum: float = knob(0.9, "mu, decay of the velocity", ge=0, lt=1)


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    v = kernels.state_like(w)
    for _ in task.steps():
        _, g = task.gradient(w)
        if not task.is_usable(g):
            continue
        kernels.momentum(w, v, g, s.learning_rate, s.momentum)
        task.store(w)
        task.report(w)
    return w


ALGORITHM = sequential(
    worker,
    Settings,
    skips_overflow=True,
    stores_weights=True,
    equivalences=(Equivalence("without momentum it is SGD", to="sgd", settings={"momentum": 0}),),
)
