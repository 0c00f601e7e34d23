"""Records of files that share offsets, in offset order and each once. Pure, on Arrow."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from parquet_sink.errors import StorageFailed


class _Cursor:
    """The records of one file from some offset on. table: those at hand, None at the end."""

    def __init__(self, name: str, tables: Iterator[pa.Table]) -> None:
        self.name, self._tables = name, tables
        self.table: pa.Table | None = None
        self._next()

    @property
    def offsets(self) -> np.ndarray:
        assert self.table is not None
        return np.asarray(self.table.column("offset"))

    def take(self, rows: int) -> pa.Table:
        """The next so many, which are at hand."""
        assert self.table is not None
        taken, self.table = self.table.slice(0, rows), self.table.slice(rows)
        self._next()
        return taken

    def _next(self) -> None:
        while self.table is None or not self.table.num_rows:
            self.table = next(self._tables, None)
            if self.table is None:
                return


def merged(files: Sequence[tuple[str, Iterator[pa.Table]]]) -> Iterator[pa.Table]:
    """Tables of type RAW. files: name, for messages, and records in offset order.

    Raises StorageFailed where two files have different records at an offset.
    """
    cursors = [_Cursor(*file) for file in files]
    while cursors := [one for one in cursors if one.table is not None]:
        chosen = min(cursors, key=lambda one: int(one.offsets[0]))
        others = [one for one in cursors if one is not chosen]
        end = min((_limit(chosen.offsets, other.offsets) for other in others), default=None)
        own = chosen.offsets
        taken = chosen.take(len(own) if end is None else int(np.searchsorted(own, end)))
        for other in others:
            _skip(taken, chosen.name, other)
        yield taken


def _limit(own: np.ndarray, other: np.ndarray) -> int:
    """The first offset that the other may have and we have not; both begin at hand, ours not later."""
    alien = other[~np.isin(other, own)]
    return int(alien[0]) if len(alien) else int(other[-1]) + 1


def _skip(taken: pa.Table, name: str, other: _Cursor) -> None:
    """What was taken is passed over in another file."""
    offsets = taken.column("offset").to_numpy()
    again = int(np.searchsorted(other.offsets, offsets[-1], side="right"))
    if not again:
        return
    shared = other.take(again)
    mine = taken.take(pa.array(np.searchsorted(offsets, shared.column("offset").to_numpy())))
    if not mine.equals(shared):
        at = shared.column("offset")[0]
        raise StorageFailed(
            f"Files {name} and {other.name} have different records of one topic-partition at the same offsets, from "
            f"{at} on: the topic was made anew between them. Reshape them apart, each into a folder of its own."
        )
