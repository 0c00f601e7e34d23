"""From texts to typed values."""

import pytest

from parquet_sink.config.key import Key, Type
from parquet_sink.config.providers import Resolved
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values, read

VERBATIM = Key("replacement", "Test", Type.STRING, "A text.", default="x", verbatim=True)
TRIMMED = Key("name", "Test", Type.STRING, "A text.", default="x")


def values(key: Key, text: str) -> Values:
    """What a file of one line gives."""
    return read([key], Resolved({key.name: text}, {key.name: text}), Report())


@pytest.mark.parametrize("text", ["", " ", " a ", "a"])
def test_a_verbatim_text_is_taken_as_it_stands(text: str) -> None:
    """Blanks count, and nothing is a value, as for Kafka Connect."""
    found = values(VERBATIM, text)
    assert (found.text("replacement"), "replacement" in found.given) == (text, True)


@pytest.mark.parametrize(("text", "value"), [("", "x"), (" ", "x"), (" a ", "a")])
def test_any_other_text_is_trimmed(text: str, value: str) -> None:
    """And a blank one is absent."""
    assert values(TRIMMED, text).text("name") == value


def test_an_absent_verbatim_text_has_its_default() -> None:
    """Only what stands in the file is a value."""
    assert read([VERBATIM], Resolved({}, {}), Report()).text("replacement") == "x"
