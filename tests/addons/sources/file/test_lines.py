"""Bytes to lines, however they come in pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.sources.file.lines import EDGE, Line, Lines
from parquet_sink.addons.sources.file.task import decoded


def test_all_ends_of_lines() -> None:
    """Lines end on line feed, carriage return, or both; the unterminated last one is held back."""
    lines = Lines()
    lines.feed(b"a\nb\r\nc\rd\n\n\r\n\re")
    assert lines.take(9) == [
        *(Line(b"a", 2), Line(b"b", 5), Line(b"c", 7), Line(b"d", 9), Line(b"", 10), Line(b"", 12), Line(b"", 13)),
    ]
    assert (lines.position, lines.held) == (13, 1)


def test_a_carriage_return_waits_for_what_follows() -> None:
    """A carriage return that comes last ends its line only when it is known whether a line feed follows."""
    lines = Lines(100)
    lines.feed(b"a\r")
    assert lines.take(9) == []
    lines.feed(b"\nb\r")
    assert lines.take(9) == [Line(b"a", 103)]
    lines.feed(b"c")
    assert lines.take(9) == [Line(b"b", 105)]


def test_no_more_than_asked_for() -> None:
    """What is not taken stays for the next time."""
    lines = Lines()
    lines.feed(b"a\nb\nc\n")
    assert lines.take(2) == [Line(b"a", 2), Line(b"b", 4)]
    assert lines.take(2) == [Line(b"c", 6)]


@pytest.mark.parametrize(("data", "last"), [(b"a", [Line(b"a", 1)]), (b"a\r", [Line(b"a", 2)]), (b"", [])])
def test_the_rest_of_a_file_that_is_done(data: bytes, last: list[Line]) -> None:
    """The last line of a file that nobody writes any more needs no end."""
    lines = Lines()
    lines.feed(data)
    assert lines.rest() == last


@given(
    st.binary(max_size=400).map(lambda raw: raw.translate(bytes(b"\r\nab"[one % 4] for one in range(256)))), st.data()
)
def test_pieces_make_no_difference(content: bytes, data: st.DataObject) -> None:
    """However a file is cut into pieces, and taken, its lines are those that Python has, each with the place behind."""
    lines, found, rest = Lines(), [], content
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        lines.feed(rest[:size])
        found += lines.take(data.draw(st.integers(1, 5)))
        rest = rest[size:]
    while more := lines.take(3):
        found += more
    found += lines.rest()
    assert [one.content for one in found] == content.splitlines()
    assert [content[: one.end].splitlines()[-1] for one in found] == content.splitlines()
    assert lines.edge == content[-EDGE:]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("a€𐍈".encode(), "a€𐍈"),
        (b"a\xffb\xc3", "a\ufffdb\ufffd"),
        (b"\xe2\x82x", "\ufffdx"),
        (b"\xed\xa0\x80x", "\ufffdx"),
        (b"\xed\xa0x", "\ufffdx"),
        (b"\xf5\x80\x80\x80", "\ufffd" * 4),
        (b"\xe0\x80\x80", "\ufffd" * 3),
        (b"\xf0\x90\x8d", "\ufffd"),
        (b"\xc0\x80", "\ufffd" * 2),
    ],
)
def test_wrong_utf8_is_replaced_as_in_java(data: bytes, text: str) -> None:
    """Each sequence that is no UTF-8 becomes as many U+FFFD as Java's decoder makes of it."""
    assert decoded(data) == text
