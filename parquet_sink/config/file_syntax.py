"""Reading connector and worker files: Java's properties syntax, or JSON as Kafka Connect's tools write it.

JSON is either `{"name": ..., "config": {...}}` or one flat object; numbers and booleans stand for their texts, null for
absent.
"""

import json
from typing import Any, Final

from parquet_sink.config.properties import LINE_END, RUNNING, Parsed, bad_file, parse_properties, set_twice
from parquet_sink.config.report import printable, quoted
from parquet_sink.errors import InvalidConfiguration

STATES: Final = (RUNNING, "PAUSED", "STOPPED")
_IGNORED_BESIDE_CONFIG: Final = ("tasks", "type")


def parse_file(data: bytes, source: str) -> Parsed:
    """The keys of a file; JSON when it begins with `{` or is called *.json. Raises InvalidConfiguration."""
    text = decode(data, source)
    return (parse_json if is_json(text, source) else parse_properties)(text, source)


def is_json(text: str, source: str) -> bool:
    """Whether a file is JSON and not Java's properties: by what it begins with, or its name."""
    return source.lower().endswith(".json") or text.lstrip().startswith("{")


def decode(data: bytes, source: str) -> str:
    """UTF-8, with a mark at its begin or without. Raises InvalidConfiguration."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = len(LINE_END.split(data[: error.start].decode("utf-8", "replace")))
        byte = f"0x{data[error.start]:02X}"
        raise bad_file(
            source, line, f"the byte {byte} is not UTF-8; save the file as UTF-8, or write the character as \\uXXXX"
        ) from None


class _Pairs(list[tuple[str, Any]]):
    """A JSON object before duplicates are settled."""


def parse_json(text: str, source: str) -> Parsed:
    """`{"name":..,"config":{..}}` or a flat object. Raises InvalidConfiguration."""
    try:
        tree = json.loads(text, object_pairs_hook=_Pairs, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        raise bad_file(source, error.lineno, f"no valid JSON at column {error.colno} ({error.msg})") from None
    except RecursionError:
        raise bad_file(source, 1, "the JSON is nested too deeply; write one flat object") from None
    if not isinstance(tree, _Pairs):
        raise bad_file(source, 1, 'the JSON must be an object: {"name": ..., "config": {...}} or the keys themselves')
    warnings: list[str] = []
    top = _settle(tree, warnings)
    if isinstance(top.get("config"), _Pairs):
        return _connect_form(top, warnings, source)
    return Parsed(_texts(top), tuple(warnings))


def _connect_form(top: dict[str, Any], warnings: list[str], source: str) -> Parsed:
    config = _texts(_settle(top.pop("config"), warnings))
    name = top.pop("name", None)
    problems = []
    if name is not None and not isinstance(name, str):
        problems.append("Invalid [name]. It stands beside config and is not text; write it in quotes.")
    elif name is not None and config.setdefault("name", name) != name:
        problems.append('Invalid [name]. It is given twice, beside "config" and inside, and differs; remove one.')
    state = str(top.pop("initial_state", RUNNING))
    if state.upper() not in STATES:
        problems.append(
            f"Invalid [initial_state]. {quoted(state)} is not one of {', '.join(STATES)}; write one of them."
        )
    warnings += [
        f'Warning [{printable(key)}]. It stands beside "config" and has no effect; move it inside.'
        for key in top
        if key not in _IGNORED_BESIDE_CONFIG
    ]
    if problems:
        raise InvalidConfiguration(problems)
    return Parsed(config, tuple(warnings), state.upper())


def _settle(pairs: _Pairs, warnings: list[str]) -> dict[str, Any]:
    settled: dict[str, Any] = {}
    for key, value in pairs:
        if key in settled:
            warnings.append(set_twice(key, "in one JSON object"))
        settled[key] = value
    return settled


def _texts(values: dict[str, Any]) -> dict[str, str]:
    """Every value as text; null is absent. Raises InvalidConfiguration naming every key that holds more."""
    problems = [
        f"Invalid [{printable(key)}]. It holds {'a list' if type(value) is list else 'an object'}; write one text."
        for key, value in values.items()
        if isinstance(value, list)
    ]
    if problems:
        raise InvalidConfiguration(problems)
    return {
        key: str(value).lower() if isinstance(value, bool) else value
        for key, value in values.items()
        if value is not None
    }
