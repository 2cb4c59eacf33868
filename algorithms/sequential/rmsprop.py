"""RMSprop divides the step of every coordinate by the recent size of its gradients.

    s <- a s + (1 - a) g(w)^2        w <- w - lr g / (sqrt(s) + eps)        (eps inside: lr g / sqrt(s + eps))

Steps are about lr long however small gradients become, so with a constant rate it does not converge, even without
noise: it ends about lr / 2 from the optimum. PyTorch has eps outside the root, TensorFlow inside; that matters
where eps is not tiny, as in Inception, which was trained with 1.

Price: no communication; one more vector, s. Staleness: none.
Source: Tieleman & Hinton, Coursera: Neural Networks for Machine Learning, lecture 6.5, 2012.
"""

import kernels
from algorithms.algorithm import Knobs, knob, sequential


class Settings(Knobs):
    learning_rate: float = knob(0.002, "roughly how far each weight moves in a step", gt=0, le=1000)
    forget: float = knob(0.99, "a, decay rate of the mean squared gradient", ge=0, lt=1)
    eps: float = knob(1e-8, "small constant that keeps the division finite", ge=0, le=1000)
    eps_inside: bool = knob(False, "add eps inside the square root, as TensorFlow does")

    def places(self):
        """Return (eps added outside the root, eps added inside the root)."""
        return (0.0, self.eps) if self.eps_inside else (self.eps, 0.0)


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    squares = kernels.state_like(w)
    for _ in task.steps():
        _, g = task.gradient(w)
        if not task.is_usable(g):
            continue
        kernels.rmsprop(w, squares, g, s.learning_rate, s.forget, *s.places())
        task.report(w)
    return w


ALGORITHM = sequential(
    worker,
    Settings,
    skips_overflow=True,
    stable_rate=0.01,
)
