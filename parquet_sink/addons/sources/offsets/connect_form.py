"""Places of a source as Kafka Connect writes them: keys and values of its offsets topic, byte for byte.

A key is `["name",{"filename":"…"}]`, a value `{"position":17}`, as Jackson writes them without schemas. Kafka Connect
compares keys by their bytes, and so do we.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from parquet_sink.addons.sources.encoding.faults import NotEncodable
from parquet_sink.addons.sources.encoding.jackson import dumped, fits
from parquet_sink.model.source_records import Place

Places = dict[str, Place]
"""By the JSON text of a source partition, where to go on."""
_PLAIN: Final = (str, type(None))


def text_of(place: Place) -> str:
    """The JSON text of a source partition, or of an offset."""
    return dumped(dict(place))


def key(connector: str, partition: str) -> bytes:
    """The key of a source partition, given as its text."""
    return f"[{dumped(connector)},{partition}]".encode()


def value(offset: Place | None) -> bytes | None:
    """The value for a place; None, which removes it, for none."""
    return None if offset is None else text_of(offset).encode()


def parsed_key(data: bytes | None) -> tuple[str, str] | None:
    """Connector and the text of the source partition, as it stands there; None for a key of another form."""
    found = _loaded(data)
    match found:
        case [str() as connector, dict() as partition] if data is not None:
            with suppress(NotEncodable, RecursionError):  # one that nobody's source has written
                return connector, text_of(partition)
    return None


def parsed_value(data: bytes | None) -> Place | None:
    """The place in a value; None for none, and for a value of another form."""
    found = _loaded(data)
    return found if isinstance(found, dict) and is_flat(found) else None


def is_flat(place: Mapping[str, object]) -> bool:
    """Whether it is an object of plain values, as offsets are: text, numbers of 64 bits, booleans, null."""
    return all(fits(one) if isinstance(one, int | float) else isinstance(one, _PLAIN) for one in place.values())


def _loaded(data: bytes | None) -> object:
    try:
        return None if data is None else json.loads(data)
    except (ValueError, RecursionError):
        return None
