"""Check the arguments that a solution passes to `comm` and `task`, and report each misuse with a readable message.

A wrong argument is reported before it reaches the cluster, where it would fail on another line, or not at all.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cluster.shared_memory import GUARDS

NUMBER = 2**31 - 1  # the largest tag, step or color
QUANTITY = 60  # characters in the name of a quantity

Takes = tuple[tuple[str, Callable[..., bool]], ...]
"""For each argument of a method, what it must be, in words, and the test."""


class Misuse(Exception):
    """Raised for a call with an invalid argument. The message is a sentence for the author of the solution."""


def check(
    what: str, given: tuple[Any, ...], size: int, vector: Callable[[], int], takes: Mapping[str, Takes] | None = None
) -> None:
    """Raise Misuse unless `given` are valid arguments for `what`, a method of comm or task, in a group of `size` ranks.

    `vector()` is the length of this rank's parameters. `takes` overrides TAKES for methods whose arguments a check
    defines differently.
    """
    for value, (asked, fits) in zip(given, (TAKES | dict(takes or {})).get(what, ()), strict=False):
        if not fits(value, size, vector):
            owner = "task" if what in TASK else "comm"
            asked = asked.format(last=size - 1, d=vector() if "{d}" in asked else 0)
            raise Misuse(f"{owner}.{what} takes {asked}, but got {describe_value(value)}.")


def describe_value(value: Any) -> str:
    """Return a value in the form in which messages quote it.

    An array is described by its type and shape, a long list by its length, and anything else by its shortened repr.
    """
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    if isinstance(value, list | tuple | dict) and len(value) > 5:
        return f"a {type(value).__name__} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _whole(value: Any, *_: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= NUMBER


def _rank(value: Any, size: int, _: Any) -> bool:
    return _whole(value) and value < size


def _number(value: Any, *_: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < 1e300 and math.isfinite(value)


def _quantity(value: Any, *_: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= QUANTITY


def _parameters(value: Any, _: int, vector: Callable[[], int]) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.shape == (vector(),)


def _message(value: Any, *_: Any) -> bool:
    if isinstance(value, tuple):
        return all(_message(part) for part in value)
    return value is None or isinstance(value, int | float | np.ndarray)


def _one_of(*allowed: Any) -> Callable[..., bool]:
    return lambda value, *_: isinstance(value, str | bool | None) and value in allowed


RANK = "the number of a rank, from 0 to {last}", _rank
TAG = f"a tag that is a whole number from 0 to {NUMBER}", _whole
MESSAGE = "a message: None, a number, an array, or a tuple of these", _message
PARAMETERS = "a vector of {d} floats, as task.start() returns it", _parameters
BATCH = "the number of a mini-batch, a whole number from 0", _whole
INPUT = "an array, or None", lambda value, *_: value is None or isinstance(value, np.ndarray)
ARRAY = "an array", lambda value, *_: isinstance(value, np.ndarray)
OP = "the op 'sum' or 'mean'", _one_of("sum", "mean")

TAKES: dict[str, Takes] = {
    "send": (MESSAGE, RANK, TAG),
    "isend": (MESSAGE, RANK, TAG),
    "recv": (RANK, TAG),
    "irecv": (RANK, TAG),
    "recv_any": (TAG,),
    "poll": (TAG,),
    "broadcast": (MESSAGE, RANK),
    "all_gather": (MESSAGE,),
    "all_reduce": (
        (INPUT[0], lambda *_: True),  # `hosted.py` says what a vector of floats is
        OP,
        ("True or False for async_op", _one_of(True, False)),
        ("a priority that is a whole number", lambda value, *_: _whole(abs(value)) if type(value) is int else False),
    ),
    "reduce_scatter": ((INPUT[0], lambda *_: True), OP),
    "split": (("a color, a whole number from 0 or None", lambda value, *_: value is None or _whole(value)),),
    "shared": ((INPUT[0], lambda *_: True), (f"a guard, one of {', '.join(GUARDS)}", _one_of(*GUARDS))),
    "gradient": (PARAMETERS,),
    "report": (PARAMETERS,),
    "measure": (
        (f"the name of a quantity, a text of 1 to {QUANTITY} characters", _quantity),
        ("a number as the value of a quantity", _number),
    ),
    "at": (("a whole number of steps from 0", _whole),),
    "forward": (PARAMETERS, INPUT, BATCH),
    "backward": (PARAMETERS, INPUT, BATCH),
    "classify": (ARRAY, ARRAY, BATCH),
}
TASK = {"gradient", "report", "measure", "at", "forward", "backward", "classify"}
