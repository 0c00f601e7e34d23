"""Transforms on records of a source: they work on decoded records of a batch, and so a batch is made of these.

What a transform sees of Kafka is what is known before a record is there: its topic and timestamp. Offsets are numbers
within the batch, and the topic-partition is 0; transforms that ask for these are refused by the configuration. Dates
and times are numbers behind it (`fields.plain`), because Python has none beyond the years 1 to 9999.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from parquet_sink.addons.transforms.fields.java.numbers import of_float32
from parquet_sink.convert.decoded import Float32, Piece, SchemaColumns, Untyped
from parquet_sink.errors import SourceFailed
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.source_records import SourceHeader, SourceRecord
from parquet_sink.transform.chain import TransformChain
from parquet_sink.transform.fields.plain import to_plain
from parquet_sink.transform.headers import Header, Headers, HeaderValue, of_tree
from parquet_sink.transform.records import DecodedRecords, as_trees

Value = tuple[object, pa.DataType | None]
_NOTHING: Value = (None, None)
_NOT_OF_ITS_TYPE: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)


@dataclass(frozen=True)
class Transformed:
    """What became of some records. records: by index, none where it was dropped. faults: by index, why it failed."""

    records: Mapping[int, Sequence[SourceRecord]]
    faults: Mapping[int, str]


def transform(chain: TransformChain, records: Sequence[SourceRecord], now_ms: int) -> Transformed:
    """Raises ConnectorError when no record is to blame. now_ms: of records that have no time of their own."""
    by_topic: dict[str, list[int]] = defaultdict(list)
    for index, record in enumerate(records):
        by_topic[record.topic].append(index)
    changed: dict[int, Sequence[SourceRecord]] = {}
    faults: dict[int, str] = {}
    for topic, indexes in by_topic.items():
        given = [records[index] for index in indexes]
        done = chain.transformed(_decoded(chain, topic, given, now_ms))
        faults |= {indexes[at]: _fault(done, at) for at in done.rejected}
        changed |= {indexes[at]: found for at, found in _changed(done, given).items()}
    return Transformed(changed, faults)


def _decoded(chain: TransformChain, topic: str, records: Sequence[SourceRecord], now_ms: int) -> DecodedRecords:
    count = len(records)
    times = [now_ms if one.timestamp_ms is None else one.timestamp_ms for one in records]
    nothing: list[bytes | None] = [None] * count
    needs = chain.needs
    return DecodedRecords(
        RecordBatch.of(topic, 0, range(count), times, nothing, nothing if needs.keys else None),
        pa.array(range(count), pa.int64()),
        _pieces([(one.value, one.value_type) for one in records]),
        _pieces([(one.key, one.key_type) for one in records]) if needs.keys else None,
        Headers.of([_headers(one) for one in records]) if needs.headers else None,
    )


def _headers(record: SourceRecord) -> list[Header]:
    return [Header(one.name, _header_value(one)) for one in record.headers]


def _header_value(header: SourceHeader) -> HeaderValue:
    try:
        return of_tree(header.value) if header.type is None else pa.scalar(header.value, header.type)
    except _NOT_OF_ITS_TYPE:
        raise _wrong("a header", header.type) from None


def _pieces(values: Sequence[Value]) -> tuple[Piece, ...]:
    """Those of one type together; one without a value is in none."""
    by_type: dict[pa.DataType | None, list[int]] = defaultdict(list)
    for index, (value, arrow) in enumerate(values):
        if value is not None:
            by_type[arrow].append(index)
    return tuple(_piece([values[at][0] for at in places], places, arrow) for arrow, places in by_type.items())


def _piece(values: list[object], places: list[int], arrow: pa.DataType | None) -> Piece:
    positions = pa.array(places, pa.int64())
    if arrow is None:
        return Untyped(positions, values)
    try:
        return SchemaColumns(positions, pa.array(values, arrow))
    except _NOT_OF_ITS_TYPE:
        raise _wrong("a value", arrow) from None


def _wrong(what: str, arrow: pa.DataType | None) -> SourceFailed:
    described = "that no schema describes" if arrow is None else f"that is not of its type {arrow}"
    return SourceFailed(f"The source's task gave {what} {described}; correct its code.")


def _fault(done: DecodedRecords, at: int) -> str:
    stage, reason = done.rejected[at]
    by = done.rejected_by.get(at)
    return f"{stage.name}{f' by {by}' if by else ''}: {reason}"


def _changed(done: DecodedRecords, given: Sequence[SourceRecord]) -> dict[int, list[SourceRecord]]:
    values = _values(done.values)
    keys = None if done.keys is None else _values(done.keys)
    topics = None if done.topics is None else done.topics.to_pylist()
    found: dict[int, list[SourceRecord]] = {}
    for at in done.positions.to_pylist():
        record = given[at]
        if topics is not None:
            record = replace(record, topic=topics[at])
        if keys is not None:
            key, key_type = next(iter(keys.get(at, (_NOTHING,))))
            record = replace(record, key=key, key_type=key_type)
        if done.headers is not None:
            record = replace(record, headers=tuple(_given_headers(done.headers[at])))
        found[at] = [replace(record, value=value, value_type=arrow) for value, arrow in values.get(at, [_NOTHING])]
    return found


def _values(pieces: Iterable[Piece]) -> dict[int, list[Value]]:
    found: dict[int, list[Value]] = defaultdict(list)
    for piece in pieces:
        one = piece if isinstance(piece, SchemaColumns) else as_trees(piece)
        arrow = one.rows.type if isinstance(one, SchemaColumns) else None
        plain = to_plain(one.rows) if isinstance(one, SchemaColumns) else map(_as_written, one.trees)
        for at, value in zip(one.positions.to_pylist(), plain, strict=True):
            found[at].append((value, arrow))
    return found


def _as_written(tree: object) -> object:
    """Fractions of 32 bits as the numbers with as few digits as tell them from others of these."""
    if isinstance(tree, Float32):
        return float(of_float32(tree))
    if isinstance(tree, dict):
        return {name: _as_written(one) for name, one in tree.items()}
    return [_as_written(one) for one in tree] if isinstance(tree, list) else tree


def _given_headers(headers: Iterable[Header]) -> Iterable[SourceHeader]:
    for name, value in headers:
        if isinstance(value, pa.Scalar):
            (plain,) = to_plain(pa.array([value], value.type))
            yield SourceHeader(name, plain, None if pa.types.is_null(value.type) else value.type)
        else:
            yield SourceHeader(name, value)
