"""What was produced against what the target holds, by identity: topic-partition, offset, digest of key and value.

Offsets come from Kafka's delivery reports, so the oracle knows each record's place without asking the sink.
"""

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from integration.oracle.identity import Reader, Seen, shaped
from integration.oracle.ledger import Fate, Ledger, Verdict
from integration.oracle.records import digest, is_spoilt

EXAMPLES: Final = 5
_NAME: Final = re.compile(r"_partition-(\d+)_firstOffset-(\d+)_lastOffset-(\d+)_")
_WRONG: Final = (
    "missing",
    "altered",
    "invented",
    "disordered",
    "early_commits",
    "stale_rows",
    "resent",
    "renamed",
    "altered_files",
    "recut",
)
_EMPTY: Final = Ledger()

Place = tuple[int, int]
"""partition, offset"""


@dataclass
class Findings:
    """Counts of records, with a few examples of each kind of trouble in words.

    repeated: records that came again, as they may when their file was sent again under its name (repeated_files).
    renamed: those of them that came in a file of another name, which must not be. altered_files: names that came with
    more than one content. dead_letters: records without a row that are in the dead-letter topic; dead_letters_again:
    how often one of them came again, as they may. recut: pairs of files that share offsets, so a range was cut again
    elsewhere.
    """

    missing: int = 0
    altered: int = 0
    invented: int = 0
    repeated: int = 0
    disordered: int = 0
    early_commits: int = 0
    stale_rows: int = 0
    resent: int = 0
    dead_letters: int = 0
    dead_letters_again: int = 0
    renamed: int = 0
    repeated_files: int = 0
    altered_files: int = 0
    recut: int = 0
    examples: list[str] = field(default_factory=list)

    @classmethod
    def together(cls, parts: Sequence["Findings"]) -> "Findings":
        """The sums of all counts, and all examples."""
        counts = {each.name: sum(getattr(part, each.name) for part in parts) for each in fields(cls)[:-1]}
        return cls(**counts, examples=[example for part in parts for example in part.examples])

    def note(self, kind: str, what: str) -> None:
        """Counts one of a kind; keeps the first few in words."""
        count = getattr(self, kind) + 1
        setattr(self, kind, count)
        if count <= EXAMPLES:
            self.examples.append(f"{kind}: {what}")

    @property
    def wrong(self) -> dict[str, int]:
        """Counts of what must not be, those that are not 0; repeats are no wrong."""
        return {kind: count for kind in _WRONG if (count := getattr(self, kind))}

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong


@dataclass(frozen=True)
class Sample:
    """The group's committed (next) offsets by partition, known not later than `at_ms` (epoch milliseconds)."""

    at_ms: int
    committed: Mapping[int, int]


class Oracle:
    """Notes every delivered record, then judges rows. `produced` may be called from another thread until `missing`."""

    read: Reader = staticmethod(shaped)
    """How a row tells which record it is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ledgers: dict[int, Ledger] = {}
        self._last: dict[bytes, tuple[Place, bytes | None]] = {}
        self._names: set[str] = set()
        self.findings = Findings()

    def produced(self, partition: int, offset: int, key: bytes, value: bytes | None, *, dropped: bool = False) -> None:
        """A record that Kafka acknowledged at this offset; value None is a tombstone, which deletes its key's row.

        One that is cut short has no row, and is to become a dead letter. dropped: by a transform; it has no row, is no
        dead letter, and deletes nothing.
        """
        with self._lock:
            ledger = self._ledgers.get(partition) or self._ledgers.setdefault(partition, Ledger())
            if dropped:
                ledger.note(offset, Fate.DROPPED)
                return
            known = digest(key, value)
            if is_spoilt(value):
                ledger.note(offset, Fate.DEAD_LETTER, known)
                return
            ledger.note(offset, Fate.ROW, known)
            if offset >= self._last.get(key, ((0, -1), b""))[0][1]:
                self._last[key] = ((partition, offset), None if value is None else known)

    def ends(self) -> dict[int, int]:
        """The offset after the last acknowledged record, by partition."""
        with self._lock:
            return {partition: ledger.end for partition, ledger in self._ledgers.items()}

    @property
    def records(self) -> int:
        """Acknowledged records, with tombstones and those that are dropped."""
        with self._lock:
            return sum(ledger.count() for ledger in self._ledgers.values())

    def file(self, name: str, rows: Seen, accepted_ms: int, floor: Mapping[int, int] | None = None) -> None:
        """Judges the rows of one accepted file; files are given in the order of acceptance.

        floor: offsets, by partition, below which nothing should come any more.
        """
        self._order(name, rows)
        for partition in map(int, np.unique(rows.partitions)):
            mine = rows.partitions == partition
            offsets, identities = rows.offsets[mine], rows.identities[mine]
            for offset in offsets[offsets < (floor or {}).get(partition, 0)]:
                self.findings.note("resent", f"{at((partition, offset))} came again after SIGTERM, in file {name}")
            with self._lock:
                verdict = self._ledgers.get(partition, _EMPTY).accept_rows(offsets, identities, accepted_ms)
            self._note(name, partition, verdict)
        self._names.add(name)

    def _order(self, name: str, rows: Seen) -> None:
        """Rows of a file are of one topic-partition, in the order of offsets."""
        after = (np.diff(rows.partitions) != 0) | (np.diff(rows.offsets) <= 0)
        for row in np.flatnonzero(after):
            before, place = ((rows.partitions[at_row], rows.offsets[at_row]) for at_row in (row, row + 1))
            self.findings.note("disordered", f"{at(place)} comes after {at(before)} in file {name}")

    def _note(self, name: str, partition: int, verdict: Verdict) -> None:
        for offset in verdict.invented:
            self.findings.note("invented", f"{at((partition, offset))} in file {name} was never produced")
        for offset in verdict.altered:
            where = f"{at((partition, offset))} in file {name}"
            self.findings.note("altered", f"{where} is unlike the record that was produced")
        self.findings.repeated += len(verdict.again)
        for offset in verdict.again if name not in self._names else ():
            self.findings.note("renamed", f"{at((partition, offset))} came again in a file of another name, {name}")

    def dead_letter(self, place: Place, key: bytes, value: bytes | None, written_ms: int) -> None:
        """Judges one record of the dead-letter topic, given in the order in which they were written."""
        ledger, offset = self._ledgers.get(place[0], _EMPTY), place[1]
        expected = ledger.expected(offset, Fate.DEAD_LETTER)
        if expected is None:
            self.findings.note("invented", f"{at(place)} is a dead letter, and has a row or was never produced")
        elif digest(key, value) != expected:
            self.findings.note("altered", f"{at(place)} is a dead letter unlike the record that was produced")
        elif not ledger.accept(offset, written_ms):
            self.findings.dead_letters_again += 1
        else:
            self.findings.dead_letters += 1

    def names(self, files: Iterable[tuple[str, str]]) -> None:
        """Judges names and contents (their digests) of all accepted files of a topic.

        One name has one content for ever, and the same range gives the same files: no two share an offset.
        """
        contents: dict[str, set[str]] = {}
        for name, content in files:
            contents.setdefault(name, set()).add(content)
        for name, found in contents.items():
            for _ in range(len(found) - 1):
                self.findings.note("altered_files", f"{name} came with {len(found)} different contents")
        spans = sorted((span(name), name) for name in contents)
        for ((partition, _, last), name), ((other, first, _), next_name) in pairwise(spans):
            if partition == other and first <= last:
                self.findings.note("recut", f"{name} and {next_name} share offsets")

    def missing(self) -> None:
        """Judges what did not arrive; call it after every file and dead letter."""
        for where, fate in (("accepted file", Fate.ROW), ("dead letter", Fate.DEAD_LETTER)):
            for partition, ledger in self._ledgers.items():
                for offset in ledger.missing(fate):
                    self.findings.note("missing", f"{at((partition, offset))} is in no {where}")

    def commits(self, samples: Iterable[Sample]) -> None:
        """Judges committed offsets: never backwards, and never past what the target had accepted by then."""
        complete = {partition: ledger.complete_by() for partition, ledger in self._ledgers.items()}
        highest: dict[int, int] = {}
        for sample in samples:
            for partition, offset in sample.committed.items():
                if offset < highest.get(partition, 0):
                    self.findings.note("early_commits", f"partition {partition} went back to {offset}")
                highest[partition] = offset
                times = complete.get(partition, ())
                if offset and not (offset <= len(times) and times[offset - 1] <= sample.at_ms):
                    self.findings.note(
                        "early_commits",
                        f"partition {partition} was committed to {offset} before all below was accepted",
                    )

    def table(self, rows: pa.Table) -> None:
        """Judges the upserted table: for each key the last record, none where that is a tombstone, and no other key."""
        seen = self.read(rows)
        keys = rows["key"].to_pylist() if len(rows) else []
        found = {
            str(key).encode(): (place, seen.identity(row))
            for row, (key, place) in enumerate(zip(keys, seen.places(), strict=True))
        }
        for key, last in self._last.items():
            row = found.pop(key, None)
            if last[1] is None and row is not None:
                self.findings.note("stale_rows", f"the table has a row of {key!r}, which {at(last[0])} deleted")
            elif last[1] is not None and row != last:
                self.findings.note("stale_rows", f"the table's row of {key!r} is not that of {at(last[0])}")
        for key in found:
            self.findings.note("stale_rows", f"the table has a row of {key!r}, which was never produced")


def span(name: str) -> tuple[int, int, int]:
    """Partition, first and last offset, as a file's name tells them."""
    found = _NAME.search(name)
    if found is None:
        raise ValueError(f"{name} is not a name of a file of the sink")
    return int(found[1]), int(found[2]), int(found[3])


def at(place: Place) -> str:
    """A place in words."""
    return f"topic-partition {place[0]}, offset {place[1]}"
