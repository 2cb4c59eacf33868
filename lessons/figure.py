"""A figure: an experiment of the textbook that can be run again, with claims about its outcome.

    @figure("Does a gradual warm-up beat a sudden start?", source="Goyal et al., 2017, section 2.2",
            claims={"the gradual warm-up ends at a lower loss than the constant one":
                    lambda rows: value(rows, "loss", start="gradual") < value(rows, "loss", start="constant")},
            look=Look("start", ("loss",), kind="bar"))
    def warm_up(run):
        for start in ("none", "constant", "gradual"):
            done = run(algorithm="large_batch", learning_rate=0.1, warm_up=start, workers=8, epochs=10)
            yield {"start": start, "loss": done.summary["held_out_loss"]}

A figure is a function of `run(**settings of an experiment) -> Run` that yields rows (or returns a list of them),
dicts of plain values. It is called with five seeds (`lessons.seeds`): means are drawn and printed, with the spread.
Each claim is a sentence about the *shape* (which curve is higher, where it bends) with its test, which the rows of
every seed must pass. A figure takes at most 30 s with all seeds. `look` says how rows are drawn, so that the comparison
is visible; every figure of the book has one.
"""

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite
from pathlib import Path
from typing import Any

from experiments.viewer.look import Look as Look
from experiments.viewer.look import Rows
from lessons.seeds import Seeded
from lessons.seeds import run_now as run_now


@dataclass(frozen=True)
class Figure:
    """A figure of the book: an experiment that answers `question`. `source` names the literature, and `claims` maps
    sentences to functions that test them on the rows.
    """

    name: str
    question: str
    source: str
    claims: Mapping[str, Callable[[Rows], bool]]
    rows: Callable[[Seeded], Rows]  # runs the experiments under one seed
    text: str
    look: Look | None = None


def figure(question: str, *, source: str, claims: Mapping[str, Callable[[Rows], bool]], look: Look | None = None):
    """Return a decorator that turns a function `name(run)`, which yields or returns rows, into a Figure. The function's
    docstring becomes the figure's text, which tells readers what to look at.
    """

    def made(make: Callable[[Seeded], Iterable[dict[str, Any]]]) -> Figure:
        text = inspect.cleandoc(make.__doc__ or "")
        return Figure(make.__name__, question, source, claims, lambda run: [*make(run)], text, look)

    return made


def read_statements(folder: Path) -> list[ast.stmt]:
    """Return the statements of a chapter's experiments as syntax trees, from experiments.py or from the files of the
    folder experiments/.

    The files are parsed, not run, because their imports take seconds.
    """
    files = [folder / "experiments.py", *sorted((folder / "experiments").glob("*.py"))]
    return [node for path in files if path.is_file() for node in ast.parse(path.read_text("utf-8")).body]


def questions_in(folder: Path) -> dict[str, str]:
    """Return {name: question} for the figures of the chapter in `folder`, in the order of its files. Nothing is run."""
    found = {}
    for node in read_statements(folder):
        for call in getattr(node, "decorator_list", ()):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "figure":
                found[node.name] = ast.literal_eval(call.args[0])
    return found


def matching(rows: Rows, **where: Any) -> Rows:
    """Return the rows that match all values of `where`."""
    return [row for row in rows if all(row[name] == wanted for name, wanted in where.items())]


def value(rows: Rows, quantity: str, **where: Any) -> Any:
    """Return `quantity` of the row that matches all values of `where`. Raise ValueError unless exactly one row
    matches.
    """
    found = matching(rows, **where)
    if len(found) != 1:
        raise ValueError(f"{len(found)} rows have {where}; expected one.")
    return found[0][quantity]


def column(rows: Rows, quantity: str, **where: Any) -> list:
    """Return `quantity` of every row that matches all values of `where`."""
    return [row[quantity] for row in matching(rows, **where)]


def ratio(rows: Rows, quantity: str, **where: Any) -> float:
    """Return the ratio of `quantity` in two rows. An argument that is a pair gives the values of its column in the
    first and the second row.

    For example, this is EASGD's loss as a multiple of Downpour's:

        ratio(rows, "loss", method=("EASGD", "Downpour"), period=16)
    """
    above, below = (
        {name: pair[side] if isinstance(pair, tuple) else pair for name, pair in where.items()} for side in (0, 1)
    )
    return value(rows, quantity, **above) / value(rows, quantity, **below)


def is_rising(values: Sequence[float]) -> bool:
    """True if every value is larger than the one before."""
    return all(before < after for before, after in pairwise(values))


def is_falling(values: Sequence[float]) -> bool:
    """True if every value is smaller than the one before."""
    return all(before > after for before, after in pairwise(values))


def columns_read(claim: Callable[[Rows], bool], rows: Rows) -> set[str]:
    """Return the names of the columns of `rows` that a claim reads."""
    names = set()

    class Read(dict):
        def __getitem__(self, name):
            names.add(name)
            return super().__getitem__(name)

        get = __getitem__

    claim([Read(row) for row in rows])
    return names


def interior(losses: Mapping[float, float]) -> float:
    """Return the learning rate with the lowest loss in `losses`, which maps rates to losses. Raise ValueError if it is
    the smallest or largest rate tried.
    """
    best = min(losses, key=lambda rate: losses[rate] if isfinite(losses[rate]) else inf)
    if best in (min(losses), max(losses)):
        raise ValueError(f"the best of the rates {sorted(losses)} is {best}, at an end; try more rates beyond it.")
    return best
