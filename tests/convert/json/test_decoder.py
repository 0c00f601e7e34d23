"""Blocks of JSON records with some that are no JSON objects, or odd otherwise."""

from collections.abc import Sequence
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.convert.decoded import Decoded, InferredColumns, Reading, Untyped
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json.decoder import JsonDecoder
from parquet_sink.convert.json.exact import parse, text_of
from parquet_sink.convert.json.profile import JsonProfile
from tests.convert.reader import json_reader  # noqa: F401

CLEAN = [b'{"id": %d, "name": "n%d"}' % (number, number) for number in range(2_000)]
NO_OBJECTS = [
    b"junk",
    b'{"id": 1, "name": "n',
    b'{"id"; 1}',
    b"[1]",
    b"5",
    b'"x"',
    b"",
    b"{}",
    b'{"id": 1, "name": "\xff"}',
]
ODD = [
    b'\xef\xbb\xbf{"id": 3, "name": "n"}',
    b'\xef\xbb\xbf{"new": "n"}',
    b"\xef\xbb\xbf",
    b'{"id": "text"}',
    b'{"id": 99999999999999999999}',
    b'{"id": 1, "id": 2}',
    b'{"new": 1}',
    b" null ",
]


def seen(decoded: Decoded) -> dict[int, object]:
    """What became of each position: its record, or why it has none."""
    found: dict[int, object] = dict(decoded.invalid)
    for piece in decoded.pieces:
        assert isinstance(piece, Untyped | InferredColumns)
        for row, position in enumerate(piece.positions.to_pylist()):
            assert position not in found
            found[position] = piece.trees[row] if isinstance(piece, Untyped) else piece.tree(row)
    return found


def defined(values: Sequence[bytes]) -> dict[int, object]:
    """The same, by the definition of one record."""
    found: dict[int, object] = {}
    for position, value in enumerate(values):
        try:
            found[position] = parse(value)
        except InvalidValue as error:
            found[position] = str(error)
    return found


def with_some(values: Sequence[bytes], every: int) -> list[bytes]:
    """The clean records, one in so many replaced."""
    block = list(CLEAN)
    for at in range(0, len(block), every):
        block[at] = values[at // every % len(values)]
    return block


@pytest.mark.parametrize("every", [2, 100, 1_999])
def test_records_that_are_no_json_objects_leave_the_others_together(every: int) -> None:
    """The valid ones of a block are read at once, and none of them is looked at by itself to learn from it."""
    decoder = JsonDecoder(Reading(), None)
    decoder.decode(pa.array(CLEAN, pa.binary()))
    block = with_some(NO_OBJECTS, every)
    for _ in range(2):
        with patch.object(JsonProfile, "learn", side_effect=AssertionError):
            decoded = decoder.decode(pa.array(block, pa.binary()))
        (piece,) = decoded.pieces
        assert isinstance(piece, InferredColumns)
        assert piece.rows.field("id").to_pylist() == [parse(block[at])["id"] for at in piece.positions.to_pylist()]
        assert seen(decoded) == defined(block)


def deep(levels: int, *, in_list: bool) -> bytes:
    """A record of so many levels, itself and a list among them."""
    below = levels - 2
    if in_list:
        return b'{"id": 1, "tags": [' + b'{"a":' * below + b"1" + b"}" * below + b"]}"
    return b'{"id": 1, "tags": [], "deep": ' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


@given(
    count=st.integers(64, 300),
    levels=st.lists(st.integers(90, 1_100), min_size=1, max_size=3),
    in_list=st.booleans(),
    any_tree=st.booleans(),
    places=st.lists(st.integers(0, 299), min_size=3, max_size=3),
)
def test_records_of_any_depth_leave_a_known_list_readable(
    count: int, levels: list[int], in_list: bool, any_tree: bool, places: list[int]
) -> None:
    """A record nested more deeply than one may be is invalid by itself, also beyond what can be written as JSON."""
    decoder = JsonDecoder(Reading(any_tree=any_tree), None)
    clean = [b'{"id": %d, "tags": ["a", {"b": %d}]}' % (number, number) for number in range(count)]
    assert not decoder.decode(pa.array(clean, pa.binary())).invalid
    for one, at in zip(levels, places, strict=False):
        clean[at % count] = deep(one, in_list=in_list)
    assert seen(decoder.decode(pa.array(clean, pa.binary()))) == defined(clean)


def test_a_block_without_any_json_object_is_all_invalid() -> None:
    """Nothing is left to read, before and after a clean block."""
    decoder = JsonDecoder(Reading(), None)
    block = (NO_OBJECTS * 100)[:500]
    for values in (block, CLEAN, block, CLEAN):
        assert seen(decoder.decode(pa.array(values, pa.binary()))) == defined(values)


BLOCKS = [
    CLEAN[:300],
    *(with_some(values, every)[:600] for values in (NO_OBJECTS, ODD, NO_OBJECTS + ODD) for every in (3, 97)),
]


@given(st.lists(st.sampled_from(BLOCKS), max_size=5))
def test_what_a_block_becomes_does_not_depend_on_the_blocks_before(blocks: list[list[bytes]]) -> None:
    """Whatever was invalid or odd before, each record is what its own parsing gives."""
    decoder = JsonDecoder(Reading(), None)
    for block in blocks:
        assert seen(decoder.decode(pa.array(block, pa.binary()))) == defined(block)


def test_lists_are_told_also_of_a_block_after_which_the_decoder_learns_anew() -> None:
    """Rows of a block with many odd records have texts for lists, and say so, though their profile is thrown away."""
    decoder = JsonDecoder(Reading(), None)
    values = [b'{"a":[1],"b":1}'] * 100 + [b'{"a":[1],"b":"x"}'] * 20
    (rows, *_) = decoder.decode(pa.array(values, pa.binary())).pieces
    assert isinstance(rows, InferredColumns)
    assert rows.rows[0].as_py()["a"] == "[1]"
    assert rows.lists == {"a"}
    assert decoder.learned is None or b'"a"' not in decoder.learned


@pytest.mark.parametrize("count", [1, 300])
def test_lists_have_the_digits_of_their_fractions(count: int) -> None:
    """However many records are read at once, a list's text has the digits that a double rounds, and so has a chunk."""
    value = b'{"a":0.12345678901234567890,"l":[ 0.12345678901234567890 ]}'
    values = pa.array([value] * count, pa.binary())
    for piece in JsonDecoder(Reading(), None).decode(values).pieces:
        texts = (
            [row["l"] for row in piece.rows.to_pylist()]
            if isinstance(piece, InferredColumns)
            else [text_of(tree["l"]) for tree in piece.trees if isinstance(tree, dict)]
        )
        assert set(texts) == {"[0.12345678901234567890]"}
    (chunks,) = JsonDecoder(Reading(as_trees=True, anything=True), None).decode(values).pieces
    assert isinstance(chunks, Untyped)
    assert {text_of(tree) for tree in chunks.trees} == {value.decode().replace(" ", "")}
