"""Controls: what the widgets of an experiment are, derived from the fields of Experiment and of all Settings it has.

A field's type and bounds choose the widget, its unit the way values are written, its description the help. Nothing
here knows an algorithm by name. app.widgets puts them on the page, app.chosen keeps their values.
"""

from __future__ import annotations

import math
import types
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

from app.settings import helps
from experiments.specification import catalogue
from experiments.specification.experiment import NESTED, OWN, Experiment, settings_of
from experiments.specification.faults import FaultSetting
from experiments.wording import units
from knobs import Knobs, local

WORDS = {
    "batch": "batch size",
    "per_node": "ranks per node",
    "nics": "NICs per node",
    "sync_batch_norm": "synchronised batch norm",
    "slow": "slow ranks",
    "pause": "paused ranks",
    "crash": "lost ranks",
    "seconds": "time budget",
}
"""Fields of Experiment whose name alone says too little."""

SELF = "this machine's own"
DELAY = ("latency",)
PLACE = ("cluster", "network", "device", "jitter")
MORE = ("per_node", "nics", "rank_memory", "bandwidth", "collective", "slow", "pause", "crash")
BUDGET = ("steps", "seed")
MORE_BUDGET = ("epochs", "seconds", "target_loss", "evaluations", "precision", "sync_batch_norm")

FARTHEST = 64  # times the default is as far as a slider goes; links and the command line go to the bound
_BINARY = [2**n for n in range(13)] + [3 * 2**n for n in range(12)]
_DECIMAL = [m * 10**n for n in range(7) for m in (1, 2, 5)]
_NEAR_ONE = (0.0, 0.5, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999)  # where a share that must stay below 1 stops
_SMALLEST = {"s": 1e-6, "bytes/s": 1e6, "bytes": 1e3, "epochs": 0.1}  # the first stop of a scale, by unit


@dataclass(frozen=True)
class Control:
    """One field as a widget: how it is called, what it offers, what it starts with.

    kind is "choice" (few words), "list" (many), "switch", "slider" (a short range), "scale" (stops that grow),
    "number" or "text".
    """

    owner: type[Knobs]
    name: str
    kind: str
    help: str
    """What it is, in one line, as the command line prints it."""
    unit: str
    none: str
    """What None means, as the reader sees it: "no limit"."""
    example: str
    default: Any
    options: tuple = ()
    low: float | None = None
    high: float | None = None
    whole: bool = False
    postpones: bool = False

    @property
    def about(self) -> str:
        """What it is, and what happens when it is turned up."""
        return helps.text(self.owner, self.name)

    @property
    def label(self) -> str:
        """The name as a word: "Learning rate", and what it counts where the values do not say it."""
        word = spoken(self.name)
        word = f"`{word}`" if "_" in word else word
        counted = f" ({self.unit})" if self.unit and self.unit not in ("s", "bytes/s", self.name) else ""
        return word[:1].upper() + word[1:] + counted

    def words(self, value: Any) -> str:
        """Return a value as the reader sees it."""
        if value is None:
            return self.none
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, str):
            return SELF if value == OWN else value or "none"
        if self.unit == "s":
            return units.seconds(value)
        if self.unit == "bytes/s":
            return units.rate(value)
        return units.count(value) if self.whole else units.number(value)


def spoken(name: str) -> str:
    """Return a field's name in words; one of the literature, like n_push, stays as it is."""
    literal = min(map(len, name.split("_"))) == 1
    return WORDS.get(name) or (name if literal else name.replace("_", " "))


@cache
def control(owner: type[Knobs], name: str) -> Control:
    """Return the widget for field `name` of `owner`."""
    field = owner.model_fields[name]
    extra = field.json_schema_extra or {}
    bounds = {
        key: getattr(rule, key) for rule in field.metadata for key in ("ge", "gt", "le", "lt") if hasattr(rule, key)
    }
    united = get_origin(field.annotation) in (Union, types.UnionType)
    kinds = list(get_args(field.annotation)) if united else [field.annotation]
    optional = type(None) in kinds
    kinds = [kind for kind in kinds if kind is not type(None)]
    common = {
        "owner": owner,
        "name": name,
        "help": field.description or "",
        "unit": extra.get("unit", ""),
        "none": extra.get("none", ""),
        "example": extra.get("example", ""),
        "postpones": bool(extra.get("postpones")),
        "default": field.default,
        "low": bounds.get("ge", bounds.get("gt")),
        "high": bounds.get("le", bounds.get("lt")),
    }
    if owner is Experiment and name in catalogue.CHOICES:
        return Control(kind="list", options=catalogue.CHOICES[name], **common)
    if get_origin(kinds[0]) is Literal:
        options = tuple(option for kind in kinds for option in get_args(kind))
        return Control(kind="choice" if len(options) <= 3 else "list", options=options, **common)
    if kinds[0] is bool:
        return Control(kind="switch", **common)
    if get_origin(kinds[0]) is tuple or issubclass(kinds[0], str | FaultSetting):
        return Control(kind="text", **common)
    whole, low, high = int in kinds and float not in kinds, common["low"], common["high"]
    short = None not in (low, high) and not optional
    if short and whole and high - low <= 40:
        return Control(kind="slider", whole=True, **common)
    if short and not whole and high == 1 and "lt" in bounds and field.default > 0.99:
        return Control(kind="scale", options=tuple(sorted({*_NEAR_ONE, field.default})), **common)
    if short and not whole and low >= 0 and high <= 1 and "gt" not in bounds:
        return Control(kind="slider", **common | {"high": high - 0.01 * ("lt" in bounds)})
    if whole and low == 0 and not optional:
        return Control(kind="number", whole=True, **common)
    stops = tuple(x for x in _stops(whole, "ge" in bounds, **common) if "lt" not in bounds or x < high)
    return Control(kind="scale", whole=whole, options=(None, *stops) if optional else stops, **common)


def _stops(
    whole: bool, closed: bool, default: Any, unit: str, low: float | None, high: float | None, **_: Any
) -> tuple:
    """Return where a scale stops: 1, 2, 5, 10 ... or powers of two, around the default and within the bounds."""
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    if whole:
        series = sorted(_BINARY) if default in _BINARY else _DECIMAL
        stops = [n for n in series if low <= n <= min(high, FARTHEST * (default or 10_000))]
    else:
        least = default / 1000 if default else _SMALLEST.get(unit, 1e-3)
        most = min(high, default * 1000 if default else least * 1e7)
        powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
        stops = [float(f"{m}e{power}") for power in powers for m in (1, 2, 5)]
        stops = [x for x in stops if low < x and least * 0.999 <= x <= most]
        if low == 0 and closed:
            stops.insert(0, 0.0)
    return tuple(sorted({*stops} if default is None else {*stops, default}))


def reaching(one: Control, value: float) -> Control:
    """Return the scale of `one` with more stops if need be: it reaches from a tenth of `value` to ten times as much."""
    stops = _stops(one.whole, False, value, one.unit, one.low, one.high)
    return replace(one, options=tuple(sorted({*one.options, *(x for x in stops if value <= 10.01 * x <= 101 * value)})))


def owners(algorithm: str, compression: str, workload: str) -> dict[str, type[Knobs]]:
    """Return the class that has each setting, by flat name. A name that two have is one knob of both.

    Settings that name files of the machine are left out: a reader of this page need not be its owner.
    """
    own = {name: Experiment for name in Experiment.model_fields if name not in NESTED}
    kinds = reversed(settings_of(algorithm, compression, workload))
    return {**{name: kind for kind in kinds for name in kind.model_fields if name not in local(kind)}, **own}
