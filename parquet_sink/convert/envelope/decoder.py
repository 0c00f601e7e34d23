"""JSON with its schema in every record, as Connect's JsonConverter writes it: `{"schema": ..., "payload": ...}`.

The exact way, which is the definition, parses the whole value. The fast way knows what stands around the payloads of
records of one schema (`frames`), takes the payloads of all such records out at once and reads them by their
type. Alternating schemas make groups, each of them read at once.

CPU per record of about 150 bytes of payload with 7 fields and 700 of schema, in blocks of 10,000: 0.85 µs, of which the
payload is 0.7; two schemas that alternate 1.1; each value as a whole 12. With a bad record in each hundred it takes
at most 1.5 times as long, whatever is wrong with it.
"""

from dataclasses import dataclass

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.decoded import Decoded, Decoder
from parquet_sink.convert.envelope.frames import Frame, Frames, spans
from parquet_sink.convert.envelope.schema import to_slot
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json import exact as json_exact
from parquet_sink.convert.json.settings import JsonConverter
from parquet_sink.convert.typed_json.reader import Pieces, TypedReader
from parquet_sink.convert.typed_json.types import ScalarKind, ScalarName, Slot
from parquet_sink.process.lru_cache import LruCache

_MOST_GROUPS = 64
_MOST_SCHEMAS = 128
_MOST_TEXT = 2**20
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
        pieces = Pieces()
        positions = pa.array(range(len(values)), pa.int64())
        groups = 0
        while len(values) and groups < _MOST_GROUPS:
            frame = self._frame_of(values[0].as_py())
            if frame is None:
                self._take_exactly(pieces, values.slice(0, 1), positions)
                values, positions = values.slice(1), positions.slice(1)
                continue
            fit = frame.fit(values)
            if pc.all(fit).as_py():
                self._take_group(pieces, frame, values, positions)
                break
            self._take_group(pieces, frame, values.filter(fit), positions.filter(fit))
            values, positions = values.filter(pc.invert(fit)), positions.filter(pc.invert(fit))
            groups += 1
        else:
            self._take_exactly(pieces, values, positions)
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

    def _take_group(self, pieces: Pieces, frame: Frame, values: pa.BinaryArray, positions: pa.Int64Array) -> None:
        """Values of one frame: many at once, then those that this could not judge."""
        payloads = frame.payloads(values)
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
        """One payload the exact way. Raises JSONDecodeError when it is no JSON: the value then tells what is wrong."""
        tree = orjson.loads(payload)
        try:
            if frame.reader is None:
                self._add_schemaless(pieces, tree, payload, position)
            else:
                size = frame.size + len(payload)
                pieces.add(frame.reader, position, frame.reader.exact.read(tree, payload, size=size))
        except InvalidValue as error:
            pieces.add_invalid(position, str(error))

    def _take_exactly(self, pieces: Pieces, values: pa.BinaryArray, positions: pa.Int64Array) -> None:
        for value, position in zip(values.to_pylist(), positions.slice(0, len(values)).to_pylist(), strict=True):
            self._take_whole(pieces, value, position)

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
        self._known: LruCache[bytes, _Known] = LruCache(
            _MOST_SCHEMAS, weigh=lambda known: known.size, max_weight=_MOST_TEXT
        )

    def get(self, schema: object) -> TypedReader:
        """Raises InvalidValue when the schema is none."""
        try:
            text = orjson.dumps(schema)
        except TypeError:  # orjson writes less depth than it reads
            raise InvalidValue("the schema is nested too deeply") from None
        known = self._known.get(text)
        if known is None:
            known = _Known(len(text), self._parse(schema))
            self._known.put(text, known)
        if isinstance(known.reader, str):
            raise InvalidValue(known.reader)
        return known.reader

    def _parse(self, schema: object) -> TypedReader | str:
        try:
            return TypedReader(to_slot(schema, self._use_defaults))
        except InvalidValue as error:
            return str(error)


@dataclass(frozen=True)
class _Known:
    """size: bytes of the schema's text. reader: or why there is none."""

    size: int
    reader: TypedReader | str


def _members(value: bytes) -> dict[str, object]:
    """Schema and payload. Raises InvalidValue when there is something else, as JsonConverter does."""
    tree = json_exact.load(value)
    if not isinstance(tree, dict) or tree.keys() != {"schema", "payload"}:
        raise InvalidValue(
            'the value is not an envelope, an object of "schema" and "payload" and nothing else (without a schema, '
            "set value.converter.schemas.enable=false)"
        )
    return tree
