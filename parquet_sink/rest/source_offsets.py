"""Offsets of sources in requests: any flat JSON object to another, as Kafka Connect takes them."""

from collections.abc import Mapping
from typing import Any, Final

from parquet_sink.herder.values import StoredOffset
from parquet_sink.rest import bodies
from parquet_sink.rest.call import RestError

_PLAIN: Final = (str, int, float, bool, type(None))


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
    return given
