"""What one record becomes, step by step."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from parquet_sink.addons.commands.trial import NOT_DECODABLE, NOT_DECODED, Shown, Trial, as_json, of_array, trial
from parquet_sink.addons.commands.try_record import lines, to_json
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json import decoder as json_decoder
from parquet_sink.convert.registry.registered import RegisteredDecoder, RegisteredSchema
from parquet_sink.model.records import RecordBatch
from parquet_sink.task.record_steps import RecordSteps, StopAtRejected, steps_for
from tests.connectors.ems.connector_files import E, settings_of
from tests.messages import assert_says

STEPS = {
    f"{E}embed.kafka.metadata": "false",
    "transforms": "r,k",
    "transforms.r.type": "ReplaceField",
    "transforms.r.renames": "qty:quantity",
    "transforms.k.type": "tests.transform.classes.Keep$Key",
}
TEXT_KEYS = {"key.converter": "org.apache.kafka.connect.storage.StringConverter"}
LONG_KEYS = {"key.converter": "org.apache.kafka.connect.converters.LongConverter"}
CAST = {"transforms": "r,c", "transforms.c.type": "Cast", "transforms.c.spec": "name:int8"}
DROP = {"transforms": "r,d", "transforms.d.type": "tests.transform.classes.Drop"}
ADA = b'{"qty": 2, "name": "Ada"}'


def tried(changes: dict[str, str], value: bytes | None = ADA, key: bytes | None = b"7", **more: Any) -> Trial:
    """The way of a record through a connector."""
    settings = settings_of({**STEPS, **changes})
    record = RecordBatch.of("orders", 3, [7], [1_700_000_000_000], [value], [key], [more.get("headers", ())])
    return trial(record, steps_for(settings, StopAtRejected()), settings.shape)


def test_the_record_after_each_step() -> None:
    """What decoding and each transform made of it, then its row."""
    found = tried(TEXT_KEYS, headers=[("h", b"x"), ("h", None)])
    assert [one.step for one in found.seen] == [
        "decoded",
        "transforms.r (ReplaceField)",
        "transforms.k (tests.transform.classes.Keep$Key)",
    ]
    assert {one.topic for one in found.seen} == {"orders"}
    assert {one.key for one in found.seen} == {Shown("7", "string")}
    assert {one.headers for one in found.seen} == {(("h", Shown("x", NOT_DECODED)), ("h", None))}
    assert [one.value for one in found.seen] == [
        Shown({"qty": 2, "name": "Ada"}),
        Shown({"quantity": 2, "name": "Ada"}),
        Shown({"quantity": 2, "name": "Ada"}),
    ]
    assert found.rows == ({"quantity": 2, "name": "Ada"},)
    assert found.columns == ("quantity int64", "name string")


def test_a_connector_without_transforms() -> None:
    """It is decoded, and becomes a row; keys that nobody asks for are shown as they are."""
    found = tried({"transforms": ""}, key=b"\xff")
    assert [(one.step, one.key) for one in found.seen] == [("decoded", Shown("ff", NOT_DECODED))]
    assert found.rows == ({"qty": 2, "name": "Ada"},)


def test_types_of_a_record_with_a_schema() -> None:
    """Each field with its type."""
    schema = '{"type":"struct","fields":[{"field":"qty","type":"int32"},{"field":"n","type":"string","optional":true}]}'
    value = f'{{"schema":{schema},"payload":{{"qty":2,"n":null}}}}'.encode()
    found = tried({"value.converter.schemas.enable": "true"}, value)
    assert found.seen[1].value == Shown({"quantity": 2, "n": None}, "quantity int32 not null, n string")


def test_decoded_headers_have_types() -> None:
    """As their converter reads them, null included."""
    headers = [("n", b"7"), ("t", b"x"), ("null", None)]
    found = tried({"transforms": "h", "transforms.h.type": "tests.transform.classes.Headers"}, headers=headers)
    assert found.seen[0].headers == (("n", Shown(7, "int8")), ("t", Shown("x", "string")), ("null", None))


def test_obfuscated_fields_are_so_in_the_row() -> None:
    """The steps before show them in clear, as the help says."""
    found = tried({f"{E}obfuscation.fields": "name"})
    assert found.seen[-1].value == Shown({"quantity": 2, "name": "Ada"})
    assert found.rows == ({"quantity": 2, "name": "*****"},)


def test_a_path_to_obfuscate_that_the_record_does_not_have() -> None:
    """It is told: what it should hide may be there by another name."""
    found = tried({f"{E}obfuscation.fields": "name,qty"})
    assert found.unmatched == ("qty",)
    assert_says([*lines(found, "T")][-1], "nothing is obfuscated", "qty", "no such field")
    assert json.loads(to_json(found, "T"))["unmatched"] == ["qty"]


@pytest.mark.parametrize(
    ("changes", "value", "key", "stage", "by", "steps"),
    [
        ({}, b"{", b"7", "VALUE_CONVERTER", "", 1),
        (LONG_KEYS, ADA, b"7", "KEY_CONVERTER", "", 1),
        (CAST, ADA, b"7", "TRANSFORMATION", "transforms.c (Cast)", 2),
        ({f"{E}data.primary.key": "no"}, ADA, b"7", "SHAPE", "", 3),
    ],
)
def test_a_record_that_is_rejected(
    changes: dict[str, str], value: bytes, key: bytes, stage: str, by: str, steps: int
) -> None:
    """Where and why; the steps before it are there, or what was received."""
    found = tried(changes, value, key)
    assert found.rejected is not None
    assert (found.rejected.stage, found.rejected_by, len(found.seen), found.rows) == (stage, by, steps, ())
    assert any(
        line.startswith(f"no row: rejected{f' by {by}' if by else ''} ({stage}): ") for line in lines(found, "T")
    )
    assert json.loads(to_json(found, "T"))["rejected"]["by"] == by


def test_a_record_that_cannot_be_decoded_is_shown_as_received() -> None:
    """Key, headers, and the first bytes of the value, as text, too, where they are text to their end or to a cut."""
    long = b'{"name": "' + b"x" * 53 + "ü".encode() + b"x" * 2_000
    found = tried({}, long, b"\xff", headers=[("a", b"1"), ("b", None)])
    *shown, cut, _ = "\n".join(lines(found, "T")).splitlines()
    assert shown == [
        "received",
        "  topic    orders",
        '  key      "ff"',
        '  headers  a: "1"',
        "           b: null",
        f'  value    "{long[:64].hex()}"',
    ]
    assert_says(cut, "first 64 of 2,065 bytes", "in hexadecimal", json.dumps(long[:63].decode()))
    (seen,) = json.loads(to_json(found, "T"))["steps"]
    assert (seen["step"], seen["key"], seen["value"]["value"]) == (
        "received",
        {"value": "ff", "type": ""},
        long[:64].hex(),
    )
    assert tried({}, b"\xc3(").seen[0].value == Shown("c328", "2 bytes in hexadecimal")
    assert tried({}, b"").seen[0].value == Shown("", "0 bytes in hexadecimal")


def test_the_schema_that_a_record_names_is_shown_when_it_cannot_be_read() -> None:
    """Also where the registry does not have it; of a value in another form there is none."""

    class NoSchemas:
        def get(self, schema_id: int) -> RegisteredSchema:
            raise InvalidValue(f"schema id {schema_id} is not registered")

    decoder = RegisteredDecoder(NoSchemas(), "AVRO", lambda _: json_decoder.decoder(), 4, 10, clock=lambda: 0.0)
    steps = RecordSteps(decoder, None, StopAtRejected())
    for value, says in (
        (b"\0\0\0\0\x2a\x02", ("6 bytes", "hexadecimal", "schema id 42")),
        (b"\x01\0\0\0\x2a", ("5 bytes", "hexadecimal")),
    ):
        record = RecordBatch.of("orders", 3, [7], [5], [value], [None], [()])
        found = trial(record, steps, settings_of(STEPS).shape)
        assert found.rejected is not None
        assert (found.seen[0].key, found.seen[0].value.value) == (None, value.hex())
        assert_says(found.seen[0].value.type, *says)


def test_a_record_that_a_step_drops() -> None:
    """It is no failure."""
    found = tried(DROP)
    assert (found.rejected, found.dropped_by, found.rows) == (None, "transforms.d (tests.transform.classes.Drop)", ())
    last = [*lines(found, "T")][-1]
    assert_says(last, "no row", "dropped by transforms.d (tests.transform.classes.Drop)", "offset is committed")


def test_a_record_of_which_a_step_makes_several() -> None:
    """All of them are shown, and each is a row."""
    found = tried({"transforms": "t", "transforms.t.type": "tests.transform.classes.Twice"})
    ada = {"qty": 2, "name": "Ada"}
    assert found.seen[-1].value == Shown([ada, ada])
    assert found.rows == (ada, ada)


def test_a_tombstone() -> None:
    """It has a null value, and no row."""
    found = tried({}, None)
    assert [one.value for one in found.seen] == [None, None, None]
    assert_says([*lines(found, "T")][-1], "no row", "a null value", "offset is committed")


ROWS = {
    "connect.ems.tombstones": "row",
    "connect.ems.data.primary.key": "id",
    "key.converter": "json",
    "key.converter.schemas.enable": "false",
    "transforms": "h",
    "transforms.h.type": "HoistField$Value",
    "transforms.h.field": "w",
}


def test_the_key_of_a_tombstone_that_has_a_row() -> None:
    """It is decoded, also behind a step that makes a value of the null; of one that cannot be, that is said."""
    assert [one.key for one in tried(ROWS, None, b'{"id": 1}').seen] == [Shown({"id": 1})] * 2
    assert tried({**ROWS, "transforms": ""}, None, b"{").seen[0].key == Shown("{", NOT_DECODABLE)
    assert tried({**ROWS, "transforms": ""}, None, None).seen[0].key is None


def test_words_show_what_a_step_changed() -> None:
    """And say so when it changed nothing."""
    assert list(lines(tried(TEXT_KEYS, headers=[("a", b"1"), ("b", None)]), "ORDERS")) == [
        "decoded",
        "  topic    orders",
        '  key      "7"  (string)',
        f'  headers  a: "1"  ({NOT_DECODED})',
        "           b: null",
        '  value    {"qty": 2, "name": "Ada"}',
        "transforms.r (ReplaceField)",
        '  value    {"quantity": 2, "name": "Ada"}',
        "transforms.k (tests.transform.classes.Keep$Key)",
        "  unchanged",
        "1 row of table ORDERS",
        '  {"quantity": 2, "name": "Ada"}',
        "  columns: quantity int64, name string",
    ]


def test_json_has_all_of_it() -> None:
    """For programs."""
    found = json.loads(to_json(tried(TEXT_KEYS, headers=[("a", b"1")]), "ORDERS"))
    assert found["steps"][1] == {
        "step": "transforms.r (ReplaceField)",
        "topic": "orders",
        "key": {"value": "7", "type": "string"},
        "headers": [{"name": "a", "value": "1", "type": NOT_DECODED}],
        "value": {"value": {"quantity": 2, "name": "Ada"}, "type": ""},
    }
    assert (found["rows"], found["table"]) == ([{"quantity": 2, "name": "Ada"}], "ORDERS")
    assert found["rejected"] is found["dropped_by"] is None


def test_what_json_has_no_form_for() -> None:
    """Bytes, times, decimals and NaN as text, wherever they stand."""
    stamp = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    value = {"b": b"\x01", "m": [("k", Decimal("1.50"))], "f": [float("nan"), 1.5, None], "t": stamp, "d": stamp.date()}
    assert as_json(value) == {
        "b": "01",
        "m": [["k", "1.50"]],
        "f": ["nan", 1.5, None],
        "t": "2026-01-02T03:04:05.000+00:00",
        "d": "2026-01-02",
    }


def test_moments_beyond_the_years_of_python() -> None:
    """A timestamp of microseconds that a producer took for milliseconds is shown, like any that a file can hold."""
    at = '{"field":"at","type":"int64","name":"org.apache.kafka.connect.data.Timestamp","version":1}'
    day = '{"type":"int32","name":"org.apache.kafka.connect.data.Date","version":1}'
    fields = f'{at},{{"field":"days","type":"array","items":{day}}}'
    schema = f'{{"type":"struct","fields":[{fields}]}}'
    value = f'{{"schema":{schema},"payload":{{"at":1700000000000000,"days":[-800000,19000]}}}}'.encode()
    found = tried({"value.converter.schemas.enable": "true", "transforms": ""}, value)
    assert found.seen[0].value is not None
    days = ["-0221-09-04", "2022-01-08"]
    assert found.seen[0].value.value == {"at": "55840-11-08T22:13:20.000Z", "days": days}
    assert found.rows[0]["at"] == "55840-11-08T22:13:20.000Z"


def test_typed_values() -> None:
    """Each as a value without a schema would be shown, at any depth; null stays null."""
    rows: list[dict[str, object]] = [
        {"s": {"d": datetime(2026, 1, 2, tzinfo=UTC).date(), "b": b"\x01"}, "m": [("k", Decimal("1.50"))], "f": 0.5},
        {"s": None, "m": None, "f": float("nan")},
    ]
    arrow = pa.struct(
        [
            ("s", pa.struct([("d", pa.date32()), ("b", pa.binary())])),
            ("m", pa.map_(pa.string(), pa.decimal128(9, 2))),
            ("f", pa.float64()),
        ]
    )
    assert of_array(pa.array(rows, arrow)) == [
        {"s": {"d": "2026-01-02", "b": "01"}, "m": [["k", "1.50"]], "f": 0.5},
        {"s": None, "m": None, "f": "nan"},
    ]


def test_a_raw_record_is_its_own_row() -> None:
    """Nothing is decoded, bytes are hexadecimal digits, and a tombstone has a row, too."""
    settings = settings_of({f"{E}mode": "raw"})
    record = RecordBatch.of("orders", 3, [7], [5], [None], [b"7"], [[("a", b"1"), ("b", None)]])
    found = trial(record, steps_for(settings, StopAtRejected()), settings.shape)
    (row,) = found.rows
    assert (row["key"], row["value"], row["offset"]) == ("37", None, 7)
    assert row["headers"] == [{"key": "a", "value": "31"}, {"key": "b", "value": None}]
    assert next(iter(lines(found, "T"))) == "1 row of table T"
