"""Sets keys in the text of a connector file, in either syntax; all else in it stays as it was."""

import codecs
import json
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Final

from parquet_sink.config.file_syntax import decode, is_json, parse_json
from parquet_sink.config.files import read_named
from parquet_sink.config.properties import LINE_END, logical_lines, parse_properties, parted, unescape
from parquet_sink.config.report import printable, quoted
from parquet_sink.errors import InvalidConfiguration

_BLANKS: Final = " \t\f"
_JSON_BLANKS: Final = " \t\r\n"


@dataclass(frozen=True)
class Edit:
    """What a file is to become. Texts are without the mark that UTF-8 may begin with."""

    path: str
    before: str = field(repr=False)
    after: str = field(repr=False)
    data: bytes = field(repr=False)

    def write(self) -> None:
        """Puts the new text in the file's place, whole or not at all. Raises InvalidConfiguration.

        A link stays one; permissions stay. A file that somebody else changed meanwhile is left alone.
        """
        path = os.path.realpath(self.path)
        if read_named(self.path) != self.data:
            raise _not_written(self.path, "somebody changed it meanwhile; try again")
        mark = codecs.BOM_UTF8 if self.data.startswith(codecs.BOM_UTF8) else b""
        try:
            _replace(path, mark + self.after.encode())
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise _not_written(self.path, f"{reason}; give this user the right to write it and its folder") from None


def edited(path: str, numbers: Mapping[str, int]) -> Edit:
    """A connector file with these values, not written yet. Raises InvalidConfiguration."""
    data = read_named(path)
    before = decode(data, path)
    return Edit(path, before, with_numbers(before, path, numbers), data)


def _replace(path: str, data: bytes) -> None:
    """Raises OSError; then the file is as it was."""
    about = os.stat(path)
    number, new = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path))
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), stat.S_IMODE(about.st_mode))
            with suppress(PermissionError):
                os.fchown(file.fileno(), about.st_uid, about.st_gid)
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(new)
        raise


def _not_written(path: str, reason: str) -> InvalidConfiguration:
    return InvalidConfiguration([f"Invalid file [{printable(path)}]. It cannot be written: {reason}. It is as it was."])


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
