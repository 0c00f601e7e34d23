"""Text from outside, made fit for a message."""

from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.net.redaction import EXCERPT_BYTES, excerpt, printable, redact


@given(st.binary(max_size=5000))
def test_excerpts_are_bounded_and_printable(body: bytes) -> None:
    """Whatever a target sends, what is quoted is at most 1 KiB on one line."""
    shown = excerpt(body)
    assert shown.isprintable()
    assert len(shown.encode()) <= EXCERPT_BYTES


def test_control_characters_are_escaped() -> None:
    """Terminal sequences and line breaks show as escapes."""
    assert printable("a\x1b[2J\r\nb\u202e") == "a\\x1b[2J\\r\\nb\\u202e"


def test_a_secret_is_hidden_before_the_cut() -> None:
    """A secret across the 1 KiB limit does not survive in half."""
    body = b"x" * (EXCERPT_BYTES - 5) + b"top-secret"
    assert "top-s" not in excerpt(body, ["top-secret"])


def test_short_words_stay() -> None:
    """A key of a few letters does not put stars into ordinary words."""
    assert redact("a table", ["AppKey a"]) == "a table"
