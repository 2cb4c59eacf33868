"""The settings that a reader may change on a page, as form fields: data for the page's script (browser/trial.js)."""

from typing import Any, Literal, NamedTuple, get_args, get_origin

from experiments.specification import catalogue
from experiments.specification.experiment import Experiment, settings_of
from experiments.wording.field_labels import field_label
from experiments.wording.sentences import capital
from knobs import Knobs, properties

MOST = {"workers": 32, "steps": 1000, "batch": 1024}
"""The largest values that a page allows, because Python is slower there."""


class Field(NamedTuple):
    """A field of a form. `kind` is "number", "choice", "switch" or "text"; `value` is its initial value."""

    name: str
    label: str
    kind: str
    value: Any
    default: Any
    help: str
    options: tuple[tuple[str, str], ...] = ()
    """The options of a choice, each (value, its label on the page)."""
    least: float | None = None
    most: float | None = None
    whole: bool = False
    example: str = ""


def fields(experiment: Experiment, names: tuple[str, ...]) -> list[Field]:
    """Return a form field for each setting in `names`, each of which must be in force in `experiment`."""
    values = experiment.in_force()
    return [_field(experiment, name, values[name]) for name in names]


def _field(experiment: Experiment, name: str, value: Any) -> Field:
    kinds = Experiment, *settings_of(experiment.algorithm, experiment.compression, experiment.workload)
    kind = next(kind for kind in kinds if name in kind.model_fields)
    declared = kind.model_fields[name]
    extra = declared.json_schema_extra or {}
    unit = extra.get("unit", "")
    counted = f" ({unit})" if unit and unit != name else ""
    label = capital(field_label(name)) + counted
    common = {"name": name, "label": label, "value": value, "default": _plain(declared.default)}
    common["help"] = capital(declared.description or "") + "."
    if options := _options(kind, name):
        return Field(kind="choice", options=options, **common)
    if isinstance(value, bool):
        return Field(kind="switch", **common)
    if isinstance(value, str):
        return Field(kind="text", example=extra.get("example", ""), **common)
    return Field(kind="number", **common, **_bounds(kind, name))


def _plain(value: Any) -> Any:
    """Return a default value as a page shows it. A fault setting is shown as its text."""
    return getattr(value, "text", value)


def _options(kind: type[Knobs], name: str) -> tuple[tuple[str, str], ...]:
    if kind is Experiment and name == "algorithm":
        return tuple((one.name, capital(one.title)) for one in catalogue.ALGORITHMS.values())
    if kind is Experiment and name in catalogue.CHOICES:
        return tuple((one, one) for one in catalogue.CHOICES[name])
    annotation = kind.model_fields[name].annotation
    return tuple((one, one) for one in get_args(annotation)) if get_origin(annotation) is Literal else ()


def _bounds(kind: type[Knobs], name: str) -> dict[str, Any]:
    schema = properties(kind)[name]
    for part in (schema, *schema.get("anyOf", [])):
        if part.get("type") in ("integer", "number"):
            least, most = part.get("minimum", part.get("exclusiveMinimum")), part.get("maximum")
            most = min(one for one in (most, MOST.get(name)) if one is not None) if most or name in MOST else None
            return {"least": least, "most": most, "whole": part["type"] == "integer"}
    return {}
