"""The shaper: runs, evolution of the schema, keys, limits, and how it finds its way around what is not fast."""

from dataclasses import replace
from unittest.mock import patch

import pyarrow as pa
import pytest

from parquet_sink.convert.json import decoder as shaper_module
from parquet_sink.convert.json import fast as json_fast
from parquet_sink.errors import InvalidRecord
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.rows import run_builder
from parquet_sink.rows.flatten.trees import rows_of
from parquet_sink.rows.row_builder import RowBuilder, Run
from parquet_sink.rows.schema.topic_columns import MAX_COLUMNS, MAX_NAME
from parquet_sink.rows.settings import ObfuscationSettings, ShapeSettings
from tests.factories import accepted
from tests.messages import assert_says

BARE = ShapeSettings(embed_metadata=False)

LOWER_KEY = "connect.ems.convert.lowercase.fields"


def block(values: list[bytes | None], start: int = 0) -> RecordBatch:
    """Values at contiguous offsets of topic-partition 3."""
    offsets = range(start, start + len(values))
    return RecordBatch.of("t", 3, offsets, [0] * len(values), values)


def shape(one: RowBuilder, values: list[bytes | None], start: int = 0) -> list[Run]:
    """All runs of a block."""
    return list(accepted(one, block(values, start)))


def refused(settings: ShapeSettings, *values: bytes) -> tuple[int, str]:
    """Offset and reason of the record that is invalid."""
    with pytest.raises(InvalidRecord) as caught:
        shape(RowBuilder(settings), list(values))
    assert (caught.value.topic, caught.value.partition) == ("t", 3)
    return caught.value.offset, caught.value.reason


@pytest.mark.parametrize("flat", [True, False])
def test_objects_that_stay_empty_are_obfuscated_fast(flat: bool) -> None:
    """A path through an object that never held anything changes nothing, record by record or many at once."""
    hidden = ObfuscationSettings(("a.name", "id"))
    one = RowBuilder(ShapeSettings(embed_metadata=False, flatten=flat, obfuscation=hidden))
    for start in (0, 100):
        (run,) = shape(one, [b'{"id":"x","a":{}}'] * 100, start)
        assert run.rows.column("id").to_pylist() == ["*****"] * 100
        assert run.rows.column("a").to_pylist() == ["{}" if flat else []] * 100


@pytest.mark.parametrize("text", ["[secret]", "\\u005bsecret]"])
def test_text_that_looks_like_a_list_is_not_taken_for_an_obfuscated_one(text: str) -> None:
    """Where the items of a list are hidden, text is invalid, whatever it begins with, and among whatever records."""
    one = RowBuilder(replace(BARE, obfuscation=ObfuscationSettings(("l.value",))))
    lists = [b'{"id":1,"l":["a",null]}'] * 100
    for start in (0, 1_000):
        found = list(
            one.shape(block([*lists, f'{{"id":1,"l":"{text}"}}'.encode(), *lists], start), across_rejected=True)
        )
        rejected, run = found
        assert isinstance(rejected, Rejected)
        assert isinstance(run, Run)
        assert (rejected.offset, rejected.stage) == (start + 100, Stage.OBFUSCATION)
        assert set(run.rows.column("l").to_pylist()) == {'["*****",null]'}


def test_a_run_tells_its_records_and_offsets() -> None:
    """Tombstones give no row; first and last offset are those of rows."""
    (run,) = shape(RowBuilder(ShapeSettings()), [None, b'{"a":1}', None, b'{"a":2}', None], start=40)
    assert (run.records, run.first_offset, run.last_offset, run.incompatible) == (2, 41, 43, False)
    assert run.rows.column("kafkaPartitionOffset").to_pylist() == ["3_41", "3_43"]


@pytest.mark.parametrize("values", [[], [None], [None, None]])
def test_nothing_but_tombstones_is_no_run(values: list[bytes | None]) -> None:
    """A block without a value has no run and teaches nothing."""
    one = RowBuilder(ShapeSettings())
    assert shape(one, values) == []
    assert one.known is None


def test_added_columns_are_not_nullable_and_payload_is() -> None:
    """Nullability is part of the schema, the order column comes last."""
    (run,) = shape(RowBuilder(ShapeSettings(primary_keys=("a",))), [b'{"a":1}'])
    assert [(field.name, field.nullable) for field in run.rows.schema] == [
        ("a", True),
        ("kafkaPartition", False),
        ("kafkaOffset", False),
        ("kafkaTimestamp", False),
        ("kafkaPartitionOffset", False),
        ("__celonis_order", False),
    ]
    assert run.rows.schema.metadata is None


@pytest.mark.parametrize(
    ("settings", "added"),
    [
        (ShapeSettings(embed_metadata=False, primary_keys=("a",)), ["__celonis_order"]),
        (ShapeSettings(embed_metadata=False, primary_keys=("a",), order_field="a"), []),
        (ShapeSettings(embed_metadata=False, order_field="a"), []),
        (ShapeSettings(embed_metadata=False), []),
    ],
)
def test_order_column_needs_keys_and_no_order_field(settings: ShapeSettings, added: list[str]) -> None:
    """`__celonis_order` is there only with keys and without an order field of the user's."""
    (run,) = shape(RowBuilder(settings), [b'{"a":1}'])
    assert run.rows.schema.names == ["a", *added]


def test_rows_before_a_bad_record_are_given_first() -> None:
    """Everything before the bad record comes out, then the error; nothing after it does."""
    one = RowBuilder(BARE)
    seen = []
    runs = accepted(one, block([b'{"a":1}', b'{"a":"x"}', b'{"a":"y"}', b"junk", b'{"a":"z"}']))
    with pytest.raises(InvalidRecord, match="offset 3"):
        seen.extend(runs)
    assert [run.rows.to_pylist() for run in seen] == [[{"a": 1}], [{"a": "x"}, {"a": "y"}]]


def test_a_bad_record_leaves_no_trace() -> None:
    """Columns that only an invalid record had are not learned."""
    one = RowBuilder(ShapeSettings(embed_metadata=False, primary_keys=("id",)))
    with pytest.raises(InvalidRecord):
        shape(one, [b'{"id":1}', b'{"id":null,"new":1}'])
    assert one.known is not None
    assert one.known.names == ["id"]


def test_incompatible_across_blocks() -> None:
    """The first run of a block is marked when it cannot share a file with the block before; other columns go."""
    one = RowBuilder(BARE)
    shape(one, [b'{"a":1,"b":2}'])
    (run,) = shape(one, [b'{"a":"x"}'])
    assert run.incompatible
    assert run.rows.schema.names == ["a"]
    (run,) = shape(one, [b'{"a":"x"}'])
    assert not run.incompatible


@pytest.mark.parametrize("other", ['"x"', "true", "[1]", "{}"])
def test_every_other_change_of_type_is_incompatible(other: str) -> None:
    """A number and text, boolean, or what becomes text cannot share a column."""
    _, second = shape(RowBuilder(BARE), [b'{"a":1}', b'{"a":' + other.encode() + b"}"])
    assert second.incompatible


def test_widening_ends_the_run_but_not_the_file() -> None:
    """int64 to double: earlier rows stay exact, later integers are doubles, nothing is incompatible."""
    one = RowBuilder(BARE)
    runs = shape(one, [b'{"a":9007199254740993}', b'{"a":1.5}', b'{"a":2}', b'{"a":1152921504606846976}'])
    assert [(repr(run.rows.column("a").to_pylist()), run.incompatible) for run in runs] == [
        ("[9007199254740993]", False),
        ("[1.5, 2.0, 1.152921504606847e+18]", False),
    ]


def test_alternating_null_and_absent_never_ends_a_run() -> None:
    """Null, absent and present are one schema."""
    values: list[bytes | None] = [
        b'{"a":1,"b":{"c":2}}',
        b'{"a":null,"b":null}',
        b'{"x":null}',
        b'{"b":{"c":null}}',
    ] * 50
    (run,) = shape(RowBuilder(BARE), values)
    assert run.rows.schema.names == ["a", "b_c"]
    assert run.rows.column("b_c").to_pylist() == [2, None, None, None] * 50


def test_nested_structs_grow() -> None:
    """Without flattening a new nested field is added to its struct, in rows before it as null."""
    settings = ShapeSettings(flatten=False, embed_metadata=False)
    values: list[bytes | None] = (
        [b'{"o":{"x":1}}'] * 200 + [b'{"o":{"y":{"z":true}}}'] * 200 + [b'{"o":null}', b'{"o":{}}']
    )
    (run,) = shape(RowBuilder(settings), values)
    rows = run.rows.column("o").to_pylist()
    assert rows[0] == {"x": 1, "y": None}
    assert rows[399] == {"x": None, "y": {"z": True}}
    assert rows[400:] == [None, None]


def test_key_columns_from_metadata() -> None:
    """A column that the sink adds may be a key."""
    (run,) = shape(RowBuilder(ShapeSettings(primary_keys=("kafkaPartitionOffset",))), [b'{"a":1}'] * 300)
    assert run.records == 300


def test_null_key_deep_in_a_block_is_found() -> None:
    """The fast path finds null keys, too, and names them all."""
    settings = ShapeSettings(primary_keys=("a", "b"))
    values = [b'{"a":1,"b":2}'] * 5000 + [b'{"c":1}', b'{"b":1}']
    offset, reason = refused(settings, *values)
    assert offset == 5000
    assert_says(reason, "connect.ems.data.primary.key", "columns a, b", "are null", "connect.ems.allow.null.pk=true")


@pytest.mark.parametrize("value", [b'{"A":1}', b'{"id":null}', b'{"tags":[1]}'])
def test_missing_key(value: bytes) -> None:
    """A key column that the topic never had is missing, whether or not nulls are allowed."""
    settings = ShapeSettings(primary_keys=("id",), allow_null_primary_keys=True, discard_collections=True)
    offset, reason = refused(settings, value)
    assert offset == 0
    assert_says(reason, "connect.ems.data.primary.key", "column id is missing")


def wide(columns: int) -> bytes:
    """A record of so many columns."""
    return ("{" + ",".join(f'"c{number}":{number}' for number in range(columns)) + "}").encode()


@pytest.mark.parametrize("flatten", [True, False])
def test_number_of_columns_is_limited(flatten: bool) -> None:
    """As many as stated are fine, one more is not."""
    settings = ShapeSettings(flatten=flatten, embed_metadata=False)
    (run,) = shape(RowBuilder(settings), [wide(MAX_COLUMNS)] * 2)
    assert run.rows.num_columns == MAX_COLUMNS
    offset, reason = refused(settings, wide(MAX_COLUMNS + 1))
    assert offset == 0
    assert_says(reason, "2,501 columns", "limit of 2,500")


def test_a_topic_of_too_many_columns_starts_anew() -> None:
    """Records that are fine on their own never stop the connector by their sum."""
    one = RowBuilder(BARE)
    shape(one, [wide(MAX_COLUMNS)])
    (run,) = shape(one, [b'{"c0":1,"new":2}'])
    assert run.incompatible
    assert run.rows.schema.names == ["c0", "new"]


def test_length_of_names_is_limited() -> None:
    """A name as long as stated is fine, a longer one is not."""
    name = b"n" * MAX_NAME
    assert shape(RowBuilder(BARE), [b'{"' + name + b'":1}'])[0].records == 1
    _, reason = refused(BARE, b'{"' + name + b'n":1}')
    assert_says(reason, "column nnn", "name", "longer than 1,000 characters")


def test_deep_records_are_shaped() -> None:
    """A record of a hundred levels is a column."""
    deep = b'{"a":' * 100 + b"1" + b"}" * 100
    (run,) = shape(RowBuilder(BARE), [deep] * 200)
    assert run.rows.schema.names == ["_".join("a" * 100)]


def test_ten_megabytes_are_shaped() -> None:
    """A record of 10 MB among small ones is a row like any other."""
    values: list[bytes | None] = [b'{"a":"x"}'] * 200 + [b'{"a":"' + b"y" * 10_000_000 + b'"}'] + [b'{"a":"x"}'] * 200
    (run,) = shape(RowBuilder(BARE), values)
    assert run.records == 401
    assert len(run.rows.column("a")[200].as_py()) == 10_000_000


@pytest.mark.parametrize(
    "odd", [b'{"a":1,"l":[1]}', b'{"a":1,"a":2}', b'{"a":1e3}', b'{"a":1,"new":true}', b'{"e":{}}']
)
def test_only_a_neighbourhood_goes_the_exact_way(odd: bytes) -> None:
    """One record that is not fast costs some hundred exact ones, not a block; the next block is fast again."""
    one = RowBuilder(BARE)
    shape(one, [b'{"a":1}'] * 200)
    exact: list[object] = []
    with patch.object(run_builder, "rows_of", lambda trees, way: exact.append(trees) or rows_of(trees, way)):
        runs = shape(one, [b'{"a":1}'] * 6000 + [odd] + [b'{"a":1}'] * 6000)
        assert sum(run.records for run in runs) == 12_001
        assert 0 < len(exact) < 1000
    with patch.object(shaper_module, "parse", side_effect=AssertionError("not fast")):
        shape(one, [b'{"a":1}'] * 5000)


def test_always_null_and_always_empty_are_fast() -> None:
    """Fields that never hold anything, or always `{}`, do not keep a topic off the fast path."""
    one = RowBuilder(BARE)
    values: list[bytes | None] = [b'{"a":1,"n":null,"e":{},"o":{"p":null,"q":2}}', b'{"o":{"p":null,"q":null}}'] * 200
    shape(one, values)
    with patch.object(shaper_module, "parse", side_effect=AssertionError("not fast")):
        (run,) = shape(one, values)
    assert run.rows.slice(0, 2).to_pylist() == [{"a": 1, "e": "{}", "o_q": 2}, {"a": None, "e": None, "o_q": None}]


def test_failing_tries_are_bounded() -> None:
    """When every record fails, and each teaches something new, the fast path reads a few times the block at most."""
    one = RowBuilder(BARE)
    attempt, tried = json_fast.attempt, []

    def counted(values: pa.BinaryArray, schema: pa.Schema, unexpected: str) -> pa.RecordBatch | str:
        tried.append(len(values))
        return attempt(values, schema, unexpected)

    with patch.object(json_fast, "attempt", counted):
        shape(one, [b'{"a":1,"k%d":[1]}' % number for number in range(2000)])
        assert sum(tried) <= 4 * 2000
        tried.clear()
        shape(one, [b'{"a":[1]}'] * 20_000)
        assert len(tried) < 20


def test_known_survives_serialisation_and_is_fast_at_once() -> None:
    """What one shaper learned, another goes on with, on the fast path from its first record."""
    one = RowBuilder(ShapeSettings())
    values: list[bytes | None] = [b'{"a":1,"o":{"x":"y","n":null},"e":{}}'] * 100
    before = shape(one, values)
    assert one.known is not None
    known = pa.ipc.read_schema(one.known.serialize())
    with patch.object(shaper_module, "parse", side_effect=AssertionError("not fast")):
        after = shape(RowBuilder(ShapeSettings(), known), values)
    assert [run.rows for run in before] == [run.rows for run in after]


@pytest.mark.parametrize(
    "other",
    [
        ShapeSettings(flatten=False),
        ShapeSettings(primary_keys=("a",)),
    ],
)
def test_known_from_other_settings_is_not_used(other: ShapeSettings) -> None:
    """A schema learned with another kind of flattening, or with a column that is now ours, is forgotten."""
    one = RowBuilder(BARE)
    shape(one, [b'{"a":1,"__celonis_order":2}'])
    assert RowBuilder(other, one.known).known is None


def test_a_foreign_schema_is_not_used() -> None:
    """A schema that no shaper made is ignored."""
    for schema in (pa.schema([("a", pa.int64())]), pa.schema([("a", pa.int8())], {b"parquet_sink.outline": b"{"})):
        assert RowBuilder(BARE, schema).known is None


def test_reading_stops_when_nobody_reads() -> None:
    """Runs are made one after the other, as they are asked for."""
    one = RowBuilder(BARE)
    runs = accepted(one, block([b'{"a":1}', b'{"a":"x"}', b"junk"]))
    assert next(runs).records == 1


def test_names_are_told_apart_by_case() -> None:
    """`a` and `A` are two columns."""
    (run,) = shape(RowBuilder(BARE), [b'{"a":1,"A":2}'] * 200)
    assert run.rows.schema.names == ["a", "A"]


def test_the_json_text_null_is_a_tombstone() -> None:
    """A value that is the JSON text `null` gives no row and no error, as through Connect's JsonConverter."""
    block = RecordBatch.of("t", 0, [5, 6, 7], [0, 0, 0], [b'{"a":1}', b"null", b'{"a":2}'])
    runs = list(accepted(RowBuilder(ShapeSettings()), block))
    assert [offset for run in runs for offset in run.offsets.to_pylist()] == [5, 7]


def test_a_run_is_cut_into_parts() -> None:
    """Parts hold the rows in order, with their own offsets; only the first may be incompatible with what was before."""
    block = RecordBatch.of("t", 0, [1, 2, 5, 6, 9], [0] * 5, [b'{"a":%d}' % n for n in range(5)])
    (run,) = accepted(RowBuilder(ShapeSettings()), block)
    parts = list(replace(run, incompatible=True).parts(2))
    assert [(part.first_offset, part.last_offset, part.records) for part in parts] == [(1, 2, 2), (5, 6, 2), (9, 9, 1)]
    assert [part.incompatible for part in parts] == [True, False, False]
    assert [row["a"] for part in parts for row in part.rows.to_pylist()] == list(range(5))
    assert list(run.parts(5)) == [run]


def test_lower_case_names() -> None:
    """With convert.lowercase.fields columns have lower-case names at every depth, on both paths."""
    one = RowBuilder(ShapeSettings(embed_metadata=False, lowercase=True))
    values: list[bytes | None] = [
        b'{"Id":%d,"Customer":{"Name":"Ada","ZIP-Code":"1"}}' % number for number in range(300)
    ]
    (run,) = shape(one, values)
    assert run.rows.schema.names == ["id", "customer_name", "customer_zip_code"]
    assert run.rows.column("id").to_pylist() == list(range(300))


def test_names_that_differ_in_case_alone_clash() -> None:
    """Two fields that become one column have no row, on both paths."""
    settings = ShapeSettings(lowercase=True)
    offset, reason = refused(settings, b'{"A":1,"a":2}')
    assert offset == 0
    assert_says(reason, LOWER_KEY, "A and a", "both become", "field a")
    assert refused(settings, *[b'{"A":1}'] * 200, b'{"A":1,"a":2}') == (200, reason)


def test_columns_of_other_case_settings_are_forgotten() -> None:
    """Columns learned before names were turned into lower case would be null for ever."""
    before = RowBuilder(ShapeSettings(embed_metadata=False))
    shape(before, [b'{"Id":1}'])
    (run,) = shape(RowBuilder(ShapeSettings(embed_metadata=False, lowercase=True), before.known), [b'{"Id":1}'])
    assert run.rows.schema.names == ["id"]


def test_records_with_lists_are_read_fast() -> None:
    """Once a list was seen, the exact path is not needed for records that have lists; discarded ones neither."""
    values: list[bytes | None] = [b'{"a":%d,"t":["x",{"y":%d}],"n":{"l":[]}}' % (n, n) for n in range(600)]
    for discard in (False, True):
        one = RowBuilder(ShapeSettings(embed_metadata=False, discard_collections=discard))
        shape(one, values)
        with patch.object(shaper_module, "parse", side_effect=AssertionError("a record went the exact way")):
            (run,) = shape(one, values)
        assert run.rows.column("a").to_pylist() == list(range(600))
        if not discard:
            assert run.rows.slice(7, 1).to_pylist() == [{"a": 7, "t": '["x",{"y":7}]', "n_l": "[]"}]


def test_a_list_with_an_integer_beyond_64_bits_is_refused_on_the_fast_path() -> None:
    """Such a number would be altered by reading it; the record is named."""
    values = [b'{"a":[%d]}' % n for n in range(300)] + [b'{"a":[18446744073709551616]}']
    offset, reason = refused(ShapeSettings(), *values)
    assert offset == 300
    assert_says(reason, "field a[0]", "integer", "64 bits")


def test_lower_case_reaches_into_lists() -> None:
    """The JSON text of a list has lower-case names, too, on both paths; two that become one have no row."""
    one = RowBuilder(ShapeSettings(embed_metadata=False, lowercase=True))
    (run,) = shape(one, [b'{"L":[{"A":%d,"B":{"C":[]}}]}' % number for number in range(300)])
    assert run.rows.slice(0, 1).to_pylist() == [{"l": '[{"a":0,"b":{"c":[]}}]'}]
    assert run.rows.column("l").to_pylist()[299] == '[{"a":299,"b":{"c":[]}}]'
    values = [b'{"L":[]}'] * 200 + [b'{"L":[{"A":1,"a":2}]}']
    offset, reason = refused(ShapeSettings(lowercase=True), *values)
    assert offset == 200
    assert_says(reason, LOWER_KEY, "L[0].A and L[0].a", "both become", "field L[0].a")


def test_a_zero_with_a_sign_is_read_fast() -> None:
    """It is no reason to look at its record by itself; only the integer `-0`, which has no sign, is."""
    one = RowBuilder(BARE)
    values: list[bytes | None] = [b'{"a":0.5,"o":{"b":1.5}}'] * 300
    shape(one, values)
    with patch.object(shaper_module, "parse", side_effect=AssertionError("a record went the exact way")):
        (run,) = shape(one, [b'{"a":-0.0,"o":{"b":-0.0}}'] * 300)
    assert repr(run.rows.slice(299).to_pylist()) == "[{'a': -0.0, 'o_b': -0.0}]"
    (run,) = shape(one, [b'{"a":-0,"o":{"b": -0 }}', b'{"a":-0.0,"o":{"b":-0}}', *values])
    rows = [{"a": 0.0, "o_b": 0.0}, {"a": -0.0, "o_b": 0.0}]
    assert repr(run.rows.slice(0, 2).to_pylist()) == repr(rows)


def test_few_of_many_fields_give_the_same_rows_as_all_of_few() -> None:
    """Records that have few of very many fields are taken one by one, which changes nothing in them."""
    values = [b'{"id":%d,"f%d":%d}' % (number, number % 900, number) for number in range(3_000)]
    one = RowBuilder(BARE)
    runs = [run for part in (values[:1_500], values[1_500:]) for run in shape(one, [*part])]
    seen = [row for run in runs for row in run.rows.to_pylist()]
    assert len(seen) == len(values)
    for number, row in enumerate(seen):
        assert {name: value for name, value in row.items() if value is not None} == {
            "id": number,
            f"f{number % 900}": number,
        }
