"""Log records as text and as JSON."""

import json
import logging
import re
import sys
from typing import Any

import pytest

from parquet_sink.process.log_format import JsonLines, TextLines, about, concerning, connector_of, json_line


def record(words: str, *args: object, level: int = logging.INFO, **more: Any) -> logging.LogRecord:
    """As a logging call makes it."""
    return logging.getLogger("parquet_sink.x").makeRecord(
        "parquet_sink.x", level, __file__, 1, words, args, more.pop("exc_info", None), extra=more.pop("extra", None)
    )


def read(one: logging.LogRecord) -> dict[str, Any]:
    """What a program reads of it: one line, one object."""
    line = JsonLines().format(one)
    assert "\n" not in line
    found = json.loads(line)
    assert isinstance(found, dict)
    return found


def test_a_line_is_an_object_with_what_it_is_about() -> None:
    """Time in UTC, level, logger, message, and the fields that were given with it."""
    one = record("accepted %s", "f.parquet", extra=about(connector="orders", event="FileAccepted", rows=7))
    one.created = 1_767_225_600.1239
    assert read(one) == {
        "time": "2026-01-01T00:00:00.123Z",
        "level": "INFO",
        "logger": "parquet_sink.x",
        "message": "accepted f.parquet",
        "connector": "orders",
        "event": "FileAccepted",
        "rows": 7,
    }
    assert re.fullmatch(r"[\d-]{10} [\d:]{8},\d{3} INFO accepted f.parquet", TextLines().format(one))


@pytest.mark.parametrize(
    ("one", "connector"),
    [
        (record("connector %s: %s", "a: b", "c"), "a: b"),
        (record("connector %s failed: %s", "orders", "no"), "orders"),
        (record("%s", "connector orders: x", extra=about(connector="orders")), "orders"),
        (record("connector %s: x", "one", extra=about(connector="other")), "other"),
        (record("connector %s"), None),
        (record("%s of a connector", "x"), None),
        (record("nothing"), None),
    ],
)
def test_the_connector_is_known_where_a_line_names_it(one: logging.LogRecord, connector: str | None) -> None:
    """By what it was called with, not by reading words: names may hold anything."""
    assert connector_of(one) == connector
    assert read(one).get("connector") == connector


@pytest.mark.parametrize("words", ['say "hi"', "two\nlines", "\udcff", "日本 \u2028", "\x1b[31m", "back\\slash"])
def test_whatever_is_said_is_one_line(words: str) -> None:
    """Quotes, ends of lines, what is no Unicode: a reader gets back what was said."""
    found = read(record("%s", words, extra=about(topic=words)))
    assert (found["message"], found["topic"]) == (words, words)
    assert JsonLines().format(record("%s", words)).isascii()


def test_a_trace_is_a_field() -> None:
    """And what is no JSON is written as its text."""
    try:
        int("why")
    except ValueError:
        found = read(record("it failed", level=logging.ERROR, exc_info=sys.exc_info(), extra=about(what={1})))
    assert found["trace"].startswith("Traceback (most recent call last):\n")
    assert found["trace"].endswith("with base 10: 'why'")
    assert (found["level"], found["what"]) == ("ERROR", "{1}")


def test_fields_take_nothing_away() -> None:
    """A field that is called like one of the line's own does not hide it."""
    found = read(record("said", extra=about(message="hidden", level="no", time=1)))
    assert (found["message"], found["level"]) == ("said", "INFO")
    assert json.loads(json_line("WARNING", "stopping"))["message"] == "stopping"


def test_lines_of_libraries_concern_whom_their_caller_names() -> None:
    """Within, and not after; a line that names another connector is about that one."""
    line, other = record("Kafka client: connection refused"), record("connector %s: x", "other")
    with concerning("orders"):
        assert (connector_of(line), connector_of(other)) == ("orders", "other")
    assert connector_of(line) is None
