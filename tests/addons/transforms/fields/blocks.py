"""Blocks of records at random: of several shapes, with and without schema, as decoders give them."""

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from parquet_sink.convert.decoded import Decoder, Piece, Reading, SchemaColumns
from parquet_sink.convert.json import decoder as json_decoder
from parquet_sink.model.records import RecordBatch
from parquet_sink.transform.chain import TransformChain
from parquet_sink.transform.fields.plain import from_plain
from parquet_sink.transform.records import DecodedRecords, as_trees

NAMES = ("a", "b", "c", "d", "a.b", "id")
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.one_of(st.integers(-300, 300), st.integers(-(2**63), 2**63 - 1))
TEXTS = st.one_of(
    st.sampled_from(["", "true", "TRUE", "yes", "7", "-0", "+5", "300", "2147483648", "12.0", "1e3", " 8 ", "1.5f"]),
    st.sampled_from(["NaN", "x", "٣", "2020-13-45xyz", "2024-02-29", "-129", "0x1F", "99999999999999999999", "[1]"]),
    st.text(max_size=4),
)
DOUBLES = st.one_of(
    st.sampled_from([0.0, -0.0, 1e7, 9999999.0, 1e-3, 9e-4, 3.99, -3.99, 2.0**31, 2.0**63, 1e300, 0.5, 12.0, 5e-324]),
    st.floats(allow_nan=False, allow_infinity=False),
)
DAYS = st.one_of(st.integers(-3, 3), st.integers(-(2**31), 2**31 - 1))
MILLIS = st.one_of(st.sampled_from([-1, 0, 1, 86_399_999, 86_400_000, 10**12]), st.integers(-(2**62), 2**62))
LEAVES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int32(), INT32),
    (pa.int64(), INT64),
    (pa.float32(), st.one_of(st.floats(width=32), st.sampled_from([1e7, 0.10000000149011612, 12.5]))),
    (pa.float64(), st.one_of(DOUBLES, st.sampled_from([float("nan"), float("inf")]))),
    (pa.bool_(), st.booleans()),
    (pa.string(), TEXTS),
    (pa.binary(), st.binary(max_size=3)),
    (pa.date32(), DAYS),
    (pa.time32("ms"), st.integers(0, 86_399_999)),
    (pa.timestamp("ms", "UTC"), MILLIS),
    (pa.decimal128(10, 2), st.decimals(-99_999_999, 99_999_999, places=2)),
    (pa.decimal256(60, 9), st.decimals(Decimal(-(10**50)), Decimal(10**50), places=9)),
    (pa.null(), st.none()),
    (pa.list_(pa.field("item", pa.int32())), st.lists(st.none() | INT32, max_size=2)),
    (
        pa.map_(pa.string(), pa.int64()),
        st.lists(st.tuples(st.text(max_size=2), st.none() | INT64), max_size=2, unique_by=lambda pair: pair[0]),
    ),
]


@st.composite
def structs(draw: st.DrawFn, depth: int = 2) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    """The type of records, and its plain values."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True))
    fields, values = [], {}
    for name in names:
        nested = depth > 1 and draw(st.integers(0, 3)) == 0
        arrow, below = draw(structs(depth - 1)) if nested else draw(st.sampled_from(LEAVES))
        nullable = pa.types.is_null(arrow) or draw(st.booleans())
        fields.append(pa.field(name, arrow, nullable=nullable))
        values[name] = st.none() | below if nullable else below
    return pa.struct(fields), st.fixed_dictionaries(values)


@st.composite
def typed_records(draw: st.DrawFn) -> DecodedRecords:
    """Records of up to three schemas among each other, some tombstones between, topics routed or not."""
    count = draw(st.integers(0, 12))
    kinds = [draw(structs()) for _ in range(draw(st.integers(1, 3)))]
    kinds.append(draw(st.sampled_from(LEAVES)))
    which = draw(st.lists(st.integers(-1, len(kinds) - 1), min_size=count, max_size=count))
    pieces = []
    for number, (arrow, values) in enumerate(kinds):
        at = [position for position, one in enumerate(which) if one == number]
        if at and not pa.types.is_null(arrow):
            rows = from_plain([draw(values) for _ in at], arrow)
            pieces.append(SchemaColumns(pa.array(at, pa.int64()), rows))
    return _records(draw, pieces, count)


JSON_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "ints": INT64,
    "floats": st.one_of(DOUBLES, st.integers(-400, 400), INT64),
    "texts": TEXTS,
    "booleans": st.booleans(),
    "lists": st.lists(st.integers(0, 3), max_size=2),
    "objects": st.dictionaries(st.sampled_from(NAMES), st.one_of(INT64, st.none()), max_size=3),
    "deep": st.fixed_dictionaries(
        {}, optional={"b": st.dictionaries(st.just("c"), INT64, max_size=1), "d": st.lists(INT64, max_size=1)}
    ),
    "anything": st.one_of(INT64, TEXTS, st.booleans(), st.lists(st.none(), max_size=1), DOUBLES),
}
_USUAL = [kind for kind in JSON_VALUES if kind not in ("lists", "anything")]


@st.composite
def json_values(draw: st.DrawFn) -> list[bytes]:
    """JSON texts of one topic: fields keep their kinds, mostly; enough of them that they are read as columns."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True))
    kinds = {name: draw(st.sampled_from(_USUAL * 4 + list(JSON_VALUES))) for name in names}
    shape = st.fixed_dictionaries({}, optional={name: st.none() | JSON_VALUES[kind] for name, kind in kinds.items()})
    trees = draw(st.lists(shape.filter(bool), min_size=2, max_size=8))
    values = [json.dumps(tree).encode() for tree in trees]
    return [values[at % len(values)] for at in range(draw(st.sampled_from([3, 70, 100])))]


def decoded(values: Sequence[bytes], *, discard_lists: bool = False, as_trees: bool = False) -> DecodedRecords:
    """JSON without a schema, by the decoder that learns."""
    decoder: Decoder = json_decoder.decoder().for_topic(Reading(as_trees=as_trees, discard_lists=discard_lists), None)
    batch = RecordBatch.of("t", 3, range(100, 100 + len(values)), [7 * (at % 2) for at in range(len(values))], values)
    return TransformChain([]).apply(batch, decoder)


def without_columns(records: DecodedRecords) -> DecodedRecords:
    """The same records, those without a schema as trees."""
    pieces = tuple(piece if isinstance(piece, SchemaColumns) else as_trees(piece) for piece in records.values)
    return DecodedRecords(
        records.batch, records.positions, pieces, records.keys, records.headers, records.topics, records.rejected
    )


def parts(records: DecodedRecords, cut: int) -> list[DecodedRecords]:
    """The records in two parts of one batch."""
    mask = np.arange(len(records.batch)) < cut
    return [records.where(mask), records.where(~mask)]


def _records(draw: st.DrawFn, pieces: list[Piece], count: int) -> DecodedRecords:
    timestamps = draw(st.lists(st.sampled_from([0, 1, 1_700_000_000_000]), min_size=count, max_size=count))
    batch = RecordBatch.of("t", 3, range(100, 100 + count), timestamps, [b"x"] * count)
    topics = pa.array([f"t{at % 2}" for at in range(count)]) if draw(st.booleans()) else None
    return DecodedRecords(batch, pa.array(range(count), pa.int64()), tuple(pieces), topics=topics)
