"""Parses one JSON value to a Python tree: the definition of what is accepted, and why not. And back.

`parse` promises to its callers: a non-empty object, nested at most MAX_DEPTH levels, integers within int64, fractions
finite, text without lone surrogates, of equal keys the last one.
"""

import json
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from math import isfinite, isnan
from typing import Any, cast

import numpy as np
import orjson
import pyarrow as pa

from parquet_sink.config.key import ems
from parquet_sink.convert.arrays import BYTE_ORDER_MARK
from parquet_sink.convert.decoded import MAX_DEPTH, Float32, LongFraction, Tree
from parquet_sink.convert.invalid import InvalidValue, Path, show

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_INT64_LIMIT = float(2**63)
_GZIP = b"\x1f\x8b"
_NOT_NUMBERS = (("-Infinity", -1), ("Infinity", 0), ("NaN", 0))
_TOO_DEEP = "its text cannot be made: it is nested too deeply"
_NAMES = {list: "a list", str: "a string", int: "a number", float: "a number", bool: "a boolean", type(None): "null"}


def parse(value: bytes) -> Tree:
    """The JSON object in `value`. Raises InvalidValue."""
    value = value.removeprefix(BYTE_ORDER_MARK)
    tree = load(value)
    if type(tree) is not dict:
        what = f"{_NAMES[type(tree)]}, which only {ems('flattener.jsonblob.chunks')} takes"
        raise InvalidValue(f"the value is not a JSON object but {what}")
    if not tree:
        raise InvalidValue("the value is an empty JSON object")
    if not is_plain(tree.values(), 1):
        _explain(tree, value)
    return tree


def parse_any(value: bytes) -> object:
    """Whatever JSON is in `value`, within the same limits. Raises InvalidValue."""
    value = value.removeprefix(BYTE_ORDER_MARK)
    found = load(value)
    if not is_plain((found,), 0):
        is_container = isinstance(found, dict | list)
        _explain(found if is_container else [found], value if is_container else b"[" + value + b"]")
    return found


_MAY_BE_ROUNDED = re.compile(
    rb"(?<![0-9])[0-9](?:(?=[0-9.]{16})[0-9]*+\.[0-9]|[0-9]{16}[0-9]*+[eE])|[eE]-[0-9]{3}"  # once for a run of digits
)
_SPACE = b" \t\r\n"


def with_digits(tree: Any, text: bytes) -> Any:
    """Return a valid tree with a LongFraction for each fraction that it has rounded. text: what it was parsed from."""
    if _MAY_BE_ROUNDED.search(text) is None:
        return tree
    text = text.removeprefix(BYTE_ORDER_MARK)
    if orjson.dumps(tree).translate(None, _SPACE) == text.translate(None, _SPACE):
        return tree
    return json.loads(text.decode(), parse_float=_to_fraction)


def with_digits_in_lists(tree: Tree, text: bytes) -> Tree:
    """Return the same, but with plain fractions outside lists, where their columns are doubles."""
    return _round_outside_lists(with_digits(tree, text)) if b"[" in text else tree


def _to_fraction(text: str) -> float:
    number = float(text)
    try:
        is_exact = repr(number) == text or Decimal(repr(number)) == Decimal(text)
    except InvalidOperation:  # an exponent that Decimal has not
        is_exact = False
    return number if is_exact else LongFraction(number, text)


def _round_outside_lists(tree: Any) -> Any:
    if type(tree) is dict:
        return {name: _round_outside_lists(below) for name, below in tree.items()}
    return float(tree) if type(tree) is LongFraction else tree


def load(value: bytes) -> Any:
    """Any JSON value, within no limits yet. Raises InvalidValue."""
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise InvalidValue(_syntax(value, error)) from None


def _syntax(value: bytes, error: orjson.JSONDecodeError) -> str:
    """Why a value is not JSON; the position is counted in characters, from 1."""
    if not value.strip():
        return "the value is empty, which is not JSON"
    if value.startswith(_GZIP):
        return "the value is not JSON: it begins like gzip data"
    if value[0] == 0:
        others = "as values of Avro, Protobuf and JSON Schema do, for which value.converter names another converter"
        return f"the value is not JSON: it begins with the byte 0x00, {others}"
    for literal, shift in _NOT_NUMBERS:
        if error.pos + shift >= 0 and error.doc.startswith(literal, error.pos + shift):
            return f"the value is not JSON: {literal} is not a JSON number (position {error.pos + shift + 1})"
    return f"the value is not JSON: {error.msg.split(': line ')[0]} (position {error.pos + 1})"


def is_plain(values: Iterable[object], depth: int) -> bool:
    """Whether nothing below needs a second look: no number that may be an integer beyond int64, no excess depth.

    depth: the level of what holds the values, the record itself being the first.
    """
    for value in values:
        kind = type(value)
        if kind is str:
            continue
        if kind is int:
            if not INT64_MIN <= value <= INT64_MAX:  # type: ignore[operator]
                return False
        elif kind is float:
            if not -_INT64_LIMIT < value < _INT64_LIMIT:  # type: ignore[operator]
                return False
        elif kind is dict or kind is list:
            below = value.values() if kind is dict else value  # type: ignore[attr-defined]
            if depth == MAX_DEPTH or not is_plain(cast("Iterable[object]", below), depth + 1):
                return False
    return True


def _explain(tree: Tree | list[object], value: bytes) -> None:
    """Raise for excess depth or an integer beyond int64; pass large fractions.

    The parser turns integers beyond 64 bits into fractions, so the text is read once more with integers kept whole.
    """
    for path, below in walk(tree):
        if len(path) >= MAX_DEPTH and isinstance(below, dict | list):
            raise InvalidValue(f"field {show(path)} is nested deeper than {MAX_DEPTH} levels")
    for path, leaf in walk(json.loads(value.decode())):
        if type(leaf) is int and not INT64_MIN <= leaf <= INT64_MAX:
            raise InvalidValue(f"field {show(path)} holds an integer beyond 64 bits")


def walk(tree: Tree | list[object]) -> Iterator[tuple[Path, object]]:
    """Every path below `tree` with its value, containers before what they hold, in order; any depth."""
    stack = [_children((), tree)]
    while stack:
        for path, value in stack[-1]:
            yield path, value
            if isinstance(value, dict | list):
                stack.append(_children(path, value))
                break
        else:
            stack.pop()


def _children(path: Path, value: dict[str, object] | list[object]) -> Iterator[tuple[Path, object]]:
    items: Iterable[tuple[str | int, object]] = value.items() if isinstance(value, dict) else enumerate(value)
    for step, child in items:
        yield (*path, step), child


def text_of(tree: object) -> str:
    """The JSON text of a value without a schema, as transforms may have left it.

    Raises InvalidValue for what is nested too deeply, and TypeError for what no record may hold (`wrong_values`).
    Dates and times are the numbers that columns store, numbers that are none text, as in `rows.json_text`.
    """
    try:
        text = orjson.dumps(tree, default=_number).decode()
        return text if "null" not in text else orjson.dumps(_finite(tree), default=_number).decode()
    except RecursionError:
        raise InvalidValue(_TOO_DEEP) from None
    except orjson.JSONEncodeError as error:
        if "ecursion" in str(error):
            raise InvalidValue(_TOO_DEEP) from None
        raise


def _finite(tree: object) -> object:
    """The same, with text for each number that is none, of which orjson makes null."""
    if isinstance(tree, float):
        return tree if isfinite(tree) else "NaN" if isnan(tree) else "Infinity" if tree > 0 else "-Infinity"
    if type(tree) is list:
        return [_finite(one) for one in tree]
    return {name: _finite(one) for name, one in tree.items()} if type(tree) is dict else tree


def _number(value: object) -> float | orjson.Fragment:
    """Of what orjson does not know. A fraction of 32 bits has as few digits as tell it from others of these."""
    if isinstance(value, LongFraction):
        return orjson.Fragment(value.text)
    if isinstance(value, Float32):
        return float(str(np.float32(value)))
    if not isinstance(value, pa.Scalar):
        raise TypeError
    number: int = value.value
    return number
