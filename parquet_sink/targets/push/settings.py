"""The push API that takes the files, and how patient we are with it. Durations are milliseconds."""

from dataclasses import dataclass
from typing import Literal

from parquet_sink.config.secret import Secret
from parquet_sink.net.settings import ProxySettings

ErrorPolicy = Literal["THROW", "RETRY"]


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
