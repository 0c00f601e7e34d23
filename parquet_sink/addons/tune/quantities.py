"""Durations, sizes, rates and bursts as an operator writes them, and back into words. Pure."""

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from parquet_sink.config.quantity import Unit, amount

_NUMBER: Final = r"(\d+(?:\.\d+)?|\.\d+)"
_SECONDS: Final = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
_PLAIN: Final = re.compile(r"[0-9]{1,20}")
_RATE: Final = re.compile(rf"{_NUMBER}(k|M)?\s*/\s*(s|min|m|h|d)")
_BURSTS: Final = re.compile(r"(\d+)/([^:/]+)(?::([^:/]+))?")
MOST_SECONDS: Final = 10 * 365 * 86_400.0
"""Longer than anybody means, and short enough for every clock."""


@dataclass(frozen=True)
class Bursts:
    """Beside the steady rate: so many records of all topic-partitions, each `every_s`, within `lasting_s`."""

    records: int
    every_s: float
    lasting_s: float

    @property
    def per_second(self) -> float:
        """On the average."""
        return self.records / self.every_s


def duration_s(text: str) -> float:
    """`30s`, `500ms`, `5m` or `5min`, `1.5h`, `2d` as seconds. Raises ValueError, which says how to write it."""
    seconds = 0.0
    with suppress(ValueError):
        seconds = (amount(text.strip(), Unit.MILLISECONDS) or 0) / 1000
    if not 0 < seconds <= MOST_SECONDS:
        raise ValueError(f"{text!r} is not a duration above 0, such as 500ms, 30s, 5m, 1h or 2d")
    return seconds


def size_bytes(text: str) -> int:
    """`300`, `10MB`, `1.5GB`, `512KiB` as bytes. Raises ValueError, which says how to write it."""
    plain, size = text.strip(), 0
    with suppress(ValueError):
        size = int(plain) if _PLAIN.fullmatch(plain) else amount(plain, Unit.BYTES) or 0
    if not 0 < size < 1 << 60:
        raise ValueError(f"{text!r} is not a size above 0, such as 300, 512KiB, 10MB or 1GB")
    return size


def rate_per_s(text: str) -> float:
    """`500/s`, `20k/s`, `40/h`, `1000/d` as records a second. Raises ValueError, which says how to write it."""
    found = _RATE.fullmatch(text.strip())
    rate = 0.0
    if found:
        rate = float(found[1]) * {"k": 1e3, "M": 1e6}.get(found[2] or "", 1.0) / _SECONDS[found[3]]
    if rate <= 0:
        raise ValueError(f"{text!r} is not a rate above 0, such as 500/s, 20k/s, 300/min, 40/h or 1000/d")
    return rate


def bursts(text: str) -> Bursts:
    """`20000/5m` or `20000/5m:10s`: records, each so long, within so long (1 s). Raises ValueError likewise."""
    found = _BURSTS.fullmatch(text.strip())
    wrong = f"{text!r} is not of the form RECORDS/EVERY[:WITHIN], such as 20000/5m or 20000/5m:10s"
    if found is None or not int(found[1]):
        raise ValueError(wrong)
    try:
        every, lasting = duration_s(found[2]), duration_s(found[3] or "1s")
    except ValueError as error:
        raise ValueError(f"{wrong}: {error}") from None
    if lasting > every:
        raise ValueError(f"{text!r}: a burst that takes {found[3] or '1s'} cannot come each {found[2]}")
    return Bursts(int(found[1]), every, lasting)


def duration_text(seconds: float) -> str:
    """For people, with two or three digits that count: `850 ms`, `1.2 s`, `30 s`, `5 min`, `1.5 h`, `2 d`."""
    if seconds < 0.9995:
        return f"{round(seconds * 1000)} ms"
    for unit, size, until in (("s", 1.0, 120.0), ("min", 60.0, 7_200.0), ("h", 3_600.0, 172_800.0)):
        if seconds < until:
            return f"{_digits(seconds / size)} {unit}"
    return f"{_digits(seconds / 86_400)} d"


def size_text(size: float) -> str:
    """For people: `300 B`, `1.2 kB`, `10 MB`, `1.5 GB`."""
    for unit, of in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= of * 0.9995:
            return f"{_digits(size / of)} {unit}"
    return f"{round(size)} B"


def count_text(number: float) -> str:
    """For people: `0.25`, `3.5`, `40`, `12,000`."""
    return f"{number:,.0f}" if number >= 10 or number == 0 else f"{number:.2g}"


def rate_text(per_second: float) -> str:
    """Records by the time in which there are a few: `500 a second`, `40 an hour`."""
    for unit, seconds in (("a second", 1), ("a minute", 60), ("an hour", 3_600)):
        if per_second * seconds >= 1:
            return f"{count_text(per_second * seconds)} {unit}"
    return f"{count_text(per_second * 86_400)} a day"


def _digits(number: float) -> str:
    return f"{number:.3g}" if number < 100 else f"{number:,.0f}"
