"""What the rest of the program sees of a configuration: typed, validated, immutable.

Built by `config.connector.load` from a connector file; nothing else may build one outside tests. Sizes are bytes,
durations milliseconds, as their names say.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from parquet_sink.config.secret import Secret

ErrorPolicy = Literal["THROW", "RETRY"]
Codec = Literal["snappy", "zstd", "gzip", "lz4", "none"]
ConverterKind = Literal[
    "json",  # JSON without a schema
    "json_envelope",
    "avro",
    "protobuf",
    "json_schema",
    "xml",
    "string",
    "bytes",
    "boolean",
    "short",
    "integer",
    "long",
    "float",
    "double",
]
ObfuscationMethod = Literal["fix", "sha1", "sha512", "sha256", "hmac-sha256"]
ProxyType = Literal["HTTP", "SOCKS4", "SOCKS5"]


@dataclass(frozen=True)
class KafkaSettings:
    """Where records come from. `client` has Java's names (`bootstrap.servers`, `security.protocol`, ...)."""

    topics: tuple[str, ...] = ()
    topics_regex: str | None = None
    group: str = ""
    client: Mapping[str, str | Secret] = field(default_factory=dict)
    isolation_level: Literal["read_committed", "read_uncommitted"] = "read_committed"
    offset_reset: Literal["earliest", "latest", "none"] = "earliest"
    lost_offsets: Literal["STOP", "CONTINUE"] = "STOP"
    tasks_max: int | None = None


@dataclass(frozen=True)
class FlushSettings:
    """When a topic-partition is due, and when a file is full."""

    commit_size_bytes: int
    commit_records: int
    commit_interval_ms: int


@dataclass(frozen=True)
class RegistrySettings:
    """A schema registry that speaks Confluent's protocol. User and password, or a bearer token, or neither.

    id_bytes: how long a schema's id is in a record. cache_size: schemas kept in a process.
    """

    urls: tuple[str, ...]
    username: str | None = None
    password: Secret | None = None
    bearer_token: Secret | None = None
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: Secret | None = None
    id_bytes: Literal[4, 8] = 4
    cache_size: int = 1_000
    timeout_ms: int = 30_000
    max_retries: int = 3


@dataclass(frozen=True)
class ConverterSettings:
    """How bytes are decoded. Each option concerns the kinds that its comment names."""

    kind: ConverterKind = "json"
    registry: RegistrySettings | None = None  # avro, protobuf, json_schema: never None there
    replace_null_with_default: bool = True  # json_envelope
    encoding: str = "UTF-8"  # string
    enhanced_names: bool = False  # avro: union members under their full names (enhanced.avro.schema.support)
    generalized_sum_types: bool = False  # avro, json_schema: generalized.sum.type.support
    flatten_singleton_unions: bool = True  # avro, json_schema: flatten.singleton.unions
    optional_for_nonrequired: bool = False  # json_schema: use.optional.for.nonrequired
    index_for_unions: bool = True  # protobuf: generate.index.for.unions
    flatten_unions: bool = False  # protobuf: flatten.unions
    int_for_enums: bool = False  # protobuf: int.for.enums
    optional_for_nullables: bool = False  # protobuf: optional.for.nullables
    optional_for_proto2: bool = True  # protobuf: optional.for.proto2
    wrapper_for_nullables: bool = False  # protobuf: wrapper.for.nullables
    wrapper_for_raw_primitives: bool = True  # protobuf: wrapper.for.raw.primitives


@dataclass(frozen=True)
class ObfuscationSettings:
    """Text fields that leave unreadable. fields: dotted paths or flattened names, lists entered by `value`.

    salt: sha512, unless random_salt. key: hmac-sha256.
    """

    fields: tuple[str, ...]
    method: ObfuscationMethod = "fix"
    salt: Secret | None = None
    random_salt: bool = False
    key: Secret | None = None


@dataclass(frozen=True)
class ShapeSettings:
    """How a record becomes a row (see docs/data-mapping.md). chunk_bytes: with chunks, the size of each column."""

    flatten: bool = True
    discard_collections: bool = False
    embed_metadata: bool = True
    primary_keys: tuple[str, ...] = ()
    allow_null_primary_keys: bool = False
    order_field: str | None = None
    decimals_to_double: bool = False
    lowercase: bool = False
    chunks: int | None = None
    chunk_bytes: int | None = None
    explode: bool = False
    obfuscation: ObfuscationSettings | None = None


@dataclass(frozen=True)
class FileSettings:
    """Where and how local Parquet files are written. `row_group_size_bytes` None: as large as is useful."""

    tmp_dir: str
    codec: Codec = "snappy"
    row_group_size_bytes: int | None = None
    keep_files: bool = False


@dataclass(frozen=True)
class ProxySettings:
    """How to leave for the target. User and password go to the proxy alone."""

    host: str
    port: int
    type: ProxyType = "HTTP"
    username: str | None = None
    password: Secret | None = None


@dataclass(frozen=True)
class PushSettings:
    """The target, and how patient we are with it."""

    endpoint: str
    authorization: Secret
    target_table: str
    connection_id: str | None = None
    fallback_varchar_length: int | None = None
    primary_keys: tuple[str, ...] = ()
    order_column: str | None = None
    error_policy: ErrorPolicy = "THROW"
    max_retries: int = 10
    retry_interval_ms: int = 60_000
    put_timeout_ms: int = 288_000
    connect_timeout_ms: int = 10_000
    response_timeout_ms: int = 90_000
    ca_file: str | None = None
    proxy: ProxySettings | None = None
    pool_max_idle: int = 5
    pool_keepalive_ms: int = 300_000
    pool_explicit_close: bool = False


@dataclass(frozen=True)
class ConnectorSettings:
    """One connector, ready to run.

    registry_patience_ms: how long a registry may stay away, -1 for ever. registry_pause_ms: the longest between tries.
    stop_timeout_ms: how long a stop waits for the flush in progress.
    """

    name: str
    kafka: KafkaSettings
    flush: FlushSettings
    shape: ShapeSettings
    files: FileSettings
    push: PushSettings
    value: ConverterSettings = field(default_factory=ConverterSettings)
    key: ConverterSettings | None = None
    registry_patience_ms: int = 0
    registry_pause_ms: int = 60_000
    stop_timeout_ms: int = 30_000
