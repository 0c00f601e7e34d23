"""Lists that become text in C: the text is that which Python gives, and much is left to Python."""

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.json import fast
from parquet_sink.convert.json.lists import KnownLists, with_lists_as_text
from parquet_sink.process.native import SWITCH
from tests.thorough import examples

EXTENSION: Any = fast.extension()
pytestmark = pytest.mark.skipif(EXTENSION is None, reason="it was not built")
KNOWN = KnownLists.of({"l": {}, "größe": {}}, [])
NAMES = tuple(sorted(KNOWN.paths))
NUMBERS = re.findall(
    r"\S+",
    "0 -0 0.0 -0.0 1.0 1.50 00 01 1. .5 - 0.5 -0.05 0.0001 0.00001 0.00012 100.0 123456789012345 123456789012345678 "
    "1234567890123456789 9223372036854775808 12345678901234.5 123456789012345.6 100000000000000.0 1e5 1E-3 1.5e+300 "
    "0.1 0.30000000000000004 2.675 1234.5678 8.7654321098765433 9007199254740.9937 NaN Infinity",
)
SPACES = st.sampled_from(["", "", " ", "\n\t", "\r" * 3, " " * 70])


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Strings as JSON writes them, or as it does not."""
    text = draw(
        st.text(max_size=8) | st.sampled_from(["[", "]}", "a/b", "\x7f", "\x00", "\b\f\n\r\t", "\U0001f600", '"\\'])
    )
    written = json.dumps(text, ensure_ascii=draw(st.booleans()))
    return draw(st.sampled_from([written, written.replace("/", "\\/"), written.replace("u00", "u0A"), f'"{text}"']))


@st.composite
def several(draw: st.DrawFn, below: st.SearchStrategy[str], brackets: str) -> str:
    """A list, or an object in which names may be equal."""
    named = brackets == "{}"
    found = draw(st.lists(st.tuples(st.sampled_from(['"l"', '"a"', '"b"', '"\\u0061"', '"a\\n"']), below), max_size=5))
    spaces = [draw(SPACES) for _ in range(4)]
    members = [f"{name}{spaces[0]}:{spaces[1]}{value}" if named else value for name, value in found]
    return brackets[0] + spaces[2] + f"{spaces[3]},{spaces[0]}".join(members) + spaces[1] + brackets[1]


LEAVES = (
    st.sampled_from([*NUMBERS, "true", "false", "null", "nul", "True"])
    | texts()
    | st.integers(-(2**70), 2**70).map(str)
    | st.floats().map(repr)
    | st.decimals(allow_nan=False, allow_infinity=False, min_value=-1000, max_value=1000, places=4).map(str)
)
VALUES = st.recursive(LEAVES, lambda below: several(below, "[]") | several(below, "{}"), max_leaves=12)


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """Records with lists of known names, of others, and in others."""
    members = draw(
        st.lists(
            st.tuples(st.sampled_from(["l", "größe", "gr\\u00f6\\u00dfe", "m", 'x"l']), several(VALUES, "[]") | VALUES)
        )
    )
    space = draw(SPACES)
    text = "{" + ",".join(f'{space}"{name}"{space}:{space}{value}' for name, value in members) + "}"
    return text.encode("utf-8", "surrogatepass")


def in_c(values: Sequence[bytes | None]) -> list[bytes | None]:
    """What C gives for each; None for what it leaves."""
    array = pa.array(values, pa.binary())
    _, offsets, data = array.buffers()
    text, ends, others = EXTENSION.lists_as_text(NAMES, data or b"", offsets, 0, len(values), 16)
    found = pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(text)])
    found.validate(full=True)
    left = np.frombuffer(others, np.bool_)
    assert not any(one for one, is_left in zip(found.to_pylist(), left, strict=True) if is_left)
    return [None if is_left else one for one, is_left in zip(found.to_pylist(), left, strict=True)]


def in_python(values: Sequence[bytes], patch: pytest.MonkeyPatch) -> list[bytes]:
    """What Python gives for each."""
    with patch.context() as off:
        off.setenv(SWITCH, "0")
        found: list[bytes] = with_lists_as_text(pa.array(values, pa.binary()), KNOWN, False, None).to_pylist()
    return found


def is_cut(before: object, after: object, name: str = "") -> bool:
    """Whether one value is the other, but for the text of some lists that have a known name."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(is_cut(value, after[key], key) for key, value in before.items())
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(is_cut, before, after))
    if isinstance(before, list):
        return name in ("l", "größe") and after == orjson.dumps(before).decode()
    return before == after


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(records(), max_size=6))
def test_what_c_gives_is_what_python_gives(values: list[bytes]) -> None:
    """Where Python leaves no list to the exact way; what is no JSON stays none."""
    patch = pytest.MonkeyPatch()
    for before, found, expected in zip(values, in_c(values), in_python(values, patch), strict=True):
        if found is None:
            continue
        assert not expected or found == expected or b"[" in expected, (before, found, expected)
        try:
            tree = orjson.loads(before)
        except orjson.JSONDecodeError:
            with pytest.raises(orjson.JSONDecodeError):
                orjson.loads(found)
        else:
            assert is_cut(tree, orjson.loads(found)), (before, found)


SCHEMA = pa.schema([("l", pa.string()), ("größe", pa.string()), ("m", pa.string())])
FIELDS = fast.fields_in_c(SCHEMA, {"l": {}, "größe": {}})


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(records(), min_size=1, max_size=3))
def test_lists_that_are_read_where_they_stand_are_those_that_become_text_before(values: list[bytes]) -> None:
    """Wherever they are read so at all; other columns than those of the lists have none."""
    with pytest.MonkeyPatch.context() as on:
        on.setenv(SWITCH, "1")
        found = fast.read_in_c(pa.array(values, pa.binary()), SCHEMA, FIELDS)
        if found is not None:
            before = [value or b"" for value in in_c(values)]
            expected = fast.read_in_c(pa.array(before, pa.binary()), SCHEMA)
            assert expected is not None
            assert found.equals(expected)


def test_lists_are_read_where_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the places where they are known, as text beside texts."""
    monkeypatch.setenv(SWITCH, "1")
    schema = pa.schema([("l", pa.string()), ("o", pa.struct([("l", pa.string()), ("t", pa.string())]))])
    fields = fast.fields_in_c(schema, {"o": {"l": {}}})
    values = [b'{"l":"a","o":{"t":"[","l":[1, {"a" : "\\"]"}]}}', b'{"o":{"l":"[\\"x\\"]"}}', b'{"o":{"l":null}}']
    found = fast.read_in_c(pa.array(values, pa.binary()), schema, fields)
    assert found is not None
    assert [row["o"]["l"] for row in found.to_pylist()] == ['[1,{"a":"\\"]"}]', '["x"]', None]
    assert fast.read_in_c(pa.array([*values, b'{"l":[1]}'], pa.binary()), schema, fields) is None
    assert fast.read_in_c(pa.array([*values, b'{"o":{"l":[1e5]}}'], pa.binary()), schema, fields) is None


@pytest.mark.parametrize("number", [*NUMBERS, *(f"-{one}" for one in NUMBERS)])
def test_a_number_is_taken_only_as_it_will_be_written(number: str) -> None:
    """Whatever orjson writes otherwise, or does not read, is left."""
    (found,) = in_c([f'{{"l":[{number}]}}'.encode()])
    try:
        same = orjson.dumps(orjson.loads(number)) == number.encode()
    except orjson.JSONDecodeError:
        same = False
    assert found in (None, f'{{"l":"[{number}]"}}'.encode() if same else None)


@settings(max_examples=examples(300), deadline=None)
@given(st.decimals(allow_nan=False, allow_infinity=False, places=6) | st.floats(-1e17, 1e17), st.integers(0, 8))
def test_fractions_are_taken_as_they_will_be_written(number: object, places: int) -> None:
    """With any number of places, and in any form."""
    for text in (str(number), f"{number:.{places}f}", f"{number:.{places}g}"):
        (found,) = in_c([b'{"l":[%s]}' % text.encode()])
        if found is not None:
            assert found == b'{"l":"[%s]"}' % orjson.dumps(orjson.loads(text)), text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('{"l":[]}', '{"l":"[]"}'),
        ('{"a": 1, "l" : [ 1, -2.5 ,\n"x" , true ] ,"b":[1]}', '{"a": 1, "l" : "[1,-2.5,\\"x\\",true]" ,"b":[1]}'),
        ('{"xl":[1],"{xl":[2],"l ":[3]}', '{"xl":[1],"{xl":[2],"l ":[3]}'),
        ('{"l":[null,false]}', '{"l":"[null,false]"}'),
        ('{"größe":[{"a":"]","b":{"c":[]}}]}', '{"größe":"[{\\"a\\":\\"]\\",\\"b\\":{\\"c\\":[]}}]"}'),
        ('{"l":["a\\"b\\\\c\\n","ü😀"]}', '{"l":"[\\"a\\\\\\"b\\\\\\\\c\\\\n\\",\\"ü😀\\"]"}'),
        ('{"o":{"l":[[1],[{"l":[2]}]]},"l":[3]}', '{"o":{"l":"[[1],[{\\"l\\":[2]}]]"},"l":"[3]"}'),
        ('{"a":"\\"l\\":[1]","m":[1,2],"l":null}', '{"a":"\\"l\\":[1]","m":[1,2],"l":null}'),
        ('{"a":1}', '{"a":1}'),
        ("", ""),
    ],
)  # fmt: skip
def test_plain_lists_are_not_left_to_python(value: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """White space, text of any language, objects and lists in lists; what is no list of a known name stays."""
    assert in_c([value.encode()]) == [text.encode()]
    assert in_python([value.encode()], monkeypatch) == [text.encode()]


@pytest.mark.parametrize(
    "plain",
    ["1e5", "-0", "1.50", '"\\/"', '"\\u0061"', '{"a":1,"a":2}', "9223372036854775807", "[" * 16 + "]" * 16, "01"],
)
def test_what_is_written_otherwise_is_left(plain: str) -> None:
    """Its neighbours are not."""
    values = [
        b'{"l":[1]}',
        f'{{"l":[2],"größe":[{plain}]}}'.encode(),
        b'{"l":[ 3]}',
        b'{"l":["\xff"]}',
        b'{"l":["\xff 123456789"]}',
    ]
    assert in_c(values) == [b'{"l":"[1]"}', None, b'{"l":"[3]"}', None, None]


@pytest.mark.parametrize(("begin", "count"), [(0, 7), (1, 5), (3, 1), (2, 0)])
def test_what_is_left_comes_in_its_place(monkeypatch: pytest.MonkeyPatch, begin: int, count: int) -> None:
    """In C and in Python, of a part of the values, too."""
    monkeypatch.setenv(SWITCH, "1")
    values = [b'{"l":[%s]}' % one for one in (b"1", b"1.50", b"2", b"-0", b'"\\u0061"', b"3", b"4.0")]
    some = pa.array(values, pa.binary()).slice(begin, count)
    found = with_lists_as_text(some, KNOWN, False, None).to_pylist()
    assert found == in_python(values[begin : begin + count], monkeypatch)


@pytest.mark.parametrize("wrong", [(-1, 1, 16), (0, 3, 16), (0, -1, 16), (2, 1, 16), (0, 2, -1), (0, 2, 1_000)])
def test_values_that_are_not_there_are_refused(wrong: tuple[int, int, int]) -> None:
    """Nothing beyond the buffers is read."""
    _, offsets, data = pa.array([b'{"l":[1]}'] * 2, pa.binary()).buffers()
    with pytest.raises(ValueError, match="not so many"):
        EXTENSION.lists_as_text(NAMES, data, offsets, *wrong)
    beyond = np.array([0, 9, 99], np.int32).tobytes()
    with pytest.raises(ValueError, match="not so many"):
        EXTENSION.lists_as_text(NAMES, data, beyond, 0, 2, 16)
    with pytest.raises(ValueError, match="not so many"):
        EXTENSION.read(FIELDS, data, offsets, *wrong)
    if wrong[2] == 16:
        with pytest.raises(ValueError, match="not so many"):
            EXTENSION.payloads(b"{", b"}", data, offsets, *wrong[:2])
