"""Loss scaling: the gradients of a loss, multiplied by a factor that keeps small ones within the range of float16.

The gradient of the loss at the model's outputs is multiplied by the scale; a layer divides the gradients of its
parameters by it once they are float32. Powers of two change no bits on the way, except where 16 bits are too few.

A dynamic scale begins at 2^16. A gradient that is not finite has overflowed: its step is skipped, and the scale is
halved. After `window` consecutive steps without an overflow it is doubled. Ranks that average their gradients first see
an overflow on any rank in the mean, and so all skip the same steps without an extra message. Ranks that each see a part
of the gradient all-reduce one number to agree.

Source: Micikevicius et al., arXiv:1710.03740, section 3.2; torch.amp.GradScaler, whose constants these are;
torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler (agreement).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

FIRST = 65536.0
WINDOW = 2000  # steps


class LossScale:
    """The loss scale of one rank. It is `fixed` or, if that is None, dynamic."""

    def __init__(self, fixed: float | None = None, window: int = WINDOW):
        self.value = FIRST if fixed is None else float(fixed)
        self.is_dynamic, self.window = fixed is None, window
        self.skipped = 0  # steps
        self._usable = 0  # consecutive steps without an overflow since the last change

    def update(self, is_usable: bool) -> None:
        """Change a dynamic scale after a step: halve it if the step was not usable, double it after `window` usable
        steps in a row.
        """
        if not is_usable:
            self.value, self._usable, self.skipped = self.value / 2, 0, self.skipped + 1
            return
        self._usable += 1
        if self._usable == self.window:
            self.value, self._usable = 2 * self.value, 0


_SCALE: ContextVar[LossScale | None] = ContextVar("lockstep_loss_scale", default=None)


@contextmanager
def use_scale(scale: LossScale | None) -> Iterator[None]:
    """Make layers in the block multiply and divide by this loss scale. If it is None, they use 1."""
    token = _SCALE.set(scale)
    try:
        yield
    finally:
        _SCALE.reset(token)


def current_scale() -> float:
    """Return the loss scale of the calling rank, or 1 if it has none."""
    scale = _SCALE.get()
    return 1.0 if scale is None else scale.value
