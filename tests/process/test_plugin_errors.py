"""What a user's code raises is told without its text."""

import logging

import pytest

from parquet_sink.process.plugin_errors import WrongAnswer, reported

CANARY = "canary-77"
PYTHON_SAYS = "ValueError: invalid literal for int() with base 10: '*****'"


def inner() -> None:
    """Fails as conversions do, quoting what they were given."""
    int(CANARY)


def test_kind_and_line_are_told_and_the_text_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    """The deepest line of the file is where to look; the text may quote a record."""
    with caplog.at_level(logging.DEBUG), pytest.raises(ValueError, match=CANARY) as caught:
        inner()
    with caplog.at_level(logging.DEBUG):
        said = reported(caught.value)
    assert said.startswith(f"ValueError in test_plugin_errors.py, line {inner.__code__.co_firstlineno + 2} (")
    assert "PARQUET_SINK_LOG_LEVEL=DEBUG" in said
    assert CANARY not in said
    assert [(one.levelname, CANARY in one.message) for one in caplog.records] == [("DEBUG", True)]


def test_secrets_of_its_settings_are_not_even_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A class that quotes its own key is told with stars."""
    with pytest.raises(ValueError, match=CANARY) as caught:
        inner()
    with caplog.at_level(logging.DEBUG):
        reported(caught.value, ("", CANARY))
    (record,) = caplog.records
    assert record.message == PYTHON_SAYS


def test_what_is_wrong_with_its_answer_is_told_in_full() -> None:
    """Those words are ours."""
    assert reported(WrongAnswer("it gave one record twice")) == "WrongAnswer: it gave one record twice"
