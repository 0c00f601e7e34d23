"""JSON values of known types: what is accepted, what is refused and why, and that fast and exact give the same."""

import base64
import io
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from math import inf, nan
from random import Random
from unittest.mock import patch

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.decoded import Decoded, SchemaColumns
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json import fallback
from parquet_sink.convert.json import fast as json_fast
from parquet_sink.convert.typed_json import reader as json_typed
from parquet_sink.convert.typed_json.exact import ExactReader, to_default
from parquet_sink.convert.typed_json.reader import Pieces, TypedReader
from parquet_sink.convert.typed_json.types import (
    OTHERS,
    DecimalKind,
    Field,
    Kind,
    ListKind,
    MapKind,
    ScalarKind,
    ScalarName,
    Slot,
    StructKind,
    TextKind,
    UnionKind,
    VariableDecimalKind,
    decimal_kind,
    to_arrow,
)
from tests.convert.reader import json_reader  # noqa: F401
from tests.messages import assert_says, saying
from tests.thorough import examples

SCALARS: list[ScalarName] = ["int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string", "bytes"]
SCALARS += ["date", "time", "timestamp"]

MAY_BE_MISSING = ("is null", "only be missing", "value.converter.use.optional.for.nonrequired=true")


def scalar(name: ScalarName, *, optional: bool = False) -> Slot:
    """A slot of one value."""
    return Slot(ScalarKind(name), optional)


def struct(**slots: Slot) -> Slot:
    """A slot of an object."""
    return Slot(StructKind(tuple(Field(name, slot) for name, slot in slots.items())))


def decode(reader: TypedReader, values: list[bytes]) -> Decoded:
    """As the decoders do: fast, then exactly."""
    pieces = Pieces()
    parts, left = reader.read_fast(pa.array(values, pa.binary()))
    for part in parts:
        pieces.add_part(reader, part)
    for position in left:
        try:
            pieces.add(reader, position, reader.exact.parse(values[position]))
        except InvalidValue as error:
            pieces.add_invalid(position, str(error))
    return pieces.to_decoded()


@contextmanager
def eager() -> Iterator[None]:
    """The fast path is tried on the smallest blocks, too."""
    with (
        patch.object(json_typed, "FEWEST", 1),
        patch.object(json_typed, "SMALLEST", 1),
        patch.object(json_typed, "ONE_IN", 1),
        patch.object(fallback, "WINDOW", 3),
    ):
        yield


@contextmanager
def exact_only() -> Iterator[None]:
    """The fast path covers nothing."""
    with patch.object(json_fast, "attempt", lambda values, schema, unexpected="error": ""):
        yield


def facts(array: pa.Array) -> object:
    """An array as values that compare by type and sign, too, and that Python can hold."""
    array.validate(full=True)
    if pa.types.is_temporal(array.type):
        plain = pa.int64() if array.type.bit_width == 64 else pa.int32()
        return repr(array.cast(plain).to_pylist())
    if pa.types.is_struct(array.type):
        for index in range(array.type.num_fields):
            assert array.type.field(index).nullable or not array.field(index).null_count
        below = [facts(child) for child in array.flatten()]
        return (repr(array.is_valid().to_pylist()), below)
    if pa.types.is_list(array.type):
        return (repr(pc.list_value_length(array).to_pylist()), facts(array.flatten()))
    return repr(array.to_pylist())


def outcome(decoded: Decoded) -> object:
    """Everything that can be seen of what was decoded."""
    pieces = []
    for piece in decoded.pieces:
        assert isinstance(piece, SchemaColumns)
        assert piece.positions.type == pa.int64()
        pieces.append((piece.positions.to_pylist(), str(piece.rows.type), facts(piece.rows)))
    return pieces, sorted(decoded.invalid.items())


ACCEPTED: list[tuple[Kind, str, object]] = [
    (ScalarKind("int8"), "-128", -128),
    (ScalarKind("int16"), "32767", 32767),
    (ScalarKind("int32"), "-2147483648", -(2**31)),
    (ScalarKind("int64"), "9223372036854775807", 2**63 - 1),
    (ScalarKind("int64"), "1.0", 1),
    (ScalarKind("int32"), "1e3", 1000),
    (ScalarKind("int64"), "9007199254740993.0", 9007199254740993),
    (ScalarKind("int64"), "-9.223372036854775808e18", -(2**63)),
    (ScalarKind("int64"), "-0", 0),
    (ScalarKind("float32"), "0.1", 0.10000000149011612),
    (ScalarKind("float64"), "7", 7.0),
    (ScalarKind("float64"), "18446744073709551616", 2.0**64),
    (ScalarKind("float64"), '"NaN"', nan),
    (ScalarKind("float64"), '"-Infinity"', -inf),
    (ScalarKind("float32"), '"Infinity"', inf),
    (ScalarKind("float32"), '"NaN"', nan),
    (ScalarKind("boolean"), "true", True),
    (ScalarKind("string"), '"\\u00fc"', "ü"),
    (ScalarKind("bytes"), '"aGk="', b"hi"),
    (ScalarKind("bytes"), '""', b""),
    (ScalarKind("date"), "-1", -1),
    (ScalarKind("time"), "86399999", 86399999),
    (ScalarKind("timestamp"), "-9223372036854775808", -(2**63)),
    (DecimalKind(64, 2), '"AeI="', Decimal("4.82")),
    (DecimalKind(64, 2), '"/w=="', Decimal("-0.01")),
    (DecimalKind(9, 0, 2), '"BQ=="', Decimal(500)),
    (DecimalKind(9, 0, 2), "550", Decimal(550)),
    (VariableDecimalKind(), '{"scale":2,"value":"AeI="}', "4.82"),
    (VariableDecimalKind(), '{"scale":-2,"value":"BQ=="}', "500"),
    (DecimalKind(9, 2), "12.5", Decimal("12.50")),
    (DecimalKind(9, 2), "-3", Decimal("-3.00")),
    (DecimalKind(9, 2), "12.500", Decimal("12.50")),
    (DecimalKind(9, 2), "1e3", Decimal("1000.00")),
    (DecimalKind(40, 20), "12345678901234567.12345678901234567890", Decimal("12345678901234567.12345678901234567890")),
    (DecimalKind(40, 0), "123456789012345678901234567890", Decimal(123456789012345678901234567890)),
    (DecimalKind(9, 2), "0.0", Decimal("0.00")),
    (ListKind(scalar("int32", optional=True)), "[1,null,2]", [1, None, 2]),
    (MapKind(scalar("string"), scalar("int32"), "object"), '{"a":1,"b":2,"a":3}', [("a", 3), ("b", 2)]),
    (MapKind(scalar("int32"), scalar("string"), "pairs"), '[[1,"x"],[2,"y"],[1,"x"]]', [(1, "x"), (2, "y")]),
    (MapKind(scalar("int32"), scalar("string"), "entries"), '[{"key":1,"value":"x"}]', [(1, "x")]),
    (struct(a=scalar("int8"), b=scalar("string", optional=True)).kind, '{"z":[],"a":1}', {"a": 1}),
    (
        TextKind(),
        '{"b": 1.10, "a": [18446744073709551617, null, "ü"]}',
        '{"b":1.10,"a":[18446744073709551617,null,"ü"]}',
    ),
    (TextKind("object"), "{}", "{}"),
    (struct(a=scalar("int8"), o=Slot(OTHERS, optional=True)).kind, '{"a":1}', {"a": 1}),
    (
        struct(a=scalar("int8"), o=Slot(OTHERS, optional=True)).kind,
        '{"z":[0.123456789012345678],"a":1,"o":2}',
        {"a": 1, "o": '{"z":[0.123456789012345678],"o":2}'},
    ),
]


@pytest.mark.parametrize(("kind", "text", "value"), ACCEPTED)
def test_values_that_fit(kind: Kind, text: str, value: object) -> None:
    """Each type takes what Connect's JsonConverter writes for it, and what means the same."""
    found = ExactReader(Slot(kind)).parse(text.encode())
    assert repr(found) == repr(value)
    assert pa.array([found], to_arrow(kind)).validate(full=True) is None


SMALL = scalar("int32", optional=True)
WHOLE = "whole number (int32)"
REFUSED: list[tuple[Kind, str, tuple[str, ...]]] = [
    (ScalarKind("int8"), "128", ("beyond", "int8")),
    (ScalarKind("int32"), "2147483648", ("beyond", "int32")),
    (ScalarKind("int64"), "9223372036854775808", ("beyond", "int64")),
    (ScalarKind("int64"), "100000000000000000000", ("beyond", "int64")),
    (ScalarKind("int64"), "1e19", ("beyond", "int64")),
    (ScalarKind("int64"), "1e300", ("beyond", "int64")),
    (ScalarKind("int64"), "9007199254740993.5", ("a fraction", "whole number (int64)")),
    (ScalarKind("int32"), '"7"', ("is text", WHOLE)),
    (ScalarKind("int32"), "true", ("a boolean", WHOLE)),
    (ScalarKind("int32"), "1.5", ("a fraction", WHOLE)),
    (ScalarKind("time"), "86400000", ("beyond", "time")),
    (ScalarKind("time"), "-1", ("beyond", "time")),
    (ScalarKind("float32"), "1e39", ("beyond", "float32")),
    (ScalarKind("float64"), "false", ("a boolean", "should be a number")),
    (ScalarKind("float64"), '"nan"', ("is text", "should be a number")),
    (ScalarKind("float32"), '"0.5"', ("is text", "should be a number")),
    (ScalarKind("int32"), '"NaN"', ("is text", WHOLE)),
    (ScalarKind("boolean"), "0", ("a number", "true or false")),
    (ScalarKind("string"), "{}", ("an object", "should be text")),
    (ScalarKind("bytes"), '"aGk"', ("not base64",)),
    (ScalarKind("bytes"), '"aG k="', ("not base64",)),
    (ScalarKind("bytes"), '"ü"', ("not base64",)),
    (ScalarKind("bytes"), "1", ("a number", "text (base64)")),
    (DecimalKind(3, 0, 2), '"DA=="', ("more than 3 digits",)),
    (VariableDecimalKind(), '"BQ=="', ("is text", "should be an object")),
    (VariableDecimalKind(), '{"value":"BQ=="}', ("field scale", "null", "whole number")),
    (VariableDecimalKind(), '{"scale":1}', ("field value", "null", "base64")),
    (VariableDecimalKind(), '{"scale":1,"value":""}', ("field value", "is empty")),
    (DecimalKind(3, 2), "12.50", ("more than 3 digits",)),
    (DecimalKind(3, 2), '"A+g="', ("more than 3 digits",)),
    (DecimalKind(9, 2), "1.234", ("more than 2 digits", "after the point")),
    (DecimalKind(9, 2), "1e-99999", ("more than 2 digits", "after the point")),
    (DecimalKind(9, 2), '""', ("is empty", "a decimal")),
    (DecimalKind(9, 2), "true", ("a boolean", "a decimal")),
    (DecimalKind(9, 2), '"' + base64.b64encode(bytes(65)).decode() + '"', ("too long", "a decimal")),
    (ListKind(scalar("int32")), "[1,null]", ("field [1]", "is null", "required")),
    (ListKind(scalar("int32")), "{}", ("an object", "should be a list")),
    (MapKind(scalar("string"), SMALL, "object"), "[]", ("is a list", "should be an object", "text for keys")),
    (MapKind(SMALL, SMALL, "pairs"), "[[1]]", ("list of pairs", "a key and a value")),
    (MapKind(SMALL, SMALL, "pairs"), "[[null,1]]", ("a key", "is null")),
    (MapKind(SMALL, SMALL, "pairs"), "[[1,2],[1,3]]", ("a key twice",)),
    (MapKind(SMALL, SMALL, "entries"), "[{}]", ("list of objects", '"key"', '"value"')),
    (MapKind(SMALL, SMALL, "entries"), '[{"key":1,"other":2}]', ("list of objects", '"key"', '"value"')),
    (TextKind("object"), "[]", ("is a list", "should be an object")),
    (TextKind("list"), "{}", ("is an object", "should be a list")),
    (TextKind(), "[" * 101 + "]" * 101, ("nested deeper than 100 levels",)),
    (struct(a=struct(b=Slot(ListKind(SMALL)))).kind, '{"a":{"b":[1,"x"]}}', ("field a.b[1]", "is text", WHOLE)),
    (struct(a=struct(b=scalar("int8"))).kind, '{"a":{}}', ("field a.b ", "missing", "required")),
    (struct(a=scalar("int8")).kind, '{"a":null}', ("field a ", "null", "required")),
    (struct(a=scalar("int8")).kind, "[]", ("is a list", "should be an object")),
    (struct().kind, "null", ("the value", "null", "required")),
    (struct().kind, "NaN", ("not JSON", "NaN", "position 1")),
    (struct().kind, "", ("is empty", "not JSON")),
    (struct().kind, "\x1f\udc8b\x08", ("not JSON", "gzip data")),
]


@pytest.mark.parametrize(("kind", "text", "reason"), REFUSED)
def test_values_that_do_not_fit(kind: Kind, text: str, reason: tuple[str, ...]) -> None:
    """Whatever is not of the type is refused by its path and without its content; nothing is read as 0 or cut."""
    with pytest.raises(InvalidValue, match=saying(*reason)) as raised:
        ExactReader(Slot(kind)).parse(text.encode("utf-8", "surrogateescape"))
    content = text.strip('"')
    assert len(content) < 2 or content in ("null", "NaN") or content not in str(raised.value)


def test_null_takes_the_default() -> None:
    """Null and missing are the default where there is one, null where that is allowed, and invalid elsewhere."""
    slot = struct(a=Slot(ScalarKind("int32"), default=7), b=Slot(ScalarKind("string"), optional=True, default="x"))
    assert ExactReader(slot).parse(b'{"a":null}') == {"a": 7, "b": "x"}
    assert ExactReader(Slot(ScalarKind("int32"), optional=True)).parse(b"null") is None


def test_a_field_may_be_left_out_and_not_be_null() -> None:
    """`may_be_absent` tells a missing field from one that is null, both ways, also when its name is escaped."""
    slot = struct(a=Slot(ScalarKind("int32"), may_be_absent=True), b=scalar("int32", optional=True))
    values = [b'{"b":null}', b'{"a":null,"b":1}', b'{"a" : null}', b'{"\\u0061":null}', b'{"a":1}', b'{"b":2}'] * 20
    with eager():
        found = decode(TypedReader(slot), values)
    assert sorted({position % 6 for position in found.invalid}) == [1, 2, 3]
    (why,) = set(found.invalid.values())
    assert_says(why, "field a ", *MAY_BE_MISSING)
    (piece,) = found.pieces
    assert isinstance(piece, SchemaColumns)
    assert piece.rows.type.field("a").nullable


@settings(max_examples=examples(60), deadline=None)
@given(
    st.text(st.sampled_from('anul"\\/:,{ \nü\u2028'), min_size=1, max_size=6),
    st.booleans(),
    st.sampled_from(["", " ", "\n"]),
)
def test_null_is_found_under_any_name(name: str, ascii_only: bool, space: str) -> None:
    """However the name is written, and whatever texts look like it."""
    slot = struct(**{name: Slot(ScalarKind("string"), may_be_absent=True), "b": scalar("string", optional=True)})
    written, text = json.dumps(name, ensure_ascii=ascii_only), json.dumps(f'{name}":null\\')
    good = [f'{{"b":{text}}}', f"{{{written}:{text}}}", f'{{"b":{space}null}}', f'{{"b":null,{written}:{text}}}']
    bad = [f'{{"b":{text},{space}{written}{space}:{space}null}}', f"{{{written}:null{space}}}"]
    values = [one.encode() for one in [*good, *bad]] * 20
    with eager():
        found = decode(TypedReader(slot), values)
    assert sorted({position % len(values[:6]) for position in found.invalid}) == [4, 5]


def test_unions_take_the_branch_that_fits_first() -> None:
    """A plain type that fits wins in order; of structs the one with most fields in common."""
    kind = UnionKind(
        (
            Field("f0", struct(a=scalar("int8"))),
            Field("f1", struct(a=scalar("int8"), b=scalar("int8"))),
            Field("f2", scalar("int64")),
            Field("f3", scalar("float64")),
            Field("f4", scalar("string")),
        )
    )
    read = ExactReader(Slot(kind)).parse

    def branch(text: bytes) -> object:
        row = read(text)
        assert isinstance(row, dict)
        return {name: value for name, value in row.items() if value is not None}

    assert branch(b"1") == {"f2": 1}
    assert branch(b"1.5") == {"f3": 1.5}
    assert branch(b'"x"') == {"f4": "x"}
    assert branch(b'{"a":1}') == {"f0": {"a": 1}}
    assert branch(b'{"a":1,"b":2,"c":3}') == {"f1": {"a": 1, "b": 2}}
    for text in (b"true", b'{"c":3}'):
        with pytest.raises(InvalidValue, match=saying("fits none", "types")):
            read(text)


def test_unions_lose_no_field_that_a_branch_names() -> None:
    """A field that the chosen struct lacks goes to another branch that names it, or the value is refused."""
    kind = UnionKind(
        (
            Field("f0", struct(a=scalar("string", optional=True), p=struct(x=scalar("int8", optional=True)))),
            Field("f1", struct(b=scalar("int8", optional=True))),
            Field("f2", struct(c=scalar("int8"), d=scalar("int8"))),
        )
    )
    read = ExactReader(Slot(kind)).parse
    first = {"a": "k", "p": {"x": 1}}
    assert read(b'{"a":"k","p":{"x":1}}') == {"f0": first}
    assert read(b'{"a":"k","p":{"x":1},"b":2}') == {"f0": first, "f1": {"b": 2}}
    with pytest.raises(InvalidValue, match=saying("the field d", "does not have")):
        read(b'{"a":"k","p":{"x":1},"d":2}')


ITEM_A, ITEM_B = struct(a=scalar("int8", optional=True)), struct(b=scalar("int8", optional=True))
LISTS = UnionKind((Field("f0", Slot(ListKind(ITEM_A))), Field("f1", Slot(ListKind(ITEM_B)))))
OPEN = UnionKind((Field("f0", ITEM_A), Field("f1", Slot(TextKind("object")))))


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (LISTS, '[{"b":1}]', {"f1": [{"b": 1}]}),
        (LISTS, '[{"a":1},{"b":1}]', {"f0": [{"a": 1}, {}], "f1": [{}, {"b": 1}]}),
        (LISTS, "[]", {"f0": []}),
        (OPEN, '{"a":1}', {"f0": {"a": 1}}),
        (OPEN, '{"a":1,"c":2}', {"f0": {"a": 1}, "f1": '{"a":1,"c":2}'}),
        (OPEN, '{"c":2}', {"f1": '{"c":2}'}),
        (OPEN, "{}", {"f0": {}}),
    ],
)
def test_unions_lose_nothing_in_lists_and_open_objects(kind: Kind, text: str, value: object) -> None:
    """The list that keeps most of a value takes it, and what it lacks goes to another, or to JSON text."""
    found = ExactReader(Slot(kind)).parse(text.encode())
    assert isinstance(found, dict)
    assert {name: below for name, below in found.items() if below is not None} == value


def test_defaults_must_fit() -> None:
    """A default in a schema is read as any value, and its place is named when it does not fit."""
    assert to_default(DecimalKind(9, 2), "AeI=", ()) == Decimal("4.82")
    with pytest.raises(InvalidValue, match=saying("default", "schema at a.b ", "does not fit", "is text")):
        to_default(ScalarKind("int8"), "x", ("a", "b"))


@pytest.mark.parametrize(
    "parameters",
    [{}, {"scale": "-77"}, {"scale": "77"}, {"scale": "x"}, {"scale": "2", "connect.decimal.precision": "0"}],
)
def test_decimals_need_a_scale_and_room(parameters: dict[str, object]) -> None:
    """A decimal whose scale or precision is missing or out of bounds makes its schema invalid."""
    with pytest.raises(InvalidValue, match=saying("schema at x ", "needs a")):
        decimal_kind(parameters, ("x",))


def test_decimals_are_as_wide_as_they_must_be() -> None:
    """128 bits up to a precision of 38, 256 above; 64 digits when the schema does not tell."""
    assert decimal_kind({"scale": "2"}, ()) == DecimalKind(64, 2)
    assert decimal_kind({"scale": "4", "connect.decimal.precision": "2"}, ()) == DecimalKind(4, 4)
    assert decimal_kind({"scale": "-2", "connect.decimal.precision": "7"}, ()) == DecimalKind(9, 0, 2)
    assert decimal_kind({"scale": "-76"}, ()) == DecimalKind(76, 0, 76)
    assert to_arrow(DecimalKind(38, 2)) == pa.decimal128(38, 2)
    assert to_arrow(decimal_kind({"scale": "70"}, ())) == pa.decimal256(70, 70)


# --- fast equals exact

PLAIN: dict[str, list[str]] = {
    "int8": ["0", "-128", "127", "128", "-0", "1.0"],
    "int16": ["0", "32767", "32768", "-5"],
    "int32": ["7", "2147483647", "2147483648", "-0", "1e2"],
    "int64": ["7", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1.0", "2.5"],
    "float32": [
        "0.1",
        "3",
        "-0",
        "-0.0",
        "1e39",
        "1e-50",
        "3.4028235e38",
        "3.4028236e38",
        "16777217",
        '"NaN"',
        '"-Infinity"',
    ],
    "float64": [
        "0.1",
        "3",
        "-0",
        "-0.0",
        "1e308",
        "1e400",
        "5e-324",
        "9007199254740993",
        "18446744073709551617",
        '"NaN"',
        '"Infinity"',
    ],
    "boolean": ["true", "false"],
    "string": ['"x"', '""', '"ü"', '"\\u00fc\\n"', '"null"', '"}\\n{"', '"\\ud800"', '"\\u0000"', '"\t"', '"\udcff"'],
    "bytes": ['"aGk="', '""', '"aGk"', '"a==="', '"\\u0061Gk="', '"ü"'],
    "date": ["0", "-1", "19000", "2147483648"],
    "time": ["0", "86399999", "86400000", "-1"],
    "timestamp": ["0", "1700000000000", "-1", "9223372036854775807"],
    "decimal": [
        '"AeI="',
        '"/w=="',
        "99999e74",
        "1e-3",
        "1.500",
        "0.001",
        "123456789.1",
        "-0",
        '"12.5"',
        '"1234"',
        '"AA=="',
        '""',
        '"' + base64.b64encode(b"\x7f" * 30).decode() + '"',
        "12.5",
        "1",
    ],
    "variable": [
        '{"scale":2,"value":"AeI="}',
        '{"value":"/w==","scale":-3,"more":1}',
        '{"scale":2}',
        '{"scale":null,"value":"AeI="}',
        '{"scale":1e1,"value":"AeI="}',
        '{"scale":2147483648,"value":"AeI="}',
        '{"scale":2,"value":""}',
        '{"scale":2,"value":"AeI"}',
        "null",
        "{}",
    ],
}
ODD = ["null", "1", "1.5", '"x"', "true", "[]", "{}", '{"x":1}', "[1]", "NaN", "-", "9" * 70]
NAMES = ["a", "b", "c d", "é", "x"]
EXTRAS = ["1", '"x"', "null", "[1,{}]", '{"a":1,"a":2}', "NaN", "-Infinity", "1e400", "1e999", "1" * 310, '"\\ud800"']
EXTRAS += ["[" * 1100 + "]" * 1100, "[" * 950 + "]" * 950, "01", '"\t"', '"NaN 1e999"', "-1.5E+0400"]


def defaults(kind: Kind) -> st.SearchStrategy[object]:
    """None, or a value that a schema may give for null."""
    given: dict[str, object] = {"int32": 5, "string": "d", "float64": 0.5, "boolean": False, "date": 3}
    if isinstance(kind, ScalarKind) and kind.name in given:
        return st.sampled_from([None, given[kind.name]])
    if isinstance(kind, ListKind):
        return st.sampled_from([None, None, []])
    return st.none()


@st.composite
def slots(draw: st.DrawFn, kinds: st.SearchStrategy[Kind], *, field: bool) -> Slot:
    """A slot of one of these kinds; field: in a struct."""
    kind = draw(kinds)
    return Slot(kind, draw(st.booleans()), draw(defaults(kind)), may_be_absent=field and draw(st.booleans()))


def structs(kinds: st.SearchStrategy[Kind]) -> st.SearchStrategy[StructKind]:
    """A struct of some of these."""
    names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)
    others = st.sampled_from([(), (), (Field("others", Slot(OTHERS, optional=True)),)])
    return names.flatmap(
        lambda found: st.tuples(st.tuples(*[slots(kinds, field=True) for _ in found]), others).map(
            lambda made: StructKind((*map(Field, found, made[0]), *made[1]))
        )
    )


leaves: st.SearchStrategy[Kind] = st.sampled_from(SCALARS).map(ScalarKind) | st.sampled_from(
    [DecimalKind(9, 2), DecimalKind(64, 2), DecimalKind(9, 0, 2), VariableDecimalKind()]
)
nested: st.SearchStrategy[Kind] = st.recursive(
    leaves, lambda below: slots(below, field=False).map(ListKind) | structs(below), max_leaves=5
)


@st.composite
def texts(draw: st.DrawFn, slot: Slot, tidy: bool, numbers: bool) -> str:
    """A JSON text for a slot; tidy: of the right shape at least; numbers: so decimals are written for the most part."""
    if draw(st.integers(0, 19)) == 0:
        return "null"
    if not tidy and draw(st.integers(0, 29)) == 0:
        return draw(st.sampled_from(ODD))
    kind = slot.kind
    if isinstance(kind, ScalarKind | DecimalKind | VariableDecimalKind):
        names = {DecimalKind: "decimal", VariableDecimalKind: "variable"}
        plain = PLAIN[kind.name if isinstance(kind, ScalarKind) else names[type(kind)]]
        usual = plain[-2:] if numbers and isinstance(kind, DecimalKind) else plain[:2]
        return draw(st.sampled_from(usual if tidy or draw(st.booleans()) else plain))
    space = draw(st.sampled_from(["", "", "", " ", "\n", "\r\t"]))
    if isinstance(kind, ListKind):
        return f"[{space}" + f",{space}".join(draw(st.lists(texts(kind.item, tidy, numbers), max_size=3))) + "]"
    assert isinstance(kind, StructKind)
    members = []
    for field in [field for field in kind.fields if field.slot.kind != OTHERS]:
        chance = draw(st.integers(0, 29))
        if chance > 2:
            key = "\\u0061" if field.name == "a" and chance == 3 else field.name
            members.append(f'{space}"{key}"{space}:{draw(texts(field.slot, tidy, numbers))}{space}')
        if chance == 29 and not tidy:
            members.append(f'"{field.name}":{draw(texts(field.slot, tidy, numbers))}')
    if draw(st.integers(0, 14)) == 0:
        members.append(f'"extra":{draw(st.sampled_from(EXTRAS[:5] if tidy else EXTRAS))}')
    return "{" + ",".join(draw(st.permutations(members))) + "}"


FRAMES = [
    "{},{}",
    "[{}]",
    "{}{}",
    "{}null{}",
    "{}\n{}",
    " {}",
    "{}\n",
    "\ufeff{}",
    "{}}",
    "{}x",
    "\t{}\r\n",
    "{}nullnull{}",
]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Slot, list[bytes]]:
    """A slot and values for it, most of them good."""
    slot = Slot(draw(structs(nested)), optional=draw(st.booleans()))
    numbers = draw(st.booleans())
    one = st.integers(0, 5).flatmap(lambda n: texts(slot, tidy=n > 0, numbers=numbers))
    rounds = draw(st.lists(one, min_size=1, max_size=10))
    if draw(st.integers(0, 9)) == 0:
        frame = draw(st.sampled_from([*FRAMES, "", "null", "\x1f\udc8b"]))
        rounds.insert(draw(st.integers(0, len(rounds))), frame.replace("{}", rounds[0]))
    return slot, [text.encode("utf-8", "surrogateescape") for text in rounds]


@settings(max_examples=examples(70), deadline=None)
@given(cases(), st.integers(1, 11))
def test_fast_equals_exact(case: tuple[Slot, list[bytes]], size: int) -> None:
    """Whatever the type, the values and the cut into blocks, both paths give the same."""
    slot, values = case
    blocks = [values[start : start + size] for start in range(0, len(values), size)]
    with eager():
        reader = TypedReader(slot)
        fast = [outcome(decode(reader, block)) for block in blocks]
    with exact_only():
        reader = TypedReader(slot)
        exact = [outcome(decode(reader, block)) for block in blocks]
    assert fast == exact


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(["float32", "float64"]), st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_fractions_are_equal_to_the_last_bit(name: ScalarName, numbers: list[float]) -> None:
    """Both parsers round alike."""
    values = [b'{"x":' + repr(number).encode() + b"}" for number in numbers]
    slot = struct(x=scalar(name))
    with eager():
        fast = outcome(decode(TypedReader(slot), values))
    with exact_only():
        assert outcome(decode(TypedReader(slot), values)) == fast


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=10), st.sampled_from([1, 9, 38, 39, 64, 76]))
def test_decimals_are_equal(raws: list[bytes], precision: int) -> None:
    """Unscaled values of any length, within the precision and beyond."""
    values = [orjson.dumps({"x": base64.b64encode(raw).decode()}) for raw in raws]
    slot = struct(x=Slot(DecimalKind(precision, 1)))
    with eager():
        fast = outcome(decode(TypedReader(slot), values))
    with exact_only():
        assert outcome(decode(TypedReader(slot), values)) == fast


@st.composite
def decimals_as_numbers(draw: st.DrawFn) -> tuple[DecimalKind, list[str]]:
    """A kind of decimals, and numbers of about as many digits as it has."""
    precision = draw(st.sampled_from([1, 2, 9, 18, 19, 38, 39, 64, 76]))
    kind = DecimalKind(precision, draw(st.integers(0, precision)))
    about = st.integers(max(kind.precision - kind.scale - 2, 0), kind.precision - kind.scale + 3)
    whole = about.map(lambda digits: ("1357986424" * 9)[:digits] or "0")
    fraction = st.tuples(st.integers(0, kind.scale), st.integers(0, 9)).map(lambda pair: "." + str(pair[1]) * pair[0])
    number = st.tuples(st.sampled_from(["", "-"]), whole, fraction).map(lambda parts: "".join(parts).rstrip("."))
    return kind, draw(st.lists(number, min_size=1, max_size=6))


@settings(max_examples=examples(200), deadline=None)
@given(decimals_as_numbers(), st.booleans())
def test_decimals_as_numbers_are_equal(case: tuple[DecimalKind, list[str]], within: bool) -> None:
    """Numbers of about as many digits as the precision are the same number, or the same refusal, in both ways."""
    kind, numbers = case
    inner = struct(d=Slot(kind))
    slot = struct(o=Slot(ListKind(inner)), x=scalar("int8")) if within else inner
    frame = '{"x":1,"o":[{"d":0},{"d":%s}]}' if within else '{"d":%s}'
    values = [(frame % number).encode() for number in numbers]
    with eager():
        fast = outcome(decode(TypedReader(slot), values))
    with exact_only():
        assert outcome(decode(TypedReader(slot), values)) == fast


@pytest.mark.parametrize("count", [1, 63, 64, 65, 1_000])
def test_a_decimal_beyond_its_precision_is_refused_in_a_block_of_any_size(count: int) -> None:
    """A number that Arrow's reader lets pass, or overflow into another, is refused, and its neighbours stay."""
    slot = struct(p=Slot(DecimalKind(9, 2)), q=Slot(DecimalKind(38, 10)))
    values = [b'{"p":1.25,"q":2.5}'] * count
    values[count // 2] = b'{"p":123456789,"q":2.5}'
    values.append(b'{"p":1,"q":999999999999999999999999999999}')
    found = decode(TypedReader(slot), values)
    assert found.invalid.keys() == {count // 2, count}
    assert_says(found.invalid[count // 2], "field p", "more than 9 digits")
    assert_says(found.invalid[count], "field q", "more than 38 digits")
    assert [len(piece.positions) for piece in found.pieces] == ([count - 1] if count > 1 else [])


def test_bad_records_leave_their_neighbours_fast() -> None:
    """Few bad values in a block send only some hundred others the exact way, and all others keep their places."""
    slot = struct(a=scalar("int32"), b=scalar("string", optional=True))
    values = [orjson.dumps({"a": number, "b": "x"}) for number in range(10_000)]
    for bad in (17, 5_000, 9_999):
        values[bad] = b'{"a":"no"}'
    reader = TypedReader(slot)
    _, left = reader.read_fast(pa.array(values, pa.binary()))
    assert {17, 5_000, 9_999} <= set(left)
    assert len(left) < 600
    found = decode(reader, values)
    (piece,) = found.pieces
    assert isinstance(piece, SchemaColumns)
    assert sorted(found.invalid) == [17, 5_000, 9_999]
    assert piece.rows.field("a").to_pylist() == piece.positions.to_pylist()


GOOD = b'{"i":%d,"n":7,"f":0.5,"s":"x","l":[1,2],"o":{"i":1},"d":"AeI="}'
DAMAGE = {
    "another type": (b'"n":7', b'"n":"7"'),
    "an object": (b'"s":"x"', b'"s":{"a":1}'),
    "a list": (b'"s":"x"', b'"s":["x"]'),
    "a boolean": (b'"f":0.5', b'"f":true'),
    "a fraction": (b'"n":7', b'"n":7.5'),
    "a whole number written as a fraction": (b'"n":7', b'"n":7.0'),
    "a whole number with an exponent": (b'"n":7', b'"n":7e1'),
    "out of range": (b'"n":7', b'"n":2147483648'),
    "far out of range": (b'"i":', b'"i":99999999999999999999'),
    "just out of range": (b'"i":', b'"i":9223372036854775808, "z":'),
    "in a list": (b"[1,2]", b"[1,2.5]"),
    "first in a list": (b"[1,2]", b"[9999999999,2]"),
    "below": (b'"o":{"i":1}', b'"o":{"i":"1"}'),
    "twice": (b'"n":7', b'"n":7,"n":8'),
    "infinite": (b"0.5", b"1e999"),
    "no number": (b"0.5", b"NaN"),
    "infinite as text": (b"0.5", b'"-Infinity"'),
    "no base64": (b"AeI=", b"AeI"),
    "missing": (b'"n":7,', b""),
    "null": (b'"n":7', b'"n":null'),
    "unexpected": (b'"n":7', b'"n":7,"more":[{}]'),
    "escaped name": (b'"n":7', b'"\\u006e":"7"'),
    "no JSON": (b'"n":7', b'"n":07'),
    "not UTF-8": (b'"x"', b'"\xff"'),
    "cut short": (b"}}", b""),
    "empty": (GOOD, b""),
    "two": (b'{"i"', b'{}{"i"'),
    "no object": (GOOD, b"[7]"),
    "blanks": (b'{"i"', b' \n {"i"'),
}
MIXED = struct(
    i=scalar("int64"),
    n=scalar("int32"),
    f=scalar("float64"),
    s=scalar("string"),
    l=Slot(ListKind(scalar("int32"))),
    o=struct(i=scalar("int64")),
    d=Slot(DecimalKind(9, 2)),
)


def damaged(kind: str, number: int) -> bytes:
    """One bad value of a kind."""
    old, new = DAMAGE[kind]
    return GOOD.replace(old, new.replace(b"%", b"%%") if old == GOOD else new) % ((number,) if old != GOOD else ())


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_bad_value_in_a_hundred_leaves_the_others_together(kind: str) -> None:
    """Whatever is wrong, only such values go the exact way, in the first block and in the next; and it is as exact."""
    values = [damaged(kind, at) if at % 100 == 50 else GOOD % at for at in range(2_000)]
    reader = TypedReader(MIXED)
    for _ in range(2):
        _, left = reader.read_fast(pa.array(values, pa.binary()))
        assert len(left) <= 20
        assert all(at % 100 == 50 for at in left)
    with exact_only():
        exact = outcome(decode(TypedReader(MIXED), values))
    assert outcome(decode(reader, values)) == exact


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 10**6), st.lists(st.sampled_from(sorted(DAMAGE)), max_size=4), st.integers(300, 1500))
def test_bad_values_among_many_are_judged_as_each_by_itself(seed: int, kinds: list[str], size: int) -> None:
    """Bad values of some kinds at random places, few or many, in blocks of any size, one after the other."""
    chance = Random(seed)
    often = chance.choice([0.001, 0.01, 0.2]) if kinds else 0
    values = [damaged(chance.choice(kinds), at) if chance.random() < often else GOOD % at for at in range(1_500)]
    blocks = [values[start : start + size] for start in range(0, len(values), size)]
    fast_reader, exact_reader = TypedReader(MIXED), TypedReader(MIXED)
    fast = [outcome(decode(fast_reader, block)) for block in blocks]
    with exact_only():
        assert fast == [outcome(decode(exact_reader, block)) for block in blocks]


def test_many_values_that_are_not_finite_leave_the_others_together() -> None:
    """Where a third of the values have NaN as text, only these go the exact way."""
    values = [damaged("infinite as text", at) if at % 3 == 0 else GOOD % at for at in range(2_000)]
    _, left = TypedReader(MIXED).read_fast(pa.array(values, pa.binary()))
    assert left == [*range(0, 2_000, 3)]


def test_unexpected_fields_are_ignored_fast() -> None:
    """Fields that the schema does not have end no fast path, wherever they are."""
    slot = struct(a=scalar("int32"))
    reader = TypedReader(slot)
    values = [orjson.dumps({"a": number, "more": {"a": [number]}}) for number in range(300)]
    for _ in range(2):
        parts, left = reader.read_fast(pa.array(values, pa.binary()))
        assert left == []
        assert sum(len(part.rows) for part in parts) == 300


@pytest.mark.parametrize("path", [eager, exact_only])
def test_null_objects_with_required_fields_go_to_parquet(path: Callable[[], AbstractContextManager[None]]) -> None:
    """What is below an object that is null holds no nulls itself where its type has none: Parquet's writer refuses."""
    leaves = {name: scalar(name) for name in SCALARS}
    below = struct(l=Slot(ListKind(scalar("int64"))), d=Slot(DecimalKind(9, 2)), s=struct(x=scalar("int8")), **leaves)
    slot = struct(o=Slot(below.kind, optional=True))
    with path():
        found = decode(TypedReader(slot), [b'{"o":null}', b"{}"])
    (piece,) = found.pieces
    assert isinstance(piece, SchemaColumns)
    file = io.BytesIO()
    pq.write_table(pa.Table.from_struct_array(piece.rows), file)
    assert pq.read_table(pa.BufferReader(file.getvalue())).to_pylist() == [{"o": None}] * 2


def test_decimals_written_as_numbers_are_fast() -> None:
    """A block of them is read at once; text, escapes and exponents among them go the exact way."""
    slot = struct(a=Slot(DecimalKind(9, 2), optional=True), b=scalar("string"))
    values = [b'{"a":%d.5,"b":"x"}' % number for number in range(300)]
    odd = [b'{"a":"1234","b":"x"}', b'{"\\u0061":"1234","b":"x"}', b'{"a":1e2,"b":"x"}', b'{"a":null,"b":"x"}']
    reader = TypedReader(slot)
    _, left = reader.read_fast(pa.array([*values, *odd], pa.binary()))
    assert left == [300, 301, 302]
    (piece,) = decode(reader, [*values, *odd]).pieces
    assert isinstance(piece, SchemaColumns)
    found = [None if row["a"] is None else str(row["a"]) for row in piece.rows.to_pylist()]
    assert found == [*[f"{number}.50" for number in range(300)], "-26588.24", "-26588.24", "100.00", None]


def test_lists_of_nulls_are_read() -> None:
    """Lists that may have nothing but nulls have as many as are written, in a block of any size."""
    kind = struct(a=Slot(ListKind(scalar("null", optional=True)), optional=True)).kind
    for count in (1, 100):
        (piece,) = decode(TypedReader(Slot(kind)), [b"{}", b'{"a":[null,null]}', b'{"a":[]}'] * count).pieces
        assert isinstance(piece, SchemaColumns)
        assert piece.rows.to_pylist() == [{"a": None}, {"a": [None, None]}, {"a": []}] * count


def test_maps_and_unions_are_read_exactly() -> None:
    """A type that Arrow's reader does not know goes the exact way as a whole."""
    slot = struct(m=Slot(MapKind(scalar("string"), scalar("int32"), "object")))
    found = decode(TypedReader(slot), [b'{"m":{"a":1}}'] * 100)
    (piece,) = found.pieces
    assert isinstance(piece, SchemaColumns)
    assert piece.rows.to_pylist() == [{"m": [("a", 1)]}] * 100
