"""Distributed mode: keys of connect-distributed.properties that make several workers one cluster.

A worker file with `group.id` is of distributed mode. Its bare client settings (`security.protocol`, `sasl.*`, ...) are
those of the worker's own clients then, as in Kafka Connect, and `consumer.*`, `producer.*`, `admin.*` those of its
connectors.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

from parquet_sink.config.checks import PRINTABLE
from parquet_sink.config.declared import Milliseconds, check, declared, filled_by, key, made
from parquet_sink.config.key import Check, NotBuilt, Origin, Value
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values
from parquet_sink.kafka import client_settings
from parquet_sink.kafka.client_settings import ClientSetting
from parquet_sink.kafka.settings import TOPIC as LEGAL_TOPIC
from parquet_sink.kafka.settings import wrong_topic
from parquet_sink.worker_config.offset_storage import NOT_ZERO, OFFSETS, OffsetStorageSettings, topic_settings

DISTRIBUTED: Final = "Distributed mode"
GROUP_ID: Final = "group.id"
CONFIG: Final = "config.storage."
STATUS: Final = "status.storage."
STATE: Final = "parquet-sink.state.storage."
_NEEDED: Final = (GROUP_ID, f"{CONFIG}topic", f"{STATUS}topic", f"{OFFSETS}topic")
SESSION: Final = "session.timeout.ms"
HEARTBEAT: Final = "heartbeat.interval.ms"
REBALANCE: Final = "rebalance.timeout.ms"
SECRETS: Final = "parquet-sink.config.secrets"
SEALED: Final = "sealed"
"""The mode, and the name of the config provider that opens what is sealed."""
SEALING_KEYS: Final = "parquet-sink.config.sealing.keys"
HMACS: Final[Mapping[str, int]] = {"HmacSHA256": 256, "HmacSHA384": 384, "HmacSHA512": 512}
"""By Java's names, without those that are too weak; of each the bits of its keys, as Java makes them."""
_KEY_BYTES: Final = 32
_KEY_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LARGEST: Final = 2_147_483_647
_OWN_PREFIXES: Final = ("security.", "sasl.", "ssl.")
OWN_CLIENTS: Final = (
    *("client.dns.lookup", "request.timeout.ms", "retry.backoff.ms", "retry.backoff.max.ms", "metadata.max.age.ms"),
    *("reconnect.backoff.ms", "reconnect.backoff.max.ms", "connections.max.idle.ms", "send.buffer.bytes"),
    *("receive.buffer.bytes", "socket.connection.setup.timeout.ms", "metadata.recovery.strategy"),
    *("metadata.recovery.rebootstrap.trigger.ms", *(f"{prefix}*" for prefix in _OWN_PREFIXES)),
)
"""Keys of the worker's own clients, beside `bootstrap.servers`."""


def is_of_own_clients(name: str) -> bool:
    """Whether a key of the worker file is a setting of the worker's own clients."""
    return name.startswith(_OWN_PREFIXES) or name in OWN_CLIENTS


@dataclass(frozen=True)
class SealingKey:
    """A key of AES-256-GCM, by which values of configurations are sealed."""

    id: str
    """Stands in each value that it sealed."""
    encoded: Secret
    """32 bytes in Base64."""

    @property
    def data(self) -> bytes:
        """In clear."""
        return base64.b64decode(self.encoded.reveal())


def _sealing_keys(text: str) -> tuple[SealingKey, ...]:
    """Of `ID:BASE64,ID:BASE64`. Raises ValueError with the cure, which never holds a key."""
    found: list[SealingKey] = []
    for number, one in enumerate(text.split(","), 1):
        name, colon, encoded = (part.strip() for part in one.partition(":"))
        if not colon or _KEY_ID.fullmatch(name) is None:
            raise ValueError(
                f"Key {number} of the list has no name; write ID:BASE64, ID of letters, digits, . _ and -."
            )
        try:
            length = len(base64.b64decode(encoded, validate=True))
        except binascii.Error:
            length = 0
        if length != _KEY_BYTES:
            raise ValueError(
                f"Key {number} of the list is not {_KEY_BYTES} bytes in Base64; make one by "
                f"`openssl rand -base64 {_KEY_BYTES}`."
            )
        if name in {other.id for other in found}:
            raise ValueError(f"Key {number} of the list has the name of another; give each its own.")
        found.append(SealingKey(name, Secret(encoded)))
    return tuple(found)


def _wrong_keys(value: Value) -> str | None:
    try:
        _sealing_keys(value.reveal() if isinstance(value, Secret) else "")
    except ValueError as error:
        return str(error)
    return None


def _keys(values: Values, machine: Machine) -> tuple[SealingKey, ...]:
    given = values.secret(SEALING_KEYS)
    return () if given is None else _sealing_keys(given.reveal())


def _hmacs(value: Value) -> str | None:
    unknown = [name for name in value if name not in HMACS] if isinstance(value, tuple) else []
    return f"{quoted(unknown[0])} is not one of {', '.join(HMACS)}; write some of them." if unknown else None


def _key_bits(value: Value) -> str | None:
    if isinstance(value, int) and (value < 128 or value > 4096 or value % 8):
        return f"{value} is not a length of a key; give a multiple of 8 from 128 to 4096, or remove the key."
    return None


def _state_topic(values: Values, machine: Machine) -> str:
    return values.text(f"{STATE}topic") or f"{values.text(GROUP_ID)}-state"


def _partitions(prefix: str, default: int, origin: Origin) -> Any:
    return key(
        f"{prefix}partitions",
        "Topic-partitions of that topic, if it is made here. `-1`: the brokers' default.",
        default=default,
        minimum=-1,
        maximum=_LARGEST,
        check=NOT_ZERO,
        needs=GROUP_ID,
        origin=origin,
    )


def _replicas(prefix: str, origin: Origin, computed: Callable[[Values, Machine], object] | None = None) -> Any:
    return key(
        f"{prefix}replication.factor",
        "Replicas of that topic, if it is made here. `-1`: the brokers' default.",
        default=3,
        default_text="" if computed is None else f"`{CONFIG}replication.factor`",
        minimum=-1,
        maximum=32_767,
        check=NOT_ZERO,
        needs=GROUP_ID,
        computed=computed,
        origin=origin,
    )


def _state_replicas(values: Values, machine: Machine) -> int | None:
    return values.number(f"{STATE}replication.factor") or values.number(f"{CONFIG}replication.factor")


@declared(group=DISTRIBUTED, origin=Origin.CONNECT, optional=True, kw_only=True)
class DistributedSettings:
    """What makes a worker one of a cluster. partitions, replication factors: of topics made here; -1: as brokers do."""

    group_id: str = key(
        GROUP_ID,
        "The cluster's name: workers with the same `group.id` share its connectors, and a worker file that has it is "
        "of distributed mode. It is a consumer group, so no connector may have it. "
        "See [distributed.md](../how-to/distributed.md).",
        default_text="none: standalone mode",
        check=PRINTABLE,
    )
    config_topic: str = key(
        f"{CONFIG}topic",
        "Topic of configurations, of what connectors are to do, and of who runs them. Made when it is not there; "
        "refused unless it is compacted and has one topic-partition. Each cluster has its own.",
        default_text="required with `group.id`",
        missing="name the topic, connect-configs say.",
        check=LEGAL_TOPIC,
    )
    one_partition: ClassVar[int] = key(
        f"{CONFIG}partitions",
        "Topic-partitions of that topic.",
        default=1,
        no_effect="the config topic has one topic-partition, so that its records have one order.",
    )
    config_replication: int = _replicas(CONFIG, Origin.CONNECT)
    status_topic: str = key(
        f"{STATUS}topic",
        "Topic of how connectors and tasks stand. Made when it is not there; refused unless it is compacted.",
        default_text="required with `group.id`",
        missing="name the topic, connect-status say.",
        check=LEGAL_TOPIC,
    )
    status_partitions: int = _partitions(STATUS, 5, Origin.CONNECT)
    status_replication: int = _replicas(STATUS, Origin.CONNECT)
    state_topic: str = key(
        f"{STATE}topic",
        "Topic of what connectors learned of their topics, by which a worker that takes one over makes the files that "
        "the lost one would have made. Made when it is not there; refused unless it is compacted.",
        default_text="`<group.id>-state`",
        check=LEGAL_TOPIC,
        needs=GROUP_ID,
        computed=_state_topic,
        origin=Origin.OWN,
    )
    state_partitions: int = _partitions(STATE, 5, Origin.OWN)
    state_replication: int = _replicas(STATE, Origin.OWN, _state_replicas)
    offset_topic: str = filled_by(f"{OFFSETS}topic")
    offset_partitions: int = filled_by(f"{OFFSETS}partitions", default=25)
    offset_replication: int = filled_by(f"{OFFSETS}replication.factor", default=3)
    of_config: ClassVar[str] = key(
        f"{CONFIG}*", "Settings that the topic gets if it is made here, `min.insync.replicas` say.", needs=GROUP_ID
    )
    of_status: ClassVar[str] = key(f"{STATUS}*", "Likewise of the status topic.", needs=GROUP_ID)
    of_state: ClassVar[str] = key(f"{STATE}*", "Likewise of the state topic.", needs=GROUP_ID, origin=Origin.OWN)
    topic_settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of topics that are made here, by the beginning of their keys: `config.storage.`, ..."""
    session_ms: Milliseconds = key(
        SESSION,
        "After how long without a word a worker counts as lost, in milliseconds: others take its connectors over, and "
        "by then it sends nothing any more. Brokers bound it, by 6,000 to 1,800,000 unless they are set otherwise.",
        default=10_000,
        minimum=1_000,
        maximum=_LARGEST,
        needs=GROUP_ID,
    )
    heartbeat_ms: Milliseconds = key(
        HEARTBEAT,
        "How often a worker is heard of; each tenth of the session where that is more often. At most a third of it.",
        default=3_000,
        minimum=100,
        maximum=_LARGEST,
        needs=GROUP_ID,
    )
    rebalance_ms: Milliseconds = key(
        REBALANCE,
        "How long a worker may take to join again when the members change, else it is removed; at least twice the "
        "session is taken.",
        default=60_000,
        minimum=1_000,
        maximum=_LARGEST,
        needs=GROUP_ID,
    )
    delay_ms: Milliseconds = key(
        "scheduled.rebalance.max.delay.ms",
        "How long the connectors of a lost worker wait for it before others have them. Kafka Connect waits 300,000; "
        "moves are small here, so nothing is gained by it.",
        default=0,
        minimum=0,
        maximum=_LARGEST,
        needs=GROUP_ID,
    )
    sync_ms: Milliseconds = key(
        "worker.sync.timeout.ms",
        "How long a worker waits at most until it has read the config topic to its end: when it begins to lead, and "
        "before it judges a request that changes something.",
        default=3_000,
        minimum=1,
        maximum=_LARGEST,
        needs=GROUP_ID,
    )
    unsync: ClassVar[Milliseconds] = key(
        "worker.unsync.backoff.ms",
        "How long a worker stays out of the group that could not read the config topic in time.",
        default=300_000,
        no_effect="such a worker stays in the group, because it acts on nothing that it has not read.",
    )
    protocol: ClassVar[str] = key(
        "connect.protocol",
        "How Kafka Connect's workers agree on who runs what.",
        default="sessioned",
        no_effect="who runs what is a record in the config topic.",
    )
    exactly_once: ClassVar[Literal["disabled", "preparing", "enabled"]] = key(
        "exactly.once.source.support",
        "Sources send at least once: positions are stored once brokers acknowledged everything below. The leader "
        "writes the config topic by transactions in any case, which is all that `preparing` asks for.",
        default="disabled",
        not_built=NotBuilt(
            "enabled", lambda value: value == "enabled", "sources send at least once; write disabled or preparing."
        ),
        needs=GROUP_ID,
    )
    key_ttl_ms: Milliseconds = key(
        "inter.worker.key.ttl.ms",
        "After how long the leader makes a new key by which workers sign the requests that they send each other.",
        default=3_600_000,
        minimum=60_000,
        maximum=_LARGEST,
        needs=GROUP_ID,
    )
    key_algorithm: Literal["HmacSHA256", "HmacSHA384", "HmacSHA512"] = key(
        "inter.worker.key.generation.algorithm", "What such a key is made for.", default="HmacSHA256", needs=GROUP_ID
    )
    key_bits: int | None = key(
        "inter.worker.key.size",
        "Its length in bits.",
        default=None,
        default_text="the algorithm's: 256, 384, 512",
        check=Check("a multiple of 8, 128 to 4096", _key_bits),
        needs=GROUP_ID,
    )
    signature_algorithm: Literal["HmacSHA256", "HmacSHA384", "HmacSHA512"] = key(
        "inter.worker.signature.algorithm", "By which requests are signed.", default="HmacSHA256", needs=GROUP_ID
    )
    verification_algorithms: tuple[str, ...] = key(
        "inter.worker.verification.algorithms",
        "Those of requests that are believed; the one by which requests are signed must be among them.",
        default=("HmacSHA256",),
        default_text="`HmacSHA256`",
        check=Check(", ".join(f"`{name}`" for name in HMACS), _hmacs),
        needs=GROUP_ID,
    )
    secrets: Literal["refused", "plain", "sealed"] = key(
        SECRETS,
        "What happens to a password in the clear in a configuration, which the config topic would show to all who may "
        "read it. `refused`: only placeholders of config providers are accepted. `plain`: it is stored as it came. "
        "`sealed`: it is encrypted by the first key of `parquet-sink.config.sealing.keys`.",
        default="refused",
        needs=GROUP_ID,
        origin=Origin.OWN,
    )
    sealing_keys: tuple[SealingKey, ...] = key(
        SEALING_KEYS,
        "Keys for that, the same in all workers: `ID:BASE64,...`, each of 32 bytes (`openssl rand -base64 32`), best "
        "as a placeholder of a config provider. The first seals, all open.",
        default=(),
        absent=None,
        type_=Secret,
        check=Check("`ID:BASE64`, 32 bytes each", _wrong_keys),
        needs=GROUP_ID,
        computed=_keys,
        origin=Origin.OWN,
    )
    kafka: Mapping[str, ClientSetting] = field(default_factory=dict)
    """Settings of the worker's own clients, with Java's names."""


def own_clients(values: Values, servers: str) -> dict[str, ClientSetting]:
    """What the worker's own clients are made with in distributed mode, with Java's names."""
    texts = {name: text for name, text in values.texts.items() if is_of_own_clients(name)}
    return {**client_settings.under("", texts), "bootstrap.servers": servers}


def distributed(
    values: Values,
    machine: Machine,
    client: Mapping[str, ClientSetting],
    offsets: OffsetStorageSettings | None,
    report: Report,
) -> DistributedSettings | None:
    """None in standalone mode, or where something is missing, which the report has. client: as `own_clients` makes."""
    if GROUP_ID not in values.given:
        for name in (f"{CONFIG}topic", f"{STATUS}topic"):
            if name in values.given:
                report.problem(
                    name,
                    f"It is for distributed mode, and {GROUP_ID} is missing; name the cluster there, or remove it.",
                )
        return None
    check(DistributedSettings, values, report)
    if f"{OFFSETS}topic" not in values.given:
        report.problem(f"{OFFSETS}topic", "It is missing; name the topic, connect-offsets say.")
    if offsets is None or any(values.text(name) is None for name in _NEEDED):
        return None
    settings = {prefix: topic_settings(prefix, values, report) for prefix in (CONFIG, STATUS, STATE)}
    found = made(
        DistributedSettings,
        values,
        machine,
        topic_settings={**settings, OFFSETS: offsets.topic_settings},
        kafka=client,
    )
    _check_together(found, values, report)
    return found


def _check_together(found: DistributedSettings, values: Values, report: Report) -> None:
    """Limits that look at more than one key."""
    if f"{STATE}topic" not in values.given and wrong_topic(found.state_topic) is not None:
        report.problem(
            f"{STATE}topic", f"{quoted(found.state_topic)} is not a topic name; name a topic, or correct {GROUP_ID}."
        )
    keys = {found.state_topic: f"{STATE}topic"}
    for prefix, topic in ((OFFSETS, found.offset_topic), (STATUS, found.status_topic), (CONFIG, found.config_topic)):
        name = f"{prefix}topic"
        if (other := keys.setdefault(topic, name)) != name:
            report.problem(name, f"Topic {topic} is in {other}, too; give each a topic of its own.")
    if found.heartbeat_ms >= found.session_ms:
        report.problem(
            HEARTBEAT,
            f"It is {found.heartbeat_ms} and {SESSION} is {found.session_ms}; give at most a third of that.",
        )
    elif found.heartbeat_ms * 3 > found.session_ms:
        report.warn(
            HEARTBEAT,
            f"It is {found.heartbeat_ms}, more than a third of {SESSION} ({found.session_ms}), so one or two late "
            "heartbeats lose a worker; give less.",
        )
    if found.signature_algorithm not in found.verification_algorithms:
        report.problem(
            "inter.worker.verification.algorithms",
            f"It lacks {found.signature_algorithm}, by which this worker signs; add it.",
        )
    if found.secrets == SEALED and not found.sealing_keys and SEALING_KEYS not in values.given:
        report.problem(SEALING_KEYS, f"It is missing beside {SECRETS}={SEALED}; give a key, ID:BASE64.")
    if SEALED in values.names("config.providers"):
        report.problem("config.providers", f"{SEALED} is the name of a provider of this program; give yours another.")
