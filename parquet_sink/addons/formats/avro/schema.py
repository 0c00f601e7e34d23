"""Parses a registered Avro schema to the tree of types that both decoders follow, as Confluent's AvroData reads it.

Only what the writer wrote counts: aliases, defaults, order and documentation are accepted and not looked at. A logical
type on another base type than its own, or one that breaks its own rules, is ignored, as the Avro
specification says. Times and timestamps in other units than milliseconds stay plain integers, as in Connect.
"""

import re
from collections.abc import Mapping

import orjson
import pyarrow as pa

from parquet_sink.addons.formats.avro.exact import (
    DATE,
    INT32,
    INT64,
    TIME,
    TIMESTAMP,
    Boolean,
    Bytes,
    Decimal,
    Entry,
    Enum,
    Float,
    Integer,
    Many,
    Node,
    Null,
    Pairs,
    Record,
    Text,
    Union,
    VariableDecimal,
)
from parquet_sink.addons.formats.avro.settings import AvroConverter
from parquet_sink.convert.decoded import DEFAULT_PRECISION, MAX_DEPTH, MAX_PRECISION
from parquet_sink.convert.invalid import InvalidValue, Path, show
from parquet_sink.convert.registry.registered import RegisteredSchema

Notes = Mapping[str, object]
"""A type's JSON object."""

_CONNECT = "org.apache.kafka.connect.data."
_PRECISION_PARAMETER = "connect.decimal.precision"
_WHOLE_TEXT = re.compile(r"-?[0-9]+")

_INT_COLUMNS: dict[object, pa.DataType] = {
    "date": DATE,
    "time-millis": TIME,
    f"{_CONNECT}Date": DATE,
    f"{_CONNECT}Time": TIME,
}
_LONG_COLUMNS: dict[object, pa.DataType] = {"timestamp-millis": TIMESTAMP, f"{_CONNECT}Timestamp": TIMESTAMP}


def integer(bits: int, notes: Notes) -> Integer:
    """An `int` or a `long`. Connect's int8 and int16 are int32, too."""
    columns, plain = (_INT_COLUMNS, INT32) if bits == 32 else (_LONG_COLUMNS, INT64)
    return Integer(columns.get(_text(notes, "logicalType").lower()) or columns.get(_text(notes, "connect.name"), plain))


def binary(size: int | None, notes: Notes, path: Path) -> Bytes | Decimal:
    """`bytes`, or a `fixed` of that size. Raises InvalidValue for a decimal that no column can hold."""
    plain = Bytes(size)
    if _text(notes, "logicalType").lower() == "decimal":
        scale = _whole(notes["scale"]) if "scale" in notes else 0
        precision = _whole(notes["precision"]) if "precision" in notes else DEFAULT_PRECISION
        if scale is None or precision is None or precision < 1:
            return plain
    elif _text(notes, "connect.name") == f"{_CONNECT}Decimal":
        scale, precision = _connect_decimal(notes, path)
    else:
        return plain
    if max(precision, abs(scale)) > MAX_PRECISION:
        raise _wrong(path, f"a decimal of precision {precision} and scale {scale}, more than {MAX_PRECISION} digits")
    return Decimal(plain, precision, scale)


def _connect_decimal(notes: Notes, path: Path) -> tuple[int, int]:
    """Scale and precision from `connect.parameters`, where both are text."""
    parameters = notes.get("connect.parameters")
    if not isinstance(parameters, dict) or "scale" not in parameters:
        raise _wrong(path, "a Connect decimal without a scale")
    scale, precision = (
        _digits(parameters["scale"]),
        _digits(parameters.get(_PRECISION_PARAMETER, str(DEFAULT_PRECISION))),
    )
    if scale is None or precision is None or precision < 1:
        raise _wrong(path, "a Connect decimal whose scale or precision is no whole number")
    return scale, precision


def _text(notes: Notes, name: str) -> str:
    """Empty where it is not text."""
    found = notes.get(name)
    return found if isinstance(found, str) else ""


def _whole(value: object) -> int | None:
    return value if type(value) is int else None


def _digits(value: object) -> int | None:
    return int(value) if isinstance(value, str) and len(value) < 10 and _WHOLE_TEXT.fullmatch(value) else None


MAX_LEAVES = 2_500
MAX_SYMBOL_BYTES = 255
_MAX_FIXED = 2**31 - 1

_PLAIN: dict[str, Node] = {
    "null": Null(),
    "boolean": Boolean(),
    "float": Float(pa.float32()),
    "double": Float(pa.float64()),
    "string": Text(),
}
_PRIMITIVES = frozenset({*_PLAIN, "int", "long", "bytes"})
_NAMED = frozenset({"record", "error", "enum", "fixed"})
_COLLECTIONS = frozenset({"array", "map"})
_VARIABLE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
_MAP_ENTRY = "io.confluent.connect.avro.MapEntry"


def parse(schema: RegisteredSchema, settings: AvroConverter) -> Node:
    """The tree of a schema's types. Raises InvalidValue, which says what cannot be used, and where."""
    try:
        parser = _Parser(settings)
        for text in dict.fromkeys(reference.text for reference in schema.references):
            parser.node(_json(text), "", 1, ())
        return parser.node(_json(schema.text), "", 1, ())
    except InvalidValue as error:
        raise InvalidValue(f"it cannot be used: {error}") from None


def _json(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidValue(f"it is not JSON (position {error.pos + 1})") from None


class _Parser:
    """Reads one schema and what it refers to; each named type becomes one node."""

    def __init__(self, settings: AvroConverter) -> None:
        self._settings = settings
        self._types: dict[str, Node | None] = {}  # None: its definition is being read
        self._names: dict[int, str] = {}  # full names of named types, by the identity of their nodes
        self._entries: set[int] = set()  # records that AvroData takes for entries of a map

    def node(self, text: object, space: str, level: int, path: Path) -> Node:
        """The type that a JSON value describes, read inside namespace `space`, so many levels deep."""
        if level > MAX_DEPTH + 1:
            raise _wrong(path, f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(text, str):
            return self._by_name(text, {}, space, path)
        if isinstance(text, list):
            return self._union(text, space, level, path)
        if not isinstance(text, dict) or "type" not in text:
            raise _wrong(path, "no type")
        kind = text["type"]
        if not isinstance(kind, str):
            return self.node(kind, space, level + 1, path)
        if kind in _NAMED:
            return self._define(kind, text, space, level, path)
        if kind in _COLLECTIONS:
            return self._bounded(self._collection(kind, text, space, level, path), path)
        return self._by_name(kind, text, space, path)

    def _by_name(self, name: str, notes: Notes, space: str, path: Path) -> Node:
        """A primitive type, or a named one that was defined before."""
        if name in _PRIMITIVES:
            return _primitive(name, notes, path)
        for full in (name if "." in name or not space else f"{space}.{name}", name):
            if full in self._types:
                node = self._types[full]
                if node is None:
                    raise _wrong(path, f"type {show((full,))} contains itself")
                return node
        raise _wrong(path, f"unknown type {show((name,))}")

    def _define(self, kind: str, text: Notes, space: str, level: int, path: Path) -> Node:
        """A record, an enum or a fixed, kept under its full name."""
        full = _full_name(text, space, path)
        if full in self._types or full in _PRIMITIVES:
            raise _wrong(path, f"type {show((full,))} is defined twice")
        self._types[full] = None
        if kind == "enum":
            node: Node = _enum(text, path)
        elif kind == "fixed":
            node = _fixed(text, path)
        else:
            record = self._record(text, full.rpartition(".")[0], level, path)
            is_decimal = full == _VARIABLE_DECIMAL and VariableDecimal.fits(record)
            node = self._bounded(VariableDecimal(record) if is_decimal else record, path)
        self._types[full] = node
        self._names[id(node)] = full
        if full == _MAP_ENTRY or text.get("connect.internal.type") == "MapEntry":
            self._entries.add(id(node))
        return node

    def _record(self, text: Notes, space: str, level: int, path: Path) -> Record:
        described = text.get("fields")
        if not isinstance(described, list):
            raise _wrong(path, "a record without a list of fields")
        fields: dict[str, Node] = {}
        for field in described:
            name = field.get("name") if isinstance(field, dict) else None
            if not isinstance(name, str) or not name:
                raise _wrong(path, "a field without a name")
            if name in fields:
                raise _wrong((*path, name), "two fields of this name")
            fields[name] = self._below(field, "type", space, level, (*path, name))
        return Record(tuple(fields.items()))

    def _collection(self, kind: str, text: Notes, space: str, level: int, path: Path) -> Many | Pairs:
        """An array, a map, or the map with keys of any type that AvroData writes as an array of its entries."""
        if kind == "map":
            return Pairs(Entry(Text(), self._below(text, "values", space, level, path)))
        items = self._below(text, "items", space, level, path)
        if id(items) not in self._entries:
            return Many(items)
        parts = dict(items.fields) if isinstance(items, Record) else {}
        if set(parts) != {"key", "value"}:
            raise _wrong(path, "entries of a map that have other fields than key and value")
        return Pairs(Entry(parts["key"], parts["value"], key_first=next(iter(parts)) == "key"))

    def _union(self, texts: list[object], space: str, level: int, path: Path) -> Node:
        if not texts:
            raise _wrong(path, "a union without branches")
        nested = any(isinstance(text, list) for text in texts)
        branches = [] if nested else [self.node(text, space, level, path) for text in texts]
        if nested or any(isinstance(branch, Union) for branch in branches):
            raise _wrong(path, "a union inside a union")
        kinds = [self._names.get(id(node)) or _kind(text) for text, node in zip(texts, branches, strict=True)]
        if len(set(kinds)) < len(kinds):
            raise _wrong(path, "a union with two branches of one type")
        return self._bounded(Union(tuple(branches), self._branch_names(kinds, path)), path)

    def _branch_names(self, kinds: list[str], path: Path) -> tuple[str | None, ...] | None:
        """The fields of a union's struct, as AvroData.unionMemberFieldName; None where it is no struct."""
        simple = len(kinds) == 1 and (self._settings.flatten_singleton_unions or kinds == ["null"])
        if simple or (len(kinds) == 2 and "null" in kinds):
            return None
        names = tuple(None if kind == "null" else self._branch_name(kind, at) for at, kind in enumerate(kinds))
        if len(set(names)) < len(names):
            raise _wrong(path, "a union with two branches of one name (enhanced.avro.schema.support keeps full names)")
        return names

    def _branch_name(self, kind: str, position: int) -> str:
        if self._settings.generalized_sum_types:
            return f"connect_union_field_{position}"
        return kind if self._settings.enhanced_names else kind.rpartition(".")[2]

    def _below(self, text: Notes, key: str, space: str, level: int, path: Path) -> Node:
        if key not in text:
            raise _wrong(path, f"no {key}")
        return self.node(text[key], space, level + 1, path)

    def _bounded(self, node: Node, path: Path) -> Node:
        """The node itself, looked at as it is made."""
        if node.depth > MAX_DEPTH:
            raise _wrong(path, f"nested deeper than {MAX_DEPTH} levels")
        if node.leaves > MAX_LEAVES:
            raise _wrong(path, f"more than {MAX_LEAVES} columns")
        return node


def _primitive(name: str, notes: Notes, path: Path) -> Node:
    if name in _PLAIN:
        return _PLAIN[name]
    if name == "bytes":
        return binary(None, notes, path)
    return integer(32 if name == "int" else 64, notes)


def _fixed(text: Notes, path: Path) -> Bytes | Decimal:
    size = text.get("size")
    if type(size) is not int or not 0 <= size <= _MAX_FIXED:
        raise _wrong(path, "a fixed without a size")
    return binary(size, text, path)


def _enum(text: Notes, path: Path) -> Enum:
    symbols = text.get("symbols")
    if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
        raise _wrong(path, "an enum without a list of symbols")
    if any(len(symbol.encode()) > MAX_SYMBOL_BYTES for symbol in symbols):
        raise _wrong(path, f"an enum with a symbol of more than {MAX_SYMBOL_BYTES} bytes")
    return Enum(tuple(symbols))


def _full_name(text: Notes, space: str, path: Path) -> str:
    name, own = text.get("name"), text.get("namespace", space)
    if not isinstance(name, str) or not name:
        raise _wrong(path, f"a {text['type']} without a name")
    return f"{own}.{name}" if "." not in name and isinstance(own, str) and own else name


def _kind(text: object) -> str:
    """The name of an unnamed type."""
    while isinstance(text, dict):
        text = text["type"]
    return str(text)


def _wrong(path: Path, what: str) -> InvalidValue:
    return InvalidValue(f"field {show(path)}: {what}" if path else what)
