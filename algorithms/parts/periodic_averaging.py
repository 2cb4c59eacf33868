"""Meetings: what happens to the memories of local update rules, and what a meeting costs.

Replicas that train alone for `period` steps and then average their models each have a local rule, such as momentum or
Adam, with a memory of its own. At a meeting the memories are kept as they are, emptied, or averaged as the model is.
"""

from typing import Literal

import kernels
from algorithms.parts.optimizers import memories

State = Literal["keep", "reset", "average"]


def sync_optimizer_state(comm, rule, state: State) -> None:
    """Do to the memory of `rule` what `state` says. Averaged as a sum, which no compression of gradients touches."""
    if state == "reset":
        rule.reset()
    elif state == "average":
        for memory in rule.state:
            comm.all_reduce(memory)
            kernels.scale(memory, 1 / comm.size)


def elements_sent(shape, s) -> int:
    """Numbers moved by all meetings, the one at the end among them, by the ring."""
    meetings = -(-shape.steps // s.period)
    vectors = 1 + (memories(s.update) if getattr(s, "state", "keep") == "average" else 0)
    return 2 * (shape.workers - 1) * shape.parameters * vectors * meetings
