"""Keys and settings of a source, made by its connector class from a connector file. Durations are milliseconds."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, Final, Literal

from parquet_sink.config.declared import LocalPath, Milliseconds, declared, key
from parquet_sink.config.key import NotBuilt, Origin, ems, is_set
from parquet_sink.config.secret import Secret
from parquet_sink.connectors.connect_keys import CONNECT, CONNECTOR, NAME
from parquet_sink.convert.connect_values.settings import SIMPLE_HEADER
from parquet_sink.convert.json.settings import PLAIN_JSON
from parquet_sink.convert.settings import Converter
from parquet_sink.files.settings import TMP_DIR
from parquet_sink.kafka.settings import NOBODY_ELSE, PRODUCER, SERVERS, Ownership, fixed
from parquet_sink.settings.connector import LOG, LOG_CONTENT, TOLERANCE, RestartSettings
from parquet_sink.transform.settings import StepSettings
from parquet_sink.worker_config.offset_storage import OffsetStorageSettings

MAX_REQUEST: Final = "max.request.size"
DEFAULT_MAX_REQUEST: Final = 1_048_576
"""Bytes of a record that Java's producer takes at most, unless it is told otherwise."""
SERVERS_KEY: Final = f"{PRODUCER}bootstrap.servers"
OF_SINKS: Final = ("errors.retry.timeout", "errors.retry.delay.max.ms")
"""Keys of Kafka Connect that mean something to sinks alone."""
WRITING: Final = "Writing to Kafka"
RUNNING: Final = "Running a source"


def _refused(name: str, doc: str, cure: str) -> Any:
    return key(name, doc, not_built=NotBuilt("any", is_set, cure))


def _retries(name: str) -> Any:
    why = "what may pass is tried again as a whole, see connect.ems.restart.max."
    return key(name, "How long a failed step is tried again.", no_effect=why)


def _transactions(name: str) -> Any:
    return key(name, "When transactions end.", no_effect="records are written without transactions.")


@declared(group=CONNECT, origin=Origin.CONNECT)
class SourceSettings:
    """One source, ready to run.

    task: of the class of its tasks, as `module:Class`; tasks: what each of them is told. origin: what is read, in
    words. topics: where records go, as far as that is known before. storage: of its positions; None keeps them for a
    run alone. spool: a file that standard input is copied to, where that is read; else None. producer: settings of
    the client, with Java's names. tolerant: records that cannot be transformed or converted are passed over; log: a
    line tells of each. poll_interval_ms: how often a source is asked that cannot tell whether there is anything new.
    owned: by this worker, and until when; a source commits nothing, so it has no fence.
    """

    kind: ClassVar[str] = "source"
    name: str = key(
        "name",
        "Name of the connector. Its positions are kept under it, and it names its folder below `connect.ems.tmp.dir`, "
        "so two connectors may not share it.",
        missing="name the connector.",
        check=NAME,
        group=CONNECTOR,
    )
    task: str
    tasks: tuple[Mapping[str, str | Secret], ...]
    origin: str
    topics: tuple[str, ...]
    storage: OffsetStorageSettings | None
    spool: str | None = None
    tasks_max: int | None = key(
        "tasks.max",
        "The most tasks of the source. How many there are is for its class to say.",
        default=1,
        minimum=1,
        group=CONNECTOR,
    )
    servers: ClassVar[tuple[str, ...]] = key(
        SERVERS_KEY,
        "Brokers that records are sent to, if they are others than the worker's.",
        default_text="the worker's",
        check=SERVERS,
        group=WRITING,
    )
    acks: ClassVar[str] = fixed(
        "acks", "all", "a position is stored once all in-sync replicas have the records before it.", WRITING
    )
    idempotence: ClassVar[bool] = fixed(
        "enable.idempotence", True, "what the client sends again is not twice in the topic.", WRITING
    )
    transactions: ClassVar[str | None] = fixed(
        "transactional.id", None, "records are written without transactions.", WRITING
    )
    max_request: ClassVar[int] = key(
        f"{PRODUCER}{MAX_REQUEST}",
        "The most bytes that a record may have. Topics have a bound of their own, `max.message.bytes`.",
        default=DEFAULT_MAX_REQUEST,
        minimum=1,
        maximum=1_000_000_000,
        group=WRITING,
    )
    producer_others: ClassVar[str] = key(
        f"{PRODUCER}*",
        "Any other setting of Kafka's producer under its Java name. It wins over the worker's `producer.*`, and those "
        "over the consumer's brokers and security settings (`security.*`, `sasl.*`, `ssl.*`), which are taken "
        "otherwise.",
        default_text="Kafka's",
        group=WRITING,
    )
    tmp_dir: LocalPath = key(
        TMP_DIR,
        "Folder for the connector's lock, its state, and what its tasks remember; made when it is not there. Without "
        "it, after a restart of the machine for example, positions alone say where to go on.",
        default="/tmp",
        absent=None,
        default_text="the system's temporary folder; in a worker `connectors` below `config.storage.folder`",
        computed=lambda values, machine: values.text(TMP_DIR) or machine.tmp_dir,
        group=RUNNING,
        origin=Origin.EMS,
    )
    stop_timeout_ms: Milliseconds = key(
        ems("stop.timeout.ms"),
        "How long a stop waits for the records on their way, in milliseconds. What it gives up is sent again at the "
        "next start.",
        default=30_000,
        minimum=0,
        group=RUNNING,
        origin=Origin.OWN,
    )
    restart: RestartSettings = field(default_factory=RestartSettings)
    tolerant: bool = key(
        TOLERANCE,
        "`none`: the connector stops at the first record that cannot be transformed or converted; all before it is in "
        "Kafka. `all`: such records are skipped, counted and reported, and kept nowhere.",
        default=False,
        absent="none",
        type_=Literal["none", "all"],
        computed=lambda values, machine: values.text(TOLERANCE) == "all",
    )
    log: bool = key(LOG, "A log line for each record that is skipped, without its content.", default=False)
    log_content: ClassVar[str] = key(
        LOG_CONTENT, "Content in such lines.", no_effect="content of records is never logged here."
    )
    retry_timeout: ClassVar[str] = _retries(OF_SINKS[0])
    retry_delay: ClassVar[str] = _retries(OF_SINKS[1])
    topic_creation: ClassVar[str] = _refused(
        "topic.creation.*",
        "How Kafka Connect makes topics.",
        "make the topic, or let the brokers make it (auto.create.topics.enable), and remove the key.",
    )
    own_storage: ClassVar[str] = _refused(
        "offsets.storage.topic",
        "A topic for positions of this connector alone.",
        "set offset.storage.topic in the worker file.",
    )
    exactly_once: ClassVar[Literal["requested", "required"]] = key(
        "exactly.once.support",
        "Whether records must be written exactly once. Here they are written at least once.",
        default="requested",
        not_built=NotBuilt(
            "`required`", lambda value: value == "required", "records are written at least once; set requested."
        ),
    )
    boundary: ClassVar[str] = _transactions("transaction.boundary")
    boundary_interval: ClassVar[str] = _transactions("transaction.boundary.interval.ms")
    producer: Mapping[str, str | Secret] = field(default_factory=dict)
    transforms: tuple[StepSettings, ...] = ()
    poll_interval_ms: int = 1_000
    registry_patience_ms: int = 0
    registry_pause_ms: int = 60_000
    owned: Ownership = NOBODY_ELSE
    value: Converter = PLAIN_JSON
    key: Converter = PLAIN_JSON
    header: Converter = SIMPLE_HEADER

    @property
    def of_files(self) -> Literal[False]:
        """What it sends is told in records."""
        return False

    @property
    def makes_topics(self) -> tuple[str, ...]:
        """Those that it sends to."""
        return self.topics

    @property
    def group(self) -> str | None:
        """A source is in no group."""
        return None

    @property
    def flush_interval_ms(self) -> int | None:
        """Nothing waits for company."""
        return None

    @property
    def label(self) -> str:
        """Of its producer, as `kafka.settings.ProducerSettings` has it."""
        return f"source-{self.name}"

    @property
    def whose(self) -> str:
        """Likewise."""
        return f"producer of source {self.name}"

    @property
    def max_request_bytes(self) -> int:
        """The most that a record may have."""
        return int(str(self.producer.get(MAX_REQUEST, DEFAULT_MAX_REQUEST)))

    def with_transforms(self, steps: tuple[StepSettings, ...]) -> "SourceSettings":
        """The same with these transforms."""
        return replace(self, transforms=steps)

    def with_ownership(self, owned: Ownership) -> "SourceSettings":
        """The same, owned so."""
        return replace(self, owned=owned)

    def summary(self) -> str:
        """From where to where: `file test.txt -> topic connect-test`."""
        plural = "s" if len(self.topics) > 1 else ""
        return f"{self.origin} -> topic{plural} {', '.join(self.topics)}"

    def description(self, *, keys: bool, headers: bool) -> Sequence[str]:
        """What happens to a record, in order."""
        steps = [f"{step.transform.name} ({step.transform.type})" for step in self.transforms]
        kept = "for this run alone" if self.storage is None else f"in {self.storage.what}"
        fault = "is skipped" if self.tolerant else "stops the connector"
        return [
            f"read from {self.origin}, by {len(self.tasks)} task{'s' if len(self.tasks) > 1 else ''}",
            *(f"transform {step}" for step in steps),
            f"value: {self.value.what}; key: {self.key.what}; one that cannot be {fault}",
            f"sent to Kafka, at most {self.max_request_bytes:,} bytes each, and acknowledged by all in-sync replicas",
            f"its position stored {kept}",
        ]
