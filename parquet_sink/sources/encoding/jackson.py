"""JSON as Jackson writes it, which Kafka Connect has: no spaces, UTF-8 as it is, Java's numbers."""

import json
import math
import re
from collections.abc import Mapping
from typing import Final

from parquet_sink.sources.encoding.faults import NotEncodable

_NAMES: Final = {None: "null", True: "true", False: "false"}
_ESCAPE: Final = re.compile(r"\\u00[01][0-9a-f]")


def dumped(value: object) -> str:
    """The JSON text of text, numbers, booleans, null, and of lists and mappings of these. Raises NotEncodable."""
    match value:
        case None | True | False:
            return _NAMES[value]
        case str():
            return text(value)
        case int():
            return str(value)
        case float():
            return number(value)
        case Mapping():
            return object_of([(str(name), dumped(one)) for name, one in value.items()])
        case list() | tuple():
            return list_of([dumped(one) for one in value])
    raise NotEncodable(f"JSON without a schema has no {type(value).__name__}")


def text(value: str) -> str:
    """Jackson's hexadecimal digits are capital letters."""
    return _ESCAPE.sub(lambda found: "\\u" + found[0][2:].upper(), json.dumps(value, ensure_ascii=False))


def number(value: float) -> str:
    """`Double.toString`; what is no number is text."""
    from parquet_sink.transform.fields.java.texts import of_float  # loads NumPy, which positions do without

    found = of_float(value)
    return found if math.isfinite(value) else text(found)


def object_of(fields: list[tuple[str, str]]) -> str:
    """An object of names and JSON texts."""
    return "{" + ",".join(f"{text(name)}:{one}" for name, one in fields) + "}"


def list_of(items: list[str]) -> str:
    """A list of JSON texts."""
    return "[" + ",".join(items) + "]"
