"""A record's JSON text over a fixed number of text columns, cut at character boundaries."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.key import ems
from parquet_sink.rows.settings import MOST_CHUNKS, MOST_VARCHAR_BYTES

_CONTINUES, _CONTINUATION = 0xC0, 0x80
"""A byte of UTF-8 that is not the first of its character is 10xxxxxx."""

_WIDEST = 4
"""Bytes of the longest character."""

_EMPTY, _NULL, _FALSE = pa.scalar("", pa.string()), pa.scalar(None, pa.string()), pa.scalar(False, pa.bool_())
_FIRST, _BEYOND = pa.scalar(b"\x80", pa.binary()), pa.scalar(b"\xc0", pa.binary())


class Chunks:
    """Columns `payload_chunk1` to `payload_chunkN`, all nullable; put together they give back the text.

    count: how many columns. size: bytes that each can hold.
    """

    def __init__(self, count: int, size: int) -> None:
        self._count, self._size = count, size
        self.columns = tuple(pa.field(f"payload_chunk{number}", pa.string()) for number in range(1, count + 1))

    def cut(self, texts: pa.StringArray) -> tuple[tuple[pa.Array, ...], dict[int, str]]:
        """The columns, one entry for each text, and by row why a text does not fit; such a row's entries are null.

        texts: no nulls. Each chunk takes as many whole characters as it holds; of an empty text the first is empty.
        """
        lengths = pc.binary_length(texts)
        longest = pc.max(lengths).as_py() or 0
        if longest <= self._size:
            return (texts, *self._nulls(len(texts), self._count - 1)), {}
        too_long = pc.greater(lengths, self._count * self._size)
        if pc.any(too_long).as_py():
            return self._cut_some(texts, too_long)
        data = texts.cast(pa.binary())
        uneven = self._parts_characters(data, lengths)
        cuts = [self._pieces(text) for text in data.filter(uneven).to_pylist()]
        rows = pc.indices_nonzero(uneven).to_pylist()
        most = max((len(cut) for cut in cuts if cut is not None), default=0)
        used = min(self._count, max(-(-longest // self._size), most))
        columns = []
        for number in range(used):
            column = self._slice(data, lengths, number)
            if rows:
                column = pc.replace_with_mask(column, uneven, _nth(cuts, number))
            columns.append(column.cast(pa.string()))
        too_long_texts = {
            row: self._why_too_long(data[row].as_py()) for row, cut in zip(rows, cuts, strict=True) if cut is None
        }
        return (*columns, *self._nulls(len(texts), self._count - used)), too_long_texts

    def _cut_some(
        self, texts: pa.StringArray, too_long: pa.BooleanArray
    ) -> tuple[tuple[pa.Array, ...], dict[int, str]]:
        """As `cut`, where some texts have more bytes than all columns together, and cost the others nothing."""
        columns, too_long_texts = self.cut(pc.if_else(too_long, _EMPTY, texts))
        for row in pc.indices_nonzero(too_long).to_pylist():
            too_long_texts[row] = self._why_too_long(texts[row].as_py().encode())
        return tuple(pc.if_else(too_long, _NULL, column) for column in columns), too_long_texts

    def _parts_characters(self, texts: pa.BinaryArray, lengths: pa.Int32Array) -> pa.BooleanArray:
        """Texts of which a cut every `size` bytes would part a character; none is longer than all columns together."""
        found = pa.repeat(_FALSE, len(texts))
        for cut in range(self._size, pc.max(lengths).as_py(), self._size):
            after = pc.binary_slice(texts, cut, cut + 1)
            continues = pc.and_(pc.greater_equal(after, _FIRST), pc.less(after, _BEYOND))
            found = pc.or_(found, continues)
        return found

    def _pieces(self, data: bytes) -> list[bytes] | None:
        """The text cut, None when it does not fit."""
        start = 0
        pieces: list[bytes] = []
        while start < len(data):
            end = self._end(data, start)
            if end <= start or len(pieces) == self._count:
                return None
            pieces.append(data[start:end])
            start = end
        return pieces

    def _end(self, data: bytes, start: int) -> int:
        """Where a chunk ends that begins at `start`, not within a character; `start` where not even one has room."""
        end = min(start + self._size, len(data))
        while end < len(data) and data[end] & _CONTINUES == _CONTINUATION:
            end -= 1
        return end

    def _slice(self, texts: pa.BinaryArray, lengths: pa.Int32Array, number: int) -> pa.BinaryArray:
        """The bytes of one column where a text may be cut anywhere."""
        start = number * self._size
        column = pc.binary_slice(texts, start, start + self._size)
        return pc.if_else(pc.greater(lengths, start), column, pa.scalar(None, pa.binary())) if number else column

    def _why_too_long(self, data: bytes) -> str:
        """Names the keys, what the text has, and how many chunks, or how large ones, it would take."""
        count, size = ems("flattener.jsonblob.chunks"), ems("data.fallback.varchar.length")
        chunks = f"{count}: its text has {len(data):,} bytes, which {self._count:,} chunks of {self._size:,} bytes"
        needed = start = 0
        while start < len(data):
            end = self._end(data, start)
            if end <= start:
                return f"{chunks} cannot hold, because a character has more; set {size} to {_WIDEST} at least"
            needed, start = needed + 1, end
        if needed <= MOST_CHUNKS:
            return f"{chunks} ({size}) do not hold; set it to {needed}"
        enough = -(-len(data) // self._count) + _WIDEST - 1
        return (
            f"{chunks} do not hold; set {size} to {enough}" if enough <= MOST_VARCHAR_BYTES else f"{chunks} do not hold"
        )

    def _nulls(self, rows: int, columns: int) -> list[pa.Array]:
        return [pa.nulls(rows, pa.string())] * columns


def _nth(cuts: Sequence[list[bytes] | None], number: int) -> pa.BinaryArray:
    return pa.array([cut[number] if cut and number < len(cut) else None for cut in cuts], pa.binary())
