"""One Spark task's ranges, from blocks to receipts: steps 1 to 6 of `parquet_sink.sink`, in a worker process."""

import contextlib
import logging
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.settings import ConnectorSettings
from parquet_sink.convert.decoded import Decoder
from parquet_sink.errors import ConnectorError, StorageFailed
from parquet_sink.files.accumulator import Accumulator, FinishedFile, Place
from parquet_sink.files.rotation import Limits, Reason
from parquet_sink.kafka.block import Block, decode
from parquet_sink.kafka.rows import WARM_UP, Arrived, Span, unpack
from parquet_sink.logs import configure_worker
from parquet_sink.memory import give_back
from parquet_sink.shape.churn import ChurnWatch
from parquet_sink.shape.shaper import Shaper
from parquet_sink.sink import RangeOutcome
from parquet_sink.state import Failure, Known
from parquet_sink.upload.deliver import Deliverer
from parquet_sink.upload.push import client_for
from parquet_sink.upload.receipts import Receipt
from parquet_sink.upload.uploader import OrderedUploader

log = logging.getLogger(__name__)

Key = tuple[str, int]

_warned: set[tuple[str, str, tuple[str, ...]]] = set()
"""Connector, topic and paths that were warned about in this process: once is enough."""


@dataclass
class _Flushing:
    """A range under way. `reached`: everything below is in a file, or about to be, or has no row."""

    span: Span
    accumulator: Accumulator
    churn: ChurnWatch
    reached: int
    ended: bool = False
    failure: Failure | None = None
    receipts: list[Receipt] = field(default_factory=list)


class TaskFlush:
    """All ranges of one task share an uploader; ranges of one topic share its schema."""

    def __init__(self, settings: ConnectorSettings, known: Mapping[str, Known]) -> None:
        configure_worker()
        self._settings, self._known = settings, known
        client = client_for(settings.push)
        deliverer = Deliverer(settings.name, client, settings.push, keep_files=settings.files.keep_files)
        self._uploader = OrderedUploader(deliverer)
        self._shapers: dict[str, Shaper] = {}
        self._ranges: dict[Key, _Flushing] = {}

    def run(self, batches: Iterator[pa.RecordBatch]) -> tuple[RangeOutcome, ...]:
        """Takes all blocks, waits for all uploads. A defect is raised, after local files are thrown away."""
        try:
            for batch in batches:
                for arrived in unpack(batch):
                    self._take(arrived)
            self._check_ends()
            receipts = self._uploader.close()
        except BaseException:
            self._give_up()
            raise
        for receipt in receipts:
            self._ranges[receipt.topic, receipt.partition].receipts.append(receipt)
        outcomes = tuple(self._outcome(flushing) for flushing in self._ranges.values())
        self._warn_of_clear_text()
        give_back()
        return outcomes

    def _check_ends(self) -> None:
        """Rows that stop coming before the end of their range are a defect: nothing of it may count as accepted."""
        cut = [flushing.span for flushing in self._ranges.values() if not flushing.ended]
        if cut:
            raise RuntimeError(f"ranges stopped before their end: {cut}")

    def _take(self, arrived: Arrived) -> None:
        if arrived.span.reason == WARM_UP:
            return
        flushing = self._flushing(arrived.span)
        if flushing.ended:
            return
        try:
            if arrived.block is not None:
                self._add(flushing, decode(arrived.block))
            if arrived.problem is not None:
                self._end(flushing, Reason.END_OF_RANGE)
                flushing.failure = Failure(arrived.problem.kind, arrived.problem.message)
                return
            flushing.reached = arrived.next_offset
            if arrived.next_offset >= arrived.span.end:
                self._end(flushing, Reason(arrived.span.reason))
        except ConnectorError as error:
            self._fail(flushing, error)

    def _add(self, flushing: _Flushing, block: Block) -> None:
        oldest = pc.min(block.timestamps).as_py() if len(block) else None
        try:
            for run in self._shaper(flushing.span.topic).shape(block):
                for part in run.parts(self._settings.flush.commit_records):
                    files = flushing.accumulator.add(part, oldest)
                    flushing.churn.added(part.rows.schema, (f.rows for f in files if f.reason is Reason.SCHEMA))
                    for file in files:
                        self._send(flushing, file)
                    if flushing.ended:
                        return
                    flushing.reached = part.last_offset + 1
        except ConnectorError as error:
            if not isinstance(error, StorageFailed):
                flushing.reached = getattr(error, "offset", flushing.reached)
                self._end(flushing, Reason.END_OF_RANGE)
            raise

    def _send(self, flushing: _Flushing, file: FinishedFile) -> None:
        if not self._uploader.submit(file):
            flushing.ended = True
            flushing.accumulator.abandon()

    def _end(self, flushing: _Flushing, reason: Reason) -> None:
        """Closes the last file of a range; nothing more of it is taken."""
        flushing.ended = True
        file = flushing.accumulator.finish(reason)
        if file is not None:
            self._send(flushing, file)

    def _fail(self, flushing: _Flushing, error: ConnectorError) -> None:
        flushing.ended = True
        flushing.failure = Failure(type(error).__name__, str(error))
        flushing.accumulator.abandon()

    def _flushing(self, span: Span) -> _Flushing:
        key = (span.topic, span.partition)
        if key not in self._ranges:
            churn = ChurnWatch(self._settings.name, span.topic)
            self._ranges[key] = _Flushing(span, self._accumulator(span), churn, span.start)
        return self._ranges[key]

    def _accumulator(self, span: Span) -> Accumulator:
        settings, flush = self._settings, self._settings.flush
        place = Place(settings.name, span.topic, span.partition, uuid.uuid4().hex)
        known = self._known.get(span.topic, Known())
        limits = Limits(flush.commit_size_bytes, flush.commit_records)
        return Accumulator(place, limits, settings.files, bytes_per_row=known.bytes_per_row)

    def _shaper(self, topic: str) -> Shaper:
        if topic not in self._shapers:
            schema = self._known.get(topic, Known()).schema
            known = None if schema is None else pa.ipc.read_schema(pa.py_buffer(schema))
            self._shapers[topic] = Shaper(self._settings.shape, known, self._decoder())
        return self._shapers[topic]

    def _decoder(self) -> Decoder | None:
        """The value converter's; kept in this process from micro-batch to micro-batch."""
        if self._settings.value.kind == "json":
            return None
        from parquet_sink.convert.decoders import decoder_for  # loads only what this connector needs

        return decoder_for(self._settings.value)

    def _outcome(self, flushing: _Flushing) -> RangeOutcome:
        """Accepted is what was reached, unless a file on the way there was not."""
        refused = next((r for r in flushing.receipts if not r.accepted), None)
        until = flushing.reached if refused is None else max(refused.next_offset, flushing.span.start)
        failure = flushing.failure
        if refused is not None and refused.failure is not None:
            failure = Failure(refused.failure.kind, refused.failure.message)
        elif flushing.failure is not None and flushing.failure.kind == "StorageFailed":
            until = max((r.next_offset for r in flushing.receipts), default=flushing.span.start)
        shaper = self._shapers.get(flushing.span.topic)
        schema = shaper.known.serialize().to_pybytes() if shaper is not None and shaper.known is not None else None
        known = Known(schema, flushing.accumulator.bytes_per_row, flushing.accumulator.bytes_per_record)
        span = flushing.span
        return RangeOutcome(
            span.topic, span.partition, span.end, span.reason, until, tuple(flushing.receipts), failure, known
        )

    def _warn_of_clear_text(self) -> None:
        """A path that matches nothing is a slip of the pen, and what it should have hidden leaves in clear."""
        for topic, shaper in self._shapers.items():
            paths = shaper.unmatched()
            if paths and (self._settings.name, topic, paths) not in _warned:
                _warned.add((self._settings.name, topic, paths))
                log.warning(
                    "connector %s: topic %s has no field %s, which connect.ems.obfuscation.fields names; correct it.",
                    *(self._settings.name, topic, ", ".join(paths)),
                )

    def _give_up(self) -> None:
        for flushing in self._ranges.values():
            flushing.accumulator.abandon()
        with contextlib.suppress(Exception):
            self._uploader.close()
