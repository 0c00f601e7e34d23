"""Keys of the way from a record to a row."""

from typing import Final

from parquet_sink.config.checks import PRINTABLE
from parquet_sink.config.key import Key, Origin, Type, ems
from parquet_sink.rows.settings import MOST_CHUNKS
from parquet_sink.rows.value_checks import COLUMN_NAME, COLUMN_NAMES, HMAC_KEY, PATHS

SHAPE: Final = "From record to row"
OBFUSCATION: Final = "Obfuscation"

SHAPE_KEYS: Final = (
    Key(
        ems("mode"),
        SHAPE,
        Type.STRING,
        "`shaped`: records are decoded and become rows. `raw`: each record is a row as it came, tombstones included: "
        "key, value and headers as bytes, timestamp with its type, topic, partition, offset. No converter, nothing of "
        "this section but `connect.ems.data.primary.key` and `connect.ems.order.field.name` has an effect then. See "
        "[raw.md](raw.md).",
        default="shaped",
        choices=("shaped", "raw"),
        origin=Origin.OWN,
    ),
    Key(
        ems("data.primary.key"),
        SHAPE,
        Type.LIST,
        "Columns that identify a row at the target, under their names after flattening; every record must have them.",
        default=(),
        check=COLUMN_NAMES,
    ),
    Key(
        ems("allow.null.pk"),
        SHAPE,
        Type.BOOLEAN,
        "Permit null in a primary key's column.",
        default=False,
    ),
    Key(
        ems("order.field.name"),
        SHAPE,
        Type.STRING,
        "Column by which the target picks the latest of rows with equal keys. Without it, and with a primary key, the "
        "column `__celonis_order` (the record's offset) is added and named; of raw files it is `offset`.",
        check=PRINTABLE,
        needs=ems("data.primary.key"),
    ),
    Key(
        ems("tombstones"),
        SHAPE,
        Type.STRING,
        "What becomes of a record with a null value. `skip`: it has no row. `row`: a row with the primary keys from "
        "its key (which `key.converter` decodes), null in all other columns of records, and true in a column that is "
        "added to all rows, so that the target can delete. Needs `connect.ems.data.primary.key`.",
        default="skip",
        choices=("skip", "row"),
        origin=Origin.OWN,
    ),
    Key(
        ems("tombstones.column"),
        SHAPE,
        Type.STRING,
        "Name of that column: true in rows of tombstones, false in all others.",
        default="__deleted",
        check=COLUMN_NAME,
        needs=ems("tombstones"),
        origin=Origin.OWN,
    ),
    Key(
        ems("embed.kafka.metadata"),
        SHAPE,
        Type.BOOLEAN,
        "Add the columns `kafkaPartition`, `kafkaOffset`, `kafkaTimestamp` and `kafkaPartitionOffset`.",
        default=True,
    ),
    Key(
        ems("flattener.enable"),
        SHAPE,
        Type.BOOLEAN,
        "Turn nested objects into columns, their names joined with `_`.",
        default=True,
    ),
    Key(
        ems("flattener.collections.discard"),
        SHAPE,
        Type.BOOLEAN,
        "Drop lists and maps at any depth; needs the flattener.",
        default=False,
    ),
    Key(
        ems("flattener.jsonblob.chunks"),
        SHAPE,
        Type.INT,
        "Write the whole record as JSON, cut into this many text columns `payload_chunk1` and so on, each of at most "
        "`connect.ems.data.fallback.varchar.length` bytes and whole characters. A record that needs more is invalid "
        "input. Needs the flattener.",
        minimum=1,
        maximum=MOST_CHUNKS,
    ),
    Key(
        ems("convert.decimals.to.double"),
        SHAPE,
        Type.BOOLEAN,
        "Turn decimals into doubles, at any depth. Only records with a schema have decimals.",
        default=False,
    ),
    Key(
        ems("convert.lowercase.fields"),
        SHAPE,
        Type.BOOLEAN,
        "Turn all field names into lower case, at any depth and before anything else: keys and paths to obfuscate are "
        "compared with names in lower case. Columns that the sink adds keep their names.",
        default=False,
    ),
    Key(
        ems("explode.mode"),
        SHAPE,
        Type.STRING,
        "`List`: a record whose only field is a list of records becomes one row for each of them; no row when the list "
        "is empty.",
        default="None",
        choices=("None", "List"),
        other_choice="None",
    ),
)
"""How a record becomes a row."""

OBFUSCATION_KEYS: Final = (
    Key(
        ems("obfuscation.fields"),
        OBFUSCATION,
        Type.LIST,
        "Text fields to make unreadable before they are uploaded: dotted paths (`customer.name`) or names after "
        "flattening (`customer_name`); lists and maps are entered by `value` (`players.value.name`). A record "
        "that has something else than text there is invalid input; a path that matches nothing is told as a warning.",
        default_text="none",
        check=PATHS,
    ),
    Key(
        ems("obfuscation.method"),
        OBFUSCATION,
        Type.STRING,
        "How to make them unreadable. `hmac-sha256` is recommended: equal values stay equal, and without the key "
        "nobody can try values out. `fix`: five stars. `sha512`: salted. `sha256`: plain. `sha1`: as the EMS connector "
        "has it, the SHA-1 of the SHA-1 digest and no salt, so that values equal those already stored; easily guessed.",
        default="fix",
        choices=("fix", "sha1", "sha512", "sha256", "hmac-sha256"),
        needs=ems("obfuscation.fields"),
    ),
    Key(
        ems("obfuscation.sha512.salt"),
        OBFUSCATION,
        Type.PASSWORD,
        "Salt of `sha512`, put before each value; it wins over random ones.",
        needs=ems("obfuscation.fields"),
    ),
    Key(
        ems("obfuscation.sha512.randomsalt"),
        OBFUSCATION,
        Type.BOOLEAN,
        "A fresh salt of `sha512` for each value, so that equal values differ; for columns that nothing is joined by. "
        "Refused with a folder, a bucket or an archive: these keep each file under its name, and after a crash the "
        "same file would have other bytes.",
        default=False,
        needs=ems("obfuscation.fields"),
    ),
    Key(
        ems("obfuscation.hmac.key"),
        OBFUSCATION,
        Type.PASSWORD,
        "Key of `hmac-sha256`. With another key equal values are no longer equal to those stored before.",
        check=HMAC_KEY,
        needs=ems("obfuscation.fields"),
        origin=Origin.OWN,
    ),
)
"""Text fields that leave unreadable."""
