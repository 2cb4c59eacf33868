"""Update rules: what a worker does with a gradient, wherever that gradient came from.

A parallel method decides which gradient is applied when; the rule decides how. Methods that offer the choice have a
knob `update: Rule` and ask for `optimizer(s.update, w, s.momentum)`, whose `step(w, g, rate)` is one kernel call and
keeps the rule's memory. The rules themselves are read in `algorithms/sequential/` and `kernels/updates/`.
"""

from __future__ import annotations

from typing import Literal

import kernels

Rule = Literal["sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam"]

EPS = 1e-8  # keeps Adagrad's, RMSprop's and Adam's divisions finite
FORGET = 0.99  # RMSprop: what its mean square keeps of itself in a step
BETAS = 0.9, 0.999  # Adam


def state_vectors(rule: Rule) -> int:
    """How many vectors like w the rule remembers."""
    return {"sgd": 0, "adam": 2}.get(rule, 1)


def optimizer(rule: Rule, w, momentum: float = 0.9) -> Optimizer:
    """The rule of this name, for parameters like w, with empty memory."""
    return Optimizer(rule, w, momentum)


class Optimizer:
    """A rule and its memory: `state`, vectors like w."""

    def __init__(self, rule: Rule, w, momentum: float):
        self.rule, self.momentum = rule, momentum
        self.state = tuple(kernels.state_like(w) for _ in range(state_vectors(rule)))
        self.steps = 0

    def step(self, w, g, rate: float) -> None:
        """w <- w - rate rule(g), in place."""
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

    def reset(self) -> None:
        """Forget everything."""
        self.steps = 0
        for memory in self.state:
            memory[:] = 0
