"""The template of what stands before a file's name: a pure function of a file's offsets and its first record."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import quote

FIELDS: Final = ("topic", "partition", "first_offset", "table", "yyyy", "MM", "dd", "HH")
DATE_FIELDS: Final = frozenset({"yyyy", "MM", "dd", "HH"})
_FIELD: Final = re.compile(r"\{([^{}]*)\}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Origin:
    """Of which records a file is. first_ms: timestamp of the first one, epoch milliseconds; None when it has none."""

    topic: str
    partition: int
    first_offset: int
    table: str
    first_ms: int | None


def wrong(template: str) -> str | None:
    """Why a text is no template of a prefix, with the cure; None when it is one."""
    unknown = [name for name in _FIELD.findall(template) if name not in FIELDS]
    if unknown:
        return f"{{{unknown[0]}}} is no field; use {', '.join(f'{{{name}}}' for name in FIELDS)}."
    rest = _FIELD.sub("x", template)
    if "{" in rest or "}" in rest:
        return "A brace is not closed or not opened; a field stands in braces, such as {topic}."
    parts = rest.strip("/").split("/")
    if rest.strip("/") and any(part in ("", ".", "..") for part in parts):
        return "It has an empty part, or one that is . or ..; write names between single slashes."
    if not template.isprintable():
        return "It holds characters that cannot be printed; remove them."
    return None


def fields(template: str) -> frozenset[str]:
    """The fields that a template uses."""
    return frozenset(_FIELD.findall(template))


def fixed_part(template: str) -> str:
    """What stands before the first field: all objects of a template begin with it."""
    return template.lstrip("/").partition("{")[0]


def pattern(template: str) -> str:
    """The template with a star for each field, as readers of such folders write it."""
    return _FIELD.sub("*", template).strip("/")


def object_key(template: str, origin: Origin, name: str) -> str:
    """The whole name of an object. Of a first record without a timestamp the date is that of 1970-01-01."""
    path = _FIELD.sub(lambda found: _value(found[1], origin), template).strip("/")
    return f"{path}/{name}" if path else name


def _value(field: str, origin: Origin) -> str:
    if field in DATE_FIELDS:
        return _date_part(field, origin.first_ms or 0)
    value = {
        "topic": origin.topic,
        "partition": str(origin.partition),
        "first_offset": f"{origin.first_offset:020d}",
        "table": origin.table,
    }[field]
    return "%2E" * len(value) if value in (".", "..") else quote(value, safe="")


def _date_part(field: str, epoch_ms: int) -> str:
    try:
        moment = _EPOCH + timedelta(milliseconds=epoch_ms)
    except OverflowError:  # a producer's timestamp may be anything
        moment = _EPOCH
    return {
        "yyyy": f"{moment.year:04d}",
        "MM": f"{moment.month:02d}",
        "dd": f"{moment.day:02d}",
        "HH": f"{moment.hour:02d}",
    }[field]
