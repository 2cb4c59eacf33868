"""Fragments: parts of a model that are averaged in turn instead of all at once, and the settings that schedule them.

A fragment is a group of layers: `consecutive` ones of about equally many parameters, or `strided`, every K-th layer. A
model without layers is cut into equal pieces.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from algorithms.algorithm import Knobs, knob
from algorithms.parts.optimizers import HEAVY, Rule
from kernels.arrays import shares
from knobs import Refusal, multiples

Pattern = Literal["consecutive", "strided"]


class FragmentSettings(Knobs):
    """Knobs of methods that take an outer step on each fragment of a model in turn."""

    learning_rate: float = knob(0.005, "step size of the inner steps", gt=0, le=1000)
    period: int = knob(
        20, "H, inner steps between two outer steps of a fragment", ge=1, le=10_000, unit="steps", postpones=True
    )
    fragments: int = knob(2, "K, parts of the model that are averaged in turn", ge=1, le=1000)
    pattern: Pattern = knob("strided", "layers of a fragment: consecutive ones, or every K-th (strided)")
    overlap: int = knob(1, "tau, inner steps while a fragment travels", ge=0, le=9999, unit="steps")
    own_share: float = knob(
        0.5, "alpha, share of its own fragment that a worker keeps at an outer step; 0 overwrites it", ge=0, le=1
    )
    outer_rate: float = knob(0.7, "step size of the outer update", gt=0, le=100)
    outer_momentum: float = knob(
        0.9, "mu of the outer steps, the fraction of each step carried into the next", ge=0, lt=1
    )
    update: Rule = knob("adam", "inner optimizer")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)

    @property
    def turn(self) -> int:
        """The number of inner steps between the outer steps on two successive fragments."""
        return self.period // self.fragments


def check_turns(workload, s: FragmentSettings) -> None:
    """Raise ValueError if the turns differ in length, are too short for the overlap, or outnumber the layers."""
    if s.period % s.fragments:
        near = [period for period in multiples(s.fragments, s.period) if period]
        raise Refusal(
            f"a period of {s.period} steps cannot be divided equally among {s.fragments} fragments; use a period "
            f"of {' or '.join(map(str, near))}.",
            near,
        )
    if s.overlap >= s.turn:
        raise ValueError(
            f"an overlap of {s.overlap} steps is too long, since the next fragment is sent after {s.turn}, the period "
            f"divided by the number of fragments; use an overlap of at most {s.turn - 1}, or a longer period."
        )
    most = workload.depth if workload.depth > 1 else workload.parameters
    if s.fragments > most:
        of = "layers" if workload.depth > 1 else "parameters"
        raise ValueError(f"{s.fragments} fragments are too many for a model of {most} {of}; use at most {most}.")


def fragments(layers: Sequence[slice], count: int, pattern: Pattern) -> list[list[slice]]:
    """Return `count` fragments, each a list of slices of w. `layers` are the slices of the layers, in order.

    A single layer means that the model cannot be cut between layers; it is divided into equal pieces. Raise ValueError
    if there are fewer layers, or parameters, than fragments.

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
