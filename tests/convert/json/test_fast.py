"""The fast path's reading of many values: the guards that make it trustworthy."""

import pyarrow as pa
import pytest

from parquet_sink.convert.json.fast import has_empty_object, read
from tests.convert.reader import json_reader  # noqa: F401

SCHEMA = pa.schema(
    [("a", pa.int64()), ("s", pa.string()), ("n", pa.null()), ("o", pa.struct([("x", pa.float64())]))]
)  # fmt: skip
GOOD = [b'{"a":1,"s":"x"}', b'{"s":"}\\n{","o":{"x":1.5}}', b'{"n":null,"a":\n2}', b'{"a":3,"o":null}']


def rows(values: list[bytes]) -> list[dict[str, object]] | None:
    """What `read` gives, as Python rows."""
    batch = read(pa.array(values, pa.binary()), SCHEMA)
    return None if batch is None else batch.to_pylist()


def test_each_value_is_a_row() -> None:
    """Known fields in any order, absent ones null, white space and newlines between tokens allowed."""
    found = rows(GOOD)
    assert found is not None
    assert [row["a"] for row in found] == [1, None, 2, 3]
    assert found[1] == {"a": None, "s": "}\n{", "n": None, "o": {"x": 1.5}}


@pytest.mark.parametrize("space", [b" ", b"\n", b"\r\n", b"\t"])
def test_space_around_is_trimmed(space: bytes) -> None:
    """White space around values does not end the fast path."""
    assert rows([space + value + space for value in GOOD]) == rows(GOOD)


BAD = [b"", b" ", b"null", b"1", b"[]", b'"x"', b"{", b"}", b'{"a":1}{"a":2}', b'{"a":1}\n{"a":2}', b'{"a":1}\r{"a":2}']
BAD += [b'{"a":1}null{"a":2}', b'{"a":1} null {"a":2}', b'{"a":1}nullnull{"a":1}', b'{"a":1},{"a":2}', b'[{"a":1}]']
BAD += [
    b'\xef\xbb\xbf{"a":1}',
    b'{"a":1,"a":2}',
    b'{"a":1,"a":null}',
    b'{"z":1}',
    b'{"z":null}',
    b'{"":1}',
    b'{"a":1.0}',
]
BAD += [b'{"a":1e2}', b'{"a":"1"}', b'{"a":true}', b'{"a":[1]}', b'{"a":{}}', b'{"a":9223372036854775808}', b'{"n":0}']
BAD += [
    b'{"s":"\xff"}',
    b'{"s":"\xed\xa0\x80"}',
    b'{"s":"\xc0\x80"}',
    b'{"s":"\\ud800"}',
    b'{"s":"\\udc00"}',
    b'{"s":"\t"}',
]
BAD += [
    b'{"s":"\x00"}',
    b'{"a":1}\x00',
    b'{"a":01}',
    b'{"a":1,}',
    b'{"o":{"x":1,"x":1}}',
    b'{"o":{"y":1}}',
    b'{"o":{"x":1e400}}',
]


@pytest.mark.parametrize("value", BAD)
def test_anything_odd_is_left_to_the_exact_path(value: bytes) -> None:
    """A single value that is not plainly one object of known fields gives None for all."""
    assert rows([*GOOD, value]) is None
    assert rows([value, *GOOD]) is None
    assert rows([value]) is None


def test_halves_do_not_make_a_whole() -> None:
    """Two values that are an object only together are not read as one."""
    assert rows([b'{"a":1,"o":{"x":1}', b'{"a":2}}']) is None
    assert rows([b'{"s":"}', b'{"}']) is None


def test_nothing_to_read() -> None:
    """No values, a null among them, or no fields: None."""
    assert read(pa.array([], pa.binary()), SCHEMA) is None
    assert read(pa.array([b'{"a":1}', None]), SCHEMA) is None
    assert read(pa.array([b'{"a":1}']), pa.schema([])) is None


def test_slices_are_read_as_they_are() -> None:
    """Only the slice's own values are read."""
    values = pa.array([b"junk", *GOOD, b"junk"], pa.binary()).slice(1, len(GOOD))
    batch = read(values, SCHEMA)
    assert batch is not None
    assert batch.to_pylist() == rows(GOOD)


def test_one_batch_whatever_the_size() -> None:
    """Long values are read in one piece."""
    found = rows([b'{"s":"' + b"x" * 3_000_000 + b'"}', b'{"s":"y"}'])
    assert found is not None
    assert [len(str(row["s"])) for row in found] == [3_000_000, 1]


def test_empty_objects_are_seen() -> None:
    """`{}` is found at any depth and with white space inside."""
    values = pa.array([b"{}", b'{"a":{ \n}}', b'{"a":{"b":null}}', b'{"a":"{}"}'])
    assert has_empty_object(values).to_pylist() == [True, True, False, True]
