"""Declared settings, called knobs.

Every choice a reader can make, such as a learning rate, a number of servers or the noise of a data set, is a field of a
frozen `Knobs` class with a default, bounds, a unit and one line of help. The command line, the workbench's widgets,
validation and the stored run are all derived from that one declaration, so they cannot disagree.

    class Settings(Knobs):
        period: int = knob(10, "gradient steps between two visits", ge=1, le=1000, unit="steps", postpones=True)
"""

from __future__ import annotations

import difflib
import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)


class Refusal(ValueError):
    """Raised for an experiment that cannot run. `remedies` are integers to try as the value of one setting."""

    def __init__(self, message: str, remedies: Iterable[int] = ()):
        super().__init__(message)
        self.remedies = tuple(remedies)


def multiples(unit: int, near: int) -> tuple[int, int]:
    """Return the multiples of `unit` below and above `near`.

    >>> multiples(4, 10)
    (8, 12)
    """
    return near // unit * unit, (near // unit + 1) * unit


class Knobs(BaseModel):
    """A frozen set of knobs. It rejects unknown names, wrong types, NaN and control characters."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    @field_validator("*")
    @classmethod
    def _harmless(cls, value: Any, info: ValidationInfo) -> Any:
        """Return the value unchanged. Raise ValueError if it is text with control characters, such as line breaks."""
        if not isinstance(value, str) or value.isprintable():
            return value
        extra = cls.model_fields[info.field_name].json_schema_extra or {}
        allowed = "\n\r\t" if extra.get("lines") else ""
        if any(unicodedata.category(one) == "Cc" and one not in allowed for one in value):
            raise ValueError(
                f"{info.field_name} is {value[:60]!r}, which has a control character; use plain text on one line."
            )
        return value


def knob(
    default: Any,
    help: str,
    *,
    unit: str = "",
    none: str = "auto",
    example: str = "",
    postpones: bool = False,
    local: bool = False,
    lines: bool = False,
    when: Mapping[str, Sequence] | None = None,
    unless: Mapping[str, Sequence] | None = None,
    **bounds: Any,
) -> Any:
    """Return the declaration of one setting.

    `help` is one line. `unit` is what the number counts: "steps", "s", "bytes", or "" for a pure number. `none` says
    what None means ("no limit"). `example` is a value of a text knob ("2:3"), shown at the end of the help.
    `postpones` marks a knob that makes information arrive later (a period, a fixed lag); the workbench groups these as
    delays. `local` marks one that names a file on this machine: the command line may set it, links and the workbench
    may not. `lines` allows text of several lines.
    `when` and `unless` restrict the knob to certain values of other knobs: `when={"update": ("momentum",)}`.
    `bounds` are pydantic's `ge`, `gt`, `le`, `lt` and `multiple_of`; a choice has the type `Literal[...]`.
    """
    extra = {
        "unit": unit,
        "none": none,
        "example": example,
        "postpones": postpones,
        "local": local,
        "lines": lines,
        "when": dict(when or {}),
        "unless": dict(unless or {}),
    }
    help += f", for example {example}" if example else ""
    return Field(default, description=help, json_schema_extra=extra, **bounds)


def local(kind: type[Knobs]) -> list[str]:
    """Return the names of the knobs of `kind` that are `local`."""
    return [name for name, field in kind.model_fields.items() if (field.json_schema_extra or {}).get("local")]


def meaning_of_none(kind: type[Knobs], name: str) -> str:
    """Return what None means for knob `name` of `kind`, such as "no limit"."""
    return (kind.model_fields[name].json_schema_extra or {}).get("none", "auto")


def in_force(kind: type[Knobs], name: str, values: Mapping[str, Any]) -> bool:
    """True if knob `name` of `kind` has an effect, given the `values` of the others (by default, their defaults)."""
    extra = kind.model_fields[name].json_schema_extra or {}
    when, unless = extra.get("when", {}), extra.get("unless", {})

    def value(other: str) -> Any:
        return values[other] if other in values else kind.model_fields[other].default

    return (
        all(value(other) in some for other, some in when.items())
        and not any(value(other) in some for other, some in unless.items())
        and all(in_force(kind, other, values) for other in (*when, *unless))
    )


def condition(kind: type[Knobs], name: str, spell: Callable[[str], str] = str) -> str:
    """Return, in words, when knob `name` of `kind` has an effect, such as "with update momentum or nesterov". Return ""
    if it always has one.

    `spell` maps the other knobs' names to what the reader calls them.
    """
    extra = kind.model_fields[name].json_schema_extra or {}

    def choices(other: str, some: Sequence) -> str:
        return " or ".join(meaning_of_none(kind, other) if value is None else _text(value) for value in some)

    phrases = [f"{spell(other)} {choices(other, some)}" for other, some in extra.get("when", {}).items()]
    phrases += [f"{spell(other)} other than {choices(other, some)}" for other, some in extra.get("unless", {}).items()]
    return " and ".join(f"with {phrase}" for phrase in phrases)


def _text(value: Any) -> str:
    return (
        {"": "empty", True: "on", False: "off"}.get(value, str(value))
        if isinstance(value, str | bool)
        else f"{value:g}"
    )


def numbers(
    text: str, name: str, form: str, counts: tuple[int, ...] = (3,), presets: Iterable[str] = ()
) -> tuple[float, ...]:
    """Parse a text of numbers separated by colons, such as "40e9:15e9:1e-6". Each must be at least 0.

    `counts` lists how many numbers there may be. Raise ValueError for any other text; the message names the closest of
    the `presets`, or all of them, and the expected `form`.

    >>> numbers("1:2.5:3e-6", "this", "a:b:c")
    (1.0, 2.5, 3e-06)
    """
    try:
        read = tuple(float(part) for part in text.split(":"))
    except ValueError:
        read = ()
    if len(read) not in counts or not all(0 <= number < math.inf for number in read):
        if presets and ":" not in text:
            hint = _among(text, presets)
            raise ValueError(f"there is no {name} preset {text[:60]!r}; {hint} You can also write numbers: {form}.")
        raise ValueError(f"{name}: {text[:60]!r} cannot be read; write {form}.")
    return read


def _among(name: str, known: Iterable[str]) -> str:
    """Return a sentence that names the closest of the `known` names, or all of them."""
    by_case = {one.casefold(): one for one in known}
    close = difflib.get_close_matches(name.casefold(), by_case, n=1)
    return f"did you mean {by_case[close[0]]}?" if close else f"choose from {', '.join(by_case.values())}."


def match_name(name: str, known: Iterable[str]) -> str:
    """Return the `known` name that equals `name` if case is ignored, or `name` itself if there is none.

    >>> match_name("100gbe", ("10GbE", "100GbE"))
    '100GbE'
    """
    return next((one for one in known if one.casefold() == name.casefold()), name)


def join_numbers(numbers: Iterable[float]) -> str:
    """Return `numbers` joined with commas, the form of list knobs in links, command lines and stored runs.

    >>> join_numbers((30.0, 60.5))
    '30,60.5'
    """
    return ",".join(repr(number).removesuffix(".0") for number in numbers)


def counts(value: str | Sequence[int | str], name: str = "this") -> tuple[int, ...]:
    """Return the value of a `Counts` knob from its text or from a sequence. Raise ValueError if it is invalid.

    >>> counts("3,3,2")
    (3, 3, 2)
    """
    text = _text_of(value)
    numbers = tuple(int(part) for part in text.split(",") if part.isdecimal() and len(part) < 6)
    if ",".join(map(str, numbers)) != text or 0 in numbers:
        raise ValueError(
            f"{name} is {text[:60]!r}; write positive whole numbers separated by commas, such as 3,3,2, or none."
        )
    return numbers


def rising(value: str | Sequence[float | str], name: str = "this") -> tuple[float, ...]:
    """Return the value of a `Rising` knob from its text or from a sequence. Raise ValueError if it is invalid.

    >>> rising("30,60,80")
    (30.0, 60.0, 80.0)
    """
    text = _text_of(value)
    try:
        numbers = tuple(float(part) for part in text.split(",") if text)
    except ValueError:
        numbers = ()
    if bool(numbers) != bool(text) or not all(a < b for a, b in pairwise((0, *numbers, math.inf))):
        raise ValueError(
            f"{name} is {text[:60]!r}; write increasing numbers separated by commas, such as 30,60,80, or none."
        )
    return numbers


def _text_of(value: str | Sequence) -> str:
    text = value if isinstance(value, str) else ",".join(map(str, value))
    return "" if text == "none" else text


def _list_of(number: type, read: Callable) -> Any:
    """Return the type of a knob whose value is a tuple of numbers in Python and a text elsewhere. `read` parses the
    text.
    """

    def parse(value: Any, info: ValidationInfo) -> Any:
        return read(value, info.field_name) if isinstance(value, str | list | tuple) else value

    outside = PlainSerializer(join_numbers, return_type=str, when_used="json"), WithJsonSchema({"type": "string"})
    return Annotated[tuple[number, ...], BeforeValidator(parse), *outside]


Counts = _list_of(int, counts)
"""The type of a knob whose value is a tuple of positive integers, such as (3, 3, 2), which is "3,3,2" as text."""

Rising = _list_of(float, rising)
"""The type of a knob whose value is an increasing tuple of positive numbers, such as (30.0, 60.0), "30,60" as text."""


def make(kind: type[Knobs], values: dict[str, Any], owner: str = "", begins: Mapping[str, Any] | None = None) -> Any:
    """Return an instance of `kind` with these `values`. Raise a ValueError that explains the first three mistakes.

    `owner` names whose settings these are ("easgd", "the schedule"). `begins` has the defaults that messages show
    instead of the declared ones. Numbers may be strings, since they come from URLs and command lines.
    """
    try:
        return kind(**values)
    except ValidationError as error:
        problems = error.errors()[:3]
        bounds = [n for one in problems for n in one.get("ctx", {}).values() if isinstance(n, int)]
        raise Refusal(" ".join(_sentence(kind, one, owner, begins or {}) for one in problems), bounds) from None


def allowed_values(kind: type[BaseModel], name: str) -> str:
    """Return, in words, the values that knob `name` accepts, such as "1 to 1000 steps", "0 to below 1", or "ring, tree
    or fast".
    """
    schema = properties(kind)[name]
    options = schema.get("enum") or [o["const"] for o in schema.get("anyOf", []) if "const" in o]
    if options:
        return ", ".join(map(str, options[:-1])) + f" or {options[-1]}" if len(options) > 1 else str(options[0])
    for part in (schema, *schema.get("anyOf", [])):
        low = part.get("minimum", part.get("exclusiveMinimum"))
        high = part.get("maximum", part.get("exclusiveMaximum"))
        if low is not None or high is not None:
            unit = f" {schema['unit']}" if schema.get("unit") else ""
            below = "below " if "exclusiveMaximum" in part else ""
            if low is None:
                return f"{below or 'at most '}{_bound(high)}{unit}"
            above = "above " if "exclusiveMinimum" in part else "" if high is not None else "at least "
            return f"{above}{_bound(low)}" + (f" to {below}{_bound(high)}" if high is not None else "") + unit
    types = [part.get("type") for part in (schema, *schema.get("anyOf", [])) if part.get("type")]
    return {"boolean": "true or false", "integer": "a whole number", "number": "a number"}.get(types[0], "text")


@lru_cache(maxsize=256)
def properties(kind: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of each knob of `kind`. Pydantic makes it of all knobs at once, in milliseconds."""
    return kind.model_json_schema()["properties"]


def _bound(value: float) -> str:
    """Return a bound as text: a large power of two as "2^63", other integers in full, since seeds can be large.

    Other numbers are rounded.
    """
    if isinstance(value, int) and value >= 2**32 and value.bit_count() == 1:
        return f"2^{value.bit_length() - 1}"
    return str(value) if isinstance(value, int) else f"{value:g}"


def _sentence(kind: type[Knobs], problem: dict, owner: str, begins: Mapping[str, Any]) -> str:
    name = ".".join(str(part) for part in problem["loc"])[:60]
    known = list(kind.model_fields)
    if problem["type"] == "extra_forbidden":
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]}?" if close else f"; it has {', '.join(known) or 'none'}."
        return f"{f'{owner} has' if owner else 'there is'} no setting {name!r}{hint}"
    field, whose = str(problem["loc"][0]) if problem["loc"] else "", f"{owner}: " if owner else ""
    if problem["type"] == "value_error" or field not in known:
        return f"{whose}{problem['msg'].removeprefix('Value error, ')}"
    default = begins.get(field, kind.model_fields[field].get_default(call_default_factory=True))
    note = "" if default is None else f" (default {default})"
    return f"{whose}{field} is {str(problem['input'])[:60]!r}; it must be {allowed_values(kind, field)}{note}."
