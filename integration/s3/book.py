"""What a bucket was given, as the front before it saw the server say so: the oracle's and the benchmark's read-out."""

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import duckdb

from integration.s3.front import S3Front
from integration.s3.server import S3Server
from integration.scripted_target import Connection
from parquet_sink.files.naming import parts_of

_LINE: Final = re.compile(r"(?P<method>[A-Z]+) /(?P<bucket>[^/?]+)/(?P<key>[^?]+?)(\?(?P<query>\S*))? HTTP")


@dataclass
class Entry:
    """An object. accepted_ms: when the server said that it has it. repeated: how often it was found there later."""

    key: str
    sequence: int
    accepted_ms: int
    repeated: int = 0


@dataclass
class Book:
    """Objects in the order in which they were accepted, by key; threads may share it."""

    entries: dict[str, Entry] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, line: str, status: bytes) -> None:
        """One request and its answer's status: an object is there by a plain PUT, or by the end of its parts."""
        found = _LINE.match(line)
        if found is None or not status.startswith(b"2"):
            return
        key, method, query = unquote(found["key"]), found["method"], found["query"] or ""
        with self.lock:
            if method == "HEAD" and key in self.entries:
                self.entries[key].repeated += 1
            elif (method == "PUT" and not query) or (method == "POST" and "uploadId=" in query):
                self.entries.setdefault(key, Entry(key, len(self.entries), time.time_ns() // 1_000_000))

    def listed(self) -> list[Entry]:
        """All of them."""
        with self.lock:
            return list(self.entries.values())


class NotingFront(S3Front):
    """Notes what the server takes, and takes its time for objects below some prefixes."""

    def __init__(self, upstream: int) -> None:
        super().__init__(upstream)
        self.checksums = True  # so that an object is looked at only by who sends it again
        self.book = Book()
        self.latency_s: dict[str, float] = {}

    def linger(self, line: str) -> None:
        if line.startswith("PUT"):
            self.closing.wait(next((s for prefix, s in self.latency_s.items() if f"/{prefix}/" in line), 0.0))

    def answer_of(self, connection: Connection) -> bytes:
        answer = super().answer_of(connection)
        self.book.note(connection.request.line, answer.partition(b" ")[2])
        connection.request.body = b""
        return answer


class BucketReader:
    """The read-out of a bucket as `TargetClient` gives that of the reference target, for oracle and benchmark.

    Each table is a prefix. A table's rows are the last ones of each key, as a reader of such a lake finds them.
    """

    def __init__(self, server: S3Server, bucket: str, front: NotingFront, folder: Path) -> None:
        self._server, self._bucket, self._front, self._folder = server, bucket, front, folder

    def close(self) -> None:
        """Nothing is open."""

    def sync(self, timeout_s: float = 0.0) -> None:
        """What was accepted is there."""
        noted, there = {one.key for one in self._front.book.listed()}, set(self._server.keys(self._bucket))
        assert noted == there, f"in the bucket and never accepted, or accepted and gone: {noted ^ there}"

    def files(self, table: str) -> list[dict[str, Any]]:
        """Of one table, in order of acceptance."""
        return [_file(one) for one in self._front.book.listed() if one.key.startswith(f"{table}/")]

    def download(self, file_id: str, path: Path) -> None:
        """An object by its key; its bytes must be those that its metadata promises."""
        head = self._server.client.head_object(Bucket=self._bucket, Key=file_id)
        content = self._server.content(self._bucket, file_id)
        assert sha256(content).hexdigest() == head["Metadata"]["sha256"], f"{file_id} is not what its metadata promises"
        path.write_bytes(content)

    def table(self, table: str) -> Any:
        """The last row of each key, without those that were deleted."""
        paths = []
        for number, file in enumerate(self.files(table)):
            paths.append(self._folder / f"{table}-{number}.parquet")
            self.download(file["id"], paths[-1])
        query = (
            "SELECT * FROM read_parquet(?, union_by_name = true) "
            "QUALIFY row_number() OVER (PARTITION BY key ORDER BY __celonis_order DESC) = 1 AND NOT __deleted"
        )
        with duckdb.connect() as database:
            return database.sql(query, params=[[str(path) for path in paths]]).to_arrow_table()

    def statistics(self) -> Mapping[str, int]:
        """Records in all objects, by their names."""
        return {"rows": sum(_records(one.key) for one in self._front.book.listed() if "_rows-" in one.key)}

    def order_faults(self, *rules: Mapping[str, Any]) -> None:
        """Latencies of tables; the one that was told first counts."""
        for rule in rules:
            self._front.latency_s.setdefault(rule["match"], rule["latency_s"])


def _file(entry: Entry) -> dict[str, Any]:
    """As the reference target describes one. sha256: the name stands for it, since objects are never replaced."""
    name = entry.key.rpartition("/")[2]
    parts = parts_of(name)
    assert parts is not None
    return {
        "id": entry.key,
        "name": name,
        "sha256": name,
        "sequence": entry.sequence,
        "accepted_at_ms": entry.accepted_ms,
        "bytes": parts.size_bytes,
        "rows": parts.records,
        "repeated": entry.repeated,
    }


def _records(name: str) -> int:
    return int(name.rpartition("_rows-")[2].removesuffix(".parquet"))
