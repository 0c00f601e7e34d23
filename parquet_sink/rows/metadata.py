"""The columns that the sink adds to each row: where it came from in Kafka, the order column, and what is deleted."""

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.key import ems
from parquet_sink.rows.settings import ShapeSettings

ORDER_COLUMN = "__celonis_order"

_METADATA = (
    pa.field("kafkaPartition", pa.int32(), nullable=False),
    pa.field("kafkaOffset", pa.int64(), nullable=False),
    pa.field("kafkaTimestamp", pa.int64(), nullable=False),
    pa.field("kafkaPartitionOffset", pa.string(), nullable=False),
)
_METADATA_NAMES = frozenset(field.name for field in _METADATA)
_SEPARATOR = pa.scalar("_", pa.string())
_ORDER = pa.field(ORDER_COLUMN, pa.int64(), nullable=False)


def fields(settings: ShapeSettings) -> list[pa.Field]:
    """The added columns in their order; none are nullable."""
    added = list(_METADATA) if settings.embed_metadata else []
    if settings.primary_keys and settings.order_field is None:
        added.append(_ORDER)
    if settings.tombstone_column is not None:
        added.append(pa.field(settings.tombstone_column, pa.bool_(), nullable=False))
    return added


def names(settings: ShapeSettings) -> frozenset[str]:
    """The names that payload columns may not have."""
    return frozenset(field.name for field in fields(settings))


def why_reserved(name: str) -> str:
    """The message for a payload column that has one of `names`."""
    if name == ORDER_COLUMN:
        own = f"where {ems('order.field.name')} names no column; let it name {name}, or rename the field"
        return f"{ems('data.primary.key')}: column {name} has the name of the order column, which is added {own}"
    if name in _METADATA_NAMES:
        added = "the name of a Kafka metadata column; set it to false, or rename the field"
        return f"{ems('embed.kafka.metadata')}: column {name} has {added}"
    added = f"which is added and tells what is deleted; set {ems('tombstones.column')} to another, or rename the field"
    return f"{ems('tombstones')}=row: column {name} has the name of the column {added}"


def arrays(
    settings: ShapeSettings,
    partition: int,
    offsets: pa.Int64Array,
    timestamps: pa.Int64Array,
    deleted: pa.BooleanArray | None,
) -> list[pa.Array]:
    """Values for `fields`, one per offset. deleted: which rows are of tombstones; None for none."""
    columns = {ORDER_COLUMN: offsets}
    if settings.tombstone_column is not None:
        none = pa.repeat(pa.scalar(False, pa.bool_()), len(offsets)) if deleted is None else deleted
        columns[settings.tombstone_column] = none
    if settings.embed_metadata:
        texts = pc.binary_join_element_wise(
            pa.scalar(str(partition), pa.string()), offsets.cast(pa.string()), _SEPARATOR
        )
        numbers = pa.repeat(pa.scalar(partition, pa.int32()), len(offsets))
        columns |= {
            "kafkaPartition": numbers,
            "kafkaOffset": offsets,
            "kafkaTimestamp": timestamps,
            "kafkaPartitionOffset": texts,
        }
    return [columns[field.name] for field in fields(settings)]
