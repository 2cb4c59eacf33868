"""Update rules that a parallel algorithm applies to its gradients.

The algorithm decides which gradient is applied when; the optimizer decides how. Algorithms that offer the choice have a
setting `update: Rule` and make `optimizer(s.update, w, s.momentum)`, whose `step(w, g, rate)` is one kernel call. The
rules themselves are in `algorithms/sequential/` and `kernels/updates/`.
"""

from __future__ import annotations

from typing import Literal

import kernels

Rule = Literal["sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam"]
HEAVY = {"update": ("momentum", "nesterov")}
"""The rules that have a velocity; only with these, a setting `momentum` next to `update: Rule` has an effect."""

EPS = 1e-8  # in the denominators of Adagrad, RMSprop and Adam
FORGET = 0.99  # RMSprop: decay of the mean square
BETAS = 0.9, 0.999  # Adam


def state_vectors(rule: Rule) -> int:
    """Return the number of state vectors of the rule, each as long as w."""
    return {"sgd": 0, "adam": 2}.get(rule, 1)


def optimizer(rule: Rule, w, momentum: float = 0.9) -> Optimizer:
    """Return an optimizer with this rule for parameters like w, with zero state."""
    return Optimizer(rule, w, momentum)


class Optimizer:
    """An update rule with its `state`, vectors like w."""

    def __init__(self, rule: Rule, w, momentum: float):
        self.rule, self.momentum = rule, momentum
        self.state = tuple(kernels.state_like(w) for _ in range(state_vectors(rule)))
        self.steps = 0

    def step(self, w, g, rate: float) -> None:
        """Update w with the gradient g, in place."""
        self.steps += 1
        if self.rule == "sgd":
            kernels.sgd(w, g, rate)
        elif self.rule == "momentum":
            kernels.momentum(w, *self.state, g, rate, self.momentum)
        elif self.rule == "nesterov":
            kernels.nesterov(w, *self.state, g, rate, self.momentum)
        elif self.rule == "adagrad":
            kernels.adagrad(w, *self.state, g, rate, EPS)
        elif self.rule == "rmsprop":
            kernels.rmsprop(w, *self.state, g, rate, FORGET, EPS)
        else:
            kernels.adam(w, *self.state, g, self.steps, rate, *BETAS, EPS)

    def try_step(self, w, g, rate: float) -> None:
        """Update w as `step` would, in place, but leave the optimizer's state as it was."""
        steps, state = self.steps, [kernels.copy(vector) for vector in self.state]
        self.step(w, g, rate)
        self.steps = steps
        for vector, before in zip(self.state, state, strict=True):
            vector[:] = before

    def reset(self) -> None:
        self.steps = 0
        for vector in self.state:
            vector[:] = 0
