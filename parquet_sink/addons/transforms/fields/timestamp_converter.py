"""Kafka Connect's TimestampConverter: points in time from one form to another."""

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.addons.transforms.fields.casting import by_values
from parquet_sink.addons.transforms.fields.errors import field, kind, object_of, struct_of, tree_kind
from parquet_sink.addons.transforms.fields.java.date_columns import epoch_ms as ms_of_texts
from parquet_sink.addons.transforms.fields.java.date_columns import part
from parquet_sink.addons.transforms.fields.java.date_format import DateFormat, NoDate, PatternUnusable
from parquet_sink.config.key import Check, Type, Value
from parquet_sink.config.report import quoted
from parquet_sink.config.values import Values
from parquet_sink.convert.arrays import anywhere
from parquet_sink.convert.calendars import DAY_MS
from parquet_sink.convert.decoded import InferredColumns
from parquet_sink.transform.fields.base import (
    Columns,
    FieldChange,
    FieldChanges,
    FieldTransform,
    Found,
    TypedChange,
    WholeChange,
    changed_read,
)
from parquet_sink.transform.keys import REPLACE_NULL, connect_key
from parquet_sink.transform.protocol import RecordFault, Side, WrongSettings
from parquet_sink.transform.records import Origin, Origins

TYPES: Final[Mapping[str, pa.DataType]] = {
    "Date": pa.date32(),
    "Time": pa.time32("ms"),
    "Timestamp": pa.timestamp("ms", "UTC"),
}
"""By Connect's names."""
SCALARS: Final = (pa.Date32Scalar, pa.Time32Scalar, pa.TimestampScalar)
"""What stands for them in trees; `value` is the number that a column stores."""
_FARTHEST_DAY: Final = 2**31
_NAME: Final = "TimestampConverter"
_NANOS: Final[Mapping[str, int]] = {
    "seconds": 1_000_000_000,
    "milliseconds": 1_000_000,
    "microseconds": 1_000,
    "nanoseconds": 1,
}
_MS: Final = _NANOS["milliseconds"]
_WHOLE_UNITS: Final = (_NANOS["seconds"], _MS)
"""A Unix time in these can be no farther than 64 bits hold."""
_LIMIT: Final = 2**63
_READ: Final = (pa.types.is_string, pa.types.is_int64, pa.types.is_null)
"""Columns of records without a schema that are converted at once."""
_COLUMNS: Final[Mapping[str, pa.DataType]] = {"string": pa.string(), "unix": pa.int64(), **TYPES}


def stored(epoch_ms: int, kind: str) -> int:
    """As a column of a type holds it: days, milliseconds of the day, or of the epoch. Raises RecordFault."""
    if kind == "Timestamp":
        return epoch_ms
    day, rest = divmod(epoch_ms, DAY_MS)
    if kind == "Date" and not -_FARTHEST_DAY <= day < _FARTHEST_DAY:
        raise RecordFault("the day is farther away than a Date can hold")
    return day if kind == "Date" else rest


def in_tree(epoch_ms: int, kind: str) -> pa.Scalar:
    """As a tree holds it. Raises RecordFault."""
    return pa.scalar(stored(epoch_ms, kind), TYPES[kind])


def of_tree(value: pa.Scalar) -> int:
    """Epoch milliseconds of what a tree holds."""
    number: int = value.value
    return number * DAY_MS if isinstance(value, pa.Date32Scalar) else number


def _pattern(value: Value) -> str | None:
    try:
        DateFormat(value if isinstance(value, str) else "")
    except PatternUnusable as error:
        return f"{quoted(str(value))} {error}."
    return None


class TimestampConverter(FieldTransform):
    """Makes texts, Unix times, Dates, Times or Timestamps of each other: of a field, or of the whole key or value."""

    keys = (
        connect_key(
            "field", Type.STRING, "The field that holds the point in time.", default_text="the whole key or value"
        ),
        connect_key(
            "target.type",
            Type.STRING,
            "What is made of it: a text by `format`, a Unix time in `unix.precision`, or a Date, Time or Timestamp.",
            missing=f"write one of {', '.join(_COLUMNS)}.",
            choices=tuple(_COLUMNS),
        ),
        connect_key(
            "format",
            Type.STRING,
            "How texts are read and written: a pattern of Java's SimpleDateFormat, for example `yyyy-MM-dd HH:mm:ss`.",
            check=Check("a pattern of SimpleDateFormat", _pattern),
        ),
        connect_key(
            "unix.precision", Type.STRING, "What Unix times count.", default="milliseconds", choices=tuple(_NANOS)
        ),
        REPLACE_NULL,
    )

    def __init__(self, values: Values, side: Side) -> None:
        super().__init__(side)
        self._field, self._target = values.text("field") or "", values.text("target.type") or ""
        pattern, self._unit = values.text("format"), _NANOS[values.text("unix.precision") or "milliseconds"]
        if self._target == "string" and not pattern:
            raise WrongSettings({"format": "It is missing, and target.type is string; write a pattern for the texts."})
        self._format = DateFormat(pattern) if pattern else None

    def tree(self, tree: object, origin: Origin) -> object:
        """As `FieldTransform` says; a field that is not there becomes null."""
        if tree is None:
            return None
        if not self._field:
            return self._changed_tree(tree)
        own = object_of(_NAME, tree)
        return {**own, self._field: self._changed_tree(own.get(self._field))}

    def typed(self, arrow: pa.DataType) -> TypedChange:
        if not self._field:
            return WholeChange(self._converted(arrow))
        at = struct_of(_NAME, arrow).get_field_index(self._field)
        return FieldChanges(arrow, {} if at < 0 else {self._field: self._converted(arrow.field(at).type)})

    def inferred(self, piece: InferredColumns, origins: Origins) -> Columns | None:
        read = piece.rows.type
        at = read.get_field_index(self._field)
        if not self._field or (at >= 0 and not any(matches(read.field(at).type) for matches in _READ)):
            return None
        return changed_read(piece, (self._field,), lambda _, array: self.column(array, self._read))

    def column(self, array: pa.Array, convert: Callable[[object], object]) -> Found:
        """A column converted: many at once where that is possible, else value by value."""
        epoch_ms = self._epoch_ms(array)
        if epoch_ms is None or self._target == "string" or self._unit not in _WHOLE_UNITS:
            return by_values(array, _COLUMNS[self._target], convert)
        if self._target in ("Date", "Time"):
            found = part(epoch_ms, of_day=self._target == "Time").view(_COLUMNS[self._target])
        else:
            is_seconds = self._target == "unix" and self._unit != _MS
            found = (pc.divide(epoch_ms, 1000) if is_seconds else epoch_ms).cast(_COLUMNS[self._target])
        return found, anywhere(pc.and_(found.is_null(), array.is_valid()))

    def _epoch_ms(self, array: pa.Array) -> pa.Int64Array | None:
        """Of a column's values at once, null where one must be looked at by itself; None where all must."""
        if pa.types.is_timestamp(array.type):
            return array.cast(pa.int64())
        if pa.types.is_int64(array.type) and self._unit == _MS:
            return array
        if pa.types.is_string(array.type) and self._format is not None and self._format.usual is not None:
            return ms_of_texts(array, self._format.usual)
        return None

    def _converted(self, arrow: pa.DataType) -> FieldChange:
        """How values of a type are converted. Raises RecordFault: none is."""
        to_ms = next((to_ms for matches, to_ms in self._sources() if matches(arrow)), None)
        if to_ms is None:
            raise self._fault(f"{kind(arrow)} is not a point in time")

        def exact(value: object) -> object:
            return self._checked(lambda: self._stored(to_ms(value)))

        return FieldChange(_COLUMNS[self._target], exact, lambda array: self.column(array, exact))

    def _sources(self) -> tuple[tuple[Callable[[pa.DataType], bool], Callable[[object], int]], ...]:
        return (
            (pa.types.is_timestamp, _whole),
            (pa.types.is_time32, _whole),
            (pa.types.is_date32, lambda day: _whole(day) * DAY_MS),
            (pa.types.is_string, self._of_text),
            (pa.types.is_int64, self._of_unix),
        )

    def _changed_tree(self, value: object) -> object:
        return None if value is None else self._checked(lambda: self._in_tree(self._tree_ms(value)))

    def _read(self, value: object) -> object:
        """A plain value of a column without a schema, as its tree will be, stored. Raises RecordFault."""
        return self._stored(self._tree_ms(value))

    def _tree_ms(self, value: object) -> int:
        if isinstance(value, SCALARS):
            return of_tree(value)
        if isinstance(value, str):
            return self._of_text(value)
        if type(value) is int:
            return self._of_unix(value)
        raise RecordFault(f"{tree_kind(value)} is not a point in time")

    def _of_text(self, text: object) -> int:
        assert isinstance(text, str)
        if self._format is None:
            raise RecordFault("it is a text, and no `format` says how to read it")
        try:
            return self._format.parse(text)
        except NoDate:
            raise RecordFault("its text does not begin as `format` says") from None

    def _of_unix(self, number: object) -> int:
        return _scaled(_whole(number), self._unit, _MS)

    def _stored(self, epoch_ms: int) -> object:
        if self._target == "string":
            assert self._format is not None
            return self._format.format(epoch_ms)
        return _scaled(epoch_ms, _MS, self._unit) if self._target == "unix" else stored(epoch_ms, self._target)

    def _in_tree(self, epoch_ms: int) -> object:
        return in_tree(epoch_ms, self._target) if self._target in TYPES else self._stored(epoch_ms)

    def _checked(self, convert: Callable[[], object]) -> object:
        try:
            return convert()
        except RecordFault as error:
            raise self._fault(str(error)) from None

    def _fault(self, reason: str) -> RecordFault:
        return RecordFault(f"{_NAME}: {field(self._field) if self._field else 'the whole value'}: {reason}")


def _whole(value: object) -> int:
    assert isinstance(value, int)
    return value


def _scaled(number: int, nanos: int, to_nanos: int) -> int:
    """`TimeUnit`'s conversion: cut towards zero, and at the limits of 64 bits."""
    size = abs(number) * nanos // to_nanos
    return max(-_LIMIT, min(_LIMIT - 1, -size if number < 0 else size))
