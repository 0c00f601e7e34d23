"""The oracle of a connector in raw mode: every record has a row, spoilt ones and tombstones included."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from integration.oracle.ledger import Fate, Ledger
from integration.oracle.oracle import Oracle, Place, at
from integration.oracle.records import DROP, digest

KEYS: Final = {
    "connect.ems.mode": "raw",
    "connect.ems.data.primary.key": "topic,partition,offset",
    **dict.fromkeys(
        (
            *("value.converter", "value.converter.schemas.enable", "key.converter", "transforms", "predicates"),
            *("connect.ems.tombstones", "errors.tolerance", "errors.deadletterqueue.topic.name"),
        ),
        "",
    ),
}
"""For a connector file of a shaped one; an empty text takes back what that has."""
_COLUMNS: Final = {"key", "value", "headers", "timestamp", "timestamp_type", "topic", "partition", "offset"}
_HEADERS: Final = [{"key": DROP, "value": b"1"}]


class RawOracle(Oracle):
    """A record is told by its key, its value, and whether it has the header by which a shaped connector drops it."""

    def produced(self, partition: int, offset: int, key: bytes, value: bytes | None, *, dropped: bool = False) -> None:
        with self._lock:
            ledger = self._ledgers.get(partition) or self._ledgers.setdefault(partition, Ledger())
            ledger.note(offset, Fate.ROW, _told(key, value, dropped=dropped))

    def place(self, row: Mapping[str, Any]) -> Place:
        return row["partition"], row["offset"]

    def genuine(self, place: Place, row: Mapping[str, Any], expected: bytes) -> bool:
        """Whether a row is the record, with nothing added."""
        headers = row.get("headers")
        known = headers in ([], _HEADERS) and row.get("timestamp_type") == "CreateTime" and row.keys() <= _COLUMNS
        return known and _told(row["key"], row.get("value"), dropped=headers == _HEADERS) == expected

    def table(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Judges the upserted table: every record that was accepted, once, and no other."""
        found: set[Place] = set()
        for row in rows:
            place = self.place(row)
            if place in found:
                self.findings.note("stale_rows", f"the table has {at(place)} twice")
            found.add(place)
        for partition, ledger in self._ledgers.items():
            for offset in range(ledger.end):
                place = (partition, offset)
                if ledger.accepted(offset) != (place in found):
                    self.findings.note("stale_rows", f"the table and the files disagree about {at(place)}")


def _told(key: bytes, value: bytes | None, *, dropped: bool) -> bytes:
    return digest(key + (b"!" if dropped else b"."), value)
