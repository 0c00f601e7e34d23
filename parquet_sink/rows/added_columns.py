"""Primary keys, and the columns that the sink adds: place in Kafka, order, and whether a row is a deletion."""

from collections.abc import Container, Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.key import ems
from parquet_sink.convert.arrays import either
from parquet_sink.convert.invalid import InvalidValue, show
from parquet_sink.rows.schema.topic_columns import column_name
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
    added = f"which is added and marks deleted rows; set {ems('tombstones.column')} to another, or rename the field"
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


_KEY = ems("data.primary.key")


class PrimaryKeys:
    """The key columns that come from the payload; those that the sink adds itself are always there."""

    def __init__(self, settings: ShapeSettings) -> None:
        added = names(settings)
        self._names = tuple(name for name in settings.primary_keys if name not in added)
        self._allow_null = settings.allow_null_primary_keys

    def missing(self, columns: Container[str]) -> list[str]:
        """The key columns that are not among `columns`."""
        return [name for name in self._names if name not in columns]

    def why_missing(self, columns: Iterable[str]) -> str | None:
        """Why records of these columns have no row: it names all key columns that are not there. None: they are."""
        columns = tuple(columns)
        missing = self.missing(columns)
        if not missing:
            return None
        near = [column for column in columns if any(_is_near(column, name) for name in missing)]
        hint = f" (there is {show((near[0],))})" if near else ""
        return f"{_KEY}: {_listed(missing)} missing, so the record has no primary key{hint}"

    def check(self, columns: Mapping[str, object], row: Mapping[str, object]) -> None:
        """Raise InvalidValue, naming all key columns at fault. columns: all of the topic; row: those with a value."""
        if not self._names:
            return
        reason = self.why_missing(columns)
        if reason is not None:
            raise InvalidValue(reason)
        nulls = [name for name in self._names if row.get(name) is None]
        if nulls and not self._allow_null:
            raise InvalidValue(f"{_KEY}: {_listed(nulls)} null, which only {ems('allow.null.pk')}=true permits")

    def nulls_in(self, arrays: Mapping[str, pa.Array], count: int) -> pa.BooleanArray | None:
        """For each of `count` rows whether a key is null where none may be; None when no row has one.

        A column that `arrays` lacks is null throughout.
        """
        found: pa.BooleanArray | None = None
        for name in () if self._allow_null else self._names:
            if name not in arrays:
                return pa.repeat(pa.scalar(True, pa.bool_()), count)
            if arrays[name].null_count:
                found = either(found, arrays[name].is_null())
        return found


def _is_near(column: str, name: str) -> bool:
    return column_name(column).lower() == column_name(name).lower()


def _listed(names: list[str]) -> str:
    return f"column {names[0]} is" if len(names) == 1 else f"columns {', '.join(names)} are"
