"""The part of pydantic that `knobs.py` and the experiments use, in pure Python, so that browsers need not load it.

Its compiled core would be one more megabyte to load, and half a second to import. A model is a frozen set of fields;
values are converted as pydantic's lax mode does ("4" is an int, 4.0 too). Tests compare both on all settings.
"""

import inspect
import json
import math
import numbers
import sys
import types
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

BOUNDS = {
    "ge": lambda value, bound: value >= bound,
    "gt": lambda value, bound: value > bound,
    "le": lambda value, bound: value <= bound,
    "lt": lambda value, bound: value < bound,
    "max_length": lambda value, bound: len(value) <= bound,
    "multiple_of": lambda value, unit: math.isclose(value / unit, round(value / unit), rel_tol=0, abs_tol=1e-8),
}
SCHEMA = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
SWITCH = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}
MISSING = object()


class ValidationError(ValueError):
    def __init__(self, problems: list[dict]):
        super().__init__(problems)
        self.problems = problems

    def errors(self) -> list[dict]:
        return self.problems


class ValidationInfo(NamedTuple):
    field_name: str


class Invalid(Exception):
    """Raised for a value of the wrong type or out of bounds."""

    def __init__(self, kind: str, **context: Any):
        super().__init__(kind)
        self.kind, self.context = kind, context


class BeforeValidator(NamedTuple):
    func: Any


class PlainSerializer(NamedTuple):
    func: Any
    return_type: Any = Any
    when_used: str = "always"


class WithJsonSchema(NamedTuple):
    json_schema: dict


ConfigDict = dict


class FieldInfo:
    def __init__(self, default: Any, description: str | None = None, json_schema_extra: Any = None,
                 default_factory: Any = None, **bounds: Any):  # fmt: skip
        self.default, self.description, self.json_schema_extra = default, description, json_schema_extra
        self.default_factory, self.bounds, self.annotation, self.metadata = default_factory, bounds, Any, ()

    def get_default(self, call_default_factory: bool = False) -> Any:
        return self.default_factory() if self.default_factory and call_default_factory else self.default


def Field(default: Any = MISSING, **given: Any) -> Any:
    return FieldInfo(default, **given)


def field_validator(*names: str) -> Any:
    return lambda method: _marked(method, ("field", names))


def model_validator(mode: str) -> Any:
    return lambda method: _marked(method, (mode, ()))


def _marked(method: Any, mark: tuple) -> Any:
    getattr(method, "__func__", method).validates = mark
    return method


class BaseModel:
    model_config: ClassVar[dict] = {}
    model_fields: ClassVar[dict[str, FieldInfo]] = {}
    _validators: ClassVar[tuple[tuple[str, tuple, str], ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.model_config = {**cls.__mro__[1].model_config, **cls.__dict__.get("model_config", {})}
        cls.model_fields = dict(cls.model_fields)
        own, hints = inspect.get_annotations(cls), None
        for name in own:
            hints = hints or get_type_hints(cls, vars(sys.modules[cls.__module__]), include_extras=True)
            if get_origin(hints[name]) is ClassVar or name == "model_config":
                continue
            given = cls.__dict__.get(name, MISSING)
            field = given if isinstance(given, FieldInfo) else FieldInfo(given)
            field.annotation, field.metadata = _parts(hints[name])
            cls.model_fields[name] = field
            if name in cls.__dict__:
                delattr(cls, name)
        for name, value in [*vars(cls).items()]:
            if mark := getattr(getattr(value, "__func__", value), "validates", None):
                cls._validators += ((*mark, name),)

    def __init__(self, **given: Any):
        kind, problems, values = type(self), [], {}
        for method in self._with("before"):
            given = method(given)
        for name, field in kind.model_fields.items():
            is_given = name in given
            value = given[name] if is_given else field.get_default(call_default_factory=True)
            try:
                if value is MISSING:
                    raise Invalid("missing")
                if is_given or kind.model_config.get("validate_default"):
                    value = self._validate(name, field, value)
                values[name] = value
            except Invalid as mistake:
                problems.append(_problem(name, value, mistake.kind, "", mistake.context))
            except (ValueError, AssertionError) as mistake:
                problems.append(_problem(name, value, "value_error", f"Value error, {mistake}", {}))
        if kind.model_config.get("extra") == "forbid":
            others = [name for name in given if name not in kind.model_fields]
            problems += [_problem(name, given[name], "extra_forbidden", "", {}) for name in others]
        if problems:
            raise ValidationError(problems)
        self.__dict__.update(values)
        self.__dict__["model_fields_set"] = {*given} & {*values}
        try:
            for method in self._with("after"):
                method()
        except (ValueError, AssertionError) as mistake:
            raise ValidationError(
                [{**_problem("", given, "value_error", f"Value error, {mistake}", {}), "loc": ()}]
            ) from mistake

    def _with(self, mode: str) -> list:
        return [getattr(self, name) for own, _, name in self._validators if own == mode]

    def _validate(self, name: str, field: FieldInfo, value: Any) -> Any:
        for part in field.metadata:
            if isinstance(part, BeforeValidator):
                takes_info = part.func.__code__.co_argcount > 1
                value = part.func(value, ValidationInfo(name)) if takes_info else part.func(value)
        value = _converted(field.annotation, value)
        if value is not None:
            if (
                isinstance(value, float)
                and not math.isfinite(value)
                and not self.model_config.get("allow_inf_nan", True)
            ):
                raise Invalid("finite_number")
            for bound, limit in field.bounds.items():
                if not BOUNDS[bound](value, limit):
                    raise Invalid(bound, **{bound: limit})
        for mode, names, method in self._validators:
            if mode == "field" and (name in names or "*" in names):
                bound_method = getattr(self, method)
                takes_info = bound_method.__func__.__code__.co_argcount > 2
                value = bound_method(value, ValidationInfo(name)) if takes_info else bound_method(value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        raise ValidationError([_problem(name, value, "frozen_instance", "Instance is frozen", {})])

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(getattr(self, n) == getattr(other, n) for n in self.model_fields)

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self.model_fields)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.model_fields)})"

    def model_dump(
        self, mode: str = "python", exclude: Any = (), exclude_defaults: bool = False, exclude_none: bool = False
    ) -> dict[str, Any]:
        found = {}
        for name, field in self.model_fields.items():
            value = getattr(self, name)
            if name in exclude or (exclude_none and value is None):
                continue
            if exclude_defaults and value == field.get_default(call_default_factory=True):
                continue
            found[name] = _serialised(field, value, mode)
        return found

    def model_dump_json(self, indent: int | None = None) -> str:
        separators = (",", ": ") if indent else (",", ":")
        return json.dumps(self.model_dump("json"), indent=indent, separators=separators, ensure_ascii=False)

    @classmethod
    def model_validate_json(cls, text: Any) -> Any:
        return cls(**json.loads(text))

    def model_copy(self, update: Any = None) -> Any:
        copy = object.__new__(type(self))
        copy.__dict__.update({**self.__dict__, **(update or {})})
        return copy

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {"properties": {name: _schema(field) for name, field in cls.model_fields.items()}}


def _parts(hint: Any) -> tuple[Any, tuple]:
    if get_origin(hint) is Annotated:
        inner, *more = get_args(hint)
        return inner, tuple(more)
    return hint, ()


def _problem(name: str, value: Any, kind: str, message: str, context: dict) -> dict:
    return {"type": kind, "loc": (name,), "msg": message, "input": value, "ctx": context}


def _converted(kind: Any, value: Any) -> Any:
    """Convert a value to `kind` as pydantic's lax mode does, and return it. Raise Invalid if that is impossible."""
    origin, inside = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        return _one_of(inside, value)
    if origin is Literal:
        if any(value == one and type(value) is type(one) for one in inside):
            return value
        raise Invalid("literal_error")
    if origin is Annotated:
        return _converted(inside[0], value)
    if origin in (tuple, list):
        if not isinstance(value, list | tuple):
            raise Invalid("tuple_type")
        if origin is list or inside[1:] == (...,):
            return origin(_converted(inside[0], one) for one in value)
        if len(value) != len(inside):
            raise Invalid("tuple_length")
        return tuple(_converted(one, item) for one, item in zip(inside, value, strict=True))
    if origin is dict or kind is dict:
        if not isinstance(value, dict):
            raise Invalid("dict_type")
        return dict(value)
    if kind in PLAIN:
        return PLAIN[kind](value)
    if isinstance(value, kind):
        return value
    raise Invalid("is_instance_of")


def _one_of(kinds: tuple, value: Any) -> Any:
    if value is None and type(None) in kinds:
        return None
    first = None
    for kind in (one for one in kinds if one is not type(None)):
        try:
            return _converted(kind, value)
        except Invalid as mistake:
            first = first or mistake
    raise first or Invalid("none_required")


def _integer(value: Any) -> int:
    if isinstance(value, str):
        try:
            value = int(value) if value.strip().lstrip("+-").isdecimal() else float(value)
        except ValueError:
            raise Invalid("int_parsing") from None
    if isinstance(value, float) and not value.is_integer():
        raise Invalid("int_from_float")
    return _number(value, int, "int_type")


def _real(value: Any) -> float:
    return _number(value, float, "float_type")


def _number(value: Any, kind: type, problem: str) -> Any:
    if not isinstance(value, str | numbers.Real):
        raise Invalid(problem)
    try:
        return kind(value)
    except (ValueError, OverflowError):
        raise Invalid(problem) from None


def _switch(value: Any) -> bool:
    if isinstance(value, str):
        value = SWITCH.get(value.lower(), value)
    if isinstance(value, bool) or (isinstance(value, int | float) and value in (0, 1)):
        return bool(value)
    raise Invalid("bool_parsing")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Invalid("string_type")
    return value


PLAIN = {int: _integer, float: _real, bool: _switch, str: _text}


def _serialised(field: FieldInfo, value: Any, mode: str) -> Any:
    for part in field.metadata:
        if isinstance(part, PlainSerializer) and part.when_used in ("always", mode):
            return part.func(value)
    if isinstance(value, BaseModel):
        return value.model_dump(mode)
    return list(value) if mode == "json" and isinstance(value, tuple) else value


def _schema(field: FieldInfo) -> dict[str, Any]:
    given = next((part.json_schema for part in field.metadata if isinstance(part, WithJsonSchema)), None)
    limits = {SCHEMA[name]: limit for name, limit in field.bounds.items() if name in SCHEMA}
    return {**(given or _shape(field.annotation, limits)), **(field.json_schema_extra or {})}


def _shape(kind: Any, limits: dict[str, Any]) -> dict[str, Any]:
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"const": inside[0]} if len(inside) == 1 else {"enum": list(inside)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_shape(one, {} if one is type(None) else limits) for one in inside]}
    names = {int: "integer", float: "number", bool: "boolean", str: "string", type(None): "null", dict: "object"}
    names |= {tuple: "array", list: "array"}
    return {"type": names.get(origin or kind, "string"), **limits}


def __getattr__(name: str) -> Any:
    raise AttributeError(f"the pydantic of the browser has no {name}")
