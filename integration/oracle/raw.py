"""The oracle of a connector in raw mode: every record has a row, spoilt ones and tombstones included."""

from collections import Counter
from typing import Final

import pyarrow as pa

from integration.oracle.identity import raw, raw_identity
from integration.oracle.ledger import Fate, Ledger
from integration.oracle.oracle import Oracle, at

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


class RawOracle(Oracle):
    """A record is told by its key, its value, and whether it has the header by which a shaped connector drops it."""

    read = staticmethod(raw)

    def produced(self, partition: int, offset: int, key: bytes, value: bytes | None, *, dropped: bool = False) -> None:
        with self._lock:
            ledger = self._ledgers.get(partition) or self._ledgers.setdefault(partition, Ledger())
            ledger.note(offset, Fate.ROW, raw_identity(key, value, dropped=dropped))

    def table(self, rows: pa.Table) -> None:
        """Judges the upserted table: every record that was accepted, once, and no other."""
        places = self.read(rows).places()
        for place, times in Counter(places).items():
            if times > 1:
                self.findings.note("stale_rows", f"the table has {at(place)} twice")
        there = set(places)
        for partition, ledger in self._ledgers.items():
            for offset, accepted in enumerate(ledger.accepted()):
                if accepted != ((partition, offset) in there):
                    told = at((partition, offset))
                    self.findings.note("stale_rows", f"the table and the files disagree about {told}")
