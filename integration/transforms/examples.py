"""What the examples of known differences are made of."""

import json
from collections.abc import Mapping
from typing import Any, Final

from integration.transforms.cases import Case, Record, Step

PACKAGE: Final = "org.apache.kafka.connect.transforms."


def example(type_: str, keys: Mapping[str, str], *values: bytes, timestamp: int | None = 1, **more: Any) -> Case:
    """One transform by the last part of its class name, with its keys, on some values."""
    records = tuple(Record(b'{"k": 1}', value, (), timestamp) for value in values)
    return Case((Step(PACKAGE + type_, keys),), records, value_schemas=values[0].startswith(b'{"schema"'), **more)


def chain(value: bytes, *steps: tuple[str, Mapping[str, str]]) -> Case:
    """Several transforms on one value without a schema."""
    return Case(tuple(Step(PACKAGE + type_, keys) for type_, keys in steps), (Record(None, value),))


def typed(payload: object, type_: str, name: str = "", **more: Any) -> bytes:
    """An envelope of one value; of a field `a`, where the payload is an object."""
    kind = {"type": type_, "optional": True, **more, **({"name": DATA + name, "version": 1} if name else {})}
    if isinstance(payload, dict):
        kind = {"type": "struct", "optional": False, "fields": [{"field": field, **kind} for field in payload]}
    return json.dumps({"schema": kind, "payload": payload}).encode()


BELOW_NULL: Final = (
    b'{"schema": {"type": "struct", "optional": false, "fields": [{"field": "a", "type": "struct", "optional": true, '
    b'"fields": [{"field": "b", "type": "int32", "optional": true, "default": 5}]}]}, "payload": {"a": null}}'
)
DATA: Final = "org.apache.kafka.connect.data."
