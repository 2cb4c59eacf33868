"""Answers to the quiz on pipelined back-propagation, computed from schedules, by closed forms, or by small runs."""

from algorithms.pipelined import petrowski, pipemare
from lessons.pipelined_backprop import experiments
from theory import staleness
from theory.balance import striped_speed_up as speed_up
from theory.delay import largest_rate

AT_BEST = {1: 0.0256, 2: 0.0128, 8: 0.0032}  # stages -> rate; the figure `deeper` tries others


def late(run, stages: int, stage: int) -> float:
    """Return how many updates a stage makes between a mini-batch's forward pass and that mini-batch's update."""
    return _delay(petrowski, stages, stage)


def kept(run, stages: int, stage: int) -> float:
    """Return the largest number of mini-batches that are ever between their forward and backward pass on a stage."""
    held, most = 0, 0
    for op in petrowski.schedule(stage, stages, 4 * stages):
        held += {"F": 1, "B": -1}.get(op.kind, 0)
        most = max(most, held)
    return most


def deeper(run, stages: int, rates: str) -> str:
    """Compare the final loss with this many stages to that with one stage: "lower", "alike", "higher" or "far".

    "far" means at least five times as high.
    """
    small = rates.startswith("Both")
    one, many = (experiments.loss_in_slots(run, n, 0.0016 if small else AT_BEST[n]) for n in (1, stages))
    ratio = many / one
    return "lower" if ratio < 0.9 else "alike" if ratio < 1.1 else "higher" if ratio < 5 else "far"


def edge(run, stages: int) -> float:
    """Return the ratio of two largest stable learning rates: that for a fresh gradient, and that for the late gradient
    of the first stage.
    """
    return largest_rate(0) / largest_rate(2 * (stages - 1))


def follows(run, stages: int, reads: str) -> str:
    """Return the weights at which a mini-batch's update is the gradient of the loss: the "newest", those that its
    forward pass "met", or "nothing" for neither.

    `reads` says which weights each pass reads.
    """
    how = {"hops": 0} if reads.startswith("Each") else {"stash": "very weights" in reads}
    return _gradient_of(experiments.distances(run, stages, 10, **how))


def other(run, order: str) -> str:
    """Return the same as `follows` for a pipeline with another order of passes, on four stages."""
    how = {"hops": 0} if order.startswith("Each") else {"hops": 1, "stash": "went forward on" in order}
    return _gradient_of(experiments.distances(run, 4, 10, **how))


def _gradient_of(distances: list[float]) -> str:
    met, newest, _ = distances
    return "newest" if newest < 1e-6 else "met" if met < 1e-6 else "nothing"


def divided(run, stages: int, stage: int) -> float:
    """Return the ratio of PipeMare's initial learning rates on two stages, the last one and `stage`."""
    return _delay(pipemare, stages, stage) / _delay(pipemare, stages, stages - 1)


def striped(run, machines: int, units: int, top: str) -> float:
    """Return the speed-up of this many machines over one machine.

    There are eight equal layers and a last one that is `units` times as large. The last layer is split into half as
    many stripes as machines if `top` says so.
    """
    return speed_up([1] * 8 + [units], machines, machines // 2 if "stripes" in top else 1)


def which(run, asked: str) -> str:
    """Return the only method that meets the requirement `asked`."""
    fits = {"the last": "own", "errors no": "half", "both passes": "guess", "one rate": "plain"}
    return next(key for begins, key in fits.items() if asked.startswith(begins))


def _delay(pipeline, stages: int, stage: int) -> int:
    return staleness.count(pipeline.schedule(stage, stages, 4 * stages))[stage].delay[-1]
