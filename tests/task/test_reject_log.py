"""Rejected records in the log: Kafka Connect's words, content only when asked, and never a flood."""

import logging
from dataclasses import replace

import pytest

from parquet_sink.errors import InvalidRecord
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.task import record_steps
from parquet_sink.task.record_steps import (
    AT_ONCE,
    LONGEST,
    MOST_HEADERS,
    PER_S,
    REPORT_S,
    LineLimit,
    LoggedRejects,
    StopAtRejected,
    line,
)
from tests.factories import Clock

SECRET = "canary-51c2"
CLASSES = {Stage.VALUE_CONVERTER: "org.example.Converter"}
REJECTED = Rejected(
    *("orders", 3, 7, Stage.VALUE_CONVERTER, "the value is not JSON", b"k\n\xff", SECRET.encode()),
    *((("a", None), ("größe", b"1")), 1_234, "LogAppendTime"),
)


LINE_OF_KAFKA_CONNECT = (
    "Error encountered in task sink-0. Executing stage 'VALUE_CONVERTER' with class 'org.example.Converter', where "
    "consumed record is {topic='orders', partition=3, offset=7, timestamp=1234, timestampType=LogAppendTime}."
)


def test_a_line_is_that_of_kafka_connect() -> None:
    """With the reason behind it, and without anything of what the record holds."""
    text = line(REJECTED, "sink", CLASSES, content=False)
    assert text == f"{LINE_OF_KAFKA_CONNECT} {REJECTED.reason}"


def test_the_transform_is_named_by_its_class() -> None:
    """Each has its own, so a record says which one rejected it."""
    by = replace(REJECTED, stage=Stage.TRANSFORMATION, by="org.example.Mask$Value")
    assert "stage 'TRANSFORMATION' with class 'org.example.Mask$Value'," in line(by, "sink", CLASSES, content=False)


def test_content_is_there_when_it_is_asked_for() -> None:
    """On one line, whatever it holds, and bounded."""
    text = line(REJECTED, "sink", CLASSES, content=True)
    assert rf"key='k\n\xff', value='{SECRET}', headers=['a'=null, 'größe'='1']}}." in text
    assert text.isprintable()
    large = Rejected("orders", 3, 7, Stage.SHAPE, "no", None, b"\x00" * 10_000_000, (("h", b"x"),) * 1_000, 0)
    text = line(large, "sink", CLASSES, content=True)
    assert len(text) < 2 * LONGEST
    assert f"and {1_000 - MOST_HEADERS} more" in text


def test_lines_are_bounded_by_the_second() -> None:
    """So many at once, so many a second; what was left out is counted."""
    clock = Clock(1_000.0)
    limit = LineLimit(clock.now)
    assert [limit.allows() for _ in range(1_000_000)].count(True) == AT_ONCE
    assert limit.left_out() == 1_000_000 - AT_ONCE
    assert limit.left_out() == 0
    clock.sleep(2.0)
    assert [limit.allows() for _ in range(1_000)].count(True) == 2 * PER_S
    clock.sleep(1e6)
    assert [limit.allows() for _ in range(1_000)].count(True) == AT_ONCE


def test_what_is_left_out_is_told_now_and_then(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with every line, or there would be twice as many of them; none of the records is forgotten."""
    clock = Clock(1_000.0)
    monkeypatch.setattr(record_steps, "_limits", {"sink": LineLimit(clock.now)})
    policy = LoggedRejects(StopAtRejected(), "sink", False, CLASSES)
    with caplog.at_level(logging.ERROR):
        for _ in range(6_000):
            clock.sleep(0.01)
            policy.decide(REJECTED)
        policy.close()
    missing = [int(one.split()[2]) for one in caplog.messages if "more records are rejected" in one]
    assert 60 / REPORT_S <= len(missing) <= 60 / REPORT_S + 1
    assert len(caplog.messages) - len(missing) + sum(missing) == 6_000


@pytest.mark.parametrize("content", [False, True])
def test_each_record_is_logged_and_decided_by_the_other_policy(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, content: bool
) -> None:
    """From task to task the bound is one; at a task's end the log says how many lines are missing."""
    monkeypatch.setattr(record_steps, "_limits", {})
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            policy = LoggedRejects(StopAtRejected(), "sink", content, CLASSES)
            assert not policy.diverts
            for _ in range(AT_ONCE):
                assert isinstance(policy.decide(REJECTED), InvalidRecord)
            policy.close()
    records = [one for one in caplog.messages if one.startswith("Error encountered")]
    assert AT_ONCE <= len(records) < 2 * AT_ONCE
    missing = [int(one.split()[2]) for one in caplog.messages if "more records are rejected" in one]
    assert len(records) + sum(missing) == 3 * AT_ONCE
    assert (SECRET in caplog.text) is content
