"""Reading connector and worker files: Java's properties syntax, or JSON as Kafka Connect's tools write it.

JSON is either `{"name": ..., "config": {...}}` or one flat object; numbers and booleans stand for their texts, null for
absent.
"""

import json
from collections.abc import Mapping
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Final

from parquet_sink.config.properties import (
    LINE_END,
    RUNNING,
    Parsed,
    bad_file,
    logical_lines,
    parse_properties,
    parted,
    set_twice,
    unescape,
)
from parquet_sink.config.report import printable, quoted
from parquet_sink.errors import InvalidConfiguration

_BLANKS: Final = " \t\f"
_JSON_BLANKS: Final = " \t\r\n"
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
        problems.append("Invalid [name]. It stands beside config and is no text; write it in quotes.")
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


def with_numbers(text: str, source: str, numbers: Mapping[str, int]) -> str:
    """The text of a connector file with these values. source: the file's name.

    Of a key that stands twice the last one, which counts, is changed; one that is absent is put behind the others.
    Raises InvalidConfiguration for a value that a config provider gives, and for a file that cannot be read.
    """
    as_json = is_json(text, source)
    before = (parse_json if as_json else parse_properties)(text, source).properties
    provided = [key for key in numbers if "${" in before.get(key, "")]
    if provided:
        raise InvalidConfiguration(
            [
                f"Invalid [{key}]. Its value is {quoted(before[key])} in {source}, which is left as it is: set "
                f"{numbers[key]} where that comes from, or write the number into the file."
                for key in provided
            ]
        )
    changed = _json(text, numbers) if as_json else _properties(text, numbers)
    after = (parse_json if as_json else parse_properties)(changed, source).properties
    wanted = {**before, **{key: str(number) for key, number in numbers.items()}}
    if after != wanted:
        raise InvalidConfiguration(
            [f"Invalid file [{source}]. It is written so that {', '.join(numbers)} cannot be set; set them by hand."]
        )
    return changed


def _properties(text: str, numbers: Mapping[str, int]) -> str:
    """Java's properties syntax."""
    lines = _natural_lines(text)
    spans: dict[str, tuple[int, int, str]] = {}
    for first, last, line in logical_lines(text):
        key = unescape(line[: parted(line)[0]])
        if key in numbers:
            begin, end = lines[first - 1][0], lines[min(last, len(lines)) - 1][1]
            natural = text[begin : lines[first - 1][1]]
            spans[key] = begin, end, _beginning(natural, line, key)
    changed = text
    for key, (begin, end, beginning) in sorted(spans.items(), key=lambda item: -item[1][0]):
        changed = f"{changed[:begin]}{beginning}{numbers[key]}{changed[end:]}"
    absent = [f"{key}={number}" for key, number in numbers.items() if key not in spans]
    ended = LINE_END.search(text)
    return _appended(changed, absent, "\n" if ended is None else ended[0])


def _natural_lines(text: str) -> list[tuple[int, int]]:
    """Where each begins and ends, without its end."""
    spans, begin = [], 0
    for found in LINE_END.finditer(text):
        spans.append((begin, found.start()))
        begin = found.end()
    return [*spans, (begin, len(text))]


def _beginning(natural: str, logical: str, key: str) -> str:
    """Of a line up to its value; of one whose key or separator goes on in the next line, the key anew."""
    indent = len(natural) - len(natural.lstrip(_BLANKS))
    end, value = parted(logical)
    own = natural[indent:]
    if own.startswith(logical[:value]) and value > end:
        return natural[: indent + value]
    return f"{natural[:indent]}{key}="


def _appended(text: str, lines: list[str], line_end: str) -> str:
    """Behind the text, and not as a part of its last line, which may go on in the next one."""
    if not lines:
        return text
    if text and not LINE_END.search(text[-1]):
        text += line_end
    *_, (first, last, _) = logical_lines(f"{text}x")
    gap = line_end if first < last else ""
    return text + gap + "".join(f"{line}{line_end}" for line in lines)


def _json(text: str, numbers: Mapping[str, int]) -> str:
    """`{"name":..,"config":{..}}` or a flat object, which was parsed before and so is right."""
    spans, objects = _members(text, text.index("{"))
    if "config" in spans and text[spans["config"][0]] == "{":
        spans, objects = _members(text, spans["config"][0])
    changes = []
    for key, number in numbers.items():
        if key in spans:
            begin, end = spans[key]
            changes.append((begin, end, f'"{number}"' if text[begin] == '"' else str(number)))
    absent = [(key, number) for key, number in numbers.items() if key not in spans]
    changes += _inserted(text, objects, absent, empty=not spans)
    for begin, end, written in sorted(changes, reverse=True):
        text = text[:begin] + written + text[end:]
    return text


def _inserted(text: str, end: int, absent: list[tuple[str, int]], *, empty: bool) -> list[tuple[int, int, str]]:
    """Members before the brace that ends the object, which stands at `end`, each in a line of its own."""
    last = end
    while text[last - 1] in _JSON_BLANKS:
        last -= 1
    line = text[text.rfind("\n", 0, last) + 1 : last]
    indent = line[: len(line) - len(line.lstrip())] if not empty else "  "
    between = f"\n{indent}" if "\n" in text[last:end] or empty else " "
    members = f",{between}".join(f'"{key}": {number}' for key, number in absent)
    return [(last, last, f"{'' if empty else ','}{between}{members}")] if absent else []


def _members(text: str, at: int) -> tuple[dict[str, tuple[int, int]], int]:
    """Where the values of an object begin and end, and where its last brace stands. at: of its first one."""
    spans: dict[str, tuple[int, int]] = {}
    at = _skipped(text, at + 1, "")
    while text[at] != "}":
        key, at = scanstring(text, at + 1)
        begin = _skipped(text, at, ":")
        _, end = _DECODER.raw_decode(text, begin)
        spans[key] = begin, end
        at = _skipped(text, end, ",")
    return spans, at


_DECODER: Final[json.JSONDecoder] = json.JSONDecoder()


def _skipped(text: str, at: int, also: str) -> int:
    """The next character that is neither blank nor this one."""
    skip: Any = _JSON_BLANKS + also
    while text[at] in skip:
        at += 1
    return at
