"""Tombstones become rows of their primary keys, as values of the topic's columns, or are rejected with a reason."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import orjson
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parquet_sink.convert.decoded import Decoded, Decoder, SchemaColumns
from parquet_sink.convert.decoders import decoder_for as plain
from parquet_sink.convert.json import decoder as json_decoder
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.errors import InvalidRecord
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.run import Run
from parquet_sink.rows.settings import ObfuscationSettings, ShapeSettings
from parquet_sink.transform.chain import Step, TransformChain
from tests.factories import accepted
from tests.messages import assert_says
from tests.rows.definition import Json, Shaped, Topic, lower, shown
from tests.thorough import examples
from tests.transform.doubles import DropAll, Identity, Where, is_tombstone

ROWS = ShapeSettings(
    embed_metadata=False, primary_keys=("id",), order_field="kafkaOffset", tombstone_column="__deleted"
)
GONE = {"__deleted": True}
HERE = {"__deleted": False}


def plain_keys(kind: str) -> Decoder:
    """Keys as one of Connect's simple converters reads them."""
    return plain(ConverterSettings(kind))


class Typeds:
    """A decoder that gives records of one type, by their numbers."""

    def __init__(self, arrow: pa.DataType, records: Sequence[object]) -> None:
        self._arrow, self._records = arrow, records

    def decode(self, values: pa.BinaryArray) -> Decoded:
        found = [self._records[int(value)] for value in values.to_pylist()]
        return Decoded((SchemaColumns(pa.array(range(len(found)), pa.int64()), pa.array(found, self._arrow)),))


def block(records: Sequence[tuple[Any, Any]], start: int = 0) -> RecordBatch:
    """Keys and values as JSON, bytes as they are, None as null."""
    keys, values = ([_bytes(one) for one in side] for side in zip(*records, strict=True))
    return RecordBatch.of("t", 3, range(start, start + len(records)), [7] * len(records), values, keys)


def _bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else orjson.dumps(value)


def rows(
    records: Sequence[tuple[Any, Any]], config: ShapeSettings = ROWS, keys: Decoder | None = None, **given_: Any
) -> list[Json]:
    """The rows of one block."""
    shaper = RowBuilder(config, tombstone_keys=keys or json_decoder.decoder(), **given_)
    return [row for run in accepted(shaper, block(records)) for row in run.rows.to_pylist()]


def reason(records: Sequence[tuple[Any, Any]], config: ShapeSettings = ROWS, keys: Decoder | None = None) -> str:
    """Why the last record of a block is rejected; all others have rows."""
    found = list(RowBuilder(config, tombstone_keys=keys or json_decoder.decoder()).shape(block(records)))
    rejected = [one for one in found if isinstance(one, Rejected)]
    assert [one.offset for one in rejected] == [len(records) - 1]
    assert sum(one.records for one in found if isinstance(one, Run)) == len(records) - 1
    return rejected[0].reason


def test_a_tombstone_is_a_row_of_its_key() -> None:
    """The primary key from the key's field, all else null, and what is added as in every other row."""
    config = replace(ROWS, embed_metadata=True, order_field=None)
    first, second = rows([({"id": 5}, {"id": 5, "name": "x"}), ({"id": 5, "more": 1}, None)], config)
    added = {"kafkaPartition": 3, "kafkaTimestamp": 7}
    assert first == {"id": 5, "name": "x", "kafkaOffset": 0, "kafkaPartitionOffset": "3_0", "__celonis_order": 0} | (
        added | HERE
    )
    assert second == {"id": 5, "name": None, "kafkaOffset": 1, "kafkaPartitionOffset": "3_1", "__celonis_order": 1} | (
        added | GONE
    )


def test_without_tombstones_every_row_says_so() -> None:
    """The column is in all rows of the connector, so that its files have one schema, and is never null."""
    (run,) = RowBuilder(ROWS, tombstone_keys=json_decoder.decoder()).shape(block([(None, {"id": 1})]))
    assert isinstance(run, Run)
    assert run.rows.schema.field("__deleted") == pa.field("__deleted", pa.bool_(), nullable=False)
    assert run.rows.to_pylist() == [{"id": 1} | HERE]


def test_skipped_tombstones_need_no_key() -> None:
    """Without the setting a tombstone has no row, and keys are not even read."""
    config = replace(ROWS, tombstone_column=None)
    batch = RecordBatch.of("t", 0, [0, 1], [0, 0], [None, b'{"id":1}'])
    assert [run.rows.to_pylist() for run in accepted(RowBuilder(config), batch)] == [[{"id": 1}]]


@pytest.mark.parametrize("null", [None, b"null"])
def test_a_null_of_the_format_is_a_tombstone_too(null: bytes | None) -> None:
    """JSON `null` means the same as no value."""
    assert rows([({"id": 1}, {"id": 1}), ({"id": 1}, null)])[1] == {"id": 1} | GONE


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [("string", b"a", "a"), ("long", b"\0" * 7 + b"\5", 5), ("integer", b"\0\0\0\5", 5), ("boolean", b"\1", True)],
)
def test_a_primitive_key_is_the_only_primary_key(kind: str, key: bytes, value: object) -> None:
    """Also a shorter whole number: int32 against the int64 of JSON."""
    assert rows([(key, {"id": value}), (key, None)], keys=plain_keys(kind))[1] == {"id": value} | GONE


@pytest.mark.parametrize("key", [5, 5.0, "x", True])
def test_a_json_key_need_be_no_object(key: object) -> None:
    """A number is the same number however it is written."""
    assert rows([(None, {"id": key}), (key, None)])[1] == {"id": key} | GONE


def test_a_primitive_key_cannot_fill_two_columns() -> None:
    """The reason names how many there are."""
    two = replace(ROWS, primary_keys=("id", "line"))
    why = reason([(1, {"id": 1, "line": 1}), (1, None)], two)
    assert_says(why, "not a record", "a number", "cannot fill 2 columns")


def test_several_primary_keys_come_from_the_fields_of_their_names() -> None:
    """In whatever order, whatever else is there."""
    two = replace(ROWS, primary_keys=("id", "line"))
    found = rows([(None, {"line": 2, "id": 1, "n": 0}), ({"id": 1, "x": {"id": 9}, "line": 2}, None)], two)
    assert found[1] == {"id": 1, "line": 2, "n": None} | GONE


def test_nested_and_lower_case_names_are_found() -> None:
    """A key goes the way of a value: lower case, then flattened names."""
    config = replace(ROWS, primary_keys=("customer_id",), lowercase=True)
    nested = {"Customer": {"ID": 7, "Name": "n"}}
    found = rows([(nested, nested), (nested, None), (7, None)], config)
    assert found[1:] == [{"customer_id": 7, "customer_name": None} | GONE] * 2


def test_not_flattened_names_are_those_of_the_record() -> None:
    """A field that is an object may be a primary key there."""
    config = replace(ROWS, primary_keys=("id",), flatten=False)
    found = rows([(None, {"id": {"a": 1}, "x": {"b": 1}}), ({"id": {"a": 1}}, None)], config)
    assert found[1] == {"id": {"a": 1}, "x": None} | GONE


@pytest.mark.parametrize("key", ["ann", {"id": "ann"}])
def test_an_obfuscated_key_is_obfuscated_alike(key: object) -> None:
    """Else the target would not find the row, and the key would leave in clear."""
    config = replace(ROWS, obfuscation=ObfuscationSettings(("id",), "sha256"))
    first, second = rows([(None, {"id": "ann"}), (key, None)], config)
    assert first["id"] == second["id"] != "ann"


def test_a_nested_path_obfuscates_a_primitive_key_too() -> None:
    """A path that leads to the primary key's column means it, however the key is written."""
    config = replace(ROWS, primary_keys=("customer_id",), obfuscation=ObfuscationSettings(("customer.id",), "sha256"))
    first, *others = rows(
        [(None, {"customer": {"id": "ann"}}), ("ann", None), ({"customer": {"id": "ann"}}, None)], config
    )
    assert {one["customer_id"] for one in others} == {first["customer_id"]} != {"ann"}


def test_decimals_become_doubles_in_keys_too() -> None:
    """Where they do in values."""
    arrow = pa.struct([("id", pa.decimal128(9, 2))])
    decoder = Typeds(arrow, [{"id": Decimal("1.50")}])
    config = replace(ROWS, decimals_to_double=True)
    assert rows([(b"0", b"0"), (b"0", None)], config, decoder, decoder=decoder) == [
        {"id": 1.5} | HERE,
        {"id": 1.5} | GONE,
    ]


@pytest.mark.parametrize(
    ("own", "column", "good", "bad"),
    [
        (pa.int64(), pa.int32(), [5, -(2**31)], [2**31]),
        (pa.int32(), pa.int64(), [5], []),
        (pa.float64(), pa.int64(), [5.0, 2.0**60, -(2.0**63)], [5.5, 2.0**63, float("nan"), float("inf")]),
        (pa.int64(), pa.float64(), [5, 2**60], [2**53 + 1, 2**63 - 1]),
        (pa.float64(), pa.float32(), [0.5], [0.1]),
        (pa.float32(), pa.int32(), [0.0, -8.0], [0.5, 2.0**31]),
        (pa.int64(), pa.float32(), [2**24, 2**40], [2**24 + 1, 2**63 - 1]),
        (pa.string(), pa.int64(), [], ["5"]),
        (pa.int64(), pa.string(), [], [5]),
        (pa.binary(), pa.string(), [], [b"x"]),
        (pa.timestamp("ms", "UTC"), pa.int64(), [], [5]),
        (pa.decimal128(5, 2), pa.decimal128(9, 2), [Decimal("1.25")], []),
    ],
)
def test_only_a_value_that_a_row_can_have_is_taken(
    own: pa.DataType, column: pa.DataType, good: list[object], bad: list[object]
) -> None:
    """The same number in another type is the same key; everything else would delete another row, or none."""
    values = Typeds(pa.struct([("id", column)]), [{"id": None}])
    config = replace(ROWS, allow_null_primary_keys=True)
    for key in good:
        keys = Typeds(own, [key])
        found = rows([(None, b"0"), (b"0", None)], config, keys, decoder=values)
        assert found[1] == {"id": pa.scalar(key, own).cast(column, safe=False).as_py()} | GONE
    for key in bad:
        shaper = RowBuilder(config, decoder=values, tombstone_keys=Typeds(own, [key]))
        _, rejected = shaper.shape(block([(None, b"0"), (b"0", None)]))
        assert isinstance(rejected, Rejected)
        assert_says(rejected.reason, "its key's id", "no row can have", f"({column})")
        assert shaper.known is not None
        assert shaper.known.field("id").type == column


@pytest.mark.parametrize("key", [None, b"null"])
def test_a_tombstone_without_a_key_is_rejected(key: bytes | None) -> None:
    """Nothing says what it deletes, and passing over it would lose a deletion."""
    why = reason([({"id": 1}, {"id": 1}), (key, None)])
    assert_says(why, "connect.ems.tombstones=row", "a tombstone", "no key", "which row")


@pytest.mark.parametrize("key", [{"x": 1}, {"id": None}, {"id": {"x": 1}}])
def test_a_key_without_the_primary_key_is_rejected(key: object) -> None:
    """Also where nulls are permitted: a key that says nothing deletes nothing."""
    for config in (ROWS, replace(ROWS, allow_null_primary_keys=True)):
        assert_says(reason([(None, {"id": 1}), (key, None)], config), "key", "no value", "column id")


def test_null_in_one_of_two_primary_keys_only_where_it_is_permitted() -> None:
    """As for rows of values."""
    two = replace(ROWS, primary_keys=("id", "line"))
    records = [(None, {"id": 1, "line": 1}), ({"id": 1}, None)]
    assert_says(reason(records, two), "no value", "column line", "connect.ems.allow.null.pk=true")
    assert rows(records, replace(two, allow_null_primary_keys=True))[1] == {"id": 1, "line": None} | GONE


def test_null_in_a_column_that_is_not_known_yet_is_rejected() -> None:
    """Permitted null or not: without a type there is no column, for a row of a value either."""
    two = replace(ROWS, primary_keys=("id", "line"), allow_null_primary_keys=True)
    why = reason([({"id": 1}, None)], two)
    assert_says(why, "connect.ems.tombstones=row", "a tombstone", "no value", "column line", "no record")
    assert_says(why, "let keys have it", "come first")


def test_a_key_that_cannot_be_decoded_is_rejected_where_connect_would() -> None:
    """Keys of other records are not decoded."""
    found = list(
        RowBuilder(ROWS, tombstone_keys=json_decoder.decoder()).shape(block([(b"{", {"id": 1}), (b"{", None)]))
    )
    (rejected,) = (one for one in found if isinstance(one, Rejected))
    assert (rejected.offset, rejected.stage) == (1, Stage.KEY_CONVERTER)


def test_before_the_first_value_a_key_begins_the_columns() -> None:
    """Later values widen or add to them; a file begun with deletions goes on."""
    (run,) = accepted(
        RowBuilder(ROWS, tombstone_keys=json_decoder.decoder()),
        block([(1, None), (2, None), (None, {"n": 0.5, "id": 3})]),
    )
    assert run.rows.to_pylist() == [
        {"id": 1, "n": None} | GONE,
        {"id": 2, "n": None} | GONE,
        {"id": 3, "n": 0.5} | HERE,
    ]


def test_required_columns_are_null_in_a_tombstone() -> None:
    """A column that every value has becomes nullable; that cuts no run."""
    arrow = pa.struct([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64(), nullable=False)])
    values = Typeds(arrow, [{"id": 1, "n": 2}])
    config = replace(ROWS, flatten=False)
    assert rows([(None, b"0"), (1, None)], config, decoder=values)[1] == {"id": 1, "n": None} | GONE


def test_the_column_of_tombstones_cannot_be_a_field() -> None:
    """A record that has it is rejected, with the cure."""
    why = reason([(None, {"id": 1}), (None, {"id": 1, "__deleted": True})])
    assert_says(why, "connect.ems.tombstones=row", "column __deleted", "marks deleted rows")
    assert_says(why, "set connect.ems.tombstones.column", "to another", "rename the field")


def test_transforms_come_before() -> None:
    """What a transform makes null is a tombstone, a tombstone that is dropped is none; decoded keys are used."""
    drop = TransformChain([Step(DropAll(), Where(is_tombstone))], json_decoder.decoder())
    records = [({"id": 1}, {"id": 1}), ({"id": 1}, None)]
    assert rows(records, transforms=drop) == [{"id": 1} | HERE]
    looks = TransformChain([Step(Identity(RecordParts(keys=True)))], json_decoder.decoder())
    assert rows(records, keys=plain_keys("string"), transforms=looks)[1] == {"id": 1} | GONE


@dataclass
class Defined(Topic):
    """The definition: a plain walk that knows tombstones, too."""

    def tombstone(self, offset: int, key: Any) -> bool:
        """Whether it has a row."""
        names = self.config.primary_keys
        try:
            row = self._row(key)
        except ValueError:
            row = {}
        given_ = {name: row[name] for name in names if row.get(name) is not None}
        if not given_ or (len(given_) < len(names) and not self.config.allow_null_primary_keys):
            self.error = (offset, "")
            return False
        for name in names:
            if not self._fits(name, given_):
                self.error = (offset, "")
                return False
        for name, value in given_.items():
            kind = self.columns.setdefault(name, type(value).__name__)
            given_[name] = {"int": int, "float": float}.get(kind, type(value))(value)
        self.rows.append((offset, shown(given_ | GONE)))
        return True

    def _row(self, key: Any) -> Json:
        if isinstance(key, dict):
            return self.flat(lower(key) if self.config.lowercase else key, "")
        if isinstance(key, list) or len(self.config.primary_keys) > 1 or key is None:
            raise ValueError
        return {self.config.primary_keys[0]: key}

    def _fits(self, name: str, row: Json) -> bool:
        if name not in row or name not in self.columns:
            return name in row or name in self.columns
        kind, value = self.columns[name], row[name]
        if {kind, type(value).__name__} <= {"int", "float"}:
            return (
                bool(float(value) == value and int(value) == value and abs(value) < 2**63)
                or kind == type(value).__name__
            )
        return bool(kind == type(value).__name__)


def defined(config: ShapeSettings, records: Sequence[tuple[Any, Any]]) -> Topic:
    """The definition."""
    topic = Defined(config)
    for offset, (key, value) in enumerate(records):
        if not (topic.tombstone(offset, key) if value is None else topic.take(offset, value)):
            break
    topic.rows = [(offset, row) for offset, row in topic.rows]
    return topic


def shaped(
    config: ShapeSettings, records: Sequence[tuple[Any, Any]], cuts: Sequence[int], *, handed_on: bool
) -> Shaped:
    """The records shaped in blocks that end at the cuts. handed_on: a new shaper for each block."""
    found, keys = Shaped(), json_decoder.decoder()
    shaper = RowBuilder(config, tombstone_keys=keys)
    ends = sorted({cut for cut in cuts if 0 < cut < len(records)} | {len(records)})
    start = 0
    for end in ends:
        try:
            for run in accepted(shaper, block(records[start:end], start)):
                run.rows.validate(full=True)
                found.rows += zip(run.offsets.to_pylist(), map(_bare, run.rows.to_pylist()), strict=True)
                found.anew += [run.first_offset] if run.incompatible else []
        except InvalidRecord as error:
            found.error = (error.offset, error.reason)
        start = end
        if shaper.known is not None:
            found.known = [str(column) for column in shaper.known]
        if found.error:
            break
        if handed_on:
            shaper = RowBuilder(config, shaper.known, tombstone_keys=keys)
    return found


def _bare(row: Json) -> str:
    return shown(row if row["__deleted"] else {name: value for name, value in row.items() if name != "__deleted"})


IDS = st.sampled_from([1, 2, 2**53 + 1, 2**60, 1.0, 2.5, "x", True])
ALIKE = st.integers(1, 3) | st.integers(1, 3) | st.integers(1, 3) | IDS
KEYS = (
    ALIKE
    | st.builds(lambda one, two: {"a": one, "b": two}, ALIKE, ALIKE)
    | st.builds(lambda one, two: {"b": one, "x": 0, "a": two}, ALIKE, ALIKE | st.none())
    | st.builds(lambda one, two: {"a": {"b": one}, "a_c": two}, ALIKE, ALIKE)
    | st.sampled_from([None, [1], {}, {"x": 1}])
)
VALUES = st.builds(lambda one, two: {"a": one, "b": two, "c": 0}, ALIKE, ALIKE) | st.builds(
    lambda one, two: {"a": {"b": one}, "a_c": two, "b": 1}, ALIKE, ALIKE
)
CONFIGS = st.builds(
    ShapeSettings,
    embed_metadata=st.just(False),
    order_field=st.just("kafkaOffset"),
    tombstone_column=st.just("__deleted"),
    primary_keys=st.sampled_from([("a",), ("a", "b"), ("a_b",), ("a_b", "b")]),
    allow_null_primary_keys=st.booleans(),
    lowercase=st.booleans(),
)


@settings(max_examples=examples(120), deadline=None)
@given(
    st.lists(st.tuples(KEYS, VALUES | st.none()), min_size=1, max_size=14),
    CONFIGS,
    st.lists(st.integers(1, 13), max_size=4),
    st.booleans(),
    st.sampled_from([1, 64]),
)
@example([(1, None), (2.5, None), (None, {"a": 1, "b": 1})], ROWS, [1], False, 1)
def test_any_cut_gives_the_rows_of_the_definition(
    records: list[tuple[Any, Any]], config: ShapeSettings, cuts: list[int], handed_on: bool, at_once: int
) -> None:
    """In one block, one by one and cut at random, read at once or one by one: rows, reasons, and the columns after."""
    wanted = defined(config, records)
    with patch.object(json_decoder, "FEWEST", at_once):
        whole = shaped(config, records, [], handed_on=False)
        others = [
            shaped(config, records, range(len(records)), handed_on=False),
            shaped(config, records, cuts, handed_on=handed_on),
        ]
    assert whole.rows == wanted.rows
    assert (whole.error or (None,))[0] == (wanted.error or (None,))[0]
    assert whole.anew == wanted.anew
    assert others == [whole, whole]


class Scripted:
    """A decoder of numbers: each stands for a value of some type; those of one type are one piece."""

    def __init__(self, found: Sequence[tuple[pa.DataType, object] | None]) -> None:
        self._found = found

    def decode(self, values: pa.BinaryArray) -> Decoded:
        by_type: dict[pa.DataType, list[tuple[int, object]]] = {}
        for position, number in enumerate(values.to_pylist()):
            one = self._found[int(number)]
            assert one is not None
            by_type.setdefault(one[0], []).append((position, one[1]))
        return Decoded(
            tuple(
                SchemaColumns(
                    pa.array([at for at, _ in some], pa.int64()), pa.array([value for _, value in some], arrow)
                )
                for arrow, some in by_type.items()
            )
        )


TYPES = {
    "int32": (pa.int32(), [1, 2, -(2**31)]),
    "int64": (pa.int64(), [1, 2, 2**31, 2**53 + 1]),
    "float": (pa.float32(), [1.0, 0.5]),
    "double": (pa.float64(), [1.0, 2.0, 0.1, 2.0**31]),
    "text": (pa.string(), ["1", ""]),
    "decimal": (pa.decimal128(5, 2), [Decimal("1.00")]),
    "date": (pa.date32(), [1]),
}


def of_type(names: Sequence[str]) -> st.SearchStrategy[tuple[pa.DataType, object]]:
    """A value of one of these types."""
    pairs = [(TYPES[name][0], value) for name in names for value in TYPES[name][1]]
    return st.sampled_from(pairs)


def with_schema(of: tuple[pa.DataType, object], other: bool) -> tuple[pa.DataType, object]:
    """A record with an id of this type, and perhaps another field that is required."""
    more = [pa.field("n", pa.int32(), nullable=False)] if other else []
    return pa.struct([pa.field("id", of[0]), *more]), {"id": of[1], **({"n": 7} if other else {})}


IDS_OF_VALUES = of_type(["int32", "int32", "int64", "double", "text", "decimal"])
IDS_OF_KEYS = of_type(list(TYPES))
RECORDS = st.tuples(
    st.none() | IDS_OF_KEYS | IDS_OF_KEYS | st.builds(with_schema, IDS_OF_KEYS, st.booleans()),
    st.none() | st.builds(with_schema, IDS_OF_VALUES, st.booleans()),
)


def told(
    records: Sequence[tuple[Any, Any]], cuts: Sequence[int], config: ShapeSettings, *, across: bool
) -> tuple[list[Json], list[tuple[int, str]], list[int], list[str]]:
    """Rows, what is rejected, where the columns start anew and the columns after, of blocks that end at the cuts."""
    keys, values = Scripted([key for key, _ in records]), Scripted([value for _, value in records])
    found: list[Json] = []
    rejected: list[tuple[int, str]] = []
    anew: list[int] = []
    known: pa.Schema | None = None
    ends = sorted({cut for cut in cuts if 0 < cut < len(records)} | {len(records)})
    for start, end in zip([0, *ends], ends, strict=False):
        shaper = RowBuilder(config, known, values, tombstone_keys=keys)
        numbers = [
            (None if key is None else at, None if value is None else at) for at, (key, value) in enumerate(records)
        ]
        for one in shaper.shape(block(numbers[start:end], start), across_rejected=across):
            if isinstance(one, Rejected):
                rejected.append((one.offset, one.reason))
                continue
            one.rows.validate(full=True)
            found += [{"at": at, **row} for at, row in zip(one.offsets.to_pylist(), one.rows.to_pylist(), strict=True)]
            anew += [one.first_offset] if one.incompatible else []
        known = shaper.known
    rows_of_all = [{name: value for name, value in row.items() if value is not None} for row in found]
    return rows_of_all, sorted(rejected), anew, [] if known is None else [str(column) for column in known]


@settings(max_examples=examples(80), deadline=None)
@given(
    st.lists(RECORDS, min_size=1, max_size=14), st.lists(st.integers(1, 13), max_size=4), st.booleans(), st.booleans()
)
def test_any_cut_of_records_with_schemas(
    records: list[tuple[Any, Any]], cuts: list[int], flat: bool, across: bool
) -> None:
    """Rows, rejected records and columns are the same, and each record has a row or a reason."""
    config = replace(ROWS, flatten=flat)
    whole = told(records, [], config, across=across)
    assert told(records, range(len(records)), config, across=across) == whole
    assert told(records, cuts, config, across=across) == whole
    found, rejected, _, _ = whole
    assert sorted([row["at"] for row in found] + [at for at, _ in rejected]) == list(range(len(records)))
    assert {at for at, _ in rejected} <= {at for at, (_, value) in enumerate(records) if value is None}
    gone = [row["at"] for row in found if row["__deleted"]]
    assert gone == [at for at, (_, value) in enumerate(records) if value is None and at not in dict(rejected)]
