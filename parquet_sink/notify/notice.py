"""A notice of an accepted file: JSON as docs/notice.schema.json has it, in the words of CloudEvents 1.0. Pure.

Its id follows from the file's name and bytes, so that whoever gets it again, after a crash or a replay, knows it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, timedelta
from datetime import datetime as _datetime
from typing import Final
from urllib.parse import quote

from parquet_sink.files.parquet import FinishedFile

TYPE: Final = "parquet_sink.file.accepted.v1"
PROBE_TYPE: Final = "parquet_sink.probe.v1"
CONTENT_TYPE: Final = "application/json"
_EPOCH: Final = _datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Notice:
    """attributes: of CloudEvents, by their names, without `datacontenttype`. data: the JSON of its body."""

    attributes: Mapping[str, str]
    data: str

    @property
    def id(self) -> str:
        return self.attributes["id"]

    def to_json(self) -> str:
        return json.dumps({"attributes": dict(self.attributes), "data": self.data})

    @classmethod
    def from_json(cls, text: str) -> "Notice":
        """The inverse of `to_json`. Raises ValueError, KeyError, TypeError or RecursionError for anything else."""
        found = json.loads(text)
        return cls({str(name): str(value) for name, value in found["attributes"].items()}, str(found["data"]))


def notice_of(file: FinishedFile, *, connector: str, table: str, target: str, at_s: float) -> Notice:
    """table: of files that name none. target: its address, without secrets. at_s: when it took it, epoch seconds."""
    at = _time(round(at_s * 1000))
    data = {
        "connector": connector,
        "topic": file.topic,
        "partition": file.partition,
        "first_offset": file.first_offset,
        "last_offset": file.last_offset,
        "records": file.records,
        "rows": file.rows,
        "size_bytes": file.size_bytes,
        "sha256": file.digest,
        "file": file.name,
        "table": file.table or table,
        "target": target,
        "reason": str(file.reason),
        "oldest_record_at": None if file.oldest_ms is None else _time(file.oldest_ms),
        "accepted_at": at,
    }
    return Notice(
        {
            "specversion": "1.0",
            "id": hashlib.sha256(f"{file.name}\n{file.digest or ''}".encode()).hexdigest()[:32],
            "source": f"/connectors/{quote(connector, safe='')}",
            "type": TYPE,
            "subject": f"{file.topic}/{file.partition}/{file.first_offset}",
            "time": at,
        },
        json.dumps(data, ensure_ascii=False, separators=(",", ":")),
    )


def probe_of(connector: str, unique: str) -> Notice:
    """What `check --connect` posts, which is of no file. unique: its id."""
    source = f"/connectors/{quote(connector, safe='')}"
    return Notice({"specversion": "1.0", "id": unique, "source": source, "type": PROBE_TYPE}, "{}")


def _time(ms: int) -> str:
    """RFC 3339, in UTC."""
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
