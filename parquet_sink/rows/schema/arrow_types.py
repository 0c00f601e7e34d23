"""How the Arrow type of typed records changes on its way to columns: on types only, once for each schema."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from parquet_sink.config.key import ems
from parquet_sink.convert.decoded import MAX_DEPTH
from parquet_sink.convert.invalid import InvalidValue, Path, show

_Change: TypeAlias = Callable[[pa.DataType], pa.DataType | None]
_Names: TypeAlias = tuple[str, ...]


def fields(struct: pa.DataType) -> tuple[pa.Field, ...]:
    """The fields of a struct, in order."""
    return tuple(struct.field(index) for index in range(struct.num_fields))


def name(arrow: pa.DataType) -> str:
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


def check_depth(arrow: pa.DataType) -> None:
    """Raise InvalidValue when records, lists and maps stand in each other more than MAX_DEPTH levels deep."""
    _check_depth(arrow, (), 1)


def distinct(arrow: pa.DataType, *, discard: bool = False) -> pa.DataType:
    """The type without fields that lower case would make one with another, and that do not count.

    Those are fields that can only be null, and lists and maps where these are discarded, which are not looked into
    either. Raises InvalidValue when two that count become one.
    """
    return _distinct(arrow, (), discard)


def lowercased(arrow: pa.DataType, *, discard: bool = False) -> pa.DataType:
    """A type that `distinct` gave, with the names of all fields in lower case, at every depth, in lists and maps too.

    PrimaryKeys of maps are data and stay. discard: names in lists and maps stay, too.
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


def _check_depth(arrow: pa.DataType, path: _Names, level: int) -> None:
    below = tuple(_children(arrow))
    if (below or pa.types.is_struct(arrow)) and level > MAX_DEPTH:
        where = f"field {show(path)} is" if path else "the value is"
        raise InvalidValue(f"{where} nested deeper than {MAX_DEPTH} levels")
    for step, child in below:
        _check_depth(child, (*path, *step), level + 1)


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


def _distinct(arrow: pa.DataType, path: _Names, discard: bool) -> pa.DataType:
    if not pa.types.is_struct(arrow):
        return arrow if discard else _below(arrow, lambda below: _distinct(below, path, discard))
    found: dict[str, pa.Field] = {}
    for field in fields(arrow):
        here, lower = (*path, field.name), field.name.lower()
        if lower in found:
            if _does_not_count(field.type, discard):
                continue
            other = found.pop(lower)
            if not _does_not_count(other.type, discard):
                raise InvalidValue(clash((*path, other.name), here, (*path, lower)))
        found[lower] = field.with_type(_distinct(field.type, here, discard))
    return pa.struct(list(found.values()))


def _does_not_count(arrow: pa.DataType, discard: bool) -> bool:
    return bool(pa.types.is_null(arrow) or (discard and (pa.types.is_list(arrow) or pa.types.is_map(arrow))))


def clash(first: Path, second: Path, becomes: Path) -> str:
    """The message for two fields that lower case makes one."""
    both = f"fields {show(first)} and {show(second)}"
    return f"{ems('convert.lowercase.fields')}: {both} would both become field {show(becomes)}"
