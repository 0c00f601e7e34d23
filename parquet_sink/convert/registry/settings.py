"""Where schemas come from, and how patient we are with it. Durations are milliseconds."""

from dataclasses import dataclass
from typing import Literal

from parquet_sink.config.secret import Secret

SchemaKind = Literal["AVRO", "PROTOBUF", "JSON"]
"""How the registry calls formats."""


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
