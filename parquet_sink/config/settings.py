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
class ShapeSettings:
    """How a record becomes a row (see docs/data-mapping.md)."""

    flatten: bool = True
    discard_collections: bool = False
    embed_metadata: bool = True
    primary_keys: tuple[str, ...] = ()
    allow_null_primary_keys: bool = False
    order_field: str | None = None


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
    """One connector, ready to run."""

    name: str
    kafka: KafkaSettings
    flush: FlushSettings
    shape: ShapeSettings
    files: FileSettings
    push: PushSettings
