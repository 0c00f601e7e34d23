"""Keys of the way from a record to a row."""

from parquet_sink.config import checks
from parquet_sink.config.key import Group, Key, NotBuilt, Type, Value, ems, is_set

_NO_OBFUSCATION = "remove the key, and drop or hash these fields before they reach the topic."


def _is_list(value: Value) -> bool:
    return value == "List"


SHAPE_KEYS = (
    Key(
        ems("data.primary.key"),
        Group.SHAPE,
        Type.LIST,
        "Columns that identify a row at the target, under their names after flattening; every record must have them.",
        default=(),
        check=checks.COLUMN_NAMES,
    ),
    Key(
        ems("allow.null.pk"),
        Group.SHAPE,
        Type.BOOLEAN,
        "Permit null in a primary key's column.",
        default=False,
    ),
    Key(
        ems("order.field.name"),
        Group.SHAPE,
        Type.STRING,
        "Column by which the target picks the latest of rows with equal keys. Without it, and with a primary key, the "
        "column `__celonis_order` (the record's offset) is added and named.",
        check=checks.PRINTABLE,
        needs=ems("data.primary.key"),
    ),
    Key(
        ems("embed.kafka.metadata"),
        Group.SHAPE,
        Type.BOOLEAN,
        "Add the columns `kafkaPartition`, `kafkaOffset`, `kafkaTimestamp` and `kafkaPartitionOffset`.",
        default=True,
    ),
    Key(
        ems("flattener.enable"),
        Group.SHAPE,
        Type.BOOLEAN,
        "Turn nested objects into columns, their names joined with `_`.",
        default=True,
    ),
    Key(
        ems("flattener.collections.discard"),
        Group.SHAPE,
        Type.BOOLEAN,
        "Drop lists and maps at any depth; needs the flattener.",
        default=False,
    ),
    Key(
        ems("flattener.jsonblob.chunks"),
        Group.SHAPE,
        Type.INT,
        "Split the whole record as JSON over this many text columns.",
        minimum=1,
        not_built=NotBuilt("any", is_set, "remove it: records become one column for each field."),
    ),
    Key(
        ems("convert.decimals.to.double"),
        Group.SHAPE,
        Type.BOOLEAN,
        "Turn decimals into doubles.",
        default=False,
        not_built=NotBuilt(
            "`true`", is_set, "set false: only records with a schema have decimals, and those are not read yet."
        ),
    ),
    Key(
        ems("convert.lowercase.fields"),
        Group.SHAPE,
        Type.BOOLEAN,
        "Turn all field names into lower case.",
        default=False,
        not_built=NotBuilt("`true`", is_set, "set false: columns keep the case that the records have."),
    ),
    Key(
        ems("explode.mode"),
        Group.SHAPE,
        Type.STRING,
        "`List`: one row for each element of a list.",
        default="None",
        choices=("None", "List"),
        other_choice="None",
        not_built=NotBuilt("`List`", _is_list, "set None: a list becomes one column of JSON text."),
    ),
)

OBFUSCATION_KEYS = (
    Key(
        ems("obfuscation.fields"),
        Group.OBFUSCATION,
        Type.LIST,
        "Text fields to make unreadable before they are uploaded.",
        default=(),
        not_built=NotBuilt("any", is_set, _NO_OBFUSCATION),
    ),
    Key(
        ems("obfuscation.method"),
        Group.OBFUSCATION,
        Type.STRING,
        "How to make them unreadable.",
        default="fix",
        choices=("fix", "sha1", "sha512", "sha256", "hmac-sha256"),
        needs=ems("obfuscation.fields"),
    ),
    Key(
        ems("obfuscation.sha512.salt"),
        Group.OBFUSCATION,
        Type.PASSWORD,
        "Salt of sha512.",
        needs=ems("obfuscation.fields"),
    ),
    Key(
        ems("obfuscation.sha512.randomsalt"),
        Group.OBFUSCATION,
        Type.BOOLEAN,
        "A fresh salt for each value.",
        default=False,
        needs=ems("obfuscation.fields"),
    ),
)

REMOVED_KEYS = (
    Key(
        ems("client.id"),
        Group.REMOVED,
        Type.STRING,
        "The client's name at the target, which is fixed today.",
        deprecated="the client's name at the target is fixed; remove the key.",
    ),
    Key(
        ems("parquet.write.flush.records"),
        Group.REMOVED,
        Type.STRING,
        "Old name of a row group's size.",
        deprecated="use connect.ems.parquet.row.group.size.bytes (bytes, not records) or remove the key.",
    ),
)
