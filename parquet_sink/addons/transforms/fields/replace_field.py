"""Kafka Connect's ReplaceField: fields left out, kept alone, and renamed."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from parquet_sink.addons.transforms.fields.errors import duplicate_field, field, kind, object_of, struct_of
from parquet_sink.config.key import Check, Type, Value
from parquet_sink.config.report import quoted
from parquet_sink.config.values import Values
from parquet_sink.convert.decoded import InferredColumns
from parquet_sink.transform.fields.base import Columns, FieldTransform, TypedChange
from parquet_sink.transform.fields.plain import columns_of, read_as, records
from parquet_sink.transform.keys import REPLACE_NULL, connect_key
from parquet_sink.transform.protocol import RecordFault, Side
from parquet_sink.transform.records import Origin, Origins

_NAME: Final = "ReplaceField"


def _pairs(value: Value) -> str | None:
    for pair in value if isinstance(value, tuple) else ():
        if pair.count(":") != 1 or not all(pair.split(":")):
            return f"{quoted(pair)} is not a pair of names; write old:new, a colon between."
    return None


_PAIRS: Final = Check("pairs of names with a colon between", _pairs)


class ReplaceField(FieldTransform):
    """Leaves fields out (`exclude`), keeps some alone (`include`), and renames them (`renames`); at the top level."""

    keys = (
        connect_key("exclude", Type.LIST, "Fields that are left out; it wins over `include`."),
        connect_key(
            "include",
            Type.LIST,
            "Fields that are kept, by their old names; all others are left out. Without it all are kept.",
        ),
        connect_key("renames", Type.LIST, "Fields with new names: `old:new`, separated by commas.", check=_PAIRS),
        REPLACE_NULL,
        *(
            connect_key(
                name,
                Type.LIST,
                f"The name of `{new}` before Kafka 2.6.",
                deprecated=f"Kafka Connect ignores it since 4.0, and so does this; write `{new}`.",
            )
            for name, new in (("whitelist", "include"), ("blacklist", "exclude"))
        ),
    )

    def __init__(self, values: Values, side: Side) -> None:
        super().__init__(side)
        self._exclude, self._include = frozenset(values.names("exclude")), frozenset(values.names("include"))
        self._renames: Mapping[str, str] = dict(pair.split(":") for pair in values.names("renames"))

    def tree(self, tree: object, origin: Origin) -> object:
        """As `FieldTransform` says; of two fields that get one name, the later one counts."""
        if tree is None:
            return None
        own = object_of(_NAME, tree)
        return {self.renamed(name): value for name, value in own.items() if self.keeps(name)}

    def typed(self, arrow: pa.DataType) -> TypedChange:
        return _Typed(self, struct_of(_NAME, arrow))

    def inferred(self, piece: InferredColumns, origins: Origins) -> Columns | None:
        kept = {name: array for name, array in columns_of(piece.rows).items() if self.keeps(name)}
        if len({*map(self.renamed, kept)}) < len(kept):
            return None
        arrays = {self.renamed(name): array for name, array in kept.items()}
        # A list that is discarded has no column, yet its field may take another's name.
        lists = [self.renamed(name) for name in piece.lists if self.keeps(name)]
        taken = [self.renamed(name) for name in piece.lists - kept.keys() if self.keeps(name)]
        if len(set(lists)) < len(lists) or not arrays.keys().isdisjoint(taken):
            return None
        return Columns(read_as(arrays, len(piece.rows)), lists=frozenset(lists))

    def keeps(self, name: str) -> bool:
        """Whether a field stays."""
        return name not in self._exclude and (not self._include or name in self._include)

    def renamed(self, name: str) -> str:
        """What a field is called then."""
        return self._renames.get(name, name)

    def source(self, name: str, known: frozenset[str]) -> str:
        """The field that a field of the new schema is taken from: as in Kafka Connect whichever is renamed to it.

        So an excluded one may be, when its new name is that of another that stays.
        """
        olds = [old for old, new in self._renames.items() if new == name]
        return next((old for old in olds if old in known), olds[0] if olds else name)


class _Typed(TypedChange):
    def __init__(self, replace: ReplaceField, arrow: pa.DataType) -> None:
        old = {one.name: one for one in arrow}
        known = frozenset(old)
        self._sources: dict[str, str] = {}
        fields: list[pa.Field] = []
        for name, one in old.items():
            if not replace.keeps(name):
                continue
            new = replace.renamed(name)
            if new in self._sources:
                raise duplicate_field(_NAME, new)
            self._sources[new] = _checked(replace.source(new, known), one, old)
            fields.append(one.with_name(new))
        super().__init__(pa.struct(fields))

    def value(self, value: object, origin: Origin) -> object:
        assert isinstance(value, dict)
        found = {new: value[source] for new, source in self._sources.items()}
        for one in self.arrow:
            if found[one.name] is None and not one.nullable:
                raise RecordFault(f"{_NAME} would make {field(one.name)} null, which its schema forbids")
        return found

    def columns(self, rows: pa.Array, origins: Origins) -> Columns | None:
        mine, fields = columns_of(rows), list(self.arrow)
        arrays = [mine[source] for source in self._sources.values()]
        if any(array.null_count and not one.nullable for one, array in zip(fields, arrays, strict=True)):
            return None
        return Columns(records(fields, arrays, len(rows)))


def _checked(source: str, one: pa.Field, old: Mapping[str, pa.Field]) -> str:
    """The source of a field, whose values must be of its type."""
    if source not in old:
        raise RecordFault(f"{_NAME} would take {field(one.name)} from {field(source)}, which the schema has not")
    if not old[source].type.equals(one.type):
        what = f"{field(source)}, which is {kind(old[source].type)}"
        raise RecordFault(f"{_NAME} would take {field(one.name)}, {kind(one.type)}, from {what}")
    return source
