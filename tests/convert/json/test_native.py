"""JSON read in C: what it gives is what Arrow's reader gives, and what it leaves to that reader."""

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.json import fast
from parquet_sink.process.native import SWITCH
from tests.thorough import examples

pytestmark = pytest.mark.skipif(fast.extension() is None, reason="it was not built")
SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("n", pa.null()),
        ("größe", pa.string()),
        ("i8", pa.int8()),
        ("i16", pa.int16()),
        ("i32", pa.int32()),
        ("o", pa.struct([("x", pa.float64()), ("p", pa.struct([("t", pa.string()), ("i", pa.int64())]))])),
    ]
)


@pytest.fixture(autouse=True)
def turned_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be used."""
    monkeypatch.setenv(SWITCH, "1")


def read(values: list[bytes], schema: pa.Schema = SCHEMA) -> pa.RecordBatch | None:
    """What is read in C."""
    return fast.read_in_c(pa.array(values, pa.binary()), schema)


def by_arrow(values: list[bytes], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    """The same by Arrow's reader. Raises pa.ArrowInvalid."""
    (batch,) = fast.parsed(fast.lines(pa.array(values, pa.binary())), schema, "error").to_batches()
    return batch


numbers = (
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70) | st.decimals(-1000, 1000, places=3)
)
leaves = {
    "i": st.integers(-(2**63), 2**63 - 1),
    "f": numbers.map(str),
    "s": st.text(),
    "b": st.booleans(),
    "n": st.none(),
    "größe": st.text(),
    "i8": st.integers(-(2**7), 2**7 - 1),
    "i16": st.integers(-(2**15), 2**15 - 1),
    "i32": st.integers(-(2**31), 2**31 - 1),
}


def some(fields: dict[str, st.SearchStrategy[object]]) -> st.SearchStrategy[dict[str, object]]:
    """Any of these fields, or null in their place, in any order."""
    each = {name: value | st.none() for name, value in fields.items()}
    return st.fixed_dictionaries({}, optional=each).flatmap(lambda found: st.permutations([*found.items()])).map(dict)


below = some({"x": leaves["f"], "p": some({"t": st.text(), "i": leaves["i"]})})
records = some({**leaves, "o": below})


def text_of(record: dict[str, object], spaced: bool, ascii_only: bool) -> bytes:
    """The JSON text; fractions stand in it as they are written."""
    separators = (" ,\n", "\t: ") if spaced else (",", ":")

    def made(value: object, name: str) -> str:
        if isinstance(value, dict):
            colon, comma = separators[1], separators[0]
            return (
                "{"
                + comma.join(f"{json.dumps(k, ensure_ascii=False)}{colon}{made(v, k)}" for k, v in value.items())
                + "}"
            )
        return str(value) if name in ("f", "x") and value is not None else json.dumps(value, ensure_ascii=ascii_only)

    return made(record, "").encode(errors="surrogatepass")


texts = st.builds(text_of, records, st.booleans(), st.booleans())


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(texts, min_size=1, max_size=20))
def test_it_gives_what_arrow_gives(values: list[bytes]) -> None:
    """Bit for bit, zeros with a sign among them, wherever it gives anything."""
    found = read(values)
    if found is not None:
        found.validate(full=True)
        expected = by_arrow(values)
        assert found.equals(expected)
        for name in ("f", "i"):
            ours, theirs = (one.column(name).fill_null(0).view(pa.int64()) for one in (found, expected))
            assert ours.equals(theirs)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(texts, min_size=1, max_size=4), st.data())
def test_a_damaged_value_is_read_as_by_arrow_or_not_at_all(values: list[bytes], data: st.DataObject) -> None:
    """One value with some bytes changed, taken out or put in."""
    which = data.draw(st.integers(0, len(values) - 1))
    at = data.draw(st.integers(0, len(values[which])))
    put = data.draw(
        st.sampled_from(
            [b"", b'"', b"\\", b"{", b"}", b",", b":", b"0", b"-", b".", b"e5", b"\x00", b"\xff", b"\\u00e9"]
        )
    )
    values[which] = values[which][:at] + put + values[which][at + data.draw(st.integers(0, 3)) :]
    found = read(values)
    if found is not None:
        assert fast.framed(pa.array(values, pa.binary())).to_pylist() == [True] * len(values)
        assert found.equals(by_arrow(values))


@pytest.mark.parametrize(
    "value",
    [
        b'{"i":9223372036854775807,"f":0.1,"s":"a","b":true,"n":null,"o":{"x":1e-5,"p":{"t":"\\ud83d\\ude00\\n","i":-1}}}',
        b'{"f":123456789.12345678,"i":-9223372036854775808,"s":"\\u00e9\xc3\xa9"}',
        b'{ "f" : 1E+22 , "o" : { } , "s" : null }',
        b'{"f":4.9e-324,"o":{"x":-0.0,"p":null}}',
        b'{"f":100000000000000000000000,"s":""}',
        b"{ }",
        b'{"i8":-128,"i16":32767,"i32":-2147483648,"s":"1234567\x7f"}',
    ],
)
def test_plain_values_are_read(value: bytes) -> None:
    """And each is as Arrow's reader has it."""
    found = read([value, b'{"i":1}', value])
    assert found is not None
    assert found.equals(by_arrow([value, b'{"i":1}', value]))


@pytest.mark.parametrize(("name", "number"), [("i8", 128), ("i16", -32_769), ("i32", 2**31), ("i", 2**63)])
def test_an_integer_that_its_type_has_no_room_for_is_left(name: str, number: int) -> None:
    """It is not cut to size."""
    assert read([b'{"i":1}', b'{"%s":%d}' % (name.encode(), number)]) is None


@pytest.mark.parametrize("size", range(20))
@pytest.mark.parametrize("put", [b"", b"\\n", b"\\u00e9", "é".encode(), b"\n", b"\x1f"])
def test_text_of_any_length_ends_at_its_quote(size: int, put: bytes) -> None:
    """Escapes and control characters are seen at any place."""
    value = b'{"s":"' + b"~" * size + put + b" " * size + b'"}'
    found = read([value, b"{}"])
    assert (found is None) == (put[:1] in (b"\n", b"\x1f"))
    assert found is None or found.equals(by_arrow([value, b"{}"]))


def test_part_of_an_array_is_read() -> None:
    """Values before and behind it do not count."""
    values = pa.array([b"x", b'{"i":1}', b'{"i":2}', b"y"], pa.binary()).slice(1, 2)
    found = fast.read_in_c(values, SCHEMA)
    assert found is not None
    assert found.column("i").to_pylist() == [1, 2]


@pytest.mark.parametrize(
    "schema",
    [pa.schema([("a", pa.date32())]), pa.schema([('a"', pa.int64())]), pa.schema([("a", pa.list_(pa.int64()))])],
)
def test_other_schemas_are_left_to_arrow(schema: pa.Schema) -> None:
    """Types that it does not know, and names that a text may have in another form."""
    assert read([b"{}"], schema) is None


def test_what_was_built_before_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an update of an editable installation, of which Python's part alone is new."""
    monkeypatch.setattr(fast, "NEWEST", "not_there_yet")
    fast.extension.cache_clear()
    assert read([b'{"i":1}']) is None
    fast.extension.cache_clear()


def test_a_variable_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """PARQUET_SINK_NATIVE=0 is looked at each time."""
    assert read([b'{"i":1}']) is not None
    monkeypatch.setenv(SWITCH, "0")
    assert read([b'{"i":1}']) is None
