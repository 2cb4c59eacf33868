"""The learning rates found by a search: `rates.toml`, one line per algorithm, workload and model.

    find_rate("easgd", "digits", "mlp")      Rate(best=0.5, loss=0.112, rate=0.5, many=0.5)

`lockstep tune --table` writes the file. The default in the settings applies only to custom models.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PATH = Path(__file__).with_name("rates.toml")
STEPS = 200  # of each run in the search
FEW = 4  # workers; sums of late gradients from many workers need smaller rates
TOO_FEW = (
    "With fewer than 4 workers its held-out loss at the default rate is up to {few:.2g} after {steps} steps; with 4, "
    "at the best rate, it is {best:.2g}. Neither this rate nor half of it suits every number of workers from 1 to 4. "
    "Give it more steps, or more workers."
)
TOO_MANY = (
    "With more than 4 workers its held-out loss is up to {many:.2g} after {steps} steps at every rate tried; "
    "with 4 it is {best:.2g}. Give it more steps, or fewer workers."
)
STAND_INS = {"mnist": "digits"}  # workloads that use another one's rates: images of digits, only larger


@dataclass(frozen=True)
class Rate:
    """A line of the table of learning rates.

    It was found with 200 steps, batches of 32, and 4 workers, or as many as the model can be cut for. A rate suits a
    number of workers if, with every seed, it ends at a low enough held-out loss.

    best        the rate with the lowest final held-out loss, averaged over seeds; lower and higher rates are worse
    loss        the final held-out loss at `best`
    rate        the default for up to 4 workers: `best` or half of it, the larger one that suits 1 to 4 workers; if
                neither does, the fewest workers decide
    many        the default for more than 4 workers: `rate`, or a half, quarter, eighth or sixteenth of it, the largest
                one that suits 6, 8 and 16 workers; if 16 are impossible, as in a pipeline of few layers, the largest
                one that suits every possible number above 4
    many_loss   if none of these suits them, the final held-out loss of more than 4 workers at `many`, with the worst
                seed and number of workers; else 0
    few_loss    if neither `best` nor half of it suits 1 to 4 workers, and `rate` does not suit fewer than 4, their
                final held-out loss at `rate`, with the worst seed and number of workers; else 0
    note        a warning, if even the best rate ends far above the lowest loss of all methods; else ""
    """

    best: float
    loss: float
    rate: float
    many: float
    many_loss: float = 0.0
    few_loss: float = 0.0
    note: str = ""

    def default(self, workers: int) -> float:
        return self.rate if workers <= FEW else self.many

    def notes(self, workers: int) -> list[str]:
        """Return notes on training with this many workers, for as many steps as the search, at the default rate."""
        sparse = TOO_FEW.format(steps=STEPS, few=self.few_loss, best=self.loss)
        crowded = TOO_MANY.format(steps=STEPS, many=self.many_loss, best=self.loss)
        return (
            [sparse] * bool(self.few_loss and workers < FEW)
            + [crowded] * bool(self.many_loss and workers > FEW)
            + [self.note] * bool(self.note)
        )


def find_rate(algorithm: str, workload: str, model: str = "") -> Rate | None:
    """Return the line of an algorithm, given by its short name, for a workload and its model; None if there is none."""
    return table().get(pair(STAND_INS.get(workload, workload), model), {}).get(algorithm)


def pair(workload: str, model: str = "") -> str:
    """Return the name of the part of the table for a workload and model, such as "digits-cnn".

    If the workload has only one model, it is the name of the workload, such as "sparse".
    """
    return f"{workload}-{model}" if model else workload


@cache
def table() -> dict[str, dict[str, Rate]]:
    """Return the whole table, {part: {algorithm: Rate}}; {} if the file is missing."""
    if not PATH.exists():
        return {}
    parts = tomllib.loads(PATH.read_text("utf-8"))
    return {part: {name: _line(**line) for name, line in lines.items()} for part, lines in parts.items()}


def _line(note: str = "", **numbers: float) -> Rate:
    return Rate(**{name: float(number) for name, number in numbers.items()}, note=note)


def write(lines: dict[str, dict[str, Rate]], path: Path = PATH) -> None:
    """Write a table with one line for each algorithm, in the order of `lines`: {part: {algorithm: rates}}."""
    text = ["# Written by `lockstep tune --table`; algorithms/rates.py explains the columns.\n"]
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
