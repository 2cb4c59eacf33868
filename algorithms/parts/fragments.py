"""Fragments: the parts of a model that are averaged in turn instead of all at once.

A fragment is a group of layers: `consecutive` ones of about equally many parameters, or `strided`, every K-th layer. A
model without layers is cut into equal pieces.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from kernels.arrays import shares

Pattern = Literal["consecutive", "strided"]


def fragments(layers: Sequence[slice], count: int, pattern: Pattern) -> list[list[slice]]:
    """Return `count` fragments, each a list of slices of w. `layers` are the slices of the layers, in order.

    A single layer, a model that cannot be cut, is cut into equal pieces. Raise ValueError if there are fewer layers, or
    parameters, than fragments.

    >>> fragments([slice(0, 6), slice(6, 8), slice(8, 16)], 2, "consecutive")
    [[slice(0, 6, None), slice(6, 8, None)], [slice(8, 16, None)]]
    """
    pieces = list(layers)
    if len(pieces) == 1:
        pieces = shares(pieces[0].stop, min(count, pieces[0].stop))
    if count > len(pieces):
        raise ValueError(
            f"{count} fragments need {count} layers, but the model has {len(pieces)}; use at most {len(pieces)}."
        )
    if pattern == "strided":
        return [pieces[first::count] for first in range(count)]
    edges = [0]
    for number in range(1, count):  # the edge nearest to an equal share that leaves a layer to every fragment
        ideal = number * pieces[-1].stop / count
        open_to = range(edges[-1] + 1, len(pieces) - count + number + 1)
        edges.append(min((abs(pieces[edge].start - ideal), edge) for edge in open_to)[1])
    return [pieces[a:b] for a, b in pairwise([*edges, len(pieces)])]
