"""What one topic-partition was given, 25 bytes a record: an hour of load has tens of millions of them."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from integration.oracle.identity import words
from integration.oracle.records import DIGEST_BYTES

_GROW: Final = 4_096
_NEVER: Final = np.iinfo(np.int64).max


class Fate(IntEnum):
    """What is to become of the record at an offset. UNUSED: no record that we know, as a transaction's marker."""

    UNUSED = 0
    ROW = 1
    DEAD_LETTER = 2
    DROPPED = 3


@dataclass(frozen=True)
class Verdict:
    """Offsets of rows that are wrong. again: of those that were accepted before."""

    invented: np.ndarray
    altered: np.ndarray
    again: np.ndarray


class Ledger:
    """By offset: what is to become of the record, its digest, and when it was accepted first."""

    def __init__(self) -> None:
        self._fates, self._digests, self._accepted_ms = bytearray(), bytearray(), array("q")
        self.end = 0

    def note(self, offset: int, fate: Fate, digest: bytes = bytes(DIGEST_BYTES)) -> None:
        """A record that Kafka acknowledged."""
        self.end = max(self.end, offset + 1)
        while offset >= len(self._fates):
            self._fates.extend(bytes(_GROW))
            self._digests.extend(bytes(_GROW * DIGEST_BYTES))
            self._accepted_ms.frombytes(bytes(_GROW * 8))
        self._fates[offset] = fate
        self._digests[offset * DIGEST_BYTES : (offset + 1) * DIGEST_BYTES] = digest

    def expected(self, offset: int, fate: Fate) -> bytes | None:
        """The digest of the record at this offset, None unless this is to become of it."""
        if offset >= self.end or self._fates[offset] != fate:
            return None
        return bytes(self._digests[offset * DIGEST_BYTES : (offset + 1) * DIGEST_BYTES])

    def accept(self, offset: int, at_ms: int) -> bool:
        """Notes when it was accepted; False when it was before."""
        if self._accepted_ms[offset]:
            return False
        self._accepted_ms[offset] = max(at_ms, 1)
        return True

    def accept_rows(self, offsets: np.ndarray, identities: np.ndarray, at_ms: int) -> "Verdict":
        """Notes when the rows of a file were accepted, those that are the records. Nothing may be noted meanwhile."""
        known = (offsets >= 0) & (offsets < self.end)
        if not known.any():
            return Verdict(offsets, offsets[:0], offsets[:0])
        at = np.where(known, offsets, 0)
        known &= np.frombuffer(self._fates, np.uint8)[at] == Fate.ROW
        same = known & (words(self._digests)[at] == identities).all(axis=1)
        found, times = offsets[same], np.frombuffer(self._accepted_ms, np.int64)
        fresh = np.zeros(len(found), bool)
        fresh[np.unique(found, return_index=True)[1]] = True
        fresh &= times[found] == 0
        times[found[fresh]] = max(at_ms, 1)
        return Verdict(offsets[~known], offsets[known & ~same], found[~fresh])

    def accepted(self) -> np.ndarray:
        """By offset, whether it was accepted."""
        return self._times() != 0

    def count(self) -> int:
        """Acknowledged records, whatever is to become of them."""
        return int(np.count_nonzero(self._array()))

    def missing(self, fate: Fate) -> Iterator[int]:
        """Offsets of this fate that were not accepted, in order."""
        return map(int, np.flatnonzero((self._array() == fate) & (self._times() == 0)))

    def complete_by(self) -> np.ndarray:
        """For each offset the time by which everything up to it was accepted; the largest number when it never was."""
        fates, times = self._array(), self._times()
        owed = (fates == Fate.ROW) | (fates == Fate.DEAD_LETTER)
        return np.maximum.accumulate(np.where(owed, np.where(times == 0, _NEVER, times), 0))

    def _array(self) -> np.ndarray:
        return np.frombuffer(bytes(self._fates[: self.end]), dtype=np.uint8)

    def _times(self) -> np.ndarray:
        return np.frombuffer(self._accepted_ms[: self.end].tobytes(), dtype=np.int64)
