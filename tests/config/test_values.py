"""From texts to typed values."""

import pytest

from parquet_sink.config.key import Key, Type
from parquet_sink.config.provider import Resolved
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values, read

EMPTY = Key("replacement", "Test", Type.STRING, "A text.", default="x", may_be_empty=True)
TRIMMED = Key("name", "Test", Type.STRING, "A text.", default="x")


def values(key: Key, text: str) -> Values:
    """What a file of one line gives."""
    return read([key], Resolved({key.name: text}, {key.name: text}), Report())


@pytest.mark.parametrize(("text", "value"), [("", ""), (" ", ""), (" a ", "a"), ("a", "a")])
def test_a_text_that_may_be_empty_is_trimmed(text: str, value: str) -> None:
    """Nothing is a value, and blanks around one do not count, as for Kafka Connect."""
    found = values(EMPTY, text)
    assert (found.text("replacement"), "replacement" in found.given) == (value, True)


@pytest.mark.parametrize(("text", "value"), [("", "x"), (" ", "x"), (" a ", "a")])
def test_any_other_text_is_trimmed(text: str, value: str) -> None:
    """And a blank one is absent."""
    assert values(TRIMMED, text).text("name") == value


def test_an_absent_text_that_may_be_empty_has_its_default() -> None:
    """Only what stands in the file is a value."""
    assert read([EMPTY], Resolved({}, {}), Report()).text("replacement") == "x"
