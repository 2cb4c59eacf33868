"""The widgets of an experiment, derived from the fields of Experiment and of all its Settings.

A field's type and bounds determine the widget, its unit how values are written, its description the help. No code here
depends on a particular algorithm. widgets.py puts them on the page, chosen.py keeps their values.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from app.settings import helps
from app.settings.stops import NEAR_ONE, real_stops, whole_stops
from experiments.specification import catalogue
from experiments.specification.experiment import NESTED, OWN, Experiment, settings_of
from experiments.specification.faults import FaultSetting
from experiments.wording import units
from experiments.wording.field_labels import CHOICES, field_label
from experiments.wording.sentences import capital
from knobs import Knobs, local

SELF = "this machine's own"
DELAY = ("latency",)
PLACE = ("cluster", "network", "device", "jitter")
MORE = ("per_node", "nics", "rank_memory", "bandwidth", "collective", "slow", "pause", "crash")
BUDGET = ("steps", "seed")
MORE_BUDGET = (
    *("epochs", "seconds", "target_loss", "evaluations"),
    *("precision", "loss_scale", "scale_window", "weight_storage", "recompute_activations", "sync_batch_norm"),
    "cuda_graph",
)

MAIN = 2  # settings of an algorithm that are shown right below it
FEW = 3  # most words offered side by side; more become a list
SHORT = 40  # most whole numbers for which a slider has all of them
BOUNDS = ("ge", "gt", "le", "lt")


@dataclass(frozen=True)
class Control:
    """One field as a widget: its label, its choices and its default.

    kind is "choice" (few words), "list" (many), "switch", "slider" (a short range), "scale" (stops that grow),
    "number" or "text".
    """

    owner: type[Knobs]
    name: str
    kind: str
    help: str
    """What the setting is, in one line, as the command line prints it."""
    unit: str
    none: str
    """What None means, as the page shows it: "no limit"."""
    example: str
    default: Any
    options: tuple = ()
    low: float | None = None
    high: float | None = None
    whole: bool = False
    postpones: bool = False

    @property
    def about(self) -> str:
        """A text on what the setting is, and on the effect of larger values."""
        return helps.text(self.owner, self.name)

    @property
    def label(self) -> str:
        """The label, such as "Learning rate", with the unit if the values do not show it."""
        word = field_label(self.name)
        word = f"`{word}`" if "_" in word else word
        counted = f" ({self.unit})" if self.unit and self.unit not in ("s", "bytes/s", self.name) else ""
        return capital(word) + counted

    def words(self, value: Any) -> str:
        """Return the text of a value, as the page shows it."""
        if value is None:
            return self.none
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, str):
            return SELF if value == OWN else CHOICES.get(self.name, {}).get(value) or value or "none"
        if self.unit == "s":
            return units.seconds(value)
        if self.unit == "bytes/s":
            return units.rate(value)
        return units.count(value) if self.whole else units.number(value)

    def words_on_axis(self, values: Sequence[Any]) -> tuple[str, ...]:
        """Return values as an axis shows them: like `words`, but all times, or rates, in one unit."""
        words = [*map(self.words, values)]
        if self.unit in ("s", "bytes/s"):
            numbers = [n for n, value in enumerate(values) if isinstance(value, int | float)]
            texts = units.in_one_unit([values[n] for n in numbers], self.unit)
            for n, text in zip(numbers, texts, strict=True):
                words[n] = text
        return tuple(words)


@cache
def control(owner: type[Knobs], name: str) -> Control:
    """Return the widget for field `name` of `owner`."""
    field = owner.model_fields[name]
    extra = field.json_schema_extra or {}
    allowed = Allowed.by(field)
    if owner is Experiment and name in catalogue.CHOICES:
        widget = {"kind": "list", "options": catalogue.CHOICES[name]}
    else:
        widget = WIDGETS[allowed.type](allowed)
    facts = {"help": field.description or "", "postpones": bool(extra.get("postpones"))}
    facts |= {"none": extra.get("none", ""), "example": extra.get("example", "")}
    facts |= {"unit": allowed.unit, "default": allowed.default, "low": allowed.low, "high": allowed.high}
    return Control(owner, name, **facts | widget)


class Allowed(NamedTuple):
    """The allowed values of a field: one of these types (or None if `optional`), from `low` to `high`."""

    types: tuple
    optional: bool
    default: Any
    unit: str
    low: float | None
    high: float | None
    above: bool  # `low` itself is not allowed
    below: bool  # nor is `high`

    @classmethod
    def by(cls, field: FieldInfo) -> Allowed:
        rules = {key: getattr(rule, key) for rule in field.metadata for key in BOUNDS if hasattr(rule, key)}
        united = get_origin(field.annotation) in (Union, types.UnionType)
        kinds = get_args(field.annotation) if united else (field.annotation,)
        low, high = rules.get("ge", rules.get("gt")), rules.get("le", rules.get("lt"))
        named = tuple(kind for kind in kinds if kind is not type(None))
        unit = (field.json_schema_extra or {}).get("unit", "")
        return cls(named, named != kinds, field.default, unit, low, high, "gt" in rules, "lt" in rules)

    @property
    def type(self) -> Any:
        """The key into WIDGETS for these types; int and float together count as numbers."""
        first = float if float in self.types else get_origin(self.types[0]) or self.types[0]
        return next(kind for kind in (first, *getattr(first, "__mro__", ())) if kind in WIDGETS)

    @property
    def is_short(self) -> bool:
        """True if the range has two ends and None is not allowed."""
        return None not in (self.low, self.high) and not self.optional


def _words(allowed: Allowed) -> dict[str, Any]:
    options = tuple(option for kind in allowed.types for option in get_args(kind))
    return {"kind": "choice" if len(options) <= FEW else "list", "options": options}


def _whole(allowed: Allowed) -> dict[str, Any]:
    if allowed.is_short and allowed.high - allowed.low <= SHORT:
        return {"kind": "slider", "whole": True}
    if allowed.low == 0 and not allowed.optional:
        return {"kind": "number", "whole": True}
    return _scale(allowed, whole_stops(allowed.default, allowed.low, allowed.high)) | {"whole": True}


def _real(allowed: Allowed) -> dict[str, Any]:
    if allowed.is_short and allowed.high == 1 and allowed.below and allowed.default > 0.99:
        return {"kind": "scale", "options": tuple(sorted({*NEAR_ONE, allowed.default}))}
    if allowed.is_short and allowed.low >= 0 and allowed.high <= 1 and not allowed.above:
        return {"kind": "slider", "high": allowed.high - 0.01 * allowed.below}
    zero = allowed.low is not None and not allowed.above
    return _scale(allowed, real_stops(allowed.default, allowed.unit, allowed.low, allowed.high, zero))


def _scale(allowed: Allowed, stops: tuple) -> dict[str, Any]:
    within = tuple(x for x in stops if not allowed.below or x < allowed.high)
    return {"kind": "scale", "options": (None, *within) if allowed.optional else within}


WIDGETS: dict[Any, Callable[[Allowed], dict[str, Any]]] = {
    Literal: _words,
    bool: lambda _: {"kind": "switch"},
    str: lambda _: {"kind": "text"},
    tuple: lambda _: {"kind": "text"},
    FaultSetting: lambda _: {"kind": "text"},
    int: _whole,
    float: _real,
}
"""The widget of each type of field, as arguments of Control."""


def reaching(one: Control, value: float) -> Control:
    """Return `one` with its scale extended, if needed, to go from a tenth of `value` to ten times `value`."""
    if one.whole:
        stops = whole_stops(value, one.low, one.high)
    else:
        stops = real_stops(value, one.unit, one.low, one.high)
    return replace(one, options=tuple(sorted({*one.options, *(x for x in stops if value <= 10.01 * x <= 101 * value)})))


@cache
def main(settings: type[Knobs]) -> tuple[Control, ...]:
    """Return at most MAIN settings that make an algorithm what it is. Those that delay information come first;
    otherwise, they have the order of their declaration.

    The learning rate, and the update with its momentum, are not among them, because most algorithms have these. Nor is
    text, such as how layers are cut into stages.
    """
    shared = {"learning_rate", *(("update", "momentum") if "update" in settings.model_fields else ())}
    own = [control(settings, name) for name in settings.model_fields if name not in shared]
    return tuple(sorted((one for one in own if one.kind != "text"), key=lambda one: not one.postpones)[:MAIN])


def owners(algorithm: str, compression: str, workload: str) -> dict[str, type[Knobs]]:
    """Return the class that declares each setting, by the setting's name. If several classes declare a setting of the
    same name, there is one widget for all of them.

    Settings that name files of the machine are left out, because a reader of this page need not be its owner.
    """
    own = {name: Experiment for name in Experiment.model_fields if name not in NESTED}
    kinds = reversed(settings_of(algorithm, compression, workload))
    return {**{name: kind for kind in kinds for name in kind.model_fields if name not in local(kind)}, **own}
