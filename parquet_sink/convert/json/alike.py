"""From why Arrow's JSON reader ended at one value to a pattern of values that it ends at for the same reason.

A pattern may match values that are fine, and miss bad ones: it tells what to leave out of one reading, never what a
value is.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import pyarrow as pa

from parquet_sink.convert.json.fast import ODD_NUMBER

_SPACE: Final = r"[ \t\r\n]*"
_CHANGED: Final = re.compile(r"\) changed from \w++ to (\w++) in row \d++$")
_TWICE: Final = re.compile(r"\) was specified twice in row \d++$")
_TOO_BIG: Final = "Number too big to be stored in double"
_NOT_CONVERTED: Final = ("Failed to convert JSON to ", " is not a valid decimal")
_BEGINS: Final = {"string": '"', "object": r"\{", "array": r"\[", "boolean": "[tf]", "number": "[-0-9]"}
"""How a value begins, by what the reader calls it."""
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_ -]+")
_MOST_NAMES: Final = 200


def pattern_of(why: str, schema: pa.Schema) -> str | None:
    """why: the reader's message. None where a fault has no look of its own."""
    if found := _CHANGED.search(why):
        begins = _BEGINS.get(found[1])
        return None if begins is None else _valued(_name_in(why[: found.start()]), begins)
    if found := _TWICE.search(why):
        twice = _valued(_name_in(why[: found.start()]), "")
        return None if twice is None else f"(?s){twice}.*{twice}"
    if _TOO_BIG in why:
        return ODD_NUMBER
    return _numbers(schema) if any(words in why for words in _NOT_CONVERTED) else None


def _name_in(said: str) -> str:
    """The field in `… Column(/a/b`, whatever its name holds."""
    return said.partition("Column(")[2].rpartition("/")[2]


def _valued(name: str, begins: str) -> str | None:
    """A field's name, and how its value begins; None for a name that a text may have in another form."""
    return f'"{name}"{_SPACE}:{_SPACE}{begins}' if _PLAIN_NAME.fullmatch(name) else None


@lru_cache(256)
def _numbers(schema: pa.Schema) -> str | None:
    """Numbers that their field's type has no room for; None where no field may have such ones."""
    names: dict[str, set[str]] = defaultdict(set)
    for name, arrow in _leaves([(field.name, field.type) for field in schema]):
        odd = _beyond(arrow)
        if odd is not None and _PLAIN_NAME.fullmatch(name):
            names[odd].add(name)
    if not 0 < sum(map(len, names.values())) <= _MOST_NAMES:
        return None
    listed = r"(?:\[(?:[^\]]*[ \t\r\n,])?)?"
    return "|".join(
        f'"(?:{"|".join(sorted(some))})"{_SPACE}:{_SPACE}{listed}{odd}' for odd, some in sorted(names.items())
    )


def _leaves(fields: list[tuple[str, pa.DataType]]) -> Iterator[tuple[str, pa.DataType]]:
    """Names and types of fields that are no objects, at all depths; those in lists under the list's name."""
    for name, arrow in fields:
        below = arrow
        while pa.types.is_list(below):
            below = below.value_type
        if pa.types.is_struct(below):
            yield from _leaves([(field.name, field.type) for field in below])
        else:
            yield name, below


def _beyond(arrow: pa.DataType) -> str | None:
    """What a value of this type is not: an integer with a fraction or too many digits, a decimal that has no room."""
    if pa.types.is_signed_integer(arrow):
        return f"-?(?:[0-9]+[.eE]|{_above(str(2 ** (arrow.bit_width - 1) - 1))})"
    if pa.types.is_decimal(arrow):
        whole, scale = arrow.precision - arrow.scale + 1, arrow.scale + 1
        return rf'(?:"|-?(?:[0-9]{{{whole},}}|[0-9]*\.[0-9]{{{scale},}}|[0-9.]*[eE]))'
    return None


def _above(most: str) -> str:
    """Whole numbers with more digits than this one, or as many and above it."""
    size = len(most)
    higher = [
        f"{most[:at]}[{int(digit) + 1}-9][0-9]{{{size - at - 1}}}" for at, digit in enumerate(most) if digit != "9"
    ]
    return "|".join([f"[0-9]{{{size + 1},}}", *higher])
