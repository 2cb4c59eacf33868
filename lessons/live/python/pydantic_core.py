"""The part of pydantic's core that the fault settings use (experiments/specification/faults.py)."""

from collections.abc import Callable
from typing import Any, NamedTuple

CoreSchema = Any


class Schema(NamedTuple):
    """The functions that convert a value to the field's type, and back."""

    validate: Callable[[Any], Any]
    serialise: Callable[[Any], Any] = lambda value: value


class core_schema:
    """The functions that build a schema, by pydantic's names."""

    @staticmethod
    def str_schema() -> Schema:
        from pydantic import _text

        return Schema(_text)

    @staticmethod
    def no_info_after_validator_function(after: Callable, schema: Schema) -> Schema:
        return Schema(lambda value: after(schema.validate(value)))

    @staticmethod
    def no_info_before_validator_function(before: Callable, schema: Schema, serialization: Callable) -> Schema:
        return Schema(lambda value: schema.validate(before(value)), serialization)

    @staticmethod
    def plain_serializer_function_ser_schema(function: Callable) -> Callable:
        return function
