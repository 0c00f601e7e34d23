"""What `check` makes of what it found: pure judgements and lines."""

from collections.abc import Mapping

import pytest

from parquet_sink.kafka.group_offsets import Committed, Key, metadata
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.instance import Instance
from parquet_sink.runtime.probe import Finding, Verdict, judge, of_group, of_topics
from parquet_sink.targets.outcome import Answer, Failure, of_answer, of_failure

KAFKA = KafkaSettings(topics=("t",), group="connect-c", client={"bootstrap.servers": "b:9092"})
FIRST = {("t", 0): 10, ("t", 1): 0}
LAST = {("t", 0): 30, ("t", 1): 5}


def group(offsets: Mapping[Key, int], kafka: KafkaSettings = KAFKA, signed: str = "") -> Finding:
    """The finding for a group with these committed offsets."""
    return of_group(kafka, FIRST, LAST, {key: Committed(offset, signed) for key, offset in offsets.items()})


def test_a_line_has_verdict_item_and_text() -> None:
    """Columns line up, and control characters from outside are escaped."""
    assert Finding(Verdict.OK, "tmp.dir", "fine").line() == "  OK      tmp.dir: fine"
    assert Finding(Verdict.WARNING, "x", "a\x1b[0m\nb").line() == "  WARNING x: a\\u001b[0m\\nb"


@pytest.mark.parametrize("status", [400, 411, 415, 422])
def test_refusing_a_form_without_a_file_is_as_it_should_be(status: int) -> None:
    """These answers show that address, key and path are right."""
    verdict, text = judge(of_answer(Answer(status, b'{"message": "no part file"}')))
    assert verdict is Verdict.OK
    assert "no part file" in text


@pytest.mark.parametrize(
    ("status", "cure"),
    [
        (401, "connect.ems.authorization.key"),
        (403, "connect.ems.authorization.key"),
        (404, "connect.ems.endpoint"),
        (405, "connect.ems.endpoint"),
        (307, "redirects are never followed"),
        (407, "connect.ems.proxy.auth.username"),
    ],
)
def test_answers_that_will_not_change_fail_with_their_cure(status: int, cure: str) -> None:
    """`run` would be refused likewise."""
    verdict, text = judge(of_answer(Answer(status, b"")))
    assert verdict is Verdict.FAILED
    assert cure in text


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 409])
def test_answers_that_may_pass_are_warnings(status: int) -> None:
    """The target was reached, and may take a file later, or a real one."""
    assert judge(of_answer(Answer(status, b"")))[0] is Verdict.WARNING


def test_a_web_page_fails_and_an_acceptance_is_odd() -> None:
    """200 with HTML is no push target; an acceptance of nothing is a warning."""
    assert judge(of_answer(Answer(200, b"<html>", "text/html")))[0] is Verdict.FAILED
    assert judge(of_answer(Answer(200, b'{"fileName": "x", "flushStatus": "NEW"}')))[0] is Verdict.WARNING


@pytest.mark.parametrize("failure", Failure)
def test_no_answer_fails_with_cause_and_cure(failure: Failure) -> None:
    """Name, connection, proxy or TLS: the network's words are in the text."""
    verdict, text = judge(of_failure(failure, "name or service not known"))
    assert verdict is Verdict.FAILED
    assert "name or service not known" in text
    assert "Check" in text or "Correct" in text


def test_topics_are_counted_and_a_few_topic_partitions_named() -> None:
    """Offsets are told for the first topic-partitions, the others are counted."""
    keys = [("t", index) for index in range(10)]
    [found] = of_topics(KAFKA, keys, dict.fromkeys(keys, 0), dict.fromkeys(keys, 7))
    assert found.item == "topic t"
    assert found.text.startswith("10 topic-partitions (offsets, end exclusive): 0 holds 0 to 7, 1 holds 0 to 7, ")
    assert found.text.endswith("7 holds 0 to 7 and 2 more")


def test_group_without_offsets_begins_where_reset_says() -> None:
    """That is fine, unless auto.offset.reset is none."""
    assert group({}) == Finding(Verdict.OK, "group connect-c", "no committed offsets: it begins at the earliest record")
    refused = group({("t", 0): 10}, KafkaSettings(group="connect-c", offset_reset="none"))
    assert refused.verdict is Verdict.FAILED
    assert refused.text.startswith("no committed offset for t 1. ")


def test_group_is_told_with_lag_and_by_whom() -> None:
    """Lag in all and for each topic-partition, those without offsets, and the instance that committed."""
    instance = Instance("abc", "host", 7, "then")
    assert group({("t", 0): 25}, signed=metadata(instance)).text == (
        "lag 5: t 0 at 25 (lag 5); 1 without offset begin at the earliest record; "
        "last committed by instance abc (host host, process 7, started then)"
    )


@pytest.mark.parametrize("offset", [9, 31])
def test_group_outside_of_what_kafka_holds_fails_as_run_would(offset: int) -> None:
    """A warning where the loss is accepted."""
    accepting = KafkaSettings(group="connect-c", lost_offsets="CONTINUE")
    assert group({("t", 0): offset}).verdict is Verdict.FAILED
    assert f"t 0 at {offset}" in group({("t", 0): offset}).text
    assert group({("t", 0): offset}, accepting).verdict is Verdict.WARNING
