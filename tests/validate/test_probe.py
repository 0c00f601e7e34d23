"""What `check` makes of what it found: pure judgements and lines."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from parquet_sink.kafka.group.committed import Committed, commit_metadata
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.instance import Instance
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.targets.outcome import Health
from parquet_sink.targets.table_map import parse
from parquet_sink.validate.probe_kafka import Finding, of_group, of_open_transactions, of_table, of_topics
from tests.factories import settings
from tests.messages import assert_says

KAFKA = KafkaSettings(topics=("t",), group="connect-c", client={"bootstrap.servers": "b:9092"})
FIRST = {("t", 0): 10, ("t", 1): 0}
LAST = {("t", 0): 30, ("t", 1): 5}


def group(offsets: Mapping[PartitionKey, int], kafka: KafkaSettings = KAFKA, signed: str = "") -> Finding:
    """The finding for a group with these committed offsets."""
    return of_group(kafka, FIRST, LAST, {key: Committed(offset, signed) for key, offset in offsets.items()})


def test_a_line_has_health_item_and_text() -> None:
    """Columns line up, and control characters from outside are escaped."""
    assert Finding(Health.OK, "tmp.dir", "fine").line() == "  OK      tmp.dir: fine"
    assert Finding(Health.WARNING, "x", "a\x1b[0m\nb").line() == "  WARNING x: a\\u001b[0m\\nb"


def test_topics_are_counted_and_a_few_topic_partitions_named() -> None:
    """Offsets are told for the first topic-partitions, the others are counted."""
    keys = [("t", index) for index in range(10)]
    [found] = of_topics(KAFKA, keys, dict.fromkeys(keys, 0), dict.fromkeys(keys, 7))
    assert found.item == "topic t"
    assert_says(found.text, "10 topic-partitions", "end exclusive", *(f"{index} holds 0 to 7" for index in range(8)))
    assert_says(found.text, "2 more")
    assert "8 holds" not in found.text


def test_each_topic_has_its_table(tmp_path: Path) -> None:
    """Of those that a pattern finds, too; one that has none fails."""
    mapped = replace(settings(tmp_path), tables=parse("a-(.*):$1"))
    assert of_table(mapped, "a-x") == Finding(Health.OK, "table of topic a-x", "x")
    assert of_table(mapped, "b") == Finding(Health.OK, "table of topic b", "t")
    assert of_table(mapped, "a-").health is Health.FAILED
    assert_says(
        of_table(mapped, "a-").text, "[connect.ems.target.table.map]", "Topic a-", 'table ""', "correct the rule"
    )


def test_group_without_offsets_begins_where_reset_says() -> None:
    """That is fine, unless auto.offset.reset is none."""
    found = group({})
    assert (found.health, found.item) == (Health.OK, "group connect-c")
    assert_says(found.text, "no committed offsets", "the earliest record")
    refused = group({("t", 0): 10}, KafkaSettings(group="connect-c", offset_reset="none"))
    assert refused.health is Health.FAILED
    assert_says(refused.text, "no committed offset", "for t 1", "auto.offset.reset is none", "earliest or latest")


def test_what_open_transactions_hide_is_a_warning() -> None:
    """Records beyond what may be read are named, with how many; nothing where none is hidden."""
    (found,) = of_open_transactions({("t", 0): 11, ("t", 1): 5}, {("t", 0): 3, ("t", 1): 5})
    assert found.health is Health.WARNING
    assert_says(found.text, "t 0 from offset 3 on (8 offsets)", "not delivered before")
    assert list(of_open_transactions({("t", 0): 11}, {("t", 0): 11})) == []


def test_group_is_told_with_lag_and_by_whom() -> None:
    """Lag in all and for each topic-partition, those without offsets, and the instance that committed."""
    instance = Instance("abc", "host", 7, "then")
    text = group({("t", 0): 25}, signed=commit_metadata(instance)).text
    assert_says(text, "lag 5: ", "t 0 at 25 (lag 5)", "1 without offset", "begin at their first record")
    assert_says(text, "instance abc", "host host", "process 7", "started then")


@pytest.mark.parametrize("offset", [9, 31])
def test_group_outside_of_what_kafka_holds_fails_as_run_would(offset: int) -> None:
    """A warning where the loss is accepted."""
    accepting = KafkaSettings(group="connect-c", lost_offsets="CONTINUE")
    assert group({("t", 0): offset}).health is Health.FAILED
    assert f"t 0 at {offset}" in group({("t", 0): offset}).text
    assert group({("t", 0): offset}, accepting).health is Health.WARNING
