"""The push API that takes the files. Durations are milliseconds."""

from dataclasses import dataclass

from parquet_sink.config.secret import Secret
from parquet_sink.net.settings import ClientCredentials, ProxySettings


@dataclass(frozen=True)
class PushSettings:
    """Where files are sent, as whom, with which parameters, and over which connections.

    authorization: the header's value, or what access tokens are asked for with.
    """

    endpoint: str
    authorization: Secret | ClientCredentials
    target_table: str
    connection_id: str | None = None
    fallback_varchar_length: int | None = None
    primary_keys: tuple[str, ...] = ()
    order_column: str | None = None
    connect_timeout_ms: int = 10_000
    response_timeout_ms: int = 90_000
    ca_file: str | None = None
    proxy: ProxySettings | None = None
    pool_max_idle: int = 5
    pool_keepalive_ms: int = 300_000
    pool_explicit_close: bool = False
