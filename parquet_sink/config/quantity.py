"""Sizes and durations as people write them (`10MB`, `30s`): read exactly, in whole numbers. Pure."""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Final

_FORM: Final = re.compile(r"([0-9]{1,20})(?:\.([0-9]{1,20}))? ?([A-Za-z]{1,3})")
_SIZES: Final[Mapping[str, int]] = {
    "b": 1,
    **{f"{name}b": 1_000**power for power, name in enumerate("kmgt", 1)},
    **{f"{name}ib": 1_024**power for power, name in enumerate("kmgt", 1)},
}
_TIMES: Final[Mapping[str, int]] = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_SECONDS: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{0,15})?")


class Unit(Enum):
    """What a plain number of a key counts, by its name in the documentation."""

    BYTES = "size in bytes"
    MILLISECONDS = "duration in ms"

    @property
    def units(self) -> str:
        """Those that a text may have."""
        return "B, kB, MB, GB, TB, KiB, MiB, GiB or TiB" if self is Unit.BYTES else "ms, s, m, h or d"

    @property
    def counted(self) -> str:
        return "bytes" if self is Unit.BYTES else "milliseconds"


_EXAMPLES: Final[Mapping[Unit, tuple[str, ...]]] = {
    Unit.BYTES: ("10MB", "1GB", "64kB", "1TB", "1kB"),
    Unit.MILLISECONDS: ("30s", "5m", "12h", "30d", "500ms"),
}


def amount(text: str, unit: Unit) -> int | None:
    """What a number with a unit comes to, in bytes or milliseconds; None for a text of another form.

    A fraction is read as it is written: `1.5h` is 5,400,000 ms. Units of sizes are written in any case, those of
    durations in small letters. Raises ValueError where it comes to no whole number, as `0.5B` does.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    whole, fraction, written = found[1], found[2] or "", found[3]
    one = _SIZES.get(written.lower()) if unit is Unit.BYTES else _TIMES.get(written)
    if one is None:
        return None
    total, rest = divmod(int(whole + fraction) * one, int("1" + "0" * len(fraction)))
    if rest:
        raise ValueError(f"is not a whole number of {unit.counted}")
    return total


def seconds(text: str) -> float | None:
    """A duration of a command line: with a unit, or a plain number of seconds; None for anything else."""
    try:
        return (
            float(text)
            if _SECONDS.fullmatch(text)
            else None
            if (ms := amount(text, Unit.MILLISECONDS)) is None
            else ms / 1000
        )
    except ValueError:
        return None


def examples(unit: Unit, minimum: int | None = None, maximum: int | None = None) -> str:
    """`10MB or 10000000`: one that is within limits, in both forms."""
    for text in _EXAMPLES[unit]:
        number = amount(text, unit) or 0
        if (minimum is None or minimum <= number) and (maximum is None or number <= maximum):
            return f"{text} or {number}"
    return f"a number of {unit.counted}"
