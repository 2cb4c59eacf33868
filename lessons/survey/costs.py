"""The costs of every method in the catalogue, as symbolic formulas and as numbers for a model and a cluster.

Formulas are in algorithms/catalogue.toml and are tested against runs (tests/contract/test_costs.py). Settings in a
formula are those of the module, unless the reader gives others.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from jinja2 import UndefinedError

import algorithms
from algorithms.catalogue import CATALOGUE, DECLARED
from algorithms.parts.topology import neighbours
from lessons.markup import JINJA

QUANTITIES = ("computation", "communication", "memory", "server", "staleness")
SYMBOLS = {
    "N": "workers that train",
    "S": "stages of a pipeline, or modules: as many as workers, unless the method has a setting",
    "s": "the stage, or module, from 0 to S - 1",
    "d": "parameters of the model",
    "B": "samples of a step: of each worker, or of all where they share samples",
    "F": "FLOPs of the forward pass of one sample; backward takes twice as many",
    "A": "activations that one step's forward pass keeps, of the whole model",
    "a": "numbers per sample that cross from one stage to the next",
    "o": "outputs of the model, per sample",
    "y": "numbers in a label",
    "l": "parameters of the largest layer",
    "E": "steps of a worker in a pass over the data",
    "H": "period: steps between two exchanges",
    "M": "micro-batches of a step",
    "v": "stages that a rank holds",
    "T": "ranks that share a layer",
    "G": "groups that each hold the whole model",
    "D": "replicas of the pipeline",
    "g": "neighbours of a worker, on average",
    "k": "delay, in steps",
    "c": "mini-batches of each worker in an update",
    "m": "past steps from which L-BFGS computes a direction",
    "n": "of n-softsync: updates in which every worker takes part once",
    "b": "samples of one write to shared memory",
    "e": "passes from one anchor to the next",
    "q": "numbers that an auxiliary network keeps",
    "Q": "FLOPs of an auxiliary network in a step",
}
SETTINGS = {
    "H": "period",
    "M": "chunks",
    "v": "pieces",
    "T": "tensor",
    "S": "stages",
    "G": "groups",
    "k": "delay",
    "c": "accumulate",
    "m": "memory",
    "n": "splits",
    "b": "per_write",
    "e": "passes",
}
"""Symbols that are settings of modules."""
CHOSEN = ("H", "M")  # settings that a reader may choose for all methods at once
WORDS = {"ceil": math.ceil, "min": min, "max": max}


@dataclass(frozen=True)
class Costs:
    """The formulas of one method; "" if there is none, in which case `unproven` says why."""

    computation: str
    communication: str
    memory: str
    staleness: str
    approximation: str
    server: str = ""
    at_most: Sequence[str] = ()  # quantities whose formula is an upper bound
    unproven: Mapping[str, str] = field(default_factory=dict)

    def formula_text(self, quantity: str) -> str:
        """Return a formula in readable form, "2 (N-1) d", or the reason why there is none."""
        formula = getattr(self, quantity).replace("*", " ")
        bound = "at most " if quantity in self.at_most else ""
        return bound + formula if formula else self.unproven.get(quantity, "")

    def evaluate(self, quantity: str, symbols: Mapping[str, float]) -> float | None:
        """Return the value of a formula, the largest over stages if it depends on them; None if it has no value."""
        formula = getattr(self, quantity)
        if not formula:
            return None
        expression = JINJA.compile_expression(formula, undefined_to_none=False)
        stages = range(int(symbols["S"])) if "s" not in symbols else [symbols["s"]]
        try:
            return max(float(expression(**WORDS, **{**symbols, "s": s})) for s in stages)
        except UndefinedError:  # a symbol of an auxiliary network, which the reader does not choose
            return None


@cache
def every() -> dict[str, Costs]:
    """Return the costs of every method in the catalogue, by short name: its family's, except for those of its own."""
    found = {}
    for entry in CATALOGUE:
        family, _, name = entry.partition(".")
        common, own = DECLARED["families"][family], DECLARED[entry]
        unproven = common.get("unproven", {}) | own.get("unproven", {})
        values = common | own | {quantity: "" for quantity in unproven if not own.get(quantity)}
        values["unproven"] = {quantity: why for quantity, why in unproven.items() if not values[quantity]}
        del values["title"]
        found[name] = Costs(**values)
    return found


@dataclass(frozen=True)
class Stack:
    """A stack of equal dense layers: all sizes follow from their number and width."""

    layers: int
    width: int

    @property
    def parameters(self) -> int:
        """The number of weights and biases."""
        return self.layers * (self.width**2 + self.width)

    def symbols(self, batch: int) -> dict[str, float]:
        """Return the values of the symbols that depend on the model and the batch."""
        layer = self.width**2 + self.width
        return {
            "d": self.parameters,
            "l": layer,
            "F": 2 * self.layers * self.width**2,
            "B": batch,
            "A": batch * self.layers * self.width,
            "a": self.width,
            "o": self.width,
            "y": 1,
        }


MODELS = {
    "8 layers of 64": Stack(8, 64),
    "7 layers of 2,048": Stack(7, 2048),
    "32 layers of 4,096": Stack(32, 4096),
    "96 layers of 12,288": Stack(96, 12288),
}


def symbols(
    name: str, model: Mapping[str, float], workers: int, chosen: Mapping[str, Any] | None = None
) -> dict[str, float]:
    """Return the values of the symbols in a method's formulas; `chosen` overrides settings, as in {"H": 16}."""
    settings = algorithms.find(name).Settings().model_dump()
    values = {"N": workers, "S": workers, "E": 100, **model}
    for symbol, setting in SETTINGS.items():
        if isinstance(settings.get(setting), int | float):
            values[symbol] = (chosen or {}).get(symbol, settings[setting])
    if "topology" in settings and workers > 1:
        values["g"] = sum(map(len, neighbours(settings["topology"], workers))) / workers
    if "T" in values and "S" in values:
        values["D"] = max(1, workers // int(values["T"] * values["S"]))
    return values
