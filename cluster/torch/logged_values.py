"""Values that a script logs, by rank, step and virtual time: from `lockstep.log`, and from lines that it prints.

A line is recorded if a word that ends in "loss" or "accuracy" is followed by a number, as in "epoch 3, loss: 0.31",
"val_loss=0.4" or "accuracy 0.9". Such values are named "printed loss" and so on, because a script may log and print the
same one. The step is the number of steps that the rank's optimizer has taken.
"""

import re
from collections.abc import Mapping
from typing import Any

import torch

from cluster.script_summary import PRINTED
from cluster.torch.process import Process, current

LINE = re.compile(r"\b(\w*(?:loss|accuracy))(?:\s*[:=]\s*|\s+)([-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+|nan|inf)\b)", re.I)


def log_values(values: Mapping[str, Any]) -> None:
    """Record this rank's values; outside a rank, do nothing. Raise TypeError for a value that is not a number."""
    if mine := current():
        with mine.pricer.pause():
            numbers = {name: _number(name, value) for name, value in values.items()}
        _record(mine, numbers)


def log_line(line: str) -> None:
    """Record the losses and accuracies in a line that this rank prints. Only the first value of each name counts."""
    mine = current()
    if mine and (found := LINE.findall(line)):
        numbers: dict[str, float] = {}
        for name, number in found:
            numbers.setdefault(PRINTED + name.lower(), float(number))
        _record(mine, numbers)


def _record(process: Process, numbers: dict[str, float]) -> None:
    process.pricer.charge()
    log = process.comm.event_log
    for name, number in numbers.items():
        log.measures.append((max(log.step, 0), process.rank.now, name, number))


def _number(name: str, value: Any) -> float:
    try:
        return float(value.detach() if isinstance(value, torch.Tensor) else value)
    except (TypeError, ValueError, RuntimeError):  # RuntimeError: a tensor with several elements
        raise TypeError(
            f"lockstep.log: {name} is {str(value)[:60]!r}, not a number; log numbers, or tensors of one element."
        ) from None
