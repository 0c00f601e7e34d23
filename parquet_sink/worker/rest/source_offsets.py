"""Offsets of sources in requests: any flat JSON object to another, as Kafka Connect takes them."""

from collections.abc import Mapping
from math import isinf
from typing import Any, Final

from parquet_sink.worker.herder.values import StoredOffset
from parquet_sink.worker.rest import bodies
from parquet_sink.worker.rest.call import RestError

_PLAIN: Final = (str, int, float, bool, type(None))
_LIMIT: Final = 2**63
_MOST_DIGITS: Final = 20


def read(entry: Any) -> StoredOffset:
    """One entry of the list. Raises RestError."""
    if not isinstance(entry, dict):
        raise bodies.unreadable("an entry of offsets is no JSON object; send partition and offset in one")
    bodies.known_fields(entry, ("partition", "offset"))
    partition = _flat(entry.get("partition"), "partition")
    if partition is None:
        raise RestError(500, "Partition objects cannot be null")
    return StoredOffset(partition, _flat(entry.get("offset"), "offset"))


def _flat(given: Any, name: str) -> Mapping[str, Any] | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise bodies.unreadable(f'"{name}" of an entry is no JSON object; send one')
    for field, value in given.items():
        if not isinstance(value, _PLAIN):
            raise RestError(
                500, f"Offsets may only contain primitive types as values, but field {field} contains others"
            )
    return {field: _plain(value) for field, value in given.items()}


def _plain(value: Any) -> Any:
    """A number as Java has it: 64 bits, whole or not. Raises RestError."""
    if not isinstance(value, bodies.NumberText):
        return value
    if value.lstrip("-").isdigit():
        number = int(value) if len(value) <= _MOST_DIGITS else _LIMIT
        if not -_LIMIT <= number < _LIMIT:
            raise bodies.unreadable("a whole number of an entry is beyond 64 bits; send one that is not")
        return number
    if isinf(float(value)):
        raise bodies.unreadable("a number of an entry is beyond what 64 bits hold; send one that is not")
    return float(value)
