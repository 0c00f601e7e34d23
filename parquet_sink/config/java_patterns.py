"""Regular expressions and replacements as Java writes them, which connector files hold."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_NAMED_GROUP: Final = re.compile(r"\(\?<(?![=!])")
_DIGITS: Final = "0123456789"


@dataclass(frozen=True)
class _Group:
    """What a group of the pattern found."""

    name: int | str


class Replacement:
    """What `Matcher.replaceFirst` puts in: `$1`, `${name}`, and a backslash before what is meant as it is."""

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        """Raises ValueError, with one sentence, for a group that the pattern does not have."""
        self._parts = tuple(_parts(pattern, text))

    def expanded(self, found: re.Match[str]) -> str:
        """With what a match of the pattern found; a group that took no part is empty."""
        return "".join((found[part.name] or "") if isinstance(part, _Group) else part for part in self._parts)


def compiled(pattern: str) -> re.Pattern[str]:
    """Raises ValueError, with one sentence, for what is no regular expression."""
    try:
        return re.compile(_NAMED_GROUP.sub("(?P<", pattern))
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"it is no valid regular expression ({error})") from None


def _parts(pattern: re.Pattern[str], text: str) -> Iterator[str | _Group]:
    at = 0
    while at < len(text):
        if text[at] == "\\":
            if at + 1 == len(text):
                raise ValueError("its replacement ends with a backslash; write two for one")
            yield text[at + 1]
            at += 2
        elif text[at] == "$":
            group, at = _group(pattern, text, at + 1)
            yield group
        else:
            yield text[at]
            at += 1


def _group(pattern: re.Pattern[str], text: str, at: int) -> tuple[_Group, int]:
    """The group that stands behind a `$`, and where it ends: as many digits as still name a group."""
    if text[at : at + 1] == "{":
        end = text.find("}", at)
        name = text[at + 1 : end]
        if end < 0 or name not in pattern.groupindex:
            raise ValueError(f"its pattern has no group that ${text[at:]} names")
        return _Group(name), end + 1
    if at == len(text) or text[at] not in _DIGITS:
        raise ValueError("its replacement has a $ that no number follows; write \\$ for a plain one")
    end = at + 1
    while end < len(text) and text[end] in _DIGITS and int(text[at : end + 1]) <= pattern.groups:
        end += 1
    if int(text[at:end]) > pattern.groups:
        raise ValueError(f"its pattern has no group ${text[at:end]}")
    return _Group(int(text[at:end])), end
