"""The schema in an envelope, as Connect's JsonConverter writes it, to a type."""

from collections.abc import Callable

from parquet_sink.convert.invalid import InvalidValue, Path, show
from parquet_sink.convert.typed_json.exact import to_default
from parquet_sink.convert.typed_json.expansion import CELL_BYTES, cost
from parquet_sink.convert.typed_json.types import (
    DATE,
    DECIMAL,
    TIME,
    TIMESTAMP,
    Field,
    Kind,
    Limits,
    ListKind,
    MapKind,
    ScalarKind,
    ScalarName,
    Slot,
    StructKind,
    decimal_kind,
)

_SCALARS: dict[str, ScalarName] = {
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "float": "float32",
    "double": "float64",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
}
_LOGICAL: dict[str, tuple[str, ScalarName]] = {
    DATE: ("int32", "date"),
    TIME: ("int32", "time"),
    TIMESTAMP: ("int64", "timestamp"),
}


def to_slot(schema: object, replace_null_with_default: bool) -> Slot:
    """The slot of a payload. Raises InvalidValue with the path inside the schema."""
    return _Parser(replace_null_with_default).slot(schema, (), 1)


class _Parser:
    def __init__(self, replace_null_with_default: bool) -> None:
        self._use_defaults = replace_null_with_default
        self._limits = Limits()
        self._containers: dict[str, Callable[[dict[str, object], Path, int], Kind]] = {
            "array": self._list,
            "map": self._map,
            "struct": self._struct,
        }

    def slot(self, schema: object, place: Path, depth: int) -> Slot:
        """Any schema; place: the way to it, depth: its level, the payload's being 1."""
        self._limits.enter(("schema", *place), depth)
        if not isinstance(schema, dict):
            raise _wrong(place, "is not an object")
        kind = self._kind(schema, place, depth)
        default = schema.get("default")
        value = None
        if default is not None:
            value = to_default(kind, default, ("schema", *place))
        if not self._use_defaults or value is None:
            return Slot(kind, schema.get("optional") is True)
        self._limits.add_default(CELL_BYTES * cost(value))
        return Slot(kind, schema.get("optional") is True, value)

    def _kind(self, schema: dict[str, object], place: Path, depth: int) -> Kind:
        type_ = schema.get("type")
        if not isinstance(type_, str):
            raise _wrong(place, "has no type")
        parameters = _parameters(schema, place)
        if type_ in self._containers:
            return self._containers[type_](schema, place, depth)
        if type_ not in _SCALARS:
            raise _wrong(place, "has a type that Connect does not know")
        return _scalar(type_, schema.get("name"), parameters, place)

    def _list(self, schema: dict[str, object], place: Path, depth: int) -> Kind:
        return ListKind(self._member(schema, "items", place, depth))

    def _map(self, schema: dict[str, object], place: Path, depth: int) -> Kind:
        key = self._member(schema, "keys", place, depth)
        is_object = key.kind == ScalarKind("string")
        return MapKind(key, self._member(schema, "values", place, depth), "object" if is_object else "pairs")

    def _member(self, schema: dict[str, object], name: str, place: Path, depth: int) -> Slot:
        if schema.get(name) is None:
            raise _wrong(place, f"has no {name}")
        return self.slot(schema[name], (*place, name), depth + 1)

    def _struct(self, schema: dict[str, object], place: Path, depth: int) -> Kind:
        fields = schema.get("fields")
        if not isinstance(fields, list):
            raise _wrong(place, "has no list of fields")
        self._limits.add_fields(len(fields))
        found: dict[str, Slot] = {}
        for index, field in enumerate(fields):
            here = (*place, "fields", index)
            name = field.get("field") if isinstance(field, dict) else None
            if not isinstance(name, str) or not name:
                raise _wrong(here, "has no field name")
            if name in found:
                raise _wrong(here, "has the name of another field")
            found[name] = self.slot(field, here, depth + 1)
        return StructKind(tuple(Field(name, slot) for name, slot in found.items()))


def _scalar(type_: str, name: object, parameters: dict[str, object], place: Path) -> Kind:
    """A plain type, or the logical one that its name stands for."""
    if name == DECIMAL:
        if type_ != "bytes":
            raise _wrong(place, "is a Decimal, whose type must be bytes")
        return decimal_kind(parameters, ("schema", *place))
    if isinstance(name, str) and name in _LOGICAL:
        needed, logical = _LOGICAL[name]
        if type_ != needed:
            raise _wrong(place, f"is a {name.rsplit('.', 1)[1]}, whose type must be {needed}")
        return ScalarKind(logical)
    return ScalarKind(_SCALARS[type_])


def _parameters(schema: dict[str, object], place: Path) -> dict[str, object]:
    parameters = schema.get("parameters")
    if not isinstance(parameters, dict):
        return {}
    if not all(isinstance(value, str) for value in parameters.values()):
        raise _wrong(place, "has parameters that are not text")
    return parameters


def _wrong(place: Path, what: str) -> InvalidValue:
    return InvalidValue(f"the schema at {show(('schema', *place))} {what}")
