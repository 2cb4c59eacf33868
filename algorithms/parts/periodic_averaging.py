"""The cost of a round of periodic averaging, and its effect on the state of the workers' optimizers.

Workers that train on their own for `period` steps and then average their models each have a local optimizer, such as
momentum or Adam. In an averaging round its state is kept as it is, reset, or averaged like the model.
"""

from typing import Literal

import kernels
from algorithms.parts.optimizers import state_vectors

StatePolicy = Literal["keep", "reset", "average"]


def sync_optimizer_state(comm, rule, policy: StatePolicy) -> None:
    """Apply `policy` to the state of the optimizer `rule`, in place.

    The average is formed as a sum, which no compression of gradients touches.
    """
    if policy == "reset":
        rule.reset()
    elif policy == "average":
        for vector in rule.state:
            comm.all_reduce(vector)
            kernels.scale(vector, 1 / comm.size)


def elements_sent(shape, s) -> int:
    """Return the number of elements sent in all rounds.

    A round is a ring all-reduce of one vector. The last round ends the training.
    """
    rounds = -(-shape.steps // s.period)
    return 2 * (shape.workers - 1) * shape.parameters * rounds


def elements_sent_with_state(shape, s) -> int:
    """Return `elements_sent` for algorithms with a setting `state`, which may send the optimizer's state too."""
    vectors = 1 + (state_vectors(s.update) if s.state == "average" else 0)
    return vectors * elements_sent(shape, s)
