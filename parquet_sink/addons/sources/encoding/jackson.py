"""JSON as Jackson writes it, which Kafka Connect has: no spaces, Java's numbers, and text in UTF-8.

Characters beyond the BMP are written as the escapes of their two surrogates, as Jackson's UTF8JsonGenerator does.
"""

import math
import re
from collections.abc import Mapping
from typing import Final

from parquet_sink.addons.sources.encoding.faults import NotEncodable

_NAMES: Final = {None: "null", True: "true", False: "false"}
_ESCAPED: Final = re.compile(r'[\x00-\x1f"\\\ud800-\udfff\U00010000-\U0010ffff]')
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BEYOND_BMP: Final = 0x10000
_LIMIT: Final = 2**63


def dumped(value: object) -> str:
    """The JSON text of text, numbers, booleans, null, and of lists and mappings of these. Raises NotEncodable."""
    match value:
        case None | True | False:
            return _NAMES[value]
        case str():
            return text(value)
        case int():
            return _whole(value)
        case float():
            return number(value)
        case Mapping():
            return _of_mapping(value)
        case list() | tuple():
            return list_of([dumped(one) for one in value])
    raise NotEncodable(f"JSON without a schema has no {type(value).__name__}")


def _of_mapping(value: Mapping[object, object]) -> str:
    """As JsonConverter has it: an object where all keys are text, else a list of pairs."""
    if all(isinstance(name, str) for name in value):
        return object_of([(str(name), dumped(one)) for name, one in value.items()])
    return list_of([list_of([dumped(name), dumped(one)]) for name, one in value.items()])


def text(value: str) -> str:
    """A string, quoted. Jackson's hexadecimal digits are capital letters."""
    return f'"{_ESCAPED.sub(_escape, value)}"'


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char) - _BEYOND_BMP
    return f"\\u{ord(char):04X}" if code < 0 else f"\\u{0xD800 + (code >> 10):04X}\\u{0xDC00 + (code & 0x3FF):04X}"


def fits(value: float) -> bool:
    """Whether a number is one of JSON that Java reads: whole ones of 64 bits, finite ones."""
    return -_LIMIT <= value < _LIMIT if isinstance(value, int) else math.isfinite(value)


def _whole(value: int) -> str:
    if not fits(value):
        raise NotEncodable("it has a whole number beyond 64 bits")
    return str(value)


def number(value: float, *, of_32_bits: bool = False) -> str:
    """`Double.toString`, or `Float.toString`; what is not a number is text."""
    from parquet_sink.addons.transforms.fields.java import numbers  # loads NumPy, which positions do without

    found = numbers.of_float32(value) if of_32_bits else numbers.of_float(value)
    return found if math.isfinite(value) else text(found)


def object_of(fields: list[tuple[str, str]]) -> str:
    """An object of names and JSON texts."""
    return "{" + ",".join(f"{text(name)}:{one}" for name, one in fields) + "}"


def list_of(items: list[str]) -> str:
    """A list of JSON texts."""
    return "[" + ",".join(items) + "]"
