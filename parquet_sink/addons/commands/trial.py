"""One record on its way through a connector, shown after each step as JSON has it; nothing is written or sent."""

import math
from codecs import getincrementaldecoder
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from json import dumps
from typing import Final, cast

import pyarrow as pa

from parquet_sink.config.report import counted
from parquet_sink.convert import calendars
from parquet_sink.convert.calendars import DAY_MS
from parquet_sink.convert.decoded import Decoder, InferredColumns, Piece, SchemaColumns
from parquet_sink.convert.json import decoder as json
from parquet_sink.convert.registry.registered import RegisteredDecoder
from parquet_sink.errors import ConnectorError
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Rejected
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.run import Run
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.task.record_steps import RecordSteps
from parquet_sink.transform.chain import DECODED, TransformChain, decode_given
from parquet_sink.transform.fields.plain import to_plain
from parquet_sink.transform.headers import HeaderValue
from parquet_sink.transform.records import DecodedRecords

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
NOT_DECODED = "not decoded, because nothing asks for it"
NOT_DECODABLE = "key.converter cannot decode it"
RECEIVED: Final = "received"
"""What a record that cannot be decoded is shown as."""
MOST_BYTES: Final = 64
"""Of the value of such a record."""


def of_array(array: pa.Array) -> list[object]:
    """One for each entry."""
    return [_of_type(array.type, value) for value in to_plain(array)]


def as_json(value: object) -> object:
    """Of a record without a schema, in which Arrow scalars may be; what JSON has no form for is text.

    Bytes are hexadecimal digits, dates and times ISO text whatever their year, decimals and NaN their digits and name.
    """
    if isinstance(value, pa.Scalar):
        return of_array(pa.array([value], value.type))[0]
    if isinstance(value, dict):
        return {str(name): as_json(below) for name, below in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    return _leaf(value)


def timestamp_text(ms: int) -> str:
    """Epoch milliseconds as ISO text, whatever their year."""
    return _moment(pa.timestamp("ms", "UTC"), ms)


def _of_type(arrow: pa.DataType, value: object) -> object:
    """value: as `to_plain` gives it."""
    if value is None:
        return None
    if pa.types.is_struct(arrow):
        held = cast("dict[str, object]", value)
        return {name: _of_type(arrow.field(name).type, below) for name, below in held.items()}
    if pa.types.is_list(arrow):
        return [_of_type(arrow.value_type, one) for one in cast("list[object]", value)]
    if pa.types.is_map(arrow):
        entries = cast("list[tuple[object, object]]", value)
        return [[_of_type(arrow.key_type, key), _of_type(arrow.item_type, item)] for key, item in entries]
    if isinstance(value, int) and pa.types.is_temporal(arrow):
        return _moment(arrow, value)
    return _leaf(value)


def _moment(arrow: pa.DataType, value: int) -> str:
    """value: days of a date, milliseconds of anything else. Python has no years beyond 9999, nor before 1."""
    kind = "date" if pa.types.is_date(arrow) else "time" if pa.types.is_time(arrow) else "timestamp"
    since = value * DAY_MS if kind == "date" else value
    try:
        found = _EPOCH + timedelta(milliseconds=since)
    except OverflowError:
        return calendars.text(kind, since)
    return str(_leaf({"date": found.date(), "time": found.time(), "timestamp": found}[kind]))


def _leaf(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime | time):
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, date | Decimal) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value


@dataclass(frozen=True)
class Shown:
    """A key, a value or a header's value as JSON has it; type: of the column, "" without a schema."""

    value: object
    type: str = ""


@dataclass(frozen=True)
class Seen:
    """The record after a step. key, value: None for null. headers: None where they cannot be read."""

    step: str
    topic: str
    key: Shown | None
    headers: tuple[tuple[str, Shown | None], ...] | None
    value: Shown | None


@dataclass(frozen=True)
class Trial:
    """What became of the record: rows of a file, or none, because it was rejected, dropped by a step, or has none.

    seen: after each step; of a record that is rejected before there is anything to see, as it was received.
    rejected_by: the step, "" when it was after all steps or before them. unmatched: paths to obfuscate that the record
    does not have.
    """

    seen: tuple[Seen, ...]
    rows: tuple[dict[str, object], ...] = ()
    columns: tuple[str, ...] = ()
    rejected: Rejected | None = None
    dropped_by: str | None = None
    rejected_by: str = ""
    unmatched: tuple[str, ...] = ()


def trial(record: RecordBatch, steps: RecordSteps, shape: ShapeSettings) -> Trial:
    """The way of one record. steps: of the connector. Raises ConnectorError when the record is not to blame."""
    assert len(record) == 1
    if steps.raw:
        return _ended(list(steps.shaper(shape).shape(record)))
    found = _decoded_trial(record, steps, shape)
    return found if found.seen or found.rejected is None else replace(found, seen=(_received(record, steps.decoder),))


def _decoded_trial(record: RecordBatch, steps: RecordSteps, shape: ShapeSettings) -> Trial:
    watched = _Watched(steps.transforms or TransformChain(()), steps.tombstone_keys)
    transforms = None if steps.transforms is None else watched
    shaper = RowBuilder(shape, None, steps.decoder, transforms, steps.tombstone_keys)
    if transforms is None:
        watched.apply(record, steps.decoder or json.decoder())
    found = list(shaper.shape(record))
    trial = _ended(found, watched)
    return replace(trial, unmatched=shaper.unmatched()) if trial.rows else trial


def _ended(found: Sequence[Run | Rejected], watched: "_Watched | None" = None) -> Trial:
    rejected = next((one for one in found if isinstance(one, Rejected)), None)
    runs = [one for one in found if isinstance(one, Run)]
    rows = tuple(row for run in runs for row in _rows(run))
    columns = tuple(column_text(one) for one in runs[-1].rows.schema) if runs else ()
    if watched is None:
        return Trial((), rows, columns, rejected)
    return Trial(tuple(watched.seen), rows, columns, rejected, watched.dropped_by, watched.rejected_by)


def _rows(run: Run) -> list[dict[str, object]]:
    columns = [of_array(column.combine_chunks()) for column in run.rows.columns]
    return [dict(zip(run.rows.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


class _Watched(TransformChain):
    """A chain that remembers what each step made of the record."""

    def __init__(self, inner: TransformChain, tombstone_keys: Decoder | None) -> None:
        self._inner, self.needs, self._tombstone_keys = inner, inner.needs, tombstone_keys
        self._was_tombstone = False
        self.seen: list[Seen] = []
        self.dropped_by: str | None = None
        self.rejected_by = ""

    def apply(self, batch: RecordBatch, decoder: Decoder) -> DecodedRecords:
        for step, records in self._inner.each(batch, decoder):
            if len(records):
                self._was_tombstone |= not any(len(one.positions) for one in records.values)
                self.seen.append(_seen(step, records, self._tombstone_keys if self._was_tombstone else None))
            elif not records.rejected:
                self.dropped_by = step
            elif step != DECODED:
                self.rejected_by = step
        return records

    def fault(self, batch: RecordBatch, decoder: Decoder) -> ConnectorError | None:
        return self._inner.fault(batch, decoder)


def _seen(step: str, records: DecodedRecords, key_decoder: Decoder | None) -> Seen:
    """key_decoder: of a tombstone that has a row, or had one before a step; None: keys are shown as they are."""
    batch = records.batch
    topic = batch.topic if records.topics is None else records.topics[0].as_py()
    key = _raw(None if batch.keys is None else batch.keys[0].as_py())
    if records.keys is not None:
        key = _decoded(records.keys)
    elif key is not None and key_decoder is not None:
        key = _decoded(decode_given(key_decoder, batch.keys)[0]) or replace(key, type=NOT_DECODABLE)
    return Seen(step, topic, key, _headers(records), _decoded(records.values))


def _received(record: RecordBatch, decoder: Decoder | None) -> Seen:
    """Bytes as they are, of the value the first ones."""
    key, headers, value = record.key_of(0), record.headers_of(0), record.values[0].as_py()
    names = None if headers is None else tuple((name, _as_received(data)) for name, data in headers)
    schema_id = decoder.schema_id_of(value) if isinstance(decoder, RegisteredDecoder) and value is not None else None
    return Seen(RECEIVED, record.topic, _as_received(key), names, None if value is None else _dump(value, schema_id))


def _as_received(data: bytes | None) -> Shown | None:
    return None if data is None else Shown(_text(data))


def _dump(data: bytes, schema_id: int | None) -> Shown:
    """The first bytes in hexadecimal, how many of how many they are, and what they are as text, where they are some."""
    first, size = data[:MOST_BYTES], counted(len(data), "byte")
    told = [f"{size if first == data else f'the first {MOST_BYTES} of {size}'} in hexadecimal"]
    if schema_id is not None:
        told.append(f"schema id {schema_id}")
    try:
        text = getincrementaldecoder("utf-8")().decode(first)  # the last character may be cut
    except UnicodeDecodeError:
        text = ""
    if text and all(one.isprintable() or one in "\t\r\n" for one in text):
        told.append(f"as text {dumps(text, ensure_ascii=False)}")
    return Shown(first.hex(), ", ".join(told))


def _headers(records: DecodedRecords) -> tuple[tuple[str, Shown | None], ...] | None:
    if (headers := records.headers) is not None:
        entries = headers.lists[0].as_py()
        return tuple((one["name"], _header(headers.value(one["at"]), decoded=one["at"] >= 0)) for one in entries)
    found = records.batch.headers_of(0)
    return None if found is None else tuple((name, _raw(value)) for name, value in found)


def _header(value: HeaderValue, *, decoded: bool) -> Shown | None:
    if not isinstance(value, pa.Scalar):
        return Shown(as_json(value))
    if not decoded:
        return _raw(value.as_py())
    return None if pa.types.is_null(value.type) else Shown(as_json(value), _type(value.type))


def _decoded(pieces: Sequence[Piece]) -> Shown | None:
    """The one record, which is in one of the pieces or null."""
    for piece in pieces:
        if len(piece.positions):
            return _of(piece)
    return None


def _of(piece: Piece) -> Shown:
    """Its value; a list of them where a transform made several rows of it."""
    if isinstance(piece, SchemaColumns):
        return Shown(_one_or_all(of_array(piece.rows)), _type(piece.rows.type))
    if isinstance(piece, InferredColumns):
        return Shown(_one_or_all([as_json(piece.tree(row)) for row in range(len(piece.positions))]))
    return Shown(_one_or_all([as_json(tree) for tree in piece.trees]))


def _one_or_all(values: Sequence[object]) -> object:
    return values[0] if len(values) == 1 else list(values)


def _raw(data: bytes | None) -> Shown | None:
    return None if data is None else Shown(_text(data), NOT_DECODED)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.hex()


def _type(arrow: pa.DataType) -> str:
    return ", ".join(map(column_text, arrow)) if pa.types.is_struct(arrow) else str(arrow)


def column_text(field: pa.Field) -> str:
    """Name and type of a column, and whether it is required."""
    return f"{field.name} {field.type}{'' if field.nullable else ' not null'}"
