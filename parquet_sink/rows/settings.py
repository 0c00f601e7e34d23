"""Keys and settings of the way from a record to a row, with the checks of their values. Sizes are bytes."""

from typing import ClassVar, Final, Literal

from parquet_sink.config.checks import PRINTABLE
from parquet_sink.config.declared import declared, filled_by, key, keys_of
from parquet_sink.config.key import Check, Origin, Value, ems
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import quoted
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values

MOST_CHUNKS: Final = 2_000
"""Columns into which a record's JSON may be cut."""
MOST_VARCHAR_BYTES: Final = 65_000
"""The longest text that the target's columns take."""
SHORTEST_HMAC_KEY: Final = 16
"""Bytes."""

RAW_IDENTITY: Final = ("topic", "partition", "offset")
"""The columns of a raw file that tell a row from all others."""
RAW_ORDER: Final = "offset"
"""Its column that tells which of two rows is newer."""

MODE: Final = ems("mode")
PRIMARY_KEYS: Final = ems("data.primary.key")
ORDER: Final = ems("order.field.name")
TOMBSTONES: Final = ems("tombstones")
TOMBSTONE_COLUMN: Final = ems("tombstones.column")
METADATA: Final = ems("embed.kafka.metadata")
FLATTEN: Final = ems("flattener.enable")
DISCARD: Final = ems("flattener.collections.discard")
CHUNKS: Final = ems("flattener.jsonblob.chunks")
CHUNK_BYTES: Final = ems("data.fallback.varchar.length")
LOWERCASE: Final = ems("convert.lowercase.fields")
EXPLODE: Final = ems("explode.mode")
FIELDS: Final = ems("obfuscation.fields")
METHOD: Final = ems("obfuscation.method")
SALT: Final = ems("obfuscation.sha512.salt")
RANDOM_SALT: Final = ems("obfuscation.sha512.randomsalt")
HMAC_KEY: Final = ems("obfuscation.hmac.key")
_SHAPE: Final = "From record to row"

ObfuscationMethod = Literal["fix", "sha1", "sha512", "sha256", "hmac-sha256"]


def _wrong_column_names(value: Value) -> str | None:
    for name in value if isinstance(value, tuple) else ():
        if not _is_name(name):
            return (
                f"{quoted(name)} cannot be a primary key's name; it must begin with a letter or _ and go on with "
                "letters, digits and _ (names are those after flattening)."
            )
    return None


def _wrong_column_name(value: Value) -> str | None:
    if _is_name(str(value)):
        return None
    return f"{quoted(str(value))} cannot be a column's name; begin with a letter or _, then letters, digits and _."


def _is_name(name: str) -> bool:
    plain = name.replace("_", "a")
    return plain[0].isalpha() and plain.isalnum()


def _wrong_paths(value: Value) -> str | None:
    names = value if isinstance(value, tuple) else ()
    if not names:
        return "It names no field; name the fields to obfuscate, or remove the key."
    split = {name: tuple(name.split(".")) for name in names}
    for name, steps in split.items():
        if not all(steps):
            return f"{quoted(name)} has a step without a name; write names with single full stops between."
    for name, steps in split.items():
        for other, more in split.items():
            if name != other and more[: len(steps)] == steps:
                return f"{quoted(name)} and {quoted(other)} overlap; keep one of them."
    return None


def _wrong_hmac_key(value: Value) -> str | None:
    size = len(value.reveal().encode()) if isinstance(value, Secret) else 0
    if size >= SHORTEST_HMAC_KEY:
        return None
    return f"It has {size} bytes, which is too short to be safe; give a secret of {SHORTEST_HMAC_KEY} bytes or more."


def _order(values: Values, machine: Machine) -> str | None:
    return values.text(ORDER) if values.names(PRIMARY_KEYS) else None


def _tombstone_column(values: Values, machine: Machine) -> str | None:
    return values.text(TOMBSTONE_COLUMN) if values.text(TOMBSTONES) == "row" else None


def _chunk_bytes(values: Values, machine: Machine) -> int | None:
    return None if values.number(CHUNKS) is None else values.number(CHUNK_BYTES)


def _salt(values: Values, machine: Machine) -> Secret | None:
    return values.secret(SALT) if values.text(METHOD) == "sha512" else None


def _random_salt(values: Values, machine: Machine) -> bool:
    """A fixed salt wins, as in the EMS connector."""
    return values.text(METHOD) == "sha512" and values.secret(SALT) is None and values.flag(RANDOM_SALT)


def _hmac_key(values: Values, machine: Machine) -> Secret | None:
    return values.secret(HMAC_KEY) if values.text(METHOD) == "hmac-sha256" else None


@declared(group="Obfuscation", origin=Origin.EMS)
class ObfuscationSettings:
    """Text fields that leave unreadable. Salt and key are there only where the method uses them."""

    fields: tuple[str, ...] = key(
        FIELDS,
        "Text fields to make unreadable before they are uploaded: dotted paths (`customer.name`) or names after "
        "flattening (`customer_name`); lists and maps are entered by `value` (`players.value.name`). A record "
        "that has something else than text there is invalid input; a path that matches nothing is logged as a warning.",
        default_text="none",
        check=Check("paths that do not overlap", _wrong_paths),
    )
    method: ObfuscationMethod = key(
        METHOD,
        "How to make them unreadable. `hmac-sha256` is recommended: equal values stay equal, and without the key "
        "nobody can try values out. `fix`: five stars. `sha512`: salted. `sha256`: plain. `sha1`: as the EMS connector "
        "has it, the SHA-1 of the SHA-1 digest and no salt, so that values equal those already stored; easily guessed.",
        default="fix",
        needs=FIELDS,
    )
    salt: Secret | None = key(
        SALT,
        "Salt of `sha512`, put before each value; it wins over random ones.",
        default=None,
        needs=FIELDS,
        computed=_salt,
    )
    random_salt: bool = key(
        RANDOM_SALT,
        "A fresh salt of `sha512` for each value, so that equal values differ; for columns that nothing is joined by. "
        "Refused with a folder, a bucket or an archive: these keep each file under its name, and after a crash the "
        "same file would have other bytes.",
        default=False,
        needs=FIELDS,
        computed=_random_salt,
    )
    hmac_key: Secret | None = key(
        HMAC_KEY,
        "Key of `hmac-sha256`. With another key equal values are no longer equal to those stored before.",
        default=None,
        check=Check(f"{SHORTEST_HMAC_KEY} bytes or more", _wrong_hmac_key),
        needs=FIELDS,
        computed=_hmac_key,
        origin=Origin.OWN,
    )


@declared(group=_SHAPE, origin=Origin.EMS)
class ShapeSettings:
    """How a record becomes a row (see docs/reference/data-mapping.md). chunk_bytes: of each column, with chunks.

    tombstone_column: tombstones become rows, in which this column is true; None: they are skipped. raw: records are
    kept as they came, and of all else only the primary keys count.
    """

    raw: bool = key(
        MODE,
        "`shaped`: records are decoded and become rows. `raw`: each record is a row as it came, tombstones included: "
        "key, value and headers as bytes, timestamp with its type, topic, partition, offset. No converter, nothing of "
        "this section but `connect.ems.data.primary.key` and `connect.ems.order.field.name` has an effect then. See "
        "[raw.md](../how-to/raw.md).",
        default=False,
        absent="shaped",
        type_=Literal["shaped", "raw"],
        computed=lambda values, machine: values.text(MODE) == "raw",
        origin=Origin.OWN,
    )
    primary_keys: tuple[str, ...] = key(
        PRIMARY_KEYS,
        "Columns that identify a row at the target, under their names after flattening; every record must have them.",
        default=(),
        check=Check("each a letter or `_`, then letters, digits, `_`", _wrong_column_names),
    )
    allow_null_primary_keys: bool = key(ems("allow.null.pk"), "Permit null in a primary key's column.", default=False)
    order_field: str | None = key(
        ORDER,
        "Column by which the target picks the latest of rows with equal keys. Without it, and with a primary key, the "
        "column `__celonis_order` (the record's offset) is added and named; of raw files it is `offset`.",
        default=None,
        check=PRINTABLE,
        needs=PRIMARY_KEYS,
        computed=_order,
    )
    tombstones: ClassVar[Literal["skip", "row"]] = key(
        TOMBSTONES,
        "What becomes of a record with a null value. `skip`: it has no row. `row`: a row with the primary keys from "
        "its key (which `key.converter` decodes), null in all other columns of records, and true in a column that is "
        "added to all rows, so that the target can delete. Needs `connect.ems.data.primary.key`.",
        default="skip",
        origin=Origin.OWN,
    )
    tombstone_column: str | None = key(
        TOMBSTONE_COLUMN,
        "Name of that column: true in rows of tombstones, false in all others.",
        default=None,
        absent="__deleted",
        check=Check("a letter or `_`, then letters, digits, `_`", _wrong_column_name),
        needs=TOMBSTONES,
        computed=_tombstone_column,
        origin=Origin.OWN,
    )
    embed_metadata: bool = key(
        METADATA,
        "Add the columns `kafkaPartition`, `kafkaOffset`, `kafkaTimestamp` and `kafkaPartitionOffset`.",
        default=True,
    )
    flatten: bool = key(FLATTEN, "Turn nested objects into columns, their names joined with `_`.", default=True)
    discard_collections: bool = key(DISCARD, "Drop lists and maps at any depth; needs the flattener.", default=False)
    chunks: int | None = key(
        CHUNKS,
        "Write the whole record as JSON, cut into this many text columns `payload_chunk1` and so on, each of at most "
        "`connect.ems.data.fallback.varchar.length` bytes and whole characters. A record that needs more is invalid "
        "input. Needs the flattener.",
        default=None,
        minimum=1,
        maximum=MOST_CHUNKS,
    )
    chunk_bytes: int | None = filled_by(CHUNK_BYTES, default=None, computed=_chunk_bytes)
    decimals_to_double: bool = key(
        ems("convert.decimals.to.double"),
        "Turn decimals into doubles, at any depth. Only records with a schema have decimals.",
        default=False,
    )
    lowercase: bool = key(
        LOWERCASE,
        "Turn all field names into lower case, at any depth and before anything else: keys and paths to obfuscate are "
        "compared with names in lower case. Columns that the sink adds keep their names.",
        default=False,
    )
    explode: bool = key(
        EXPLODE,
        "`List`: a record whose only field is a list of records becomes one row for each of them; no row when the list "
        "is empty.",
        default=False,
        absent="None",
        type_=Literal["None", "List"],
        other_choice="None",
        computed=lambda values, machine: values.text(EXPLODE) == "List",
    )
    obfuscation: ObfuscationSettings | None = None


SHAPE_KEYS: Final = keys_of(ShapeSettings, _SHAPE)
"""How a record becomes a row."""
OBFUSCATION_KEYS: Final = keys_of(ObfuscationSettings)
"""Text fields that leave unreadable."""
