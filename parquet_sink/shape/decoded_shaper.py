"""Blocks of records that a converter decodes, to rows with columns that evolve. Pure.

The order of steps for one record: `sheets` has the first ones (to columns of the record's own schema), then here

  6. the topic's columns take in the record's: added, widened, or started anew
  7. the row is brought to the topic's columns; Kafka metadata and the order column are appended
  8. primary keys are checked
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.settings import ShapeSettings
from parquet_sink.convert.decoded import Decoder
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.errors import InvalidRecord
from parquet_sink.kafka.block import Block
from parquet_sink.shape import metadata
from parquet_sink.shape.assembly import Records, Run, to_run
from parquet_sink.shape.evolve import Columns, aligned, leaves, merged
from parquet_sink.shape.keys import Keys
from parquet_sink.shape.kinds import MAX_COLUMNS, Change
from parquet_sink.shape.sheet import Sheet
from parquet_sink.shape.sheets import Sheets
from parquet_sink.shape.weave import Weave

KEY = b"parquet_sink.columns"


class DecodedShaper:
    """One per topic and Spark task; owns the topic's evolving columns."""

    def __init__(self, settings: ShapeSettings, decoder: Decoder, known: pa.Schema | None = None) -> None:
        self._settings, self._decoder = settings, decoder
        self._reserved = metadata.names(settings)
        self._sheets = Sheets(settings, self._reserved)
        self._keys = Keys(settings)
        self._columns = _remembered(known, settings, self._reserved)

    @property
    def known(self) -> pa.Schema | None:
        """The payload columns learned so far, None before the first."""
        return pa.schema(self._columns, metadata={KEY: _fingerprint(self._settings)}) if self._columns else None

    def shape(self, block: Block) -> Iterator[Run]:
        """The rows of the block in offset order.

        Raises InvalidRecord at the first record that has no row, after giving all rows before it; that record leaves
        no trace in the columns.
        """
        records = Records.live(block)
        decoded = self._decoder.decode(records.values)
        sheets = [sheet for piece in decoded.pieces for sheet in self._sheets.of(piece)]
        invalid = dict(decoded.invalid)
        for sheet in sheets:
            invalid.update(sheet.invalid)
        stop = min(invalid, default=len(records))
        keyless = self._first_without_keys(sheets, stop)
        weave = Weave(sheets, stop if keyless is None else keyless.position)
        failure = yield from self._stretches(records, weave)
        if failure is None and keyless is not None:
            failure = self._keyless(keyless)
        if failure is None and invalid:
            failure = _Failure(stop, invalid[stop])
        if failure is not None:
            raise InvalidRecord(records.topic, records.partition, records.offset(failure.position), failure.reason)

    def _stretches(self, records: Records, weave: Weave) -> "Generator[Run, None, _Failure | None]":
        """Steps 6 and 7; returns what is wrong with the record where it had to end, if anything was."""
        walk = _Walk()
        for row, number in weave.sheets():
            if number in walk.fitting:
                continue
            sheet = weave.sheet(number)
            columns, change = self._merged(sheet)
            reason = self._reason_against(columns)
            if reason is not None:
                yield from self._ended(records, weave, weave.begin(row), walk)
                return _Failure(weave.position(row), reason)
            if change in (Change.WIDENED, Change.INCOMPATIBLE):
                begin = weave.begin(row)
                yield from self._ended(records, weave, begin, walk)
                if begin < row:
                    shared = _shared(list(weave.rows_of(weave.position(row))), columns, change)
                    if shared is None:
                        return _Failure(weave.position(row), "its elements cannot share columns")
                    columns = shared
                walk = _Walk(begin, incompatible=change is Change.INCOMPATIBLE)
            self._columns = columns
            walk.fitting.add(number)
        yield from self._ended(records, weave, len(weave), walk)
        return None

    def _ended(self, records: Records, weave: Weave, end: int, walk: "_Walk") -> Iterator[Run]:
        if end > walk.start:
            stretch = weave.take(end, self._columns)
            yield to_run(self._settings, records, stretch.positions, self._columns, stretch.arrays, walk.incompatible)

    def _merged(self, sheet: Sheet) -> tuple[Columns, Change]:
        columns, change = merged(self._columns, sheet.columns)
        if change is not Change.INCOMPATIBLE and (leaves(columns) > MAX_COLUMNS or not _bears(sheet, columns)):
            return sheet.columns, Change.INCOMPATIBLE
        return columns, change

    def _reason_against(self, columns: Columns) -> str | None:
        """Why rows of these columns are none, if so."""
        if not columns and not self._reserved:
            return "every field is null or left out, and no column is known"
        return self._keys.why_missing(column.name for column in columns)

    def _first_without_keys(self, sheets: list[Sheet], stop: int) -> "_Keyless | None":
        """Step 8: the first record before `stop` that has a null where none may be."""
        found: _Keyless | None = None
        for sheet in sheets:
            arrays = {column.name: array for column, array in zip(sheet.columns, sheet.arrays, strict=True)}
            mask = self._keys.nulls_in(arrays, len(sheet))
            row = -1 if mask is None or not len(sheet) else pc.index(mask, pa.scalar(True, pa.bool_())).as_py()
            position = sheet.positions[row].as_py() if row >= 0 else stop
            if position < stop:
                found, stop = _Keyless(position, sheet, row), position
        return found

    def _keyless(self, keyless: "_Keyless") -> "_Failure":
        columns, _ = self._merged(keyless.sheet)
        mine = zip(keyless.sheet.columns, keyless.sheet.arrays, strict=True)
        # Whether there is a value is all that counts: Python has no dates beyond the year 9999.
        row = {column.name: array[keyless.row].is_valid or None for column, array in mine}
        try:
            self._keys.check({column.name: column for column in columns}, row)
        except InvalidValue as error:
            return _Failure(keyless.position, str(error))
        raise AssertionError("a null key that is none")


@dataclass
class _Walk:
    """The stretch under way. fitting: sheets whose rows may join it."""

    start: int = 0
    incompatible: bool = False
    fitting: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class _Keyless:
    """A record with a null key: its position, and one of its rows in a sheet."""

    position: int
    sheet: Sheet
    row: int


@dataclass(frozen=True)
class _Failure:
    """A record that has no row, and why."""

    position: int
    reason: str


def _shared(rows: list[Sheet], columns: Columns, change: Change) -> Columns | None:
    """Columns for all rows of an exploded record, of which a later one asked for `columns`; None: there are none."""
    if change is Change.INCOMPATIBLE:
        columns = ()
        for sheet in rows:
            columns, own = merged(columns, sheet.columns)
            if own is Change.INCOMPATIBLE:
                return None
    return columns if all(_bears(sheet, columns) for sheet in rows) else None


def _bears(sheet: Sheet, columns: Columns) -> bool:
    """Whether the topic's columns hold every value of the sheet (an int64 in a double may not)."""
    types = {column.name: column.type for column in columns}
    try:
        for column, array in zip(sheet.columns, sheet.arrays, strict=True):
            aligned(array, types[column.name])
    except pa.ArrowInvalid:
        return False
    return True


def _fingerprint(settings: ShapeSettings) -> bytes:
    """The settings that decide columns; what was learned under others is forgotten."""
    return orjson.dumps(
        [
            *(settings.flatten, settings.discard_collections, settings.decimals_to_double, settings.lowercase),
            *(settings.chunks, settings.explode),
        ]
    )


def _remembered(known: pa.Schema | None, settings: ShapeSettings, reserved: frozenset[str]) -> Columns:
    if known is None or (known.metadata or {}).get(KEY) != _fingerprint(settings) or reserved & set(known.names):
        return ()
    return tuple(known)
