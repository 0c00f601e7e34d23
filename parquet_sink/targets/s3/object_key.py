"""The whole name of an object: a pure function of a file's offsets and of its first record."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import quote

from parquet_sink.targets.s3.prefix import DATE_FIELDS, FIELD

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Origin:
    """Of which records a file is. first_ms: timestamp of the first one, epoch milliseconds; None when it has none."""

    topic: str
    partition: int
    first_offset: int
    table: str
    first_ms: int | None


def object_key(template: str, origin: Origin, name: str) -> str:
    """The whole name of an object. Of a first record without a timestamp the date is that of 1970-01-01."""
    path = FIELD.sub(lambda found: _value(found[1], origin), template).strip("/")
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
