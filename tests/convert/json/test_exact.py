"""The exact path's reading of one value: what is accepted, and the reason when it is not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.convert.decoded import MAX_DEPTH
from parquet_sink.convert.invalid import InvalidValue, show
from parquet_sink.convert.json.exact import parse, parse_any, text_of, walk, with_digits_in_lists
from tests.messages import saying

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=10,
)  # fmt: skip


@given(st.dictionaries(st.text(), json_values, min_size=1), st.booleans())
def test_valid_objects_come_back(tree: dict[str, object], ascii_only: bool) -> None:
    """Any object within the limits is given as it was written."""
    parsed = parse(json.dumps(tree, ensure_ascii=ascii_only).encode())
    assert repr(parsed) == repr(tree)


ACCEPTED = [
    (b'{"a":1,"a":2}', {"a": 2}),
    (b'{"a":1,"b":2,"a":null}', {"a": None, "b": 2}),
    (b' \t\r\n{"a":1}\n', {"a": 1}),
    (b'{"a":-0}', {"a": 0}),
    (b'{"a":-0.0}', {"a": -0.0}),
    (b'{"a":1e5}', {"a": 100000.0}),
    (b'{"a":1e-400}', {"a": 0.0}),
    (b'{"a":1e19}', {"a": 1e19}),
    (b'{"a":9223372036854775807,"b":-9223372036854775808}', {"a": 2**63 - 1, "b": -(2**63)}),
    (b'{"a":"\\u0000\\ud83d\\ude00\x7f"}', {"a": "\x00\U0001f600\x7f"}),
    (b'{"":1}', {"": 1}),
]


@pytest.mark.parametrize(("value", "tree"), ACCEPTED)
def test_accepted(value: bytes, tree: dict[str, object]) -> None:
    """Edges of what is valid: of equal keys the last wins at the first one's place."""
    assert repr(parse(value)) == repr(tree)


NO_OBJECT = ("not a JSON object", "connect.ems.flattener.jsonblob.chunks")
REFUSED = [
    (b"", ("the value is empty", "not JSON")),
    (b" \n", ("the value is empty", "not JSON")),
    (b"{}", ("empty JSON object",)),
    (b"[1]", ("a list", *NO_OBJECT)),
    (b'"x"', ("a string", *NO_OBJECT)),
    (b"1.5", ("a number", *NO_OBJECT)),
    (b"true", ("a boolean", *NO_OBJECT)),
    (b"null", ("null", *NO_OBJECT)),
    (b'{"a":NaN}', ("not JSON", "NaN", "position 6")),
    (b'{"a":-Infinity}', ("not JSON", "-Infinity", "position 6")),
    (b'{"a":9223372036854775808}', ("field a ", "integer", "64 bits")),
    (b'{"a":{"b":-9223372036854775809}}', ("field a.b ", "integer", "64 bits")),
    (b'{"a":[1,{"b":18446744073709551616}]}', ("field a[1].b ", "integer", "64 bits")),
    (b'{"a":1e19,"b":100000000000000000000}', ("field b ", "integer", "64 bits")),
]


@pytest.mark.parametrize(("value", "reason"), REFUSED)
def test_refused_with_reason(value: bytes, reason: tuple[str, ...]) -> None:
    """The reason says what is wrong, and where."""
    with pytest.raises(InvalidValue, match=saying(*reason)):
        parse(value)


SYNTAX = [b"{", b'{"a":1', b'{"a":1}{"a":2}', b'{"a":1,}', b'{"a":01}', b'{"a":+1}', b'{"a":.5}', b'{"a":1.}', b"{a:1}"]
SYNTAX += [
    b"{'a':1}",
    b'{"a":"\\ud800"}',
    b'{"a":"\\udc00"}',
    b'{"a":"\\ud800\\ud800"}',
    b'{"a":"\xff"}',
    b'{"a":"\n"}',
]
SYNTAX += [
    b'{"a":"\xed\xa0\x80"}',
    b'{"a":"\xc0\x80"}',
    b'{"\xff":1}',
    b'{"a":"\x00"}',
    b'{"a":1}\x00',
]
SYNTAX += [b'{"a":1e400}', b'{"a":' + b"1" * 400 + b"}", b'{"a":tru}', b'{"a":1 /* one */}', b"\xff\xfe{"]


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    """The mark of UTF-8 before a value is passed over, once, also where integers are looked at once more."""
    mark = b"\xef\xbb\xbf"
    assert parse(mark + b'{"a":1.0,"b":1e300}') == {"a": 1.0, "b": 1e300}
    assert parse_any(mark + b"[1]") == [1]
    with pytest.raises(InvalidValue, match="not JSON"):
        parse(mark + mark + b'{"a":1}')


@pytest.mark.parametrize("value", SYNTAX)
def test_no_json(value: bytes) -> None:
    """Whatever is not strict JSON in UTF-8 is refused with the position."""
    with pytest.raises(InvalidValue, match=r"not JSON: .*position \d+"):
        parse(value)


def nested(levels: int, opening: str, closing: str) -> bytes:
    """A record of so many levels, itself included."""
    return ('{"r":' + opening * (levels - 2) + "[]" + closing * (levels - 2) + "}").encode()


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_depth_has_a_limit(opening: str, closing: str) -> None:
    """As many levels as stated are accepted, one more is not, and very many neither."""
    parse(nested(MAX_DEPTH, opening, closing))
    for levels in (MAX_DEPTH + 1, 1000):
        with pytest.raises(InvalidValue, match=f"deeper than {MAX_DEPTH} levels"):
            parse(nested(levels, opening, closing))
    with pytest.raises(InvalidValue):
        parse(nested(100_000, opening, closing))


def test_content_is_never_told() -> None:
    """A reason names fields, not what they hold."""
    for value in (b'{"secret":"hunter2"', b'{"secret":"hunter2","n":99999999999999999999}', b'hunter2 {"a":1}'):
        with pytest.raises(InvalidValue) as caught:
            parse(value)
        assert "hunter2" not in str(caught.value)


def test_paths_are_shown_safely() -> None:
    """Control characters are escaped, and a path is cut when very long."""
    assert show(("a", "b", 3, "c")) == "a.b[3].c"
    assert show(("a\nb\x1b[0m",)) == "a\\nb\\x1b[0m"
    assert len(show(("k" * 10_000,))) < 250


def test_walk_goes_in_order() -> None:
    """Containers come before what they hold, fields in their order."""
    assert [show(path) for path, _ in walk({"b": {"x": [1, {}]}, "a": 2})] == ["b", "b.x", "b.x[0]", "b.x[1]", "a"]


LONG = [b"0.12345678901234567890", b"-12345678901234567890.5", b"1e-400", b"123456789012345678e5", b"3e-324"]


@pytest.mark.parametrize("number", LONG)
def test_a_rounded_fraction_keeps_its_digits_in_a_list(number: bytes) -> None:
    """In a list, at any depth, it is written as it was; elsewhere it is the double that its column holds."""
    value = b'{"a":' + number + b',"b":[{"c":[' + number + b", 0.1]}]}"
    tree = with_digits_in_lists(parse(value), value)
    assert type(tree["a"]) is float
    assert tree == parse(value)
    assert text_of(tree["b"]) == f'[{{"c":[{number.decode()},0.1]}}]'


@pytest.mark.parametrize(
    "number", ["0.1000000000000000000000", "0.30000000000000004", "-0.00000000000000000000", "1e-300"]
)
def test_an_exact_fraction_has_its_shortest_text(number: str) -> None:
    """A fraction that a double holds is written as before, however many digits it has."""
    value = b'{"b":[' + number.encode() + b"]}"
    assert text_of(with_digits_in_lists(parse(value), value)) == text_of(parse(value))


def test_an_exponent_beyond_all_bounds_takes_no_time() -> None:
    """A number with an exponent of many digits is kept without being made longer."""
    value = b'{"b":[1e-99999999999999999999]}'
    assert text_of(with_digits_in_lists(parse(value), value)["b"]) == "[1e-99999999999999999999]"
