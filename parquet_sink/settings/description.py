"""What happens to a record of a sink, in order and in words: the parts that descriptions are put together of."""

from collections.abc import Iterator, Sequence

from parquet_sink.convert.plain.settings import BYTES
from parquet_sink.convert.settings import Converter
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.settings.connector import ErrorSettings
from parquet_sink.targets.settings import TargetSettings, address_of, told_by_address
from parquet_sink.targets.table_map import TableMap
from parquet_sink.transform.settings import StepSettings

_METADATA = ("kafkaPartition", "kafkaOffset", "kafkaTimestamp", "kafkaPartitionOffset")
_ORDER_COLUMN = "__celonis_order"


def decoded(
    value: Converter,
    key: Converter | None,
    header: Converter,
    transforms: Sequence[StepSettings],
    *,
    keys: bool,
    headers: bool,
) -> Iterator[str]:
    """What is read of a record, and the transforms. keys, headers: whether they are looked at."""
    texts = [
        f"value: {value.what}",
        f"key: {(key or BYTES).what}" if keys else "key: not read",
        f"headers: {header.what}" if headers else "headers: not read",
    ]
    yield "decoded: " + "; ".join(texts)
    yield from map(_transform, transforms)


def raw(shape: ShapeSettings) -> Iterator[str]:
    """What raw rows are."""
    yield "raw: kept as it came, nothing is decoded; a null value (tombstone) is a row, too"
    yield "columns: key, value, headers, timestamp, timestamp_type, topic, partition, offset"
    if shape.primary_keys:
        yield f"primary keys: {', '.join(shape.primary_keys)}; ordered by {shape.order_field}"


def summary(kafka: KafkaSettings, target: TargetSettings, tables: TableMap) -> str:
    """From which topics to which tables, or where else."""
    table = target.target_table
    if told_by_address(target):
        return f"{named_topics(kafka)} -> {address_of(target)}"
    if not tables.rules:
        return f"{named_topics(kafka)} -> table {table}"
    if kafka.topics:
        return ", ".join(f"{topic} -> table {tables.table(topic) or table}" for topic in kafka.topics)
    rules = ", ".join(f"{rule.pattern} -> table {rule.table}" for rule in tables.rules)
    return f"{named_topics(kafka)}: {rules}, all others -> table {table}"


def named_topics(kafka: KafkaSettings) -> str:
    """The topics that a sink reads, in words."""
    return ", ".join(kafka.topics) or f"topics matching {kafka.topics_regex}"


def _transform(step: StepSettings) -> str:
    transform, predicate = step.transform, step.predicate
    text = f"transforms.{transform.name}: {transform.type}"
    if predicate is None:
        return text
    chosen = "other records than" if step.negate else "records that"
    return f"{text}, for {chosen} predicates.{predicate.name} ({predicate.type}) chooses"


def rows(shape: ShapeSettings) -> Iterator[str]:
    """How records become rows."""
    if shape.tombstone_column is None:
        yield "a null value (tombstone): no row, its offset is committed"
    else:
        yield f"a null value (tombstone): a row of its key, with {shape.tombstone_column} true"
    if shape.decimals_to_double:
        yield "decimals become doubles"
    if shape.lowercase:
        yield "names of fields become lower case"
    if shape.explode:
        yield "a record that wraps a list of records is exploded: a row for each"
    if shape.obfuscation is not None:
        yield f"obfuscated with {shape.obfuscation.method}: {', '.join(shape.obfuscation.fields)}"
    if shape.chunks is not None:
        yield f"its JSON is cut into {shape.chunks} columns of {shape.chunk_bytes} bytes"
    elif shape.flatten:
        yield "flattened to columns" + (", without lists" if shape.discard_collections else ", lists as JSON text")
    else:
        yield "nested columns"
    if added := [*_added(shape)]:
        yield f"columns added: {', '.join(added)}"
    if shape.primary_keys:
        nulls = "may be null" if shape.allow_null_primary_keys else "not null"
        order = shape.order_field or "the offset"
        yield f"primary keys, {nulls}: {', '.join(shape.primary_keys)}; ordered by {order}"


def _added(shape: ShapeSettings) -> Iterator[str]:
    if shape.embed_metadata:
        yield from _METADATA
    if shape.primary_keys and shape.order_field is None:
        yield _ORDER_COLUMN
    if shape.tombstone_column is not None:
        yield shape.tombstone_column


def delivered(target: TargetSettings, tables: TableMap) -> str:
    """What a row goes to."""
    if told_by_address(target):
        return f"a row of a file in {address_of(target)}"
    table = target.target_table
    if not tables.rules:
        return f"a row of a file for table {table}"
    ways = ", ".join(f"{rule.table} (topics {rule.pattern})" for rule in tables.rules)
    return f"a row of a file for table {ways}, else {table}"


def invalid(errors: ErrorSettings) -> str:
    """What becomes of a record that fails."""
    if not errors.invalid_records:
        return "a record that fails on the way: the connector stops before it"
    where = "parked files" if errors.dead_letters is None else f"topic {errors.dead_letters.topic}"
    return f"a record that fails on the way: diverted to {where}"
