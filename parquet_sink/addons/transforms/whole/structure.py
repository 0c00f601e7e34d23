"""Kafka Connect's ExtractField, HoistField and SetSchemaMetadata: of the key or the value as a whole."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.addons.transforms.fields.errors import kind, object_of, struct_of, tree_kind
from parquet_sink.config.key import Type
from parquet_sink.config.values import Values
from parquet_sink.convert.decoded import InferredColumns
from parquet_sink.convert.invalid import show
from parquet_sink.transform.fields.base import Columns, FieldChanges, FieldTransform, TypedChange
from parquet_sink.transform.keys import REPLACE_NULL, connect_key
from parquet_sink.transform.protocol import RecordFault, Side, WrongSettings
from parquet_sink.transform.records import Origin, Origins

_TICK, _DOT = "`", "."
_NAME: Final = "ExtractField"
_METADATA: Final = ("schema.name", "schema.version")


class IncompletePath(ValueError):
    """A backtick opens a name, and none closes it. The text stands behind the path."""


def steps_of(path: str) -> tuple[str, ...]:
    """The names of a path; dots part them, but between backticks. Raises IncompletePath."""
    steps: list[str] = []
    at = 0
    while at < len(path):
        step, at = _quoted(path, at) if path[at] == _TICK else _plain(path, at)
        steps.append(step)
    if not path or path.endswith(_DOT):
        steps.append("")
    return tuple(steps)


def _plain(path: str, start: int) -> tuple[str, int]:
    end = path.find(_DOT, start)
    return (path[start:], len(path)) if end < 0 else (path[start:end], end + 1)


def _quoted(path: str, start: int) -> tuple[str, int]:
    """A name closes with a backtick before a dot or the end, unless a backslash is before it."""
    name, at = "", start + 1
    begin = at
    while True:
        at = path.find(_TICK, at)
        if at < 0:
            raise _incomplete(start)
        escaped = path[at - 1] == "\\"
        if at == len(path) - 1:
            if escaped:
                raise _incomplete(start)
            return name + path[begin:at], at + 1
        if path[at + 1] == _DOT:
            if not escaped:
                return name + path[begin:at], at + 2
            name += path[begin : at - 1] + _TICK
            begin = at + 1
        at += 1


def _incomplete(start: int) -> IncompletePath:
    return IncompletePath(
        f"opens a name with the backtick at position {start + 1}, and nothing closes it; write another before the next "
        "dot or the end, or a backslash before this one."
    )


class ExtractField(FieldTransform):
    """Puts one field of the record in the record's place; it need not be an object then, and null is a tombstone."""

    keys = (
        connect_key(
            "field", Type.STRING, "The field to extract.", missing="name the field to extract.", may_be_empty=True
        ),
        connect_key(
            "field.syntax.version",
            Type.STRING,
            "With `V2` dots in `field` lead to fields in fields, and a name that has dots stands between backticks.",
            default="V1",
            choices=("V1", "V2"),
        ),
        REPLACE_NULL,
    )

    def __init__(self, values: Values, side: Side) -> None:
        super().__init__(side)
        text = values.text("field") or ""
        try:
            self._steps = steps_of(text) if values.text("field.syntax.version") == "V2" else (text,)
        except IncompletePath as error:
            raise WrongSettings({"field": f"{values.quoted('field')} {error}"}) from None

    def tree(self, tree: object, origin: Origin) -> object:
        """As `FieldTransform` says; a field that is not there is null."""
        for step in self._steps:
            if tree is None:
                return None
            tree = object_of(_NAME, tree).get(step)
        return tree

    def typed(self, arrow: pa.DataType) -> TypedChange:
        """As `FieldTransform` says; a field that the schema has not is refused."""
        found = struct_of(_NAME, arrow)
        path: list[int] = []
        for depth, step in enumerate(self._steps):
            if not pa.types.is_struct(found):
                raise RecordFault(f"{_NAME} looks for a field in {show(self._steps[:depth])}, which is {kind(found)}")
            path.append(found.get_field_index(step))
            if path[-1] < 0:
                raise RecordFault(f"{_NAME} does not find field {show(self._steps)} in the schema")
            found = found.field(path[-1]).type
        return _Extraction(self._steps, path, found)

    def inferred(self, piece: InferredColumns, origins: Origins) -> Columns | None:
        """As `FieldTransform` says: objects stay columns, all else is given one by one."""
        if self._steps[0] in piece.lists:
            return None
        arrow = piece.rows.type
        path: list[int] = []
        for step in self._steps:
            path.append(arrow.get_field_index(step) if pa.types.is_struct(arrow) else -1)
            if path[-1] < 0:
                return None
            arrow = arrow.field(path[-1]).type
        if not pa.types.is_struct(arrow):
            return None
        rows = pc.struct_field(piece.rows, path)
        return Columns(rows)


class _Extraction(TypedChange):
    def __init__(self, steps: tuple[str, ...], path: list[int], arrow: pa.DataType) -> None:
        super().__init__(arrow)
        self._steps, self._path = steps, path

    def value(self, value: object, origin: Origin) -> object:
        for step in self._steps:
            if value is None:
                return None
            assert isinstance(value, dict), tree_kind(value)
            value = value[step]
        return value

    def columns(self, rows: pa.Array, origins: Origins) -> Columns:
        return Columns(pc.struct_field(rows, self._path))


class HoistField(FieldTransform):
    """Wraps the record, whatever it is, in an object with one field; of a tombstone that is null."""

    keys = (
        connect_key(
            "field",
            Type.STRING,
            "The name of the only field.",
            missing="name the field that the record becomes.",
            may_be_empty=True,
        ),
    )

    def __init__(self, values: Values, side: Side) -> None:
        super().__init__(side)
        self._field = values.text("field") or ""

    def tree(self, tree: object, origin: Origin) -> object:
        return {self._field: tree}

    def typed(self, arrow: pa.DataType) -> TypedChange:
        """As `FieldTransform` says: a schema has no field without a name, as in Connect."""
        if not self._field:
            raise RecordFault("HoistField makes a field without a name, which a schema cannot have")
        return _Wrapping(self._field, arrow)

    def inferred(self, piece: InferredColumns, origins: Origins) -> Columns:
        lists = frozenset((self._field,)) if piece.lists else frozenset()
        rows = pa.StructArray.from_arrays([piece.rows], fields=[pa.field(self._field, piece.rows.type)])
        return Columns(rows, lists=lists)


class _Wrapping(TypedChange):
    def __init__(self, field: str, arrow: pa.DataType) -> None:
        super().__init__(pa.struct([pa.field(field, arrow, nullable=False)]))
        self._field = field

    def value(self, value: object, origin: Origin) -> object:
        return {self._field: value}

    def columns(self, rows: pa.Array, origins: Origins) -> Columns:
        return Columns(pa.StructArray.from_arrays([rows], fields=[self.arrow.field(0)]))


class SetSchemaMetadata(FieldTransform):
    """Requires a schema and leaves the record as it is: no name or version of a schema gets into files."""

    keys = (
        connect_key(_METADATA[0], Type.STRING, "The schema's new name.", may_be_empty=True),
        connect_key(_METADATA[1], Type.INT, "The schema's new version."),
        REPLACE_NULL,
    )

    def __init__(self, values: Values, side: Side) -> None:
        super().__init__(side)
        if not any(name in values.given for name in _METADATA):
            raise WrongSettings({_METADATA[0]: f"Neither {_METADATA[0]} nor {_METADATA[1]} is set; set one of them."})

    def tree(self, tree: object, origin: Origin) -> object:
        """As `FieldTransform` says: only a tombstone may be without a schema."""
        if tree is not None:
            raise RecordFault("SetSchemaMetadata needs a schema, and the record has none")
        return None

    def typed(self, arrow: pa.DataType) -> TypedChange:
        """As `FieldTransform` says: in Connect it fails for any schema but a struct's."""
        if not pa.types.is_struct(arrow):
            raise RecordFault("SetSchemaMetadata takes records, and this is none")
        return FieldChanges(arrow, {})
