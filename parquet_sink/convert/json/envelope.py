"""Decodes JSON in an envelope with its schema, as Connect's JsonConverter writes it: `{"schema": ..., "payload": ...}`.

The exact way, which is the definition, parses the whole value. The fast way knows what stands around the payloads of
records of one schema, a frame, takes the payloads of all such records out at once and reads them by their type. A frame
is taken from a record that is a valid envelope; so any text of a single JSON value in it makes a valid envelope of the
same schema again, whatever order its members have. Alternating schemas make groups, each of them read at once.

CPU per record of about 150 bytes of payload with 7 fields and 700 of schema, in blocks of 10,000: 0.85 µs, of which the
payload is 0.7; two schemas that alternate 1.1; each value as a whole 12. With a bad record in each hundred it takes
at most 1.5 times as long, whatever is wrong with it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from json import JSONDecoder
from operator import itemgetter

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.arrays import without_byte_order_marks
from parquet_sink.convert.decoded import MAX_DEPTH, Decoded, Decoder
from parquet_sink.convert.invalid import InvalidValue, Path, show
from parquet_sink.convert.json import exact as json_exact
from parquet_sink.convert.json.fast import extension
from parquet_sink.convert.json.settings import JsonConverter
from parquet_sink.convert.typed_json.exact import to_default
from parquet_sink.convert.typed_json.reader import Pieces, TypedReader
from parquet_sink.convert.typed_json.types import (
    DATE,
    DECIMAL,
    TIME,
    TIMESTAMP,
    VARIABLE_DECIMAL,
    Field,
    Kind,
    Limits,
    ListKind,
    MapKind,
    ScalarKind,
    ScalarName,
    Slot,
    StructKind,
    VariableDecimalKind,
    decimal_kind,
)
from parquet_sink.process.lru_cache import LruCache
from parquet_sink.process.native import is_turned_off

_PLAIN: tuple[ScalarName, ...] = ("int8", "int16", "int32", "int64", "boolean", "string", "bytes")
_SCALARS: dict[str, ScalarName] = {**{name: name for name in _PLAIN}, "float": "float32", "double": "float64"}
_LOGICAL: dict[str, tuple[str, ScalarName]] = {
    DATE: ("int32", "date"),
    TIME: ("int32", "time"),
    TIMESTAMP: ("int64", "timestamp"),
}


class _Parser:
    """Turns the schema of a payload into its slot. Raises InvalidValue with the path inside the schema."""

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
        value = None if default is None else to_default(kind, default, ("schema", *place))
        if not self._use_defaults or value is None:
            return Slot(kind, schema.get("optional") is True)
        self._limits.add_default(value)
        return Slot(kind, schema.get("optional") is True, value)

    def _kind(self, schema: dict[str, object], place: Path, depth: int) -> Kind:
        type_ = schema.get("type")
        if not isinstance(type_, str):
            raise _wrong(place, "has no type")
        parameters = _parameters(schema, place)
        if type_ in self._containers:
            if schema.get("name") == VARIABLE_DECIMAL and type_ == "struct":
                return VariableDecimalKind()
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


_MOST_FRAMES = 128
_LONGEST_FRAME = 2**18
_MOST_TEXT = 2**20
_SPACE = re.compile(r"[ \t\r\n]*")
_SCAN = JSONDecoder().raw_decode


@dataclass(frozen=True)
class Frame:
    """prefix, suffix: bytes around a payload. reader: of the payload; None: it has no schema."""

    prefix: bytes
    suffix: bytes
    reader: TypedReader | None

    @property
    def size(self) -> int:
        """Bytes around a payload."""
        return len(self.prefix) + len(self.suffix)

    def fits(self, value: bytes) -> bool:
        """Whether a value has this frame; what is between is not looked at."""
        return value.startswith(self.prefix) and value.endswith(self.suffix) and len(value) >= self.size

    def payloads(self, values: pa.BinaryArray) -> tuple[pa.BooleanArray, pa.BinaryArray]:
        """Return for each value whether it has this frame, and the payloads of those that have it."""
        module = None if is_turned_off() else extension()
        _, offsets, data = values.buffers()
        if module is None or data is None:
            return self._payloads_by_arrow(values)
        found, text, ends = module.payloads(self.prefix, self.suffix, data, offsets, values.offset, len(values))
        fit = np.frombuffer(found, np.bool_)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(text)]
        return pa.array(fit), pa.Array.from_buffers(pa.binary(), np.count_nonzero(fit), buffers)

    def _payloads_by_arrow(self, values: pa.BinaryArray) -> tuple[pa.BooleanArray, pa.BinaryArray]:
        long = pc.greater_equal(pc.binary_length(values), pa.scalar(self.size, pa.int32()))
        around = pc.and_(pc.starts_with(values, self.prefix), pc.ends_with(values, self.suffix))
        fit = pc.and_(long, around)
        return fit, pc.binary_slice(values.filter(fit), len(self.prefix), -len(self.suffix))


class Frames:
    """The frames used last; at most 128, none longer than 256 KiB, and of 1 MiB together."""

    def __init__(self) -> None:
        self._frames: LruCache[tuple[bytes, bytes], Frame] = LruCache(
            _MOST_FRAMES, weigh=lambda frame: frame.size, max_weight=_MOST_TEXT
        )

    def find(self, value: bytes) -> Frame | None:
        """A frame that the value has."""
        return self._frames.first(lambda frame: frame.fits(value))

    def learn(self, value: bytes, reader: TypedReader | None) -> Frame | None:
        """The frame of a valid envelope, from now on known; None when it is too long or has more than two members."""
        text = value.decode()
        found = spans(text)
        if sorted(name for name, _, _ in found) != ["payload", "schema"]:
            return None
        _, start, end = found[0] if found[0][0] == "payload" else found[1]
        frame = Frame(text[:start].encode(), text[end:].encode(), reader)
        if frame.size > _LONGEST_FRAME:
            return None
        self._frames.put((frame.prefix, frame.suffix), frame)
        return frame


def spans(text: str) -> list[tuple[str, int, int]]:
    """Name, start and end of the value of each member of a JSON object, which `text` is known to be.

    Names may come twice. Raises InvalidValue for excess depth.
    """
    found = []
    at = _after_space(text, _after_space(text, 0) + 1)
    try:
        while text[at] != "}":
            name, at = _SCAN(text, at)
            start = _after_space(text, _after_space(text, at) + 1)
            _, end = _SCAN(text, start)
            found.append((name, start, end))
            at = _after_space(text, end)
            if text[at] == ",":
                at = _after_space(text, at + 1)
    except RecursionError:
        raise InvalidValue(f"the value is nested deeper than {MAX_DEPTH} levels") from None
    return found


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None
    return space.end()


_MOST_GROUPS = 64
_MOST_SCHEMAS = 128
_SCHEMALESS: dict[type, ScalarName] = {str: "string", int: "int64", float: "float64", bool: "boolean"}


def decoder(settings: JsonConverter) -> Decoder:
    """A decoder of envelopes; one for each topic. It honours `replace_null_with_default`."""
    return _Envelopes(settings)


class _Envelopes:
    """What it remembers (types and frames, bounded) makes it fast, and changes no result."""

    def __init__(self, settings: JsonConverter) -> None:
        self._readers = _Readers(settings.replace_null_with_default)
        self._frames = Frames()
        self._schemaless = {shape: TypedReader(Slot(ScalarKind(name))) for shape, name in _SCHEMALESS.items()}

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """See `Decoder`."""
        pieces, values = Pieces(), without_byte_order_marks(values)
        positions = pa.array(np.arange(len(values)))
        groups = 0
        while len(values) and groups < _MOST_GROUPS:
            frame = self._frame_of(values[0].as_py())
            if frame is None:
                self._take_whole(pieces, values[0].as_py(), positions[0].as_py())
                values, positions = values.slice(1), positions.slice(1)
                continue
            fit, payloads = frame.payloads(values)
            if len(payloads) == len(values):
                self._take_group(pieces, frame, values, payloads, positions)
                break
            self._take_group(pieces, frame, values.filter(fit), payloads, positions.filter(fit))
            values, positions = values.filter(pc.invert(fit)), positions.filter(pc.invert(fit))
            groups += 1
        else:
            for value, position in zip(values.to_pylist(), positions.to_pylist(), strict=True):
                self._take_whole(pieces, value, position)
        return pieces.to_decoded()

    def _frame_of(self, value: bytes) -> Frame | None:
        """The frame of a value, learned if need be; None when it must be read as a whole."""
        known = self._frames.find(value)
        if known is not None:
            return known
        try:
            tree = _members(value)
            schema = tree["schema"]
            return self._frames.learn(value, None if schema is None else self._readers.get(schema))
        except InvalidValue:
            return None

    def _take_group(
        self,
        pieces: Pieces,
        frame: Frame,
        values: pa.BinaryArray,
        payloads: pa.BinaryArray,
        positions: pa.Int64Array,
    ) -> None:
        """Values of one frame: many at once, then those that this could not decide."""
        left = list(range(len(values)))
        if frame.reader is not None:
            parts, left = frame.reader.read_fast(payloads)
            for part in parts:
                pieces.add_part(frame.reader, part, positions)
        if len(left) < len(values):
            chosen = pa.array(left, pa.int64())
            payloads, values, positions = payloads.take(chosen), values.take(chosen), positions.take(chosen)
        for index, (payload, position) in enumerate(zip(payloads.to_pylist(), positions.to_pylist(), strict=True)):
            try:
                self._take_payload(pieces, frame, payload, position)
            except orjson.JSONDecodeError:
                self._take_whole(pieces, values[index].as_py(), position)

    def _take_payload(self, pieces: Pieces, frame: Frame, payload: bytes, position: int) -> None:
        """One payload the exact way. Raises JSONDecodeError when it is not JSON: the whole value says why."""
        tree = orjson.loads(payload)
        try:
            if frame.reader is None:
                self._add_schemaless(pieces, tree, payload, position)
            else:
                size = frame.size + len(payload)
                pieces.add(frame.reader, position, frame.reader.exact.read(tree, payload, size=size))
        except InvalidValue as error:
            pieces.add_invalid(position, str(error))

    def _take_whole(self, pieces: Pieces, value: bytes, position: int) -> None:
        """One value by the definition."""
        try:
            tree = _members(value)
            if tree["schema"] is None:
                payload = [value.decode()[start:end] for name, start, end in spans(value.decode()) if name == "payload"]
                self._add_schemaless(pieces, tree["payload"], payload[-1].encode(), position)
            else:
                reader = self._readers.get(tree["schema"])
                pieces.add(reader, position, reader.exact.read(tree["payload"], value, enter="payload"))
        except InvalidValue as error:
            pieces.add_invalid(position, str(error))

    def _add_schemaless(self, pieces: Pieces, payload: object, text: bytes, position: int) -> None:
        """An object becomes a tree, a list text, a single value a column of its own type; null gives no row."""
        if isinstance(payload, dict):
            pieces.add_tree(position, json_exact.parse(text))
        elif payload is not None:
            plain = json_exact.parse(b'{"payload":' + text + b"}")["payload"]
            value = orjson.dumps(plain).decode() if isinstance(plain, list) else plain
            pieces.add(self._schemaless[type(value)], position, value)


class _Readers:
    """Types of the schemas used last, and why others are none; at most 128, of texts of 1 MiB together."""

    def __init__(self, replace_null_with_default: bool) -> None:
        self._use_defaults = replace_null_with_default
        self._known: LruCache[bytes, tuple[int, TypedReader | str]] = LruCache(
            _MOST_SCHEMAS, weigh=itemgetter(0), max_weight=_MOST_TEXT
        )

    def get(self, schema: object) -> TypedReader:
        """Raises InvalidValue when the schema is none."""
        try:
            text = orjson.dumps(schema)
        except TypeError:  # orjson writes less depth than it reads
            raise InvalidValue("the schema is nested too deeply") from None
        known = self._known.get(text)
        if known is None:
            known = (len(text), self._parse(schema))
            self._known.put(text, known)
        if isinstance(known[1], str):
            raise InvalidValue(known[1])
        return known[1]

    def _parse(self, schema: object) -> TypedReader | str:
        """Or why there is none."""
        try:
            return TypedReader(_Parser(self._use_defaults).slot(schema, (), 1))
        except InvalidValue as error:
            return str(error)


def _members(value: bytes) -> dict[str, object]:
    """Schema and payload. Raises InvalidValue when there is something else, as JsonConverter does."""
    tree = json_exact.load(value)
    if not isinstance(tree, dict) or tree.keys() != {"schema", "payload"}:
        raise InvalidValue(
            'the value is not an envelope, an object of "schema" and "payload" and nothing else (without a schema, '
            "set value.converter.schemas.enable=false)"
        )
    return tree
