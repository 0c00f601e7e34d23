"""What readers should find in a sample's file: worked out here from the sample alone, not by the product's code."""

import base64
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from integration.readers.samples import Sample, Value, float32

MAX_SHARED_PRECISION: Final = 38


@dataclass(frozen=True)
class Column:
    """A column of the file. arrow: as PyArrow reads it; values: in the form of `canonical`.

    json_of: for a column of JSON text the type of what it is the text of, and `values` are those.
    """

    name: str
    arrow: pa.DataType
    nullable: bool
    values: list[Value]
    json_of: pa.DataType | None = None


def columns(sample: Sample) -> list[Column]:
    """All columns in order: payload, metadata, order."""
    if sample.settings.decimals_to_double:
        sample = replace(sample, schema=_doubled(sample.schema), rows=[_as_doubles(row) for row in sample.rows])
    payload = _flat(sample) if sample.settings.flatten else _nested(sample)
    return [*payload, *_added(sample)]


def fields(struct: pa.DataType) -> list[pa.Field]:
    """The fields of a struct."""
    return [struct.field(index) for index in range(struct.num_fields)]


def canonical(value: Value) -> Value:
    """The same with a text for each fraction, which is equal for equal bits: NaN is NaN, and -0.0 is not 0.0."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, dict):
        return {name: canonical(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(inner) for inner in value]
    return value


def _doubled(arrow: pa.DataType) -> pa.DataType:
    """The type with double for each decimal."""
    if pa.types.is_struct(arrow):
        return pa.struct([field.with_type(_doubled(field.type)) for field in fields(arrow)])
    if pa.types.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(_doubled(arrow.value_type)))
    if pa.types.is_map(arrow):
        return pa.map_(_doubled(arrow.key_type), arrow.item_field.with_type(_doubled(arrow.item_type)))
    return pa.float64() if pa.types.is_decimal(arrow) else arrow


def _as_doubles(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_doubles(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_as_doubles(inner) for inner in value)
    return float(value) if isinstance(value, Decimal) else value


def _added(sample: Sample) -> Iterator[Column]:
    offsets: list[Value] = [*sample.offsets]
    if sample.settings.embed_metadata:
        yield Column("kafkaPartition", pa.int32(), nullable=False, values=[3] * len(offsets))
        yield Column("kafkaOffset", pa.int64(), nullable=False, values=offsets)
        yield Column("kafkaTimestamp", pa.int64(), nullable=False, values=[*sample.timestamps])
        texts: list[Value] = [f"3_{offset}" for offset in offsets]
        yield Column("kafkaPartitionOffset", pa.string(), nullable=False, values=texts)
    if sample.settings.primary_keys:
        yield Column("__celonis_order", pa.int64(), nullable=False, values=offsets)


def _flat(sample: Sample) -> list[Column]:
    """Each leaf is an optional column, lists and maps are JSON text."""
    found = []
    for names, arrow in _leaves(sample.schema, ()):
        values = [_at(row, names) for row in sample.rows]
        is_text = pa.types.is_list(arrow) or pa.types.is_map(arrow)
        name = re.sub(r"[^A-Za-z0-9]", "_", "_".join(names))
        written = [canonical(value) for value in values]
        found.append(Column(name, pa.string() if is_text else arrow, True, written, arrow if is_text else None))
    return found


def _leaves(arrow: pa.DataType, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    for field in fields(arrow):
        if pa.types.is_struct(field.type):
            yield from _leaves(field.type, (*names, field.name))
        elif not pa.types.is_null(field.type):
            yield (*names, field.name), field.type


def _at(value: Value, names: tuple[str, ...]) -> Value:
    for name in names:
        value = None if value is None else value[name]  # type: ignore[index]
    return value


def _nested(sample: Sample) -> list[Column]:
    """Fields stay as they are, but what can only be null is left out, and other maps than of strings are lists."""
    found = []
    for field in fields(sample.schema):
        arrow = kept(field.type)
        if arrow is not None:
            values = [canonical(kept_value(field.type, row[field.name])) for row in sample.rows]
            found.append(Column(field.name, arrow, field.nullable, values))
    return found


def kept(arrow: pa.DataType) -> pa.DataType | None:
    """The type of a nested column as PyArrow reads it, None when there is nothing to hold."""
    if pa.types.is_struct(arrow):
        found = [(field, kept(field.type)) for field in fields(arrow)]
        inner = [pa.field(field.name, own, field.nullable) for field, own in found if own is not None]
        return pa.struct(inner) if inner else None
    if pa.types.is_list(arrow):
        item = kept(arrow.value_type)
        return None if item is None else pa.list_(pa.field("element", item, arrow.value_field.nullable))
    if pa.types.is_map(arrow):
        item = kept(arrow.item_type)
        value = None if item is None else pa.field("value", item, arrow.item_field.nullable)
        if value is None or pa.types.is_string(arrow.key_type):
            return None if value is None else pa.map_(pa.string(), value)
        pair = pa.struct([pa.field("key", arrow.key_type, nullable=False), value])
        return pa.list_(pa.field("element", pair, nullable=False))
    return None if pa.types.is_null(arrow) else arrow


def kept_value(arrow: pa.DataType, value: Value) -> Value:
    """A value of `arrow` as one of `kept(arrow)`."""
    if isinstance(value, dict):
        inner = [field for field in fields(arrow) if kept(field.type) is not None]
        return {field.name: kept_value(field.type, value[field.name]) for field in inner}
    if isinstance(value, list) and pa.types.is_list(arrow):
        return [kept_value(arrow.value_type, item) for item in value]
    if isinstance(value, list):
        pairs = [(key, kept_value(arrow.item_type, item)) for key, item in value]
        return pairs if pa.types.is_string(arrow.key_type) else [{"key": key, "value": item} for key, item in pairs]
    return value


def from_json(text: str | None, arrow: pa.DataType) -> Value:
    """What a JSON text stands for, read with its type as a program that knows Connect's JSON would."""
    return None if text is None else canonical(_meant(json.loads(text, parse_float=Decimal), arrow))


def _meant(found: object, arrow: pa.DataType) -> Value:
    if found is None:
        return None
    if isinstance(found, dict) and pa.types.is_struct(arrow):
        assert list(found) == [field.name for field in fields(arrow)]
        return {field.name: _meant(found[field.name], field.type) for field in fields(arrow)}
    if isinstance(found, list) and pa.types.is_list(arrow):
        return [_meant(item, arrow.value_type) for item in found]
    if isinstance(found, dict):
        return [(key, _meant(item, arrow.item_type)) for key, item in found.items()]
    if isinstance(found, list):
        return [(_meant(key, arrow.key_type), _meant(item, arrow.item_type)) for key, item in found]
    return _scalar(found, arrow)


def _scalar(found: object, arrow: pa.DataType) -> Value:
    """A number, text or truth value; types that JSON has not are base64 or whole numbers."""
    if pa.types.is_binary(arrow):
        return base64.b64decode(str(found), validate=True)
    if pa.types.is_decimal(arrow):
        return Decimal(str(found))
    kinds: dict[str, Callable[[str], float]] = {"float": lambda text: float32(float(text)), "double": float}
    if str(arrow) in kinds:
        assert isinstance(found, Decimal) or found in ("NaN", "Infinity", "-Infinity")
        return kinds[str(arrow)](str(found))
    return found


def holds(arrow: pa.DataType, wanted: Callable[[pa.DataType], bool]) -> bool:
    """Whether the type, or one below it, is wanted."""
    return wanted(arrow) or any(holds(child, wanted) for child in below(arrow))


def below(arrow: pa.DataType) -> list[pa.DataType]:
    """The types of the fields of a struct, of the items of a list, of keys and values of a map."""
    if pa.types.is_map(arrow):
        return [arrow.key_type, arrow.item_type]
    return [arrow.field(index).type for index in range(arrow.num_fields)]


def is_wide(arrow: pa.DataType) -> bool:
    """A decimal of more digits than DuckDB and Spark have."""
    return bool(pa.types.is_decimal(arrow) and arrow.precision > MAX_SHARED_PRECISION)
