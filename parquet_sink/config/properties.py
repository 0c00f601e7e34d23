r"""Reading connector and worker files: Java's properties syntax, and JSON as Kafka Connect's tools write it.

Properties are read as java.util.Properties reads them, except that the text is UTF-8 (`\uXXXX` works too). JSON is
either `{"name": ..., "config": {...}}` or one flat object; numbers and booleans stand for their texts, null for absent.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from parquet_sink.config.report import printable
from parquet_sink.errors import InvalidConfiguration

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\n|\r")
_LAST_END = re.compile(r"(?:\r\n|\n|\r)\Z")
_HEX = re.compile(r"[0-9A-Fa-f]{4}")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_IGNORED_BESIDE_CONFIG = ("tasks", "type")


@dataclass(frozen=True)
class Parsed:
    """Texts by key in the order of the file; out of the repr, since they may be secrets."""

    properties: Mapping[str, str] = field(repr=False)
    warnings: tuple[str, ...] = ()


def parse_file(data: bytes, source: str) -> Parsed:
    """The keys of a file; JSON when it begins with `{` or is called *.json. Raises InvalidConfiguration."""
    text = _decode(data, source)
    if source.lower().endswith(".json") or text.lstrip().startswith("{"):
        return parse_json(text, source)
    return parse_properties(text, source)


def _decode(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = len(_LINE_END.split(data[: error.start].decode("utf-8", "replace")))
        byte = f"0x{data[error.start]:02X}"
        raise _bad_file(
            source, line, f"the byte {byte} is not UTF-8; save the file as UTF-8, or write the character as \\uXXXX"
        ) from None


def _bad_file(source: str, line: int, reason: str) -> InvalidConfiguration:
    return InvalidConfiguration([f"Invalid file [{printable(source)}]. Line {line}: {reason}."])


def parse_properties(text: str, source: str) -> Parsed:
    """Java's properties syntax; of a key that stands twice the last one counts. Raises InvalidConfiguration."""
    properties: dict[str, str] = {}
    lines: dict[str, int] = {}
    warnings = []
    for number, line in _logical_lines(text):
        raw_key, raw_value = _split(line)
        try:
            key, value = _unescape(raw_key), _unescape(raw_value)
        except ValueError as error:
            raise _bad_file(source, number, str(error)) from None
        if key in lines:
            warnings.append(_twice(key, f"in lines {lines[key]} and {number}"))
        properties[key], lines[key] = value, number
    return Parsed(properties, tuple(warnings))


def _twice(key: str, where: str) -> str:
    return f"Warning [{printable(key)}]. It is set twice ({where}); the last one counts."


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(number of the first natural line, text) without comments, blank lines and continuations.

    As in Java, a file that ends in a continuation of nothing ends in an empty key.
    """
    started, logical, continued = 0, "", False
    for number, natural in enumerate(_LINE_END.split(_LAST_END.sub("", text)), start=1):
        line = natural.lstrip(_BLANKS)
        if not logical:
            started = number
            if not line or line[0] in "#!":
                continued = False
                continue
        logical += line
        continued = _continues(line)
        if continued:
            logical = logical[:-1]
        else:
            yield started, logical
            logical = ""
    if logical or continued:
        yield started, logical


def _continues(line: str) -> bool:
    """True when the line ends in an odd number of backslashes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """Key and value, both still escaped: parted by `=`, `:` or blanks, the first that no backslash precedes."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return line[:end], rest


def _unescape(text: str) -> str:
    r"""Raises ValueError for a malformed or unpaired \uXXXX."""
    if "\\" not in text:
        return text
    out, at = [], 0
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            at += 1
            char = _ESCAPES.get(text[at], text[at])
            if char == "u":
                char, at = _unicode(text[at + 1 : at + 5]), at + 4
        elif char == "\\":
            break
        out.append(char)
        at += 1
    return _join_surrogates("".join(out))


def _unicode(digits: str) -> str:
    if _HEX.fullmatch(digits) is None:
        raise ValueError("\\u needs four hexadecimal digits after it; correct it, or write a backslash as \\\\")
    return chr(int(digits, 16))


def _join_surrogates(text: str) -> str:
    """Java writes a character beyond U+FFFF as two escapes."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("a \\uXXXX escape is half of a pair of surrogates; write both halves") from None


class _Pairs(list[tuple[str, Any]]):
    """A JSON object before duplicates are settled."""


def parse_json(text: str, source: str) -> Parsed:
    """`{"name":..,"config":{..}}` or a flat object. Raises InvalidConfiguration."""
    try:
        tree = json.loads(text, object_pairs_hook=_Pairs, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        raise _bad_file(source, error.lineno, f"no valid JSON at column {error.colno} ({error.msg})") from None
    except RecursionError:
        raise _bad_file(source, 1, "the JSON is nested too deeply; write one flat object") from None
    if not isinstance(tree, _Pairs):
        raise _bad_file(source, 1, 'the JSON must be an object: {"name": ..., "config": {...}} or the keys themselves')
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
        problems.append("Invalid [name]. It stands beside config and is no text; write it in quotes.")
    elif name is not None and config.setdefault("name", name) != name:
        problems.append('Invalid [name]. It is given twice, beside "config" and inside, and differs; remove one.')
    if str(state := top.pop("initial_state", "RUNNING")).upper() != "RUNNING":
        problems.append(f"Invalid [initial_state]. {printable(str(state))} is not built yet: leave the file away.")
    warnings += [
        f'Warning [{printable(key)}]. It stands beside "config" and has no effect; move it inside.'
        for key in top
        if key not in _IGNORED_BESIDE_CONFIG
    ]
    if problems:
        raise InvalidConfiguration(problems)
    return Parsed(config, tuple(warnings))


def _settle(pairs: _Pairs, warnings: list[str]) -> dict[str, Any]:
    settled: dict[str, Any] = {}
    for key, value in pairs:
        if key in settled:
            warnings.append(_twice(key, "in one JSON object"))
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
