"""Time zones in texts, as SimpleDateFormat reads them: offsets, and the names of UTC. Other names are not known."""

import re
from collections.abc import Callable, Mapping
from typing import Final

_RFC: Final = re.compile(r"[+-]([01][0-9]|2[0-3])([0-5][0-9])", re.ASCII)
_COLON: Final = re.compile(r"[+-](1[0-9]|2[0-3]|[0-9]{1,2}):([0-5][0-9])", re.ASCII)
_HOURS: Final = re.compile(r"[+-]([01][0-9]|2[0-3])", re.ASCII)
_ISO_COLON: Final = re.compile(r"[+-]([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
_NAMES: Final = ("coordinated universal time", "utc")
_GMT: Final = "gmt"
_ISO: Final = {1: _HOURS, 2: _RFC, 3: _ISO_COLON}


class NoDate(ValueError):
    """A text does not go on as the pattern says."""


def general(text: str, start: int, at: int, count: int) -> tuple[int, int]:
    """`z` and `Z`: an offset, `GMT` with one or without, or a name of UTC. Milliseconds, and where it ends."""
    if text[at] in "+-":
        return _offset(_RFC, text, at)
    rest = text[at : at + 30].lower()
    if text[start : start + 3].lower() == _GMT:
        behind = start + len(_GMT)
        return _offset(_COLON, text, behind) if text[behind : behind + 1] in ("+", "-") else (0, behind)
    for name in _NAMES:
        if rest.startswith(name):
            return 0, at + len(name)
    raise NoDate


def iso(text: str, start: int, at: int, count: int) -> tuple[int, int]:
    """`X`: `Z`, or an offset of hours (X), hours and minutes (XX), or these with a colon between (XXX)."""
    return (0, at + 1) if text[at] == "Z" else _offset(_ISO[count], text, at)


def _offset(form: re.Pattern[str], text: str, at: int) -> tuple[int, int]:
    found = form.match(text, at)
    if found is None:
        raise NoDate
    hours, *minutes = map(int, found.groups())
    size = (hours * 60 + sum(minutes)) * 60_000
    return (-size if text[at] == "-" else size), found.end()


ZONES: Final[Mapping[str, Callable[[str, int, int, int], tuple[int, int]]]] = {"z": general, "Z": general, "X": iso}
