"""JSON text over a fixed number of columns."""

import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.rows.chunks import Chunks
from tests.messages import assert_says
from tests.thorough import examples

KEY, SIZE = "connect.ems.flattener.jsonblob.chunks", "connect.ems.data.fallback.varchar.length"


def rows(chunks: Chunks, values: list[str]) -> tuple[list[tuple[str | None, ...]], dict[int, str]]:
    """The chunks of each text, and the reasons of those that do not fit."""
    arrays, misfits = chunks.cut(pa.array(values, pa.string()))
    assert all(array.type == pa.string() for array in arrays)
    for array in arrays:
        array.validate(full=True)
    return list(zip(*(array.to_pylist() for array in arrays), strict=True)), misfits


def cut(text: str, size: int) -> list[str]:
    """One character after the other into chunks of at most `size` bytes, as the definition."""
    pieces = [""]
    for character in text:
        if len((pieces[-1] + character).encode()) > size:
            pieces.append("")
        pieces[-1] += character
    return pieces


def test_a_text_goes_over_as_many_chunks_as_it_needs() -> None:
    """Each chunk is full before the next begins, and those not needed are null."""
    found, misfits = rows(Chunks(3, 4), ["abcdefghij", "abcd", "abcde", ""])
    assert found == [("abcd", "efgh", "ij"), ("abcd", None, None), ("abcd", "e", None), ("", None, None)]
    assert not misfits


def test_short_texts_are_handed_on_as_they_are() -> None:
    """Where every text fits into the first chunk the others are null."""
    assert rows(Chunks(2, 5), ["ä", "bcd"])[0] == [("ä", None), ("bcd", None)]
    assert rows(Chunks(2, 5), []) == ([], {})


def test_columns_are_always_all_there() -> None:
    """There are as many nullable text columns as the setting says."""
    assert Chunks(2, 1).columns == (pa.field("payload_chunk1", pa.string()), pa.field("payload_chunk2", pa.string()))


def test_a_character_is_never_parted() -> None:
    """A chunk ends before a character that would not be whole in it."""
    found, _ = rows(Chunks(3, 8), ['{"k":"aé"}', '{"k":"é"}', "12345678é", "€€€€"])
    assert found == [('{"k":"a', 'é"}', None), ('{"k":"é', '"}', None), ("12345678", "é", None), ("€€", "€€", None)]


def test_an_exact_fit_fits() -> None:
    """As many bytes as there is room for are no error, one more is, and the message has both figures."""
    found, misfits = rows(Chunks(2, 3), ["abcdef", "abcdefg", "x"])
    assert found == [("abc", "def"), (None, None), ("x", None)]
    assert misfits.keys() == {1}
    assert_says(misfits[1], KEY, "7 bytes", "2 chunks of 3 bytes", SIZE, "do not hold", "set it to 3")


@pytest.mark.parametrize(("size", "text"), [(3, "a€é"), (2, "€"), (1, "é")])
def test_what_only_fits_when_characters_are_parted_does_not_fit(size: int, text: str) -> None:
    """Room lost at the ends of chunks is room that the text does not have."""
    _, misfits = rows(Chunks(2, size), [text])
    assert_says(misfits[0], KEY, SIZE, f"has {len(text.encode())} bytes", f"2 chunks of {size} bytes")
    if size >= 3:
        assert_says(misfits[0], "do not hold", "set it to 3")
        assert rows(Chunks(3, size), [text])[1] == {}
    else:
        assert_says(misfits[0], "a character has more", f"set {SIZE} to 4")


@settings(max_examples=examples(100), deadline=None)
@given(st.text(st.sampled_from("ab\0é€😀"), min_size=1, max_size=40), st.integers(1, 3), st.integers(1, 9))
def test_the_number_that_is_said_to_suffice_does_and_one_less_does_not(text: str, count: int, size: int) -> None:
    """Whoever follows the message has the record, and has no chunk too many."""
    _, misfits = rows(Chunks(count, size), [text])
    if misfits and (advice := re.search(r"set it to (\d+)", misfits[0])):
        needed = int(advice[1])
        assert rows(Chunks(needed, size), [text])[1] == {}
        assert rows(Chunks(needed - 1, size), [text])[1] != {}
    elif misfits:
        assert rows(Chunks(40, size), [text])[1] != {}
        assert rows(Chunks(40, 4), [text])[1] == {}


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.text(st.sampled_from("ab\0é€😀"), max_size=12), max_size=6), st.integers(1, 6), st.integers(1, 9))
def test_chunks_are_as_the_definition_says(values: list[str], count: int, size: int) -> None:
    """Put together they give back the text, none is larger than its size, and a misfit is one by the definition."""
    found, misfits = rows(Chunks(count, size), values)
    for row, value in enumerate(values):
        pieces = cut(value, size)
        fits = len(pieces) <= count and all(len(piece.encode()) <= size for piece in pieces)
        assert (row in misfits) != fits
        if fits:
            assert found[row] == (*pieces, *[None] * (count - len(pieces)))
        else:
            assert set(found[row]) == {None}


def test_more_chunks_than_there_may_be_is_no_advice() -> None:
    """Where no number of chunks would do, longer ones are named, and where none would, neither."""
    _, misfits = rows(Chunks(2, 4), ["x" * 9_000, "x" * 200_000])
    assert misfits.keys() == {0, 1}
    assert_says(misfits[0], KEY, "9,000 bytes", "2 chunks of 4 bytes", f"set {SIZE} to 4503")
    assert_says(misfits[1], KEY, "200,000 bytes", "2 chunks of 4 bytes")
    assert "set " not in misfits[1]
