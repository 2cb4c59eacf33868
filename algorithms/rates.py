"""Learning rates that were searched for: `rates.toml`, one line for each algorithm on each workload and model.

    known("easgd", "digits", "mlp")      Rate(best=0.5, loss=0.112, rate=0.5, many=0.5)

`lockstep tune --table` writes the file. The default of the settings is for models of one's own.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PATH = Path(__file__).with_name("rates.toml")
STEPS = 200  # of the runs that were searched
FEW = 4  # workers; gradients that many workers add up, each of them late, bear smaller rates
TOO_FEW = (
    "With fewer than 4 workers its held-out loss is up to {few:.2g} after {steps} steps, and half the rate does not "
    "mend it for all numbers up to 4; with 4 it is {best:.2g}. Give it more steps, or more workers."
)
TOO_MANY = (
    "With more than 4 workers its held-out loss is up to {many:.2g} after {steps} steps at every rate that was tried; "
    "with 4 it is {best:.2g}. Give it more steps, or fewer workers."
)
STAND_INS = {"mnist": "digits"}  # workloads that begin with the rates of another one: images of digits, only larger


@dataclass(frozen=True)
class Rate:
    """A line of the table. 200 steps, batches of 32, 4 workers, or as many as the model can be cut for.

    best   the rate of the lowest held-out loss at the end, in the mean over seeds; lower and higher rates are worse
    loss   that held-out loss
    rate   the default for up to 4 workers: `best`, or the half of it, if fewer workers bear no more and 4 bear it
    many   the default for more: `rate`, or the half, quarter, eighth or sixteenth of it that 6, 8 and 16 bear; of
           what cannot have 16, as a pipeline of few layers, that which every number above 4 bears
    many_loss   the held-out loss, of the worst seed, at which these end where they bear none of these parts; or 0
    few_loss   that at which fewer than 4 workers end at `rate`, of the worst seed, where 1 to 4 bear neither
               `best` nor its half; or 0
    note   what is to be known where even the best rate ends far above the lowest loss of all methods; "" elsewhere
    """

    best: float
    loss: float
    rate: float
    many: float
    many_loss: float = 0.0
    few_loss: float = 0.0
    note: str = ""

    def default(self, workers: int) -> float:
        """Return the default rate for so many workers."""
        return self.rate if workers <= FEW else self.many

    def notes(self, workers: int) -> list[str]:
        """Return what is to be known of so many workers at the default rate, in so few steps, in sentences."""
        sparse = TOO_FEW.format(steps=STEPS, few=self.few_loss, best=self.loss)
        crowded = TOO_MANY.format(steps=STEPS, many=self.many_loss, best=self.loss)
        return (
            [sparse] * bool(self.few_loss and workers < FEW)
            + [crowded] * bool(self.many_loss and workers > FEW)
            + [self.note] * bool(self.note)
        )


def known(algorithm: str, workload: str, model: str = "") -> Rate | None:
    """Return the line of an algorithm (short name) on a workload and its model; None if there is none."""
    return table().get(pair(STAND_INS.get(workload, workload), model), {}).get(algorithm)


def pair(workload: str, model: str = "") -> str:
    """Return the name of a part of the table: "digits-cnn", or "sparse" where there is no choice of models."""
    return f"{workload}-{model}" if model else workload


@cache
def table() -> dict[str, dict[str, Rate]]:
    """Return the whole table: pair -> algorithm -> Rate."""
    if not PATH.exists():
        return {}
    parts = tomllib.loads(PATH.read_text("utf-8"))
    return {part: {name: _line(**line) for name, line in lines.items()} for part, lines in parts.items()}


def _line(note: str = "", **numbers: float) -> Rate:
    return Rate(**{name: float(number) for name, number in numbers.items()}, note=note)


def write(lines: dict[str, dict[str, Rate]], path: Path = PATH) -> None:
    """Write a table, parts and algorithms in the order given, one line each."""
    text = ["# Written by `lockstep tune --table`; algorithms/rates.py says what the columns are.\n"]
    for part, rates in lines.items():
        text.append(f"\n[{part}]\n")
        for name, one in rates.items():
            values = f"best = {one.best:g}, loss = {one.loss:.4g}, rate = {one.rate:g}, many = {one.many:g}"
            values += f", many_loss = {one.many_loss:.4g}" * bool(one.many_loss)
            values += f", few_loss = {one.few_loss:.4g}" * bool(one.few_loss)
            values += f', note = "{one.note}"' * bool(one.note)
            text.append(f"{name} = {{ {values} }}\n")
    path.write_text("".join(text), "utf-8")
    table.cache_clear()
