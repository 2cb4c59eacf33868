"""The profile of a chain of layers: the cost of each layer, read from a table.

    layer,forward,backward,activations,weights
    conv1,0.0223,0.0246,1644167168,7168
    ...

Times are in seconds and sizes in bytes, for one mini-batch. `activations` is the size of the layer's output; the
gradient that comes back has the same size. PipeDream's own profiles can be read as well (`theory/pipedream_graph.py`).
"""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from os import PathLike

from theory import pipedream_graph

LEAST, LARGEST = 1e-15, 1e18  # s or bytes: bounds of a number that is not 0
NUMBERS = "forward", "backward", "activations", "weights"


@dataclass(frozen=True)
class Profile:
    """The costs of a chain's layers, in order. Raises ValueError for impossible numbers."""

    forward: tuple[float, ...]  # s
    backward: tuple[float, ...]  # s
    activations: tuple[float, ...]  # bytes
    weights: tuple[float, ...]  # bytes
    layers: tuple[str, ...] = ()  # names

    def __post_init__(self):
        if not self.layers:
            object.__setattr__(self, "layers", tuple(str(layer) for layer in range(len(self.forward))))
        if not self.layers:
            raise ValueError("the profile has no layers, so it cannot be cut; give it one row per layer.")
        for name in NUMBERS:
            values = getattr(self, name)
            if len(values) != len(self.layers):
                raise ValueError(f"the profile has {len(self.layers)} layers but {len(values)} entries of {name}.")
            for layer, value in zip(self.layers, values, strict=True):
                if not (value == 0 or LEAST <= value <= LARGEST):
                    raise ValueError(
                        f"{name} of layer {layer[:40]} is {value}; it must be 0, or a number from {LEAST:g} to "
                        f"{LARGEST:g}."
                    )

    @property
    def times(self) -> tuple[float, ...]:
        """The total time of the forward and backward pass of each layer, in s."""
        return tuple(f + b for f, b in zip(self.forward, self.backward, strict=True))

    def sizes(self, chunks: int = 1, copies: float = 2.0) -> tuple[float, ...]:
        """Return the memory, in bytes, that each layer needs in training: for the activations of one of `chunks`
        micro-batches, and for `copies` copies of the weights.

        `copies` covers weights, gradients and the state of the update rule: 2 to 3 for SGD, 4 to 5 for Adam.
        """
        return tuple(a / chunks + copies * w for a, w in zip(self.activations, self.weights, strict=True))


def load(path: str | PathLike) -> Profile:
    """Return the profile in the file at `path`; see `read`."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        return read(file)


def save(profile: Profile, path: str | PathLike) -> None:
    """Write the CSV file that `load` reads, without losing digits."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("layer", *NUMBERS))
        rows.writerows(zip(profile.layers, *(getattr(profile, name) for name in NUMBERS), strict=True))


def read(lines: Iterable[str]) -> Profile:
    """Return the profile in the lines of a CSV table or of PipeDream's graph.txt.

    Raise ValueError if a column or an entry is missing, an entry is not a number, or the graph is not a chain.
    """
    lines = list(lines)
    if pipedream_graph.is_graph(lines):
        return Profile(*pipedream_graph.columns(lines))
    rows = csv.DictReader(lines, skipinitialspace=True)
    wanted = ("layer", *NUMBERS)
    if missing := [name for name in wanted if name not in (rows.fieldnames or ())]:
        raise ValueError(f"the profile has no column {missing[0]!r}; it needs {', '.join(wanted)}.")
    columns: dict[str, list] = {name: [] for name in wanted}
    for number, row in enumerate(rows, 1):
        columns["layer"].append(row["layer"] or str(number))
        for name in NUMBERS:
            columns[name].append(_number(row[name], name, (row["layer"] or str(number))[:40]))
    layers, forward, backward, activations, weights = (tuple(column) for column in columns.values())
    return Profile(forward, backward, activations, weights, layers)


def _number(text: str | None, name: str, layer: str) -> float:
    if text is None or not text.strip():
        raise ValueError(f"{name} of layer {layer} is missing; every layer needs {', '.join(NUMBERS)}.")
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name} of layer {layer} is {text[:40]!r}; it must be a number of at least 0.") from None


def ranges(values: Iterable[float]) -> dict[tuple[int, int], float]:
    """Return a table of the sum of the values i..j for every (i, j)."""
    values = list(values)
    return {(i, i + n): total for i in range(len(values)) for n, total in enumerate(accumulate(values[i:]))}
