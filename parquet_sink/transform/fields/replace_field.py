"""Kafka Connect's ReplaceField: fields left out, kept alone, and renamed."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.config.values import Values
from parquet_sink.convert.decoded import Inferred
from parquet_sink.transform.fields.base import Columns, FieldTransform, TypedChange
from parquet_sink.transform.fields.faults import field, kind, no_object, no_struct, twice
from parquet_sink.transform.fields.keys import PAIRS, REPLACE_NULL
from parquet_sink.transform.fields.origin import Origin as RecordOrigin
from parquet_sink.transform.fields.origin import Origins
from parquet_sink.transform.fields.structs import columns_of, fields_of, read_as, records
from parquet_sink.transform.keys import TRANSFORM
from parquet_sink.transform.protocol import RecordFault, Side

_NAME: Final = "ReplaceField"


class ReplaceField(FieldTransform):
    """Leaves fields out (`exclude`), keeps some alone (`include`), and renames them (`renames`); at the top level."""

    keys = (
        Key(
            "exclude",
            TRANSFORM,
            Type.LIST,
            "Fields that are left out; it wins over `include`.",
            origin=Origin.CONNECT,
        ),
        Key(
            "include",
            TRANSFORM,
            Type.LIST,
            "Fields that are kept, by their old names; all others are left out. Without it all are kept.",
            origin=Origin.CONNECT,
        ),
        Key(
            "renames",
            TRANSFORM,
            Type.LIST,
            "Fields with new names: `old:new`, separated by commas.",
            check=PAIRS,
            origin=Origin.CONNECT,
        ),
        REPLACE_NULL,
        *(
            Key(
                name,
                TRANSFORM,
                Type.LIST,
                f"The name of `{new}` before Kafka 2.6.",
                deprecated=f"Kafka Connect ignores it since 4.0, and so does this; write `{new}`.",
                origin=Origin.CONNECT,
            )
            for name, new in (("whitelist", "include"), ("blacklist", "exclude"))
        ),
    )

    def __init__(self, values: Values, side: Side) -> None:
        """As `transform.protocol.TransformClass` says."""
        super().__init__(side)
        self._exclude, self._include = frozenset(values.names("exclude")), frozenset(values.names("include"))
        self._renames: Mapping[str, str] = dict(pair.split(":") for pair in values.names("renames"))

    def tree(self, tree: object, origin: RecordOrigin) -> object:
        """As `FieldTransform` says; of two fields that get one name, the later one counts."""
        if tree is None:
            return None
        if not isinstance(tree, dict):
            raise no_object(_NAME, tree)
        return {self.renamed(name): value for name, value in tree.items() if self.keeps(name)}

    def typed(self, arrow: pa.DataType) -> TypedChange:
        """As `FieldTransform` says."""
        if not pa.types.is_struct(arrow):
            raise no_struct(_NAME, arrow)
        return _Typed(self, arrow)

    def inferred(self, piece: Inferred, origins: Origins) -> Columns | None:
        """As `FieldTransform` says."""
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
        old = {one.name: one for one in fields_of(arrow)}
        known = frozenset(old)
        self._sources: dict[str, str] = {}
        fields: list[pa.Field] = []
        for name, one in old.items():
            if not replace.keeps(name):
                continue
            new = replace.renamed(name)
            if new in self._sources:
                raise twice(_NAME, new)
            self._sources[new] = _checked(replace.source(new, known), one, old)
            fields.append(one.with_name(new))
        super().__init__(pa.struct(fields))

    def value(self, value: object, origin: RecordOrigin) -> object:
        assert isinstance(value, dict)
        found = {new: value[source] for new, source in self._sources.items()}
        for one in fields_of(self.arrow):
            if found[one.name] is None and not one.nullable:
                raise RecordFault(f"{_NAME} would make {field(one.name)} null, which its schema forbids")
        return found

    def columns(self, rows: pa.Array, origins: Origins) -> Columns | None:
        mine, fields = columns_of(rows), fields_of(self.arrow)
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
