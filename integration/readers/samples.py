"""Random record schemas and records of them, the same for the same seed: what goes into the files that readers read.

A schema is an Arrow type as converters give it (see `parquet_sink.convert.decoded`). Values are plain: a date is days,
a time and a timestamp milliseconds, a map a list of pairs; so that values beyond Python's calendar are among them.
"""

import math
import string
import struct
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate, count
from random import Random
from typing import Final

import pyarrow as pa

from parquet_sink.files.settings import Codec
from parquet_sink.rows.settings import ShapeSettings

Value = object
Row = dict[str, Value]

MAX_DEPTH: Final = 3
LAST_MS: Final = (2**63 - 1) // 1000
"""The farthest timestamp whose microseconds fit 64 bits, which DuckDB and Spark count in."""
_CODECS: Final[tuple[Codec, ...]] = ("snappy", "zstd", "gzip", "lz4", "none")
_FLOAT_MAX: Final = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
_ODD: Final = (math.nan, math.inf, -math.inf, 0.0, -0.0)
_EXTREMES: Final[dict[pa.DataType, tuple[Value, ...]]] = {
    pa.int32(): (0, -1, 2**31 - 1, -(2**31)),
    pa.int64(): (0, -1, 2**53 + 1, 2**63 - 1, -(2**63)),
    pa.float32(): (*_ODD, _FLOAT_MAX, -_FLOAT_MAX, 2.0**-149),
    pa.float64(): (*_ODD, 0.1, 1.7976931348623157e308, 5e-324),
    pa.bool_(): (True, False),
    pa.string(): ("", " ", "für Ada", "日本語", "😀 e\u0301", 'say "\\"\n\t', "a\0b", "null", "\u202eabc"),
    pa.binary(): (b"", b"\x00", b"\xff\xfe\x00", bytes(range(256))),
    pa.date32(): (0, -1, -719_162, -141_428, 2_932_896, 2**31 - 2, -(2**31)),
    pa.time32("ms"): (0, 1, 86_399_999),
    pa.timestamp("ms", "UTC"): (0, -1, -62_135_596_800_000, 253_402_300_799_999, LAST_MS, -LAST_MS),
}
_READ_BY_ALL: Final = tuple(arrow for arrow in _EXTREMES if arrow != pa.time32("ms"))
_OTHER_KEYS: Final = (
    *(pa.int32(), pa.int64(), pa.float64(), pa.bool_(), pa.binary()),
    *(pa.date32(), pa.timestamp("ms", "UTC"), pa.decimal128(9, 2)),
)
_NAMES: Final = ("id", "größe", "zip-code", "a.b", "Order ID", "x_y", "値", "7th ", "$ref")


@dataclass(frozen=True)
class Sample:
    """A topic: records of one schema, and how they become a file. Keyed records have an order column."""

    number: int
    settings: ShapeSettings
    codec: Codec
    group_bytes: int | None
    schema: pa.DataType
    rows: list[Row]
    offsets: list[int]
    timestamps: list[int]


def sample(number: int) -> Sample:
    """The sample of that number. Of four, two are flattened, and two have types that not all readers know."""
    random = Random(number)
    schema = _Schemas(random, everything=number % 4 > 1).record()
    rows = [_row(random, schema) for _ in range(random.randint(1, 40))]
    settings = ShapeSettings(
        flatten=number % 2 == 0,
        embed_metadata=random.random() < 0.5,
        primary_keys=("key0",) if random.random() < 0.3 else (),
        decimals_to_double=random.random() < 0.2,
    )
    gaps = (random.choice((1, 1, 1, 5)) for _ in rows)
    return Sample(
        number=number,
        settings=settings,
        codec=random.choice(_CODECS),
        group_bytes=random.choice((None, 512)),
        schema=schema,
        rows=rows,
        offsets=list(accumulate(gaps, initial=random.randrange(2**40)))[1:],
        timestamps=[random.choice((0, 1_700_000_000_000 + index)) for index in range(len(rows))],
    )


class _Schemas:
    """Makes one record type. Each name ends in a number of its own, so that flattened ones never clash."""

    def __init__(self, random: Random, *, everything: bool) -> None:
        self._random, self._everything = random, everything
        self._numbers = count(1)

    def record(self) -> pa.DataType:
        fields = [self._field(1) for _ in range(self._random.randint(3, 9))]
        fields.insert(self._random.randint(0, len(fields)), pa.field("key0", pa.int64(), nullable=False))
        return pa.struct(fields)

    def _field(self, depth: int) -> pa.Field:
        return self._named(f"{self._random.choice(_NAMES)}{next(self._numbers)}", depth)

    def _named(self, name: str, depth: int) -> pa.Field:
        arrow = self._type(depth)
        return pa.field(name, arrow, nullable=pa.types.is_null(arrow) or self._random.random() < 0.7)

    def _type(self, depth: int) -> pa.DataType:
        shape = self._random.random()
        if depth > MAX_DEPTH or shape < 0.6:
            return self._leaf()
        if shape < 0.62:
            return pa.null()
        if shape < 0.76:
            return pa.struct([self._field(depth + 1) for _ in range(self._random.randint(1, 4))])
        item = self._named("item", depth + 1)
        if shape < 0.86:
            return pa.list_(item)
        return pa.map_(pa.string() if shape < 0.93 else self._random.choice(_OTHER_KEYS), item.with_name("value"))

    def _leaf(self) -> pa.DataType:
        if self._random.random() < 0.2:
            precision = self._random.randint(1, 76 if self._everything else 38)
            return decimal(precision, self._random.randint(0, precision))
        return self._random.choice(tuple(_EXTREMES) if self._everything else _READ_BY_ALL)


def decimal(precision: int, scale: int) -> pa.DataType:
    """The type of decimals as converters give it."""
    return (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)


def unscaled(number: int, scale: int) -> Decimal:
    """The decimal of these digits, exactly."""
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def _row(random: Random, schema: pa.DataType) -> Row:
    fields = [schema.field(index) for index in range(schema.num_fields)]
    return {field.name: _value(random, field) for field in fields}


def _value(random: Random, field: pa.Field) -> Value:
    arrow = field.type
    if pa.types.is_null(arrow) or (field.nullable and random.random() < 0.25):
        return None
    if pa.types.is_struct(arrow):
        return _row(random, arrow)
    if pa.types.is_list(arrow):
        return [_value(random, arrow.value_field) for _ in range(random.choice((0, 1, 2, 4)))]
    if pa.types.is_map(arrow):
        keys = dict.fromkeys(_value(random, arrow.key_field) for _ in range(random.choice((0, 1, 2, 4))))
        return [(key, _value(random, arrow.item_field)) for key in keys]
    if pa.types.is_decimal(arrow):
        most = 10**arrow.precision - 1
        return unscaled(random.choice((0, 1, -1, most, -most, random.randint(-most, most))), arrow.scale)
    return random.choice(_EXTREMES[arrow]) if random.random() < 0.5 else _usual(random, arrow)


def _usual(random: Random, arrow: pa.DataType) -> Value:
    if pa.types.is_floating(arrow):
        fraction = random.uniform(-1e6, 1e6)
        return float32(fraction) if arrow == pa.float32() else fraction
    if pa.types.is_string(arrow):
        return "".join(random.choices(string.printable, k=random.randrange(12)))
    if pa.types.is_binary(arrow):
        return random.randbytes(random.randrange(12))
    if pa.types.is_boolean(arrow):
        return random.random() < 0.5
    most = {pa.time32("ms"): 86_399_999, pa.date32(): 40_000, pa.timestamp("ms", "UTC"): 4 * 10**12}.get(arrow, 10**9)
    return random.randint(0 if arrow == pa.time32("ms") else -most, most)


def float32(number: float) -> float:
    """The nearest number that four bytes hold."""
    nearest: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return nearest
