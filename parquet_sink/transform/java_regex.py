"""Regular expressions as Java has them, with Python's engine: translated, or refused where that cannot be."""

import re
from collections.abc import Callable, Mapping
from typing import Final

JAVA_REGEX: Final = (
    "Refused, because Python has nothing alike: character classes in classes (`[a[b]]`, `&&`), `\\p{...}` but the "
    "ASCII ones (`\\p{Alpha}`, ...), `\\h`, `\\v`, `\\R`, `\\X`, `\\G`, `\\N`, look-behind of variable length, and "
    "flags other than `(?i)`, `(?s)`, `(?m)` at the start or for a group."
)

_POSIX: Final = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": "\\x00-\\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": "!-/:-@\\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": " \\t",
    "Cntrl": "\\x00-\\x1f\\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": " \\t-\\r",
}
_GROUPS: Final = re.compile(r"\(\?(?:[:=!>]|<[=!]|([ism]*)(?:-([ism]+))?([:)])|<([A-Za-z][A-Za-z0-9]*)>)")
_QUANTIFIER: Final = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_CODES: Final = re.compile(
    r"\\(?:x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]+)\}|u([0-9A-Fa-f]{4})|0([0-3]?[0-7]{1,2})|c(.))", re.DOTALL
)
_NAMED: Final = re.compile(r"\\k<([A-Za-z][A-Za-z0-9]*)>")
_PROPERTY: Final = re.compile(r"\\([pP])\{(\w+)\}")
_QUOTED: Final = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
_CONTROLS: Final = {"t": "\\t", "n": "\\n", "r": "\\r", "f": "\\f", "a": "\\a", "e": "\\x1b"}
_ANCHORS: Final = {"b": "\\b", "B": "\\B", "A": "\\A", "z": "\\Z", "Z": "(?=\\n?\\Z)"}
_CLASSES: Final = frozenset("dDwWsS")


class NotKept(ValueError):
    """A regular expression that is none, or cannot be kept; the text says why, to stand behind the expression."""


def java_pattern(text: str) -> re.Pattern[str]:
    """The same expression for Python. Raises NotKept."""
    translated = _Translation(text).all()
    try:
        return re.compile(translated, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise NotKept(f"is not a regular expression that can be kept ({error}); correct it.") from None


def java_replacement(text: str, pattern: re.Pattern[str]) -> Callable[[re.Match[str]], str]:
    r"""What a match becomes: `$1`, `${name}` and `\` as in Java. Raises NotKept."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        if text[at] == "\\":
            if at + 1 == len(text):
                raise NotKept("ends in a backslash; write two for one.")
            parts.append(text[at + 1])
            at += 2
        elif text[at] == "$":
            group, at = _reference(text, at + 1, pattern)
            parts.append(group)
        else:
            parts.append(text[at])
            at += 1
    return lambda match: "".join(one if isinstance(one, str) else match.group(one) or "" for one in parts)


def _reference(text: str, at: int, pattern: re.Pattern[str]) -> tuple[int, int]:
    """The number of the group that is named there, and where the text goes on."""
    if (named := re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}").match(text, at)) is not None:
        if named[1] not in pattern.groupindex:
            raise NotKept(f"names the group {named[1]}, which the expression has not; correct one of them.")
        return pattern.groupindex[named[1]], named.end()
    if at == len(text) or text[at] not in "0123456789":
        raise NotKept("has a $ without the number or {name} of a group behind it; write \\$ for the character.")
    group = int(text[at])
    at += 1
    while at < len(text) and text[at] in "0123456789" and group * 10 + int(text[at]) <= pattern.groups:
        group = group * 10 + int(text[at])
        at += 1
    if group > pattern.groups:
        raise NotKept(f"names group {group}, and the expression has {pattern.groups}; correct one of them.")
    return group, at


class _Translation:
    """Of one expression, from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def all(self) -> str:
        parts: list[str] = []
        while self._at < len(self._text):
            parts.append(self._next())
        return "".join(parts)

    def _next(self) -> str:
        character = self._text[self._at]
        if character == "\\":
            return self._escape(in_class=False)
        if character == "[":
            return self._class()
        if self._text.startswith("(?", self._at):
            return self._group()
        if character == "{":
            return self._take(_QUANTIFIER, "has { where Java's quantifier like {1,3} is none; write \\{")[0]
        self._at += 1
        return character

    def _take(self, pattern: re.Pattern[str], reason: str) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise NotKept(f"{reason} (position {self._at + 1}).")
        self._at = found.end()
        return found

    def _group(self) -> str:
        start = self._at
        found = self._take(_GROUPS, "has a group or flag of Java that is not kept; use another way")
        if found[4] is not None:
            return f"(?P<{found[4]}>"
        if found[3] == ")" and (start or found[2]):
            raise NotKept(f"has flags in its middle; write (?{found[1]}: ... ) around what they are for.")
        return "" if found[0] == "(?)" else found[0]

    def _class(self) -> str:
        self._at += 1
        parts = ["["]
        if self._text.startswith("^", self._at):
            parts.append("^")
            self._at += 1
        first = True
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == "]" and not first:
                self._at += 1
                return "".join([*parts, "]"])
            if character == "[" or self._text.startswith(("&&", "--"), self._at):
                where = f"position {self._at + 1}"
                raise NotKept(f"has a class in a class, or && or -- in one ({where}); list all characters in one.")
            if character == "\\":
                parts.append(self._escape(in_class=True))
            else:
                parts.append(character if character.isalnum() or character == "-" else f"\\{character}")
                self._at += 1
            first = False
        raise NotKept("has a character class that does not end; write ] behind it.")

    def _escape(self, *, in_class: bool) -> str:
        text, at = self._text, self._at
        for pattern, translate in _ESCAPES.items():
            if (found := pattern.match(text, at)) is not None:
                self._at = found.end()
                return translate(found, in_class)
        self._at += 2
        letter = text[at + 1 : at + 2]
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter in _CLASSES:
            return f"\\{letter}"
        if letter in _ANCHORS and not in_class:
            return _ANCHORS[letter]
        if letter.isdecimal() and letter != "0" and not in_class:
            if text[at + 2 : at + 3].isdecimal():
                raise NotKept(f"has a digit behind \\{letter}; write [{text[at + 2]}].")
            return f"\\{letter}"
        if not letter or letter.isalnum():
            raise NotKept(f"has \\{letter}, which is not kept (position {at + 1}); write it in another way.")
        return re.escape(letter)


def _code(found: re.Match[str], in_class: bool) -> str:
    *hexadecimal, octal, control = found.groups()
    number = next((int(one, 16) for one in hexadecimal if one is not None), None)
    if number is None:
        number = int(octal, 8) if octal is not None else ord(control) ^ 64
    return f"\\U{number:08x}"


def _property(found: re.Match[str], in_class: bool) -> str:
    content = _POSIX.get(found[2])
    if content is None or (in_class and found[1] == "P"):
        raise NotKept(f"has {found[0]}, which is not kept; write the characters.")
    return content if in_class else f"[{'^' if found[1] == 'P' else ''}{content}]"


_ESCAPES: Final[Mapping[re.Pattern[str], Callable[[re.Match[str], bool], str]]] = {
    _QUOTED: lambda found, in_class: re.escape(found[1]),
    _CODES: _code,
    _PROPERTY: _property,
    _NAMED: lambda found, in_class: f"(?P={found[1]})",
}
