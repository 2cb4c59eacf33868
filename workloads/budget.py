"""Budget: the limits of a run, in steps, epochs, seconds or as a target loss. The first one that is reached ends the
run.
"""

from collections.abc import Sequence

from knobs import Knobs, knob

RECENT = 20  # number of mini-batch losses in the moving mean that is compared with a target loss


class Budget(Knobs):
    """The limits of a run, which ends once it reaches the first of them."""

    steps: int | None = knob(None, "mini-batches per worker", ge=1, le=10_000_000, unit="steps")
    epochs: float | None = knob(None, "passes over the training set", gt=0, le=10_000, unit="epochs")
    seconds: float | None = knob(None, "time on the run's own clock", gt=0, le=1e7, unit="s")
    target_loss: float | None = knob(None, "stop when the mean of 20 mini-batch losses is below this", gt=0, le=1e6)

    @property
    def open_ended(self) -> bool:
        """True if the run has a time limit or a target loss, so that it may end before all its steps are done."""
        return self.seconds is not None or self.target_loss is not None

    def limit(self, per_epoch: int) -> int | None:
        """Return the maximal number of steps of a worker with `per_epoch` batches per epoch, or None if there is no
        limit.
        """
        limits = [self.steps, None if self.epochs is None else max(1, round(self.epochs * per_epoch))]
        return min((n for n in limits if n is not None), default=None)

    def is_reached(self, seconds: float, losses: Sequence[float]) -> bool:
        """Return whether the time is up at `seconds`, or the mean of the last `RECENT` losses is at most the target."""
        if self.seconds is not None and seconds >= self.seconds:
            return True
        return self.target_loss is not None and len(losses) == RECENT and sum(losses) / RECENT <= self.target_loss
