"""What a connector's settings have done to records: decoder, transforms, and the policy for rejected ones.

By the policy the range stops before the first rejected record, or such records are diverted; each is logged. A task
asks it about each of them, and has it acknowledge diverted ones before any of their offsets counts as accepted: the
order is in `task.task`.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import pyarrow as pa

from parquet_sink.config.report import printable
from parquet_sink.convert.decoded import Decoder
from parquet_sink.errors import ConnectorError, InvalidRecord
from parquet_sink.kafka.resets import reset_command
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import VALUES_ONLY, RecordBatch, RecordParts, Unread
from parquet_sink.model.rejected import INSTEAD_OF_VALUE, TASK, VALUE_NOT_KEPT, Rejected, Stage, class_name, stage_name
from parquet_sink.rows.raw import RAW_PARTS, RawRowBuilder
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.run import Records
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.settings.connector import ErrorSettings
from parquet_sink.settings.record_sink import RecordSinkSettings
from parquet_sink.settings.sink import SinkSettings, of_sink
from parquet_sink.transform.chain import TransformChain

log = logging.getLogger(__name__)

AT_ONCE: Final = 100
PER_S: Final = 10.0
REPORT_S: Final = 10.0
"""How often a line says, while records go on being rejected, how many were left out."""
LONGEST: Final = 1_000
"""Characters of a key, a value or a header's value."""
MOST_HEADERS: Final = 20


def stopped_by(rejected: Rejected, kafka: KafkaSettings | None = None) -> InvalidRecord:
    """What a connector fails with that stops at a record. kafka: where its group is."""
    place, after = f"{rejected.topic}:{rejected.partition}", rejected.next_offset or rejected.offset + 1
    return InvalidRecord(
        topic=rejected.topic,
        partition=rejected.partition,
        offset=rejected.offset,
        reason=rejected.reason,
        may_pass=rejected.stage is not Stage.OBFUSCATION,
        command="" if kafka is None else reset_command(kafka, place, to=after),
        next_offset=after,
    )


def reject_unread(batch: RecordBatch, unread: Unread) -> Rejected:
    """Return what stands for unread records as rejected; a header says that its value is missing, which and why."""
    rejected = Records(batch, tombstones=True).rejected(0, Stage.VALUE_CONVERTER, unread.reason)
    place = {"topic": batch.topic, "partition": batch.partition, "offset": rejected.offset}
    more = {"next_offset": unread.next_offset, "bytes": unread.size, "reason": unread.reason}
    headers = (*(rejected.headers or ()), (VALUE_NOT_KEPT, json.dumps(place | more).encode()))
    value = INSTEAD_OF_VALUE + unread.reason.encode()
    return replace(rejected, value=value, headers=headers, next_offset=unread.next_offset)


class RejectPolicy(Protocol):
    """Decides about the rejected records of one Spark task."""

    @property
    def diverts(self) -> bool:
        """Whether any record may be diverted. If not, all rows before the first rejected record are delivered.

        If so, rows before and behind a rejected record may share a file. Should the policy stop all the same, the file
        that is open is thrown away, as it is when Kafka or the disk fails: the range is repeated from its start.
        """
        ...

    @property
    def needs(self) -> RecordParts:
        """What of a record it looks at beside its value. `single` is all that is needed for rejected records."""
        ...

    def decide(self, rejected: Rejected) -> ConnectorError | None:
        """None: it takes the record, and the range goes on behind it. Else the range ends before it with this error.

        In offset order for each range. A later attempt at the range brings the same records again. Raises
        ConnectorError when nothing can be diverted any more, which ends the range likewise.
        """
        ...

    def flush(self, planned: PlannedRange) -> None:
        """Returns when all diverted records of this range are kept for good. Raises ConnectorError if not.

        Called once for each range of which a record was asked about, after its last record, also when the range did
        not end well.
        """
        ...

    def close(self) -> None:
        """The task has ended, well or not; nothing is asked any more. Raises nothing."""
        ...


class StopAtRejected:
    """Nothing is diverted: the connector fails and names the record. kafka: as of `stopped_by`."""

    diverts = False
    needs = VALUES_ONLY

    def __init__(self, kafka: KafkaSettings | None = None) -> None:
        self._kafka = kafka

    def decide(self, rejected: Rejected) -> InvalidRecord:
        """The error that names the record."""
        return stopped_by(rejected, self._kafka)

    def flush(self, planned: PlannedRange) -> None:
        """Nothing is pending."""

    def close(self) -> None:
        """Nothing is open."""


class DivertStore(Protocol):
    """Keeps the rejected records of one Spark task, each at least once: a range that comes again brings them again."""

    def put(self, rejected: Rejected) -> None:
        """Takes a record, with key, value and headers; in offset order for each range. It need not be kept yet.

        Raises ConnectorError when this record, or one taken before, cannot be kept: nothing from it on is accepted.
        """
        ...

    def flush(self, planned: PlannedRange) -> None:
        """Returns when all records of the range that were put are kept for good, also beyond a crash of the machine.

        Called once for each range that had any, after its last record. Raises ConnectorError when they are not kept,
        which then holds for all of the range: whichever it was, the range is accepted up to its first such record.
        """
        ...

    def close(self) -> None:
        """The task has ended, well or not: lets go of what is of this task alone. Raises nothing.

        What was put and not flushed need not be kept.
        """
        ...


class DivertPolicy:
    """A `RejectPolicy` that keeps rejected records in a store, and goes on if the settings say so.

    Where they do not, the record goes to the store all the same, and the connector fails, as in Kafka Connect. kafka:
    as of `stopped_by`.
    """

    def __init__(self, settings: ErrorSettings, store: DivertStore, kafka: KafkaSettings | None = None) -> None:
        self._settings, self._store, self._kafka = settings, store, kafka

    @property
    def diverts(self) -> bool:
        return self._settings.invalid_records

    @property
    def needs(self) -> RecordParts:
        return RecordParts(single=True)

    def decide(self, rejected: Rejected) -> InvalidRecord | None:
        """Raises what the store raises, if the record was to be diverted.

        What is to be obfuscated and cannot be is not written anywhere.
        """
        if rejected.stage is Stage.OBFUSCATION:
            return stopped_by(rejected, self._kafka)
        refused = rejected.stage is Stage.TASK_PUT
        if self._settings.refused_files if refused else self._settings.invalid_records:
            self._store.put(rejected)
            return None
        try:
            self._store.put(rejected)
        except ConnectorError as error:
            log.warning(
                "topic %s, topic-partition %d, offset %d cannot be diverted: %s",
                *(rejected.topic, rejected.partition, rejected.offset, error),
            )
        return stopped_by(rejected, self._kafka)

    def flush(self, planned: PlannedRange) -> None:
        """As the store's."""
        self._store.flush(planned)

    def close(self) -> None:
        """As the store's."""
        self._store.close()


class LineLimit:
    """So many lines at once, and so many a second after these. clock: seconds that never jump."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._room, self._at = clock, float(AT_ONCE), clock()
        self._left_out, self._reported_at = 0, clock()

    def allows(self) -> bool:
        """Whether a line may be written now; one that may not is counted."""
        now = self._clock()
        self._room = min(AT_ONCE, self._room + (now - self._at) * PER_S)
        self._at = now
        if self._room < 1:
            self._left_out += 1
            return False
        self._room -= 1
        return True

    def left_out(self) -> int:
        """How many lines were left out since this was asked last."""
        found, self._left_out, self._reported_at = self._left_out, 0, self._clock()
        return found

    @property
    def is_due(self) -> bool:
        """Whether it is time again to say how many."""
        return self._clock() - self._reported_at >= REPORT_S


_limits: dict[str, LineLimit] = {}
"""By connector; a process works for few."""


@dataclass(frozen=True)
class LoggedRejects:
    """A `RejectPolicy` that logs each record that it asks another one about.

    connector: its name. content: whether lines have key, value and headers. classes: what carries out a stage.
    """

    inner: RejectPolicy
    connector: str
    content: bool
    classes: Mapping[Stage, str]

    @property
    def diverts(self) -> bool:
        return self.inner.diverts

    @property
    def needs(self) -> RecordParts:
        return self.inner.needs | RecordParts(single=True)

    def decide(self, rejected: Rejected) -> ConnectorError | None:
        """As the other one."""
        limit = _limits.setdefault(self.connector, LineLimit())
        if limit.is_due:
            self._log_left_out(limit)
        if limit.allows():
            log.error("%s", line(rejected, self.connector, self.classes, content=self.content))
        return self.inner.decide(rejected)

    def flush(self, planned: PlannedRange) -> None:
        """As the other one."""
        self.inner.flush(planned)

    def close(self) -> None:
        """As the other one; says how many lines were left out."""
        if self.connector in _limits:
            self._log_left_out(_limits[self.connector])
        self.inner.close()

    def _log_left_out(self, limit: LineLimit) -> None:
        if count := limit.left_out():
            log.error("connector %s: %d more records are rejected, without a log line for each", self.connector, count)


def line(rejected: Rejected, connector: str, classes: Mapping[Stage, str], *, content: bool) -> str:
    """Kafka Connect's words, then the reason."""
    more = _content(rejected) if content else ""
    return (
        f"Error encountered in task {connector}-{TASK}. Executing stage '{stage_name(rejected.stage)}' with class "
        f"'{class_name(rejected, classes)}', where consumed record is {{topic='{rejected.topic}', "
        f"partition={rejected.partition}, offset={rejected.offset}, timestamp={rejected.timestamp_ms}, "
        f"timestampType={rejected.timestamp_type}{more}}}. {rejected.reason}"
    )


def _content(rejected: Rejected) -> str:
    headers = rejected.headers or ()
    pairs = [(name.encode("utf-8", "surrogatepass"), value) for name, value in headers[:MOST_HEADERS]]
    shown = ", ".join(f"{_shown(name)}={_shown(value)}" for name, value in pairs)
    more = f", and {len(headers) - MOST_HEADERS} more" if len(headers) > MOST_HEADERS else ""
    return f", key={_shown(rejected.key)}, value={_shown(rejected.value)}, headers=[{shown}{more}]"


def _shown(data: bytes | None) -> str:
    if data is None:
        return "null"
    text = printable(data[: 4 * LONGEST].decode("utf-8", "backslashreplace"))
    return f"'{text[:LONGEST]}...'" if len(text) > LONGEST or len(data) > 4 * LONGEST else f"'{text}'"


@dataclass(frozen=True)
class RecordSteps:
    """decoder: of values; None for JSON without a schema. transforms: None for none. policy: for what is rejected.

    tombstone_keys: decoder of keys, where tombstones become rows; None where they are skipped. raw: nothing of all this
    is done but what the policy does.
    """

    decoder: Decoder | None = None
    transforms: TransformChain | None = None
    policy: RejectPolicy = field(default_factory=StopAtRejected)
    tombstone_keys: Decoder | None = None
    raw: bool = False
    _idle: dict[tuple[ShapeSettings, bytes], RowBuilder | RawRowBuilder] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Row builders whose ranges are over, by what they begin with: most learn nothing, and one takes 40 µs to make."""

    @property
    def needs(self) -> RecordParts:
        """What of a record is read beside its value: what any of these looks at."""
        if self.raw:
            return RAW_PARTS  # the policy is asked about refused files alone, whose records are read again
        needs = self.policy.needs | RecordParts(keys=self.tombstone_keys is not None)
        return needs if self.transforms is None else needs | self.transforms.needs

    def shaper(self, settings: ShapeSettings, known: pa.Schema | None = None) -> RowBuilder | RawRowBuilder:
        """A new one. known: what was learned of the topic."""
        if self.raw:
            return RawRowBuilder()
        return RowBuilder(settings, known, self.decoder, self.transforms, self.tombstone_keys)

    def take_row_builder(self, settings: ShapeSettings, schema: bytes | None) -> RowBuilder | RawRowBuilder:
        """One for a range. schema: what was known of the topic when the range was planned first, serialized."""
        if schema is None:
            return self.shaper(settings)
        idle = self._idle.pop((settings, schema), None)
        return self.shaper(settings, pa.ipc.read_schema(pa.py_buffer(schema))) if idle is None else idle

    def put_back(self, shaper: RowBuilder | RawRowBuilder, settings: ShapeSettings, schema: bytes | None) -> bool:
        """Takes what `take_row_builder` gave for a range that is over; whether the range taught it nothing."""
        if schema is None or not shaper.begin_again():
            return False
        self._idle[settings, schema] = shaper
        return True


# Decoders and transforms are kept in this process from micro-batch to micro-batch. What follows loads only what this
# connector needs.


def steps_for(settings: SinkSettings, policy: RejectPolicy) -> RecordSteps:
    """Of a sink that writes Parquet files."""
    if settings.shape.raw:
        return RecordSteps(policy=policy, raw=True)
    from parquet_sink.convert.decoders import decoder_for, key_decoder_for

    transforms = None
    if settings.transforms:
        from parquet_sink.transform.building import chain_for

        transforms = chain_for(settings.transforms, settings.key, settings.header)
    tombstone_keys = None if settings.shape.tombstone_column is None else key_decoder_for(settings.key)
    return RecordSteps(decoder_for(settings.value), transforms, policy, tombstone_keys)


def steps_of_record_sink(settings: RecordSinkSettings) -> RecordSteps:
    """Of a sink that takes records."""
    from parquet_sink.convert.decoders import decoder_for
    from parquet_sink.transform.building import chain_of

    chain = chain_of(settings.transforms, settings.key, settings.header, settings.sink.needs)
    return RecordSteps(decoder_for(settings.value), chain, policy_for(settings))


def policy_for(settings: SinkSettings | RecordSinkSettings) -> RejectPolicy:
    """Rejected records go to the dead-letter topic, or are parked; without either the first one stops the connector."""
    store = _store(settings)
    kafka = settings.kafka
    policy = StopAtRejected(kafka) if store is None else DivertPolicy(settings.errors, store, kafka)
    if not settings.errors.log:
        return policy
    return LoggedRejects(policy, settings.name, settings.errors.log_content, classes_of(settings))


def _store(settings: SinkSettings | RecordSinkSettings) -> DivertStore | None:
    if (topic := settings.errors.dead_letters) is not None:
        from parquet_sink.kafka.dead_letters import DeadLetters, HeaderWriter

        return DeadLetters(topic, HeaderWriter(settings.name, topic.context, classes_of(settings)))
    if of_sink(settings) and settings.errors.parks:
        from parquet_sink.parked.folder import ParkedFolder, ParkedStore

        return ParkedStore(ParkedFolder(settings.parked_folder, settings.name, settings.parked.max_bytes))
    return None


def classes_of(settings: SinkSettings | RecordSinkSettings) -> dict[Stage, str]:
    """What carries out each stage, by its full name: of a converter the one that stands in a connector file.

    Of a transform each record that it rejects names it. Our own names stay when classes move: they stand in dead
    letters.
    """
    return {
        Stage.KEY_CONVERTER: settings.key.in_reports if settings.key else "",
        Stage.VALUE_CONVERTER: settings.value.in_reports,
        Stage.HEADER_CONVERTER: settings.header.in_reports,
        Stage.SHAPE: "parquet_sink.shape.shaper.Shaper",
        Stage.OBFUSCATION: "parquet_sink.shape.obfuscation.field_obfuscator.FieldObfuscator",
        Stage.TASK_PUT: "parquet_sink.targets.uploader.OrderedUploader",
    }
