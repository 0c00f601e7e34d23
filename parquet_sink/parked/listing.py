"""What is parked, as JSON has it: groups by reason, and records one by one. For the command and for the REST API."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_sink.files.storage import storage_trouble
from parquet_sink.parked.files import PARKING, ParkedFile
from parquet_sink.parked.scan import Group, Scan, Selection, scan, summarise, with_years_of_python


@dataclass(frozen=True)
class Parked:
    """What a connector has parked. groups: of what was chosen; the rest is about all that is in the folder.

    max_bytes: what `connect.ems.parked.max.bytes` allows. skipped: path and why, of what is torn, or none of ours.
    """

    folder: str
    max_bytes: int
    files: int
    records: int
    size_bytes: int
    groups: tuple[Group, ...]
    skipped: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        groups = [group_fields(one) for one in self.groups]
        return {**vars(self), "groups": groups, "skipped": list(map(list, self.skipped))}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "Parked":
        """The inverse of `to_dict`. Raises ValueError, KeyError or TypeError for anything else."""
        numbers = {name: int(found[name]) for name in ("max_bytes", "files", "records", "size_bytes")}
        skipped = tuple((str(path), str(why)) for path, why in found["skipped"])
        return cls(str(found["folder"]), **numbers, groups=tuple(map(_group, found["groups"])), skipped=skipped)


def parked(folder: str, max_bytes: int, selection: Selection) -> Parked:
    """By topic, stage and reason. Raises StorageFailed."""
    found = scanned(folder)
    with storage_trouble(folder, "read parked records", PARKING):
        groups = summarise([file for file in found.files if selection.may_have(file)], selection)
    return Parked(folder, max_bytes, len(found.files), found.rows, found.size_bytes, tuple(groups), found.skipped)


def scanned(folder: str) -> Scan:
    """All that is in the folder. Raises StorageFailed."""
    with storage_trouble(folder, "list parked records", PARKING):
        return scan(folder)


def group_fields(one: Group) -> dict[str, Any]:
    """A group as JSON has it."""
    return {
        "topic": one.topic,
        "stage": one.stage,
        "reason": one.reason,
        "records": one.records,
        "payload_bytes": one.payload_bytes,
        "offsets": {str(partition): list(span) for partition, span in sorted(one.offsets.items())},
        "timestamps": _times(one.timestamps),
        "parked_at": _times(one.parked_at),
    }


def _times(span: tuple[datetime, datetime] | None) -> list[str] | None:
    return None if span is None else [one.isoformat() for one in span]


def _group(found: Mapping[str, Any]) -> Group:
    offsets = {int(partition): (int(first), int(last)) for partition, (first, last) in found["offsets"].items()}
    return Group(
        topic=str(found["topic"]),
        stage=str(found["stage"]),
        reason=str(found["reason"]),
        records=int(found["records"]),
        payload_bytes=int(found["payload_bytes"]),
        offsets=offsets,
        timestamps=_span(found["timestamps"]),
        parked_at=_span(found["parked_at"]),
    )


def _span(texts: list[str] | None) -> tuple[datetime, datetime] | None:
    if texts is None:
        return None
    first, last = map(datetime.fromisoformat, texts)
    return first, last


@dataclass
class ParkedRecords:
    """To be iterated once: each record that is meant, by topic, topic-partition and file, as JSON has it.

    most: at most so many, None for all; skip: so many before. most_bytes: of keys, values and headers together, where
    they are shown (`content`); the record that passes it is the last. Raises StorageFailed.
    left: how many are meant behind the last that was given. skipped: as of `Parked`. Both are known at the end.
    """

    folder: str
    selection: Selection
    most: int | None = None
    skip: int = 0
    content: bool = False
    most_bytes: int | None = None
    left: int = 0
    skipped: tuple[tuple[str, str], ...] = field(default=())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        found = scanned(self.folder)
        self.skipped = found.skipped
        skip, room, size = self.skip, self.most, 0
        for file in found.files:
            if not self.selection.may_have(file):
                continue
            rows = self._chosen(file)
            skip, rows = max(skip - len(rows), 0), rows[skip:]
            now = rows if room is None else rows[:room]
            given = 0
            for row in self._rows(file, now):
                yield record_fields(row, content=self.content)
                given, size = given + 1, size + _payload_bytes(row)
                if self.content and self.most_bytes is not None and size >= self.most_bytes:
                    room = given
                    break
            room = None if room is None else room - given
            self.left += len(rows) - given

    def _chosen(self, file: ParkedFile) -> np.ndarray:
        with storage_trouble(file.path, "read parked records", PARKING):
            return self.selection.rows(file.read(["offset", "stage"]))

    def _rows(self, file: ParkedFile, rows: np.ndarray) -> list[dict[str, Any]]:
        if not len(rows):
            return []
        with storage_trouble(file.path, "read parked records", PARKING):
            found: list[dict[str, Any]] = with_years_of_python(file.read().take(pa.array(rows, pa.int64()))).to_pylist()
            return found


def _payload_bytes(row: Mapping[str, Any]) -> int:
    headers = sum(len(one["key"]) + len(one["value"] or b"") for one in row["headers"] or ())
    return len(row["key"] or b"") + len(row["value"] or b"") + headers


def record_fields(row: Mapping[str, Any], *, content: bool) -> dict[str, Any]:
    """A record as JSON has it. content: with key, value and headers, as text, or in base64 where they are none."""
    headers = row["headers"]
    fields = {name: row[name] for name in ("connector", "topic", "partition", "offset")}
    fields["timestamp"] = None if row["timestamp"] is None else row["timestamp"].astimezone(UTC).isoformat()
    fields |= {"stage": row["stage"], "reason": row["reason"]}
    fields["parked_at"] = row["parked_at"].astimezone(UTC).isoformat()
    for name in ("key", "value"):
        fields[f"{name}_bytes"] = None if row[name] is None else len(row[name])
    fields["headers"] = None if headers is None else len(headers)
    if content:
        fields |= {**_text("key", row["key"]), **_text("value", row["value"])}
        named = [{"name": one["key"], **_text("value", one["value"])} for one in headers or ()]
        fields["header_values"] = None if headers is None else named
    return fields


def _text(name: str, data: bytes | None) -> dict[str, str | None]:
    try:
        return {name: None if data is None else data.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data or b"").decode()}
