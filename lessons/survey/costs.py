"""The costs of every method in the catalogue, as symbolic formulas and as numbers for a model and a cluster.

Formulas are in algorithms/catalogue.toml and are tested against runs (tests/contract/test_costs.py). Settings in a
formula are those of the module, unless the reader gives others.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from jinja2 import UndefinedError

import algorithms
from algorithms.catalogue import CATALOGUE, DECLARED
from algorithms.parts.topology import neighbours
from lessons.markup import JINJA

QUANTITIES = ("computation", "communication", "memory", "server", "staleness", "idle", "late")
SYMBOLS = {
    "N": "workers that train",
    "S": "stages of a pipeline, or modules: as many as workers, unless the method has a setting for them",
    "s": "the stage, or module, from 0 to S - 1",
    "d": "parameters of the model",
    "B": "samples of a step: of each worker, or of all together if workers share samples",
    "F": "FLOPs of the forward pass of one sample; backward takes twice as many",
    "A": "activations of the whole model that one step's forward pass keeps",
    "t": "numbers per sample that tensor parallelism sums over all ranks",
    "u": "numbers per sample in the keys of all attention layers: 0 in models without attention",
    "x": "parameters of all experts: 0 in models without experts",
    "a": "numbers per sample that cross from one stage to the next, on average",
    "r": "work of the slowest stage, as a multiple of the average: 1 if stages are alike",
    "o": "outputs of the model, per sample",
    "y": "numbers in a label",
    "l": "parameters of the largest layer",
    "E": "steps of a worker in a pass over the data",
    "H": "period: steps between two exchanges",
    "p": "fraction of the parameters that are sent in a step",
    "K": "fragments of the model, averaged in turn",
    "M": "micro-batches of a step",
    "v": "stages that a rank holds",
    "T": "ranks that share a layer",
    "G": "groups that each hold the whole model",
    "C": "ranks that share each sequence",
    "D": "replicas of the pipeline",
    "g": "neighbours of a worker, on average",
    "k": "delay, in steps",
    "c": "mini-batches of each worker in an update",
    "m": "past steps from which L-BFGS computes a direction",
    "n": "in n-softsync: updates for every N gradients",
    "b": "samples of one write to shared memory",
    "e": "passes from one anchor to the next",
    "q": "numbers that an auxiliary network keeps",
    "Q": "FLOPs of an auxiliary network in a step",
}
SETTINGS = {
    "H": "period",
    "p": "fraction",
    "K": "fragments",
    "M": "chunks",
    "v": "pieces",
    "T": "tensor",
    "S": "stages",
    "C": "context_ranks",
    "G": "groups",
    "k": "delay",
    "c": "accumulate",
    "m": "memory",
    "n": "splits",
    "b": "per_write",
    "e": "passes",
}
"""{symbol: the setting of a method's module that it stands for}."""
CHOSEN = ("H", "M")  # settings that a reader may choose for all methods at once
WORDS = {"ceil": math.ceil, "min": min, "max": max, "round": round}


@dataclass(frozen=True)
class Costs:
    """The cost formulas of one method. A formula is "" if there is none, and then `unproven` says why."""

    computation: str
    communication: str
    memory: str
    staleness: str
    approximation: str
    idle: str = ""
    late: str = ""
    waits: str = ""
    server: str = ""
    at_most: Sequence[str] = ()  # quantities whose formula is an upper bound
    unproven: Mapping[str, str] = field(default_factory=dict)

    def formula_text(self, quantity: str) -> str:
        """Return a formula in readable form, such as "2 (N-1) d", or the reason why there is none."""
        formula = getattr(self, quantity).replace("*", " ")
        bound = "at most " if quantity in self.at_most else ""
        return bound + formula if formula else self.unproven.get(quantity, "")

    def symbols(self, quantity: str) -> set[str]:
        """Return the symbols in the formula of a quantity."""
        return set(re.findall(r"[A-Za-z]+", getattr(self, quantity))) & set(SYMBOLS)

    def settings(self) -> list[str]:
        """Return the symbols in any of the formulas that stand for settings."""
        named = set().union(*map(self.symbols, QUANTITIES))
        return [symbol for symbol in SETTINGS if symbol in named]

    def evaluate(self, quantity: str, symbols: Mapping[str, float]) -> float | None:
        """Return the value of a formula, or None if it has no value. If it depends on the stage, return the largest
        value of all stages.
        """
        formula = getattr(self, quantity)
        if not formula:
            return None
        expression = JINJA.compile_expression(formula, undefined_to_none=False)
        stages = range(int(symbols.get("S", 1))) if "s" not in symbols else [symbols["s"]]
        try:
            return max(float(expression(**WORDS, **{**symbols, "s": s})) for s in stages)
        except UndefinedError:  # a symbol of an auxiliary network, or of more stages than there are layers
            return None


@cache
def every() -> dict[str, Costs]:
    """Return {short name: costs} of every method in the catalogue. A method's own costs replace those of its family."""
    found = {}
    for entry in CATALOGUE:
        family, _, name = entry.partition(".")
        common, own = DECLARED["families"][family], DECLARED[entry]
        unproven = common.get("unproven", {}) | own.get("unproven", {})
        values = common | own | {quantity: "" for quantity in unproven if not own.get(quantity)}
        values["unproven"] = {quantity: why for quantity, why in unproven.items() if not values[quantity]}
        for words in ("title", "also", "idea"):
            values.pop(words, None)
        found[name] = Costs(**values)
    return found


@cache
def stages_per_rank(name: str) -> int:
    """Return how many stages of a pipeline a rank holds."""
    method = algorithms.find(name)
    return method.stages(4, method.Settings()) // 4 if algorithms.family(name) == "pipelined" else 1


def symbols(
    name: str, model: Mapping[str, float], workers: int, chosen: Mapping[str, Any] | None = None
) -> dict[str, float]:
    """Return the values of the symbols in a method's formulas. `chosen` overrides settings, for example {"H": 16}.

    Raise ValueError if a formula uses a setting that the method does not have.
    """
    settings = algorithms.find(name).Settings().model_dump()
    values = {"N": workers, "S": workers, "E": 100, **model}
    for symbol, setting in SETTINGS.items():
        if isinstance(settings.get(setting), int | float):
            values[symbol] = (chosen or {}).get(symbol, settings[setting])
    if missing := next((symbol for symbol in every()[name].settings() if symbol not in values), None):
        raise ValueError(
            f"the cost of {name} uses {missing}, but the method has no setting {SETTINGS[missing]}; give it formulas "
            "of its own in algorithms/catalogue.toml, in place of its family's."
        )
    if "topology" in settings and workers > 1:
        values["g"] = sum(map(len, neighbours(settings["topology"], workers))) / workers
    if "T" in values and "S" in values:
        values["D"] = max(1, workers // int(values["T"] * values["S"] * values.get("C", 1)))
    return values
