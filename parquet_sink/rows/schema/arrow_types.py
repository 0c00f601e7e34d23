"""How the Arrow type of typed records changes on its way to columns: on types only, once for each schema."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.key import ems
from parquet_sink.convert.arrays import reinterpreted
from parquet_sink.convert.decoded import MAX_DEPTH
from parquet_sink.convert.invalid import InvalidValue, Path, show

_Change: TypeAlias = Callable[[pa.DataType], pa.DataType | None]
_Names: TypeAlias = tuple[str, ...]


def fields(struct: pa.DataType) -> tuple[pa.Field, ...]:
    """The fields of a struct, in order."""
    return tuple(struct.field(index) for index in range(struct.num_fields))


def type_name(arrow: pa.DataType) -> str:
    """What a value of this type is called in messages."""
    names: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
        (pa.types.is_struct, "a record"),
        (pa.types.is_list, "a list"),
        (pa.types.is_map, "a map"),
        (pa.types.is_string, "a string"),
        (pa.types.is_binary, "bytes"),
        (pa.types.is_boolean, "a boolean"),
        (pa.types.is_date, "a date"),
        (pa.types.is_time, "a time"),
        (pa.types.is_timestamp, "a timestamp"),
        (pa.types.is_null, "null"),
    )
    return next((text for matches, text in names if matches(arrow)), "a number")


def check_depth(arrow: pa.DataType, path: _Names = (), level: int = 1) -> None:
    """Raise InvalidValue when records, lists and maps stand in each other more than MAX_DEPTH levels deep."""
    below = tuple(_children(arrow))
    if (below or pa.types.is_struct(arrow)) and level > MAX_DEPTH:
        where = f"field {show(path)} is" if path else "the value is"
        raise InvalidValue(f"{where} nested deeper than {MAX_DEPTH} levels")
    for step, child in below:
        check_depth(child, (*path, *step), level + 1)


def distinct(arrow: pa.DataType, path: _Names = (), *, discard: bool = False) -> pa.DataType:
    """The type without fields that lower case would make one with another, and that do not count.

    Those are fields that can only be null, and lists and maps where these are discarded, which are not looked into
    either. Raises InvalidValue when two that count become one.
    """
    if not pa.types.is_struct(arrow):
        return arrow if discard else _below(arrow, lambda below: distinct(below, path, discard=discard))
    found: dict[str, pa.Field] = {}
    for field in fields(arrow):
        here, lower = (*path, field.name), field.name.lower()
        if lower in found:
            if _does_not_count(field.type, discard):
                continue
            other = found.pop(lower)
            if not _does_not_count(other.type, discard):
                raise InvalidValue(clash((*path, other.name), here, (*path, lower)))
        found[lower] = field.with_type(distinct(field.type, here, discard=discard))
    return pa.struct(list(found.values()))


def lowercased(arrow: pa.DataType, *, discard: bool = False) -> pa.DataType:
    """A type that `distinct` gave, with the names of all fields in lower case, at every depth, in lists and maps too.

    Keys of maps are data and stay. discard: names in lists and maps stay, too.
    """
    lower = partial(lowercased, discard=discard)
    if not pa.types.is_struct(arrow):
        return arrow if discard else _below(arrow, lower)
    return pa.struct([pa.field(one.name.lower(), lower(one.type), nullable=one.nullable) for one in fields(arrow)])


def doubled(arrow: pa.DataType) -> pa.DataType:
    """The type with double for each decimal, at every depth, keys and values of maps too."""
    return pa.float64() if pa.types.is_decimal(arrow) else _below(arrow, doubled)


def entries(arrow: pa.DataType) -> pa.DataType:
    """The list of key/value records that a map is: the same bytes under other names."""
    item = arrow.item_field
    pair = (pa.field("key", arrow.key_type, nullable=False), pa.field("value", item.type, nullable=item.nullable))
    return pa.list_(pa.field("item", pa.struct(pair), nullable=False))


def storable(arrow: pa.DataType) -> pa.DataType | None:
    """The type as Parquet can hold it, None when nothing of it can be.

    What can only be null is left out, records without a field too, and lists and maps of such; a map whose keys are no
    strings becomes a list of key/value records, as Confluent's AvroData has it.
    """
    if pa.types.is_null(arrow):
        return None
    if pa.types.is_map(arrow) and not pa.types.is_string(arrow.key_type):
        return storable(entries(arrow)) if storable(arrow.key_type) and storable(arrow.item_type) else None
    below = _below(arrow, storable)
    return None if below is None or (pa.types.is_struct(below) and not below.num_fields) else below


def _children(arrow: pa.DataType) -> Iterator[tuple[_Names, pa.DataType]]:
    """The types directly below, with what each adds to the path: nothing for what is in a list or map."""
    if pa.types.is_struct(arrow):
        yield from (((field.name,), field.type) for field in fields(arrow))
    elif pa.types.is_list(arrow):
        yield (), arrow.value_type
    elif pa.types.is_map(arrow):
        yield (), arrow.key_type
        yield (), arrow.item_type


def _below(arrow: pa.DataType, change: _Change) -> pa.DataType | None:
    """The type with each type directly below it changed; what changes to None is left out."""
    if pa.types.is_struct(arrow):
        kept = [(field, change(field.type)) for field in fields(arrow)]
        changed = [pa.field(field.name, new, nullable=field.nullable) for field, new in kept if new is not None]
        return pa.struct(changed)
    if pa.types.is_list(arrow):
        item = change(arrow.value_type)
        return None if item is None else pa.list_(pa.field("item", item, nullable=arrow.value_field.nullable))
    if pa.types.is_map(arrow):
        key, item = change(arrow.key_type), change(arrow.item_type)
        nullable = arrow.item_field.nullable
        return None if key is None or item is None else pa.map_(key, pa.field("value", item, nullable=nullable))
    return arrow


def _does_not_count(arrow: pa.DataType, discard: bool) -> bool:
    return bool(pa.types.is_null(arrow) or (discard and (pa.types.is_list(arrow) or pa.types.is_map(arrow))))


def clash(first: Path, second: Path, becomes: Path) -> str:
    """The message for two fields that lower case makes one."""
    both = f"fields {show(first)} and {show(second)}"
    return f"{ems('convert.lowercase.fields')}: {both} would both become field {show(becomes)}"


def conformed(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """The array as a type that `doubled` or `storable` made of its own.

    Decimals become the nearest double (ties to even), as Java's BigDecimal.doubleValue: Arrow's own cast is off by the
    last bit for one in some hundred, its way through text is not.
    """
    if array.type.equals(arrow):
        return array
    if pa.types.is_decimal(array.type):
        return array.cast(pa.string()).cast(arrow)
    if pa.types.is_map(array.type):
        as_list = reinterpreted(array, entries(array.type))
        if not pa.types.is_map(arrow):
            return conformed(as_list, arrow)
        return reinterpreted(conformed(as_list, entries(arrow)), arrow)
    if pa.types.is_list(array.type):
        own = array.buffers()[:2]
        return pa.Array.from_buffers(
            arrow, len(array), own, offset=array.offset, children=[conformed(array.values, arrow.value_type)]
        )
    children = [conformed(array.field(array.type.get_field_index(field.name)), field.type) for field in fields(arrow)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(fields(arrow)), mask=mask)


def nulls(count: int, arrow: pa.DataType) -> pa.Array:
    """So many nulls. Below them what is required is not null, unlike in `pa.nulls`: Parquet could not be written."""
    return pa.array([None] * count, arrow) if pa.types.is_struct(arrow) else pa.nulls(count, arrow)


def spans(lists: pa.ListArray) -> tuple[pa.Int32Array, pa.Array]:
    """Offsets from 0 on and exactly the values between them; those of null lists may be among them."""
    offsets = lists.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return (pc.subtract(offsets, offsets[0]) if first else offsets), lists.values.slice(first, last - first)


def where_valid(array: pa.Array, found: pa.Array) -> pa.Array:
    """What was found, null where the array is."""
    return pc.if_else(array.is_valid(), found, pa.scalar(None, found.type)) if array.null_count else found
