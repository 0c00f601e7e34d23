"""What a transform made of each record, in one form for trees, typed records and records read as columns."""

from collections.abc import Iterable
from copy import copy
from typing import Any

import pyarrow as pa

from parquet_sink.convert.decoded import Float32, InferredColumns, Int32, Piece, SchemaColumns, Untyped
from parquet_sink.model.records import RecordBatch
from parquet_sink.transform.fields.base import FieldTransform, TypedChange
from parquet_sink.transform.fields.plain import to_plain
from parquet_sink.transform.headers import Header, HeaderValue
from parquet_sink.transform.records import DecodedRecords, Origin


def exact_form(transform: FieldTransform) -> FieldTransform:
    """The transform without its forms for columns: the definition."""
    found, typed = copy(transform), transform.typed
    vars(found).update(
        typed=lambda arrow: _OneByOne(typed(arrow)),
        inferred=lambda piece, origins: None,
        _change=found._typed_or_why,
    )
    return found


class _OneByOne(TypedChange):
    def __init__(self, other: TypedChange) -> None:
        super().__init__(other.arrow)
        self._other = other

    def value(self, value: object, origin: Origin) -> object:
        return self._other.value(value, origin)


def records_of(*pieces: Piece, count: int | None = None, topic: str = "t", first: int = 100) -> DecodedRecords:
    """Decoded records at offsets from `first` on, at each second one a timestamp; tombstones where no piece has one."""
    size = count if count is not None else 1 + max((p for one in pieces for p in one.positions.to_pylist()), default=-1)
    offsets = range(first, first + size)
    timestamps = [1_700_000_000_123 + at if at % 2 else 0 for at in range(size)]
    batch = RecordBatch.of(topic, 3, offsets, timestamps, [b"x"] * size)
    return DecodedRecords(batch, pa.array(range(size), pa.int64()), tuple(pieces))


def inferred(rows: pa.StructArray, trees: list[dict[str, Any]], *lists: str) -> InferredColumns:
    """Records that were read as columns. trees: the same records."""
    return InferredColumns(pa.array(range(len(trees)), pa.int64()), rows, lambda row: trees[row], frozenset(lists))


def typed(values: list[Any], arrow: pa.DataType) -> SchemaColumns:
    """Records with a schema, from plain values."""
    return SchemaColumns(pa.array(range(len(values)), pa.int64()), pa.array(values, arrow))


def trees(*values: Any) -> Untyped:
    """Records without a schema."""
    return Untyped(pa.array(range(len(values)), pa.int64()), values)


def outcomes(records: DecodedRecords, *, of_keys: bool = False) -> dict[int, object]:
    """By position: the tree, the typed value with its type, or the reason; a tombstone is in none."""
    found: dict[int, object] = {at: f"rejected: {reason}" for at, (_, reason) in records.rejected.items()}
    for piece in (records.keys or ()) if of_keys else records.values:
        positions = piece.positions.to_pylist()
        assert positions == sorted(set(positions) - found.keys())
        if isinstance(piece, SchemaColumns):
            assert not piece.rows.null_count
            piece.rows.validate(full=True)
            found |= {
                at: (str(piece.rows.type), value) for at, value in zip(positions, to_plain(piece.rows), strict=True)
            }
        elif isinstance(piece, InferredColumns):
            _check_rows(piece)
            found |= {at: piece.tree(row) for row, at in enumerate(positions)}
        else:
            found |= dict(zip(positions, piece.trees, strict=True))
    return {at: _comparable(found[at]) for at in sorted(found)}


def _check_rows(piece: InferredColumns) -> None:
    """Rows have what their trees have; fields that may be lists are left out."""
    piece.rows.validate(full=True)
    names = [field.name for field in piece.rows.type]
    assert len(set(names)) == len(names)
    for row, value in enumerate(to_plain(piece.rows)):
        assert isinstance(value, dict)
        kept = {name: below for name, below in value.items() if name not in piece.lists}
        tree = {name: below for name, below in piece.tree(row).items() if name not in piece.lists}
        assert _comparable(_without_nulls(kept), as_read=True) == _comparable(_without_nulls(tree), as_read=True)


def _without_nulls(tree: object) -> object:
    """Objects without nulls, and without objects that hold nothing; dates and times as the numbers that they are."""
    if isinstance(tree, pa.Scalar):
        return tree.value
    if not isinstance(tree, dict):
        return tree
    below = {name: _without_nulls(value) for name, value in tree.items()}
    return {name: value for name, value in below.items() if value is not None and value != {}}


def _comparable(value: object, *, as_read: bool = False) -> object:
    """With types told apart that Python thinks equal, and NaN equal to itself. as_read: 1 may have been read as 1.0."""
    if isinstance(value, dict):
        return {name: _comparable(value[name], as_read=as_read) for name in sorted(value)}
    if isinstance(value, list | tuple):
        return [_comparable(below, as_read=as_read) for below in value]
    if isinstance(value, pa.Scalar):  # a date or time, which may be beyond Python's, so that it has no repr
        return str(value.type), value.value
    if as_read and type(value) in (int, Int32, Float32):
        return "float", repr(float(value))  # type: ignore[arg-type]
    return type(value).__name__, repr(value)


def shown(headers: Iterable[Header]) -> list[tuple[str, str]]:
    """Names and values with their types; in Arrow's words, since Python has no date before its year 1."""
    return [(one.name, _text(one.value)) for one in headers]


def _text(value: HeaderValue) -> str:
    return f"{value.type} {pa.repeat(value, 1).to_string()}" if isinstance(value, pa.Scalar) else repr(value)


def all_of(records: DecodedRecords) -> dict[int, object]:
    """Values, keys and headers by position."""
    values, keys = outcomes(records), outcomes(records, of_keys=True)
    found: dict[int, object] = {}
    for at in range(len(records.batch)):
        there = at in records.positions.to_pylist()
        headers = shown(records.headers[at]) if there and records.headers is not None else None
        if there or at in records.rejected:
            found[at] = (values.get(at), keys.get(at), headers)
    return found
