"""Plans the columns of a Protobuf message, and how each is read, as Confluent's ProtobufData has them.

A message is a struct: first its oneofs, each a struct of optional fields (or, with flatten.unions, these fields
themselves), then the other fields in their order. Everything is optional, unless optional.for.nullables or
wrapper.for.nullables says that scalars are not; fields that can be absent are optional in any case. Groups, extensions
and unknown fields are left out.

A field hides what the library offers under its name: `message.HasField` may be a field of the schema. So nothing but
fields is asked of a message; methods are those of its class, where no name of a schema gets in their way.

    int32, sint32, sfixed32                 int32
    uint32, fixed32, int64, sint64,
    sfixed64, uint64, fixed64               int64; a larger value is invalid
    enum                                    string, its name; int32 with int.for.enums
    map, and a repeated message that is
    named ...Entry with `key` and `value`   map, sorted by key
    google.protobuf.*Value                  as the scalar it holds, with wrapper.for.raw.primitives (the default) or
                                            wrapper.for.nullables; else a struct
    google.protobuf.Timestamp               timestamp; google.type.Date a date, google.type.TimeOfDay a time
    google.protobuf.Struct, Value and
    ListValue                               string, their JSON text
    confluent.type.Decimal                  decimal, of the field's `precision` and `scale`, else 64 and 0
    any other message                       struct
"""

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor import FieldDescriptor

from parquet_sink.addons.formats.protobuf import values
from parquet_sink.addons.formats.protobuf.compile import Compiled
from parquet_sink.addons.formats.protobuf.expansion import Growth
from parquet_sink.addons.formats.protobuf.indexes import is_group
from parquet_sink.addons.formats.protobuf.settings import ProtobufConverter
from parquet_sink.addons.formats.protobuf.values import Many, Member, Plan, Scalar, Shape, Struct, Table
from parquet_sink.addons.formats.protobuf.wire import plan_wire
from parquet_sink.convert.invalid import InvalidValue, Path, show

MAX_DEPTH = 100
"""Levels of messages; the library reads no more."""

MAX_FIELDS = 5_000
MAX_CHARACTERS = 20_000
"""Characters of the defaults of all fields, and of the longest name of each field's enum."""


_INT32 = Scalar(pa.int32())
_INT64 = Scalar(pa.int64())
_UINT64 = Scalar(pa.int64(), check=values.int64)
_STRING = Scalar(pa.string(), check=values.text)
_SCALARS = {
    FieldDescriptor.TYPE_INT32: _INT32,
    FieldDescriptor.TYPE_SINT32: _INT32,
    FieldDescriptor.TYPE_SFIXED32: _INT32,
    FieldDescriptor.TYPE_UINT32: _INT64,
    FieldDescriptor.TYPE_FIXED32: _INT64,
    FieldDescriptor.TYPE_INT64: _INT64,
    FieldDescriptor.TYPE_SINT64: _INT64,
    FieldDescriptor.TYPE_SFIXED64: _INT64,
    FieldDescriptor.TYPE_UINT64: _UINT64,
    FieldDescriptor.TYPE_FIXED64: _UINT64,
    FieldDescriptor.TYPE_FLOAT: Scalar(pa.float32()),
    FieldDescriptor.TYPE_DOUBLE: Scalar(pa.float64()),
    FieldDescriptor.TYPE_BOOL: Scalar(pa.bool_()),
    FieldDescriptor.TYPE_STRING: _STRING,
    FieldDescriptor.TYPE_BYTES: Scalar(pa.binary()),
}
_MESSAGES = (FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_GROUP)
_NO_KEYS = {
    *(FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_BYTES),
    *(FieldDescriptor.TYPE_ENUM, *_MESSAGES),
}
_LOGICAL = {
    "google.protobuf.Timestamp": Scalar(pa.timestamp("ms", "UTC"), values.timestamp),
    "google.protobuf.Struct": Scalar(pa.string(), values.to_struct_text),
    "google.protobuf.ListValue": Scalar(pa.string(), values.to_list_text),
    "google.protobuf.Value": Scalar(pa.string(), values.to_value_text),
}
_WITH_PARTS = {
    "google.type.Date": (pa.date32(), values.to_date),
    "google.type.TimeOfDay": (pa.time32("ms"), values.to_time),
}
_DECIMAL = "confluent.type.Decimal"
_WRAPPERS = {f"google.protobuf.{kind}Value" for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32")}
_WRAPPERS |= {f"google.protobuf.{kind}Value" for kind in ("Bool", "String", "Bytes")}


def plan(compiled: Compiled, message: Any, settings: ProtobufConverter, as_parts: frozenset[str] = frozenset()) -> Plan:
    """How records of the message type `message` (a descriptor) are read.

    as_parts: full names of fields whose date or time is a struct of its parts.

    Raises InvalidValue for a type that no columns can be: recursive, too deep, too wide, two fields of one name.
    """
    planner = _Planner(compiled, settings, as_parts)
    root = planner.root(message)
    made = message_factory.GetMessageClass(message)
    growth = Growth(message)
    wire = None if planner.required or growth.counts else plan_wire(root, message)
    return Plan(message.full_name, root, made, planner.required, growth, wire)


class _Planner:
    """One walk over a message type. Counts what it meets, so that no schema can ask for endless columns."""

    def __init__(self, compiled: Compiled, settings: ProtobufConverter, as_parts: frozenset[str]) -> None:
        self.required = False
        self._compiled = compiled
        self._as_parts = as_parts
        self._settings = settings
        self._fields = 0
        self._characters = 0
        self._alone: dict[str, frozenset[str]] = {}
        self._names: dict[str, values.EnumNames] = {}
        self._above: list[str] = []
        self._path: Path = ()

    def root(self, message: Any) -> Shape:
        if self._settings.wrapper_for_raw_primitives and message.full_name in _WRAPPERS:
            return _unwrapped(message)
        return self._struct(message)

    def _struct(self, message: Any) -> Struct:
        name = message.full_name
        if name in self._above:
            raise InvalidValue(
                f"the schema's message {name} is recursive (field {show(self._path)}), which no column can be"
            )
        if len(self._above) == MAX_DEPTH:
            raise InvalidValue(f"the schema nests messages deeper than {MAX_DEPTH} levels")
        self._above.append(name)
        members = tuple(self._members(message))
        self._above.pop()
        _differ(name, members)
        return Struct(_struct_type(members), members)

    def _members(self, message: Any) -> Iterator[Member]:
        """Oneofs first, as ProtobufData has them."""
        alone = self._find_proto3_optional(message)
        fields = [field for field in message.fields if not is_group(self._compiled, field)]
        for oneof in message.oneofs:
            options = [field for field in oneof.fields if not is_group(self._compiled, field)]
            if options and options[0].name not in alone:
                yield from self._oneof(oneof, options)
        for field in fields:
            if field.containing_oneof is None or field.name in alone:
                yield self._member(field, field.name in alone or self._has_edition_presence(field))

    def _find_proto3_optional(self, message: Any) -> frozenset[str]:
        """Find fields with `optional` in proto3: each stands in a oneof of its own, which is none in the text."""
        if message.full_name not in self._alone:
            proto = descriptor_pb2.DescriptorProto()
            message.CopyToProto(proto)
            self._alone[message.full_name] = frozenset(field.name for field in proto.field if field.proto3_optional)
        return self._alone[message.full_name]

    def _oneof(self, oneof: Any, options: list[Any]) -> Iterator[Member]:
        made = message_factory.GetMessageClass(oneof.containing_type)
        members = tuple(
            Member(field.name, self._field(field), True, field.name, attrgetter(field.name), made.HasField)
            for field in options
        )
        if self._settings.flatten_unions:
            yield from members
            return
        name = f"{oneof.name}_{oneof.index}" if self._settings.index_for_unions else oneof.name
        shape = Struct(_struct_type(members), members)
        yield Member(name, shape, True, oneof.name, lambda message: message, made.WhichOneof, is_oneof=True)

    def _has_edition_presence(self, field: Any) -> bool:
        """Return True for a field of an edition that has presence, as one with `optional` in proto3."""
        return bool(field.file.name in self._compiled.editions and field.has_presence and not field.is_required)

    def _member(self, field: Any, explicit: bool) -> Member:
        """Plan a field. explicit: it is null when absent, whatever the settings say."""
        self.required |= field.is_required
        keyword = explicit or self._is_proto2_optional(field)
        single_message = field.type in _MESSAGES and not field.is_repeated
        absent = single_message or explicit or (keyword and self._settings.optional_for_proto2)
        shape = self._field(field)
        return Member(
            field.name,
            shape,
            absent or self._is_optional(field, keyword),
            field.name,
            attrgetter(field.name),
            message_factory.GetMessageClass(field.containing_type).HasField if absent else None,
        )

    def _is_proto2_optional(self, field: Any) -> bool:
        """Whether the field has the word `optional` in proto2 (or, in proto3, its effect)."""
        if field.is_repeated or field.is_required or field.file.name in self._compiled.editions:
            return False
        return bool(field.has_presence and field.containing_oneof is None)

    def _is_optional(self, field: Any, keyword: bool) -> bool:
        """As ProtobufData.toConnectSchema marks a field that is not a member of a oneof."""
        if field.is_repeated or field.type == field.TYPE_ENUM or field.type in _MESSAGES:
            return True
        return keyword if self._settings.optional_for_nullables else not self._settings.wrapper_for_nullables

    def _field(self, field: Any) -> Shape:
        """The shape of a field, repeated or not."""
        self._count(field)
        above = self._path
        self._path = (*above, field.name)
        if field.is_repeated and _is_map(field):
            shape: Shape = self._table(field)
        else:
            shape = self._single(field)
            shape = Many(pa.list_(shape.arrow), shape) if field.is_repeated else shape
        self._path = above
        return shape

    def _count(self, field: Any) -> None:
        """Refuse what would make rows out of nothing: a record of no bytes has all defaults, in all fields."""
        self._fields += 1
        if field.type == field.TYPE_ENUM:
            self._characters += self._enum_names(field.enum_type).longest
        elif field.has_default_value and isinstance(field.default_value, str | bytes):
            self._characters += len(field.default_value)
        if self._fields > MAX_FIELDS:
            raise InvalidValue(f"the schema has more than {MAX_FIELDS:,} fields")
        if self._characters > MAX_CHARACTERS:
            raise InvalidValue(f"the schema has defaults and enum names of more than {MAX_CHARACTERS:,} characters")

    def _enum_names(self, enum: Any) -> values.EnumNames:
        if enum.full_name not in self._names:
            self._names[enum.full_name] = values.EnumNames(enum)
        return self._names[enum.full_name]

    def _table(self, field: Any) -> Table:
        key, value = (self._member(entry, False) for entry in field.message_type.fields)
        assert isinstance(key.shape, Scalar)
        arrow = pa.map_(key.shape.arrow, pa.field("value", value.shape.arrow, value.nullable))
        return Table(arrow, key.shape, value.shape, not field.message_type.GetOptions().map_entry)

    def _single(self, field: Any) -> Shape:
        if field.type == field.TYPE_ENUM:
            names = self._enum_names(field.enum_type)
            return _INT32 if self._settings.int_for_enums else Scalar(pa.string(), names.__getitem__)
        if field.type not in _MESSAGES:
            return _SCALARS[field.type]
        message = field.message_type
        name = message.full_name
        if name == _DECIMAL:
            column = values.to_decimal_type(self._params(field))
            return Scalar(column, values.to_decimal(column))
        if name in _WRAPPERS and (self._settings.wrapper_for_raw_primitives or self._settings.wrapper_for_nullables):
            return _unwrapped(message)
        if name in _WITH_PARTS and field.full_name not in self._as_parts:
            arrow, to_converter = _WITH_PARTS[name]
            return Scalar(arrow, to_converter(field.full_name))
        return _LOGICAL.get(name) or self._struct(message)

    def _params(self, field: Any) -> dict[str, str]:
        """The parameters that Confluent's option `field_meta` gives a field."""
        pool = self._compiled.pool
        try:
            extension = pool.FindExtensionByName("confluent.field_meta")
            options = message_factory.GetMessageClass(pool.FindMessageTypeByName("google.protobuf.FieldOptions"))
            return dict(options.FromString(field.GetOptions().SerializeToString()).Extensions[extension].params)
        except (KeyError, AttributeError):
            return {}


def _unwrapped(message: Any) -> Scalar:
    """A google.protobuf.*Value as what it holds."""
    inner = _SCALARS[message.fields_by_name["value"].type]
    value = attrgetter("value")
    check = inner.check
    return Scalar(inner.arrow, value if check is None else lambda wrapper: check(wrapper.value), wraps=True)


def _is_map(field: Any) -> bool:
    """Whether a repeated field is a map, as ProtobufData sees it, by names; keys as Protobuf's maps have them."""
    message = field.message_type
    if message is None or not message.name.endswith("Entry"):
        return False
    if [entry.name for entry in message.fields] != ["key", "value"] or any(
        entry.is_repeated for entry in message.fields
    ):
        return False
    return message.fields[0].type not in _NO_KEYS


def _struct_type(members: tuple[Member, ...]) -> pa.DataType:
    return pa.struct([pa.field(member.name, member.shape.arrow, member.nullable) for member in members])


def _differ(message: str, members: tuple[Member, ...]) -> None:
    seen: set[str] = set()
    for member in members:
        if member.name in seen:
            raise InvalidValue(f"the schema's message {message} has both a oneof and a field named {member.name}")
        seen.add(member.name)
