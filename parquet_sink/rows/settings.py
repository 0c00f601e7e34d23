"""How a record becomes a row. Sizes are bytes."""

from dataclasses import dataclass
from typing import Final, Literal

from parquet_sink.config.secret import Secret

MOST_CHUNKS: Final = 2_000
"""Columns into which a record's JSON may be cut."""
MOST_VARCHAR_BYTES: Final = 65_000
"""The longest text that the target's columns take."""

RAW_IDENTITY: Final = ("topic", "partition", "offset")
"""The columns of a raw file that tell a row from all others."""
RAW_ORDER: Final = "offset"
"""Its column that tells which of two rows is newer."""

ObfuscationMethod = Literal["fix", "sha1", "sha512", "sha256", "hmac-sha256"]


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
    """How a record becomes a row (see docs/data-mapping.md). chunk_bytes: with chunks, the size of each column.

    tombstone_column: tombstones become rows, in which this column is true; None: they are skipped. raw: records are
    kept as they came, and of all else only the primary keys count.
    """

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
    tombstone_column: str | None = None
    raw: bool = False
