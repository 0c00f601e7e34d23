"""How many bytes rows take, counted from their values alone.

Arrow's own count (`nbytes`) depends on how rows are cut into arrays: it has an offset more and some bits of padding for
each, and the bits that tell nulls only where there are some. Here the bytes of rows are the sum of those of each row,
so that what is decided by them does not depend on how rows arrived.
"""

import pyarrow as pa
import pyarrow.compute as pc

_OFFSET = 4
_BITS = 8


class Sizes:
    """Counts the bytes of rows of one schema.

    fixed: bytes that each row takes whatever its values: numbers, and what tells where texts and lists begin.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.fixed = sum(_fixed(field.type) for field in schema)
        self._varying = [place for place, field in enumerate(schema) if _varies(field.type)]

    def variable(self, rows: pa.Table) -> int:
        """Bytes of texts, and of what is in lists and maps, in all these rows together."""
        return sum(_variable(chunk) for place in self._varying for chunk in rows.column(place).chunks)


def _fixed(of: pa.DataType) -> int:
    if pa.types.is_null(of):
        return 0
    if pa.types.is_struct(of):
        return sum(_fixed(of.field(index).type) for index in range(of.num_fields))
    if _varies(of):
        return _OFFSET
    return max(int(of.bit_width) // _BITS, 1)


def _varies(of: pa.DataType) -> bool:
    if pa.types.is_struct(of):
        return any(_varies(of.field(index).type) for index in range(of.num_fields))
    return _is_text(of) or pa.types.is_list(of) or pa.types.is_map(of)


def _is_text(of: pa.DataType) -> bool:
    return of in (pa.string(), pa.binary())


def _variable(array: pa.Array) -> int:
    """Null is no value: what lies below it in the array does not count."""
    of = array.type
    if array.null_count == len(array) or not _varies(of):
        return 0
    if _is_text(of):
        return _text_bytes(array)
    if pa.types.is_struct(of):
        return sum(map(_variable, array.flatten()))
    there = array.drop_null() if array.null_count else array
    if pa.types.is_map(of):
        return _between(there, there.keys) + _between(there, there.items)
    return _between(there, there.values)


def _text_bytes(array: pa.Array) -> int:
    if array.null_count:
        return int(pc.sum(pc.binary_length(array)).as_py() or 0)
    ends = memoryview(array.buffers()[1]).cast("i")
    return int(ends[array.offset + len(array)] - ends[array.offset])


def _between(lists: pa.Array, items: pa.Array) -> int:
    """All bytes of the items that belong to these lists, none of which is null."""
    first, last = lists.offsets[0].as_py(), lists.offsets[len(lists)].as_py()
    mine = items.slice(first, last - first)
    return len(mine) * _fixed(mine.type) + _variable(mine)
