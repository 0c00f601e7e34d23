"""One Spark task that writes rows of a DataFrame, and the order of its effects.

  1. rows come from Spark, in its order, and are numbered
  2. rows become rows of files; an invalid one ends the batch           (`rows.row_builder`)
  3. rows become local files; a finished file's footer is verified      (`files.accumulator`)
  4. a file is sent, the next only after this one was accepted          (`targets.uploader`)
  5. the accepted file is removed from the disk                         (`targets.uploader`)
  6. what became of the files goes to the driver                        (`FrameOutcome`)
  7. a failure fails the batch there; else Spark notes it as done       (`spark.frame_sink`)

A batch that failed, or whose program died before 7, is repeated by Spark as a whole: names are made of the query, the
batch, the partition and row numbers, and nothing learned earlier goes into a file: the same rows give the same files.
"""

import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress

import pyarrow as pa

from parquet_sink.config.key import ems
from parquet_sink.convert.decoded import Decoded, SchemaColumns
from parquet_sink.errors import ConnectorError, InvalidRecord
from parquet_sink.files import naming
from parquet_sink.files.accumulator import Accumulator, FinishedFile, Place
from parquet_sink.files.rotation import Limits, Reason
from parquet_sink.files.settings import FileSettings
from parquet_sink.files.storage import remove_unsent, sweep
from parquet_sink.model.frames import FrameSlice
from parquet_sink.model.ranges import NO_TRIES
from parquet_sink.model.receipts import Failure
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Rejected
from parquet_sink.process.logs import configure_worker
from parquet_sink.process.memory import give_back
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.uploader import Deliverer, OrderedUploader, Upload, target_for
from parquet_sink.task.frame_settings import FrameOutcome, for_frame

log = logging.getLogger(__name__)

_SMALL = (pa.int8(), pa.int16())
_AS_IT_IS = (
    *(pa.types.is_int32, pa.types.is_int64, pa.types.is_float32, pa.types.is_float64, pa.types.is_boolean),
    *(pa.types.is_string, pa.types.is_binary, pa.types.is_date32, pa.types.is_decimal128, pa.types.is_null),
)
BLOCK_ROWS = 10_000


class UnknownColumn(ValueError):
    """A column of a type that no file of ours has; the text names both."""


class FrameDecoder:
    """Gives the rows that it was handed last: typed already, they take the way of decoded records.

    It stands where a converter would: its input are row numbers, and what it gives are the rows themselves.
    """

    def __init__(self, settings: ShapeSettings) -> None:
        self._in_text = settings.chunks is not None
        self._nested = not settings.flatten and not self._in_text
        self._rows: pa.StructArray = pa.array([], pa.struct([]))

    def block(self, frame: FrameSlice, first_row: int, rows: pa.RecordBatch) -> RecordBatch:
        """The rows as records for the shaper, numbered from first_row on. Raises ConnectorError naming a column."""
        try:
            wanted = pa.struct([self._column(field) for field in rows.schema])
        except UnknownColumn as error:
            raise ConnectorError(f"{frame.described}: {error}. {frame.repeated}") from None
        self._rows = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema)).cast(wanted)
        count = len(rows)
        nothing = pa.array([b""] * count, pa.binary())
        offsets = pa.array(range(first_row, first_row + count), pa.int64())
        return RecordBatch(frame.label, frame.partition, offsets, pa.repeat(pa.scalar(0, pa.int64()), count), nothing)

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """One piece with all rows."""
        assert len(values) == len(self._rows)
        return (
            Decoded((SchemaColumns(pa.array(range(len(values)), pa.int64()), self._rows),))
            if len(values)
            else Decoded()
        )

    def _column(self, field: pa.Field) -> pa.Field:
        known = _known(field.type, field.name, nested=self._nested, in_text=self._in_text)
        return pa.field(field.name, known, nullable=field.nullable)


def _known(arrow: pa.DataType, name: str, *, nested: bool, in_text: bool) -> pa.DataType:
    """The type that shaping knows.

    nested: lists and maps do not become text. in_text: within what becomes JSON text, where times are microseconds.
    """
    if arrow in _SMALL:
        return pa.int32()
    if pa.types.is_timestamp(arrow):
        return pa.int64() if in_text else pa.timestamp("us", arrow.tz and "UTC")
    if pa.types.is_large_string(arrow) or pa.types.is_large_binary(arrow):
        return pa.string() if pa.types.is_large_string(arrow) else pa.binary()
    if pa.types.is_struct(arrow) and any(field.metadata and b"variant" in field.metadata for field in arrow.fields):
        raise _unknown(name, "a variant")  # Spark marks it so, and gives its two binary parts
    if pa.types.is_nested(arrow):
        in_text = in_text or not (nested or pa.types.is_struct(arrow))
        return _below(arrow, lambda below: _known(below, name, nested=nested, in_text=in_text))
    if any(knows(arrow) for knows in _AS_IT_IS):
        return arrow
    raise _unknown(name, str(arrow))


def _below(arrow: pa.DataType, known: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The record, list or map with what is in it as shaping knows it."""
    if pa.types.is_struct(arrow):
        return pa.struct([field.with_type(known(field.type)) for field in arrow.fields])
    if pa.types.is_map(arrow):
        item = pa.field("value", known(arrow.item_type), nullable=arrow.item_field.nullable)
        return pa.map_(known(arrow.key_type), item)
    return pa.list_(arrow.value_field.with_type(known(arrow.value_type)))


def _unknown(name: str, what: str) -> UnknownColumn:
    return UnknownColumn(
        f"column {name} holds {what}, which a file cannot; cast it, for example to string, or leave it out"
    )


class FrameFlush:
    """The rows of one task. settings: the connector's, as they are in its file."""

    def __init__(self, settings: SinkSettings, frame: FrameSlice) -> None:
        configure_worker(settings.name)
        self._settings, self._frame = for_frame(settings), frame
        target = target_for(settings.target)
        if settings.archive is not None:
            target = settings.archive.behind(target)
        if settings.notify is not None:
            target = settings.notify.behind(target)
        keep_files = self._files.keep_files
        deliverer = Deliverer(settings.name, target, settings.retry, keep_files=keep_files, waits_here=True)
        self._uploader = OrderedUploader(deliverer)
        place = Place(settings.name, frame.label, frame.partition, uuid.uuid4().hex, frame)
        limits = Limits(settings.flush.commit_size_bytes, settings.flush.commit_records)
        self._accumulator = Accumulator(place, limits, self._files)
        shape = self._settings.shape
        self._decoder = FrameDecoder(shape)
        self._shaper = RowBuilder(shape, None, self._decoder)
        self._rows, self._unchecked = 0, True

    @property
    def _files(self) -> FileSettings:
        return self._settings.files

    def run(self, batches: Iterator[pa.RecordBatch]) -> FrameOutcome:
        """Takes all rows, and waits for all uploads. A defect is raised, after local files are thrown away."""
        folder = naming.partition_folder(
            self._files.tmp_dir, self._settings.name, self._frame.label, self._frame.partition
        )
        sweep(folder)
        try:
            failure = self._write(batches)
        except BaseException:
            self._accumulator.abandon()
            with suppress(Exception):
                self._uploader.close()
            raise
        receipts = tuple(self._uploader.close())
        refused = next((one.failure for one in receipts if one.failure is not None), None)
        give_back()
        return FrameOutcome(self._frame, receipts, refused or failure)

    def _write(self, batches: Iterator[pa.RecordBatch]) -> Failure | None:
        try:
            for batch in batches:
                for start in range(0, len(batch), BLOCK_ROWS):
                    if not self._add(batch.slice(start, BLOCK_ROWS)):
                        return None  # a receipt tells why
            file = self._accumulator.finish(Reason.BATCH)
            self._send([file] if file is not None else [])
        except InvalidRecord as error:
            self._accumulator.abandon()
            return Failure(type(error).__name__, self._invalid(error), error.reaction)
        except ConnectorError as error:
            self._accumulator.abandon()
            return error.failure()
        return None

    def _add(self, rows: pa.RecordBatch) -> bool:
        """Whether rows are still of use: after a refused file they are not."""
        block = self._decoder.block(self._frame, self._rows, rows)
        for run in self._shaper.shape(block):
            if isinstance(run, Rejected):
                raise InvalidRecord(run.topic, run.partition, run.offset, run.reason)
            self._check_obfuscation()
            for part in run.parts(self._settings.flush.commit_records):
                if not self._send(self._accumulator.add(part)):
                    self._accumulator.abandon()
                    return False
        self._rows += len(rows)
        return True

    def _send(self, files: list[FinishedFile]) -> bool:
        going = True
        for file in files:
            going = going and self._uploader.submit(Upload(file, NO_TRIES))
            if not going:
                remove_unsent(file.path)
        return going

    def _check_obfuscation(self) -> None:
        """A DataFrame's columns are all there from its first row on, so what is not found never will be."""
        if not self._unchecked:
            return
        self._unchecked = False
        paths = self._shaper.unmatched()
        if paths:
            raise ConnectorError(
                f"Invalid [{ems('obfuscation.fields')}]. The DataFrame has no column or field {', '.join(paths)}; "
                f"correct it, so that nothing leaves in clear that should not. {self._frame.repeated}"
            )

    def _invalid(self, error: InvalidRecord) -> str:
        return (
            f"{self._frame.described}, row {error.offset}: {error.reason}. Correct the connector file if it asks for "
            f"something else than the row has; otherwise correct or filter such rows in the program. "
            f"{self._frame.repeated}"
        )
