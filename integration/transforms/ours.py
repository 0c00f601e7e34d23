"""The same cases through this package: keys of a connector file to a chain, decoders, blocks cut at random."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any, Final

import pyarrow as pa

from integration.transforms.cases import Case, Record
from integration.transforms.outcome import (
    UNREAD,
    Dropped,
    Failed,
    Outcome,
    Outcomes,
    Refused,
    Row,
    Schema,
    Value,
    bits,
    decimal,
    in_order,
)
from parquet_sink.config.key import Key
from parquet_sink.config.provider import Resolved
from parquet_sink.config.report import Report
from parquet_sink.config.values import read
from parquet_sink.convert.decoded import (
    Decoder,
    Float32,
    InferredColumns,
    Int32,
    LearningDecoder,
    Piece,
    Reading,
    SchemaColumns,
    Untyped,
)
from parquet_sink.convert.decoders import decoder_for, key_decoder_for
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.model.records import RecordBatch
from parquet_sink.transform import building, configuration
from parquet_sink.transform.building import NamedTransform, chain_for
from parquet_sink.transform.chain import TransformChain
from parquet_sink.transform.fields.base import FieldTransform
from parquet_sink.transform.fields.plain import to_plain
from parquet_sink.transform.keys import TRANSFORM_KEYS
from parquet_sink.transform.protocol import Transform
from parquet_sink.transform.records import DecodedRecords
from tests.addons.transforms.fields.outcomes import exact_form

_KEYS: tuple[Key, ...] = TRANSFORM_KEYS
_NULL = (None, None)


def settings_of(case: Case) -> dict[str, str]:
    """The case's chain as keys of a connector file."""
    keys = {"transforms": ",".join(f"t{at}" for at, _ in enumerate(case.steps))}
    asked = [f"p{at}" for at, step in enumerate(case.steps) if step.predicate is not None]
    if asked:
        keys["predicates"] = ",".join(asked)
    for at, step in enumerate(case.steps):
        keys |= {f"transforms.t{at}.{name}": text for name, text in {"type": step.type, **step.keys}.items()}
        if step.predicate is not None:
            type_, own = step.predicate
            keys |= {f"predicates.p{at}.{name}": text for name, text in {"type": type_, **own}.items()}
            keys |= {f"transforms.t{at}.predicate": f"p{at}", f"transforms.t{at}.negate": str(step.negate).lower()}
    return keys


def chain_of(case: Case, *, columns: bool = True) -> TransformChain | Refused:
    """The chain of a case, through what reads a connector file. columns: as for `outcomes`."""
    report = Report()
    texts = settings_of(case)
    steps = configuration.check(read(_KEYS, Resolved(texts, texts), report), report)
    if report.problems:
        return Refused("; ".join(map(str, report.problems)))
    key = _converter(case.key_schemas)
    if columns:
        chain = chain_for(steps, key)
        assert chain is not None
        return chain
    made = [building._step(one) for one in steps]
    for step in made:
        _one_by_one(step.transform)
    return TransformChain(made, key_decoder_for(key))


def _one_by_one(named: Transform) -> None:
    """Take its forms for columns from a transform: the form that defines is left."""
    assert isinstance(named, NamedTransform)
    if isinstance(named._inner, FieldTransform):
        named._inner = exact_form(named._inner)


def outcomes(case: Case, rng: Random, *, columns: bool) -> Outcomes:
    """What becomes of each record, in blocks cut at random. columns: many at once, else in the form that defines."""
    chain = chain_of(case, columns=columns)
    if isinstance(chain, Refused):
        return chain
    decoder = _decoder(case, columns=columns)
    found: list[Outcome] = []
    for first, end in _cuts(len(case.records), rng):
        batch = _batch(case, case.records[first:end], first)
        found += _of(chain.apply(batch, decoder))
    return found


def _decoder(case: Case, *, columns: bool) -> Decoder:
    decoder = decoder_for(_converter(case.value_schemas))
    if isinstance(decoder, LearningDecoder):
        return decoder.for_topic(Reading(as_trees=not columns, any_tree=True), None)
    return decoder


def _converter(schemas: bool) -> ConverterSettings:
    return ConverterSettings(kind="json_envelope" if schemas else "json")


def _cuts(count: int, rng: Random) -> Iterator[tuple[int, int]]:
    inner = rng.sample(range(1, count), min(count - 1, rng.choice((0, 0, 0, 1, 3, count)))) if count > 1 else []
    return pairwise(sorted({0, count, *inner}))


def _batch(case: Case, records: tuple[Record, ...], first: int) -> RecordBatch:
    return RecordBatch.of(
        case.topic,
        3,
        range(first, first + len(records)),
        [record.timestamp or 0 for record in records],
        [record.value for record in records],
        [record.key for record in records],
        [record.headers for record in records],
    )


def _of(records: DecodedRecords) -> Iterator[Outcome]:
    values, keys = _of_pieces(records.values), _of_pieces(records.keys or ())
    kept = set(records.positions.to_pylist())
    for at in range(len(records.batch)):
        if at in records.rejected:
            stage, why = records.rejected[at]
            yield Failed(stage.value, why)
        elif at not in kept:
            yield Dropped()
        else:
            topic = records.batch.topic if records.topics is None else records.topics[at].as_py()
            key, key_schema = (UNREAD, UNREAD) if records.keys is None else keys.get(at, _NULL)
            headers = UNREAD if records.headers is None else _headers(records, at)
            yield Row(topic, *values.get(at, _NULL), key, key_schema, headers)


def _headers(records: DecodedRecords, at: int) -> tuple[tuple[str, Value], ...]:
    assert records.headers is not None
    found = zip(records.headers[at], records.headers.lists[at], strict=True)
    return tuple((one.name, header(one.value) if place["at"].as_py() >= 0 else UNREAD) for one, place in found)


def _of_pieces(pieces: tuple[Piece, ...]) -> dict[int, tuple[Value, Schema]]:
    found: dict[int, tuple[Value, Schema]] = {}
    for piece in pieces:
        positions = piece.positions.to_pylist()
        assert positions == sorted(set(positions) - found.keys()), "a record twice, or in no order"
        if isinstance(piece, SchemaColumns):
            piece.rows.validate(full=True)
            schema = schema_of(piece.rows.type, optional=False)
            found |= {at: (typed(row), schema) for at, row in zip(positions, piece.rows, strict=True)}
        else:
            trees = piece.trees if isinstance(piece, Untyped) else [piece.tree(row) for row in range(len(positions))]
            if isinstance(piece, InferredColumns):
                _check_rows(piece, trees)
            found |= {at: (tree(one), None) for at, one in zip(positions, trees, strict=True)}
    return found


def _check_rows(piece: InferredColumns, trees: Any) -> None:
    """The rows of an `InferredColumns` piece have what its trees have, but for lists."""
    piece.rows.validate(full=True)
    for row, one in zip(to_plain(piece.rows), trees, strict=True):
        left, right = ({name: below for name, below in one.items() if name not in piece.lists} for one in (row, one))
        assert _read(left) == _read(right), (left, right)


def _read(one: Any) -> Any:
    """Without nulls, and objects that hold nothing; 1 may be read as 1.0, and dates as numbers."""
    if isinstance(one, pa.Scalar):
        one = one.value
    if isinstance(one, dict):
        below = {name: _read(value) for name, value in one.items()}
        return {name: value for name, value in below.items() if value is not None and value != {}}
    return repr(float(one)) if isinstance(one, int | float) and not isinstance(one, bool) else one


def header(found: Any) -> Value:
    """A header's value, with its type or without."""
    return typed(found) if isinstance(found, pa.Scalar) else tree(found)


def tree(found: Any) -> Value:
    """A value without a schema, dates and times being scalars. Raises KeyError for what is none."""
    if isinstance(found, pa.Scalar):
        return typed(found)
    return None if found is None else _TREES[type(found)](found)


_TREES: Final[Mapping[type, Callable[[Any], Value]]] = {
    dict: lambda found: ("Map", in_order((("String", name), tree(value)) for name, value in found.items())),
    list: lambda found: ("List", tuple(tree(value) for value in found)),
    bool: lambda found: ("Boolean", found),
    int: lambda found: ("Long", found),
    float: lambda found: ("Double", bits(found)),
    Int32: lambda found: ("Integer", int(found)),
    Float32: lambda found: ("Float", bits(float(found))),
    str: lambda found: ("String", found),
}


def typed(found: pa.Scalar) -> Value:
    """A value with its type."""
    if not found.is_valid:
        return None
    kind = found.type
    make = next((make for test, make in _TYPED if test(kind)), None)
    return (_CLASSES[str(kind)], found.as_py()) if make is None else make(found)


_TYPED: Final[Sequence[tuple[Callable[[pa.DataType], bool], Callable[[Any], Value]]]] = (
    (
        pa.types.is_struct,
        lambda found: ("Struct", tuple((one.name, typed(found[at])) for at, one in enumerate(found.type))),
    ),
    (pa.types.is_map, lambda found: ("Map", in_order((typed(pair[0]), typed(pair[1])) for pair in found.values))),
    (pa.types.is_list, lambda found: ("List", tuple(typed(one) for one in found.values))),
    (pa.types.is_decimal, lambda found: decimal(found.as_py(), found.type.scale)),
    (pa.types.is_date32, lambda found: ("Date", found.value * 86_400_000)),
    (pa.types.is_time32, lambda found: ("Date", found.value)),
    (pa.types.is_timestamp, lambda found: ("Date", found.value)),
    (pa.types.is_float32, lambda found: ("Float", bits(found.as_py()))),
    (pa.types.is_float64, lambda found: ("Double", bits(found.as_py()))),
)
_CLASSES = {
    "int8": "Byte",
    "int16": "Short",
    "int32": "Integer",
    "int64": "Long",
    "bool": "Boolean",
    "string": "String",
    "binary": "Bytes",
}
_PLAIN = {"float": "float32", "double": "float64", "bool": "boolean", "binary": "bytes"}
_LOGICAL = {
    "date32[day]": ("int32", "Date"),
    "time32[ms]": ("int32", "Time"),
    "timestamp[ms, tz=UTC]": ("int64", "Timestamp"),
}


def schema_of(kind: pa.DataType, *, optional: bool) -> Schema:
    """The schema that a type stands for."""
    if pa.types.is_struct(kind):
        return "struct", "", optional, *((one.name, schema_of(one.type, optional=one.nullable)) for one in kind)
    if pa.types.is_map(kind):
        items = kind.item_field
        below = schema_of(kind.key_type, optional=False), schema_of(items.type, optional=items.nullable)
        return "map", "", optional, *below
    if pa.types.is_list(kind):
        return "array", "", optional, schema_of(kind.value_type, optional=kind.value_field.nullable)
    if pa.types.is_decimal(kind):
        return "bytes", "Decimal", optional, kind.scale
    type_, logical = _LOGICAL.get(str(kind), (_PLAIN.get(str(kind), str(kind)), ""))
    return type_, logical, optional
