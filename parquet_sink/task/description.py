"""What happens to a record of a connector, in order and in words."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from parquet_sink.convert.settings import KIND_TEXTS, ConverterSettings
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.targets.s3.settings import S3Settings
from parquet_sink.targets.settings import address_of
from parquet_sink.transform.settings import StepSettings

if TYPE_CHECKING:
    from parquet_sink.task.record_sink_settings import RecordSinkSettings
    from parquet_sink.task.settings import ErrorSettings, SinkSettings

_METADATA = ("kafkaPartition", "kafkaOffset", "kafkaTimestamp", "kafkaPartitionOffset")
_ORDER_COLUMN = "__celonis_order"


def described(settings: "SinkSettings", *, keys: bool, headers: bool) -> tuple[str, ...]:
    """One line for each step. keys, headers: whether transforms look at them."""
    if settings.shape.raw:
        return (*_raw(settings.shape), _target(settings))
    keys = keys or settings.shape.tombstone_column is not None
    steps = _decoded(settings, keys=keys, headers=headers)
    return (*steps, *_shape(settings.shape), _target(settings), _invalid(settings.errors))


def described_record(settings: "RecordSinkSettings", *, keys: bool, headers: bool) -> tuple[str, ...]:
    """Likewise of a sink that takes records. keys, headers: whether they are looked at."""
    steps = _decoded(settings, keys=keys, headers=headers)
    return (*steps, f"given to {settings.sink.address}", _invalid(settings.errors))


def _decoded(settings: "SinkSettings | RecordSinkSettings", *, keys: bool, headers: bool) -> Iterator[str]:
    decoded = [
        f"value: {KIND_TEXTS[settings.value.kind]}",
        f"key: {KIND_TEXTS[(settings.key or ConverterSettings('bytes')).kind]}" if keys else "key: not read",
        f"headers: {KIND_TEXTS[settings.header.kind]}" if headers else "headers: not read",
    ]
    yield "decoded: " + "; ".join(decoded)
    yield from map(_transform, settings.transforms)


def _raw(shape: ShapeSettings) -> Iterator[str]:
    yield "raw: kept as it came, nothing is decoded; a null value (tombstone) is a row, too"
    yield "columns: key, value, headers, timestamp, timestamp_type, topic, partition, offset"
    if shape.primary_keys:
        yield f"primary keys: {', '.join(shape.primary_keys)}; ordered by {shape.order_field}"


def summary(settings: "SinkSettings") -> str:
    """From which topics to which tables, or where else."""
    kafka = settings.kafka
    table = settings.target.target_table
    if isinstance(settings.target, S3Settings):
        return f"{named_topics(kafka)} -> {address_of(settings.target)}"
    if not settings.tables.rules:
        return f"{named_topics(kafka)} -> table {table}"
    if kafka.topics:
        return ", ".join(f"{topic} -> table {settings.table_of(topic)}" for topic in kafka.topics)
    rules = ", ".join(f"{rule.pattern} -> table {rule.table}" for rule in settings.tables.rules)
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


def _shape(shape: ShapeSettings) -> Iterator[str]:
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


def _target(settings: "SinkSettings") -> str:
    if isinstance(settings.target, S3Settings):
        return f"a row of a file in {address_of(settings.target)}"
    rules, table = settings.tables.rules, settings.target.target_table
    if not rules:
        return f"a row of a file for table {table}"
    ways = ", ".join(f"{rule.table} (topics {rule.pattern})" for rule in rules)
    return f"a row of a file for table {ways}, else {table}"


def _invalid(errors: "ErrorSettings") -> str:
    if not errors.invalid_records:
        return "what fails on the way: the connector stops before it"
    where = "parked files" if errors.dead_letters is None else f"topic {errors.dead_letters.topic}"
    return f"what fails on the way: set aside in {where}"
