"""The demo's proof: it holds for what is right, and fails for everything that is not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.devkit.demo.expected import Comparison, Delivered, compare, row_of
from parquet_sink.addons.devkit.demo.proof import (
    Delivery,
    Evidence,
    Freshness,
    PartitionOffsets,
    deliver,
    freshness,
    percentile,
    prove,
)
from parquet_sink.addons.devkit.demo.read_back import ArrivedFile, waits_ms
from tests.messages import assert_says

GOOD = Evidence(
    requested=12,
    acknowledged=12,
    keys=4,
    deleted=2,
    delivery=Delivery(sent=12, arrived=12, missing=0, invented=0, repeated=0),
    upsert_states={"upserted": 3},
    offsets=(PartitionOffsets(0, 7, 7), PartitionOffsets(1, 5, 5)),
    comparison=Comparison(rows=4, columns=6, differences=0, examples=()),
    sink_status=0,
)


def failing(found: Evidence) -> list[str]:
    """The names of the checks that do not hold."""
    return [check.name for check in prove(found) if not check.ok]


def test_a_right_result_is_proven_by_six_checks() -> None:
    """All hold, and each tells its figures."""
    checks = prove(GOOD)
    assert failing(GOOD) == []
    records, rows, files, lag, table, status = (check.figures for check in checks)
    assert_says(records, "12 records", "6 keys", "2 of them deleted")
    assert_says(rows, "12 rows", "0 missing", "0 invented", "0 repeated")
    assert_says(table, "4 rows x 6 columns", "2 deleted keys", "0 differences")
    assert (files, lag, status) == ("3 of 3 files", "lag 0", "exit status 0")
    assert_says(checks[3].details[0], "topic-partition 0", "end 7", "committed 7", "lag 0")


def test_a_wrong_row_in_the_table_fails_the_proof() -> None:
    """One altered value among all rows is found, named, and fails the check of the table."""
    sent = {n: Delivered(b'{"order_id":%d,"total":%d.5}' % (n, n), 0, n, 1_000 + n) for n in range(4)}
    expected = {order_id: row_of(record) for order_id, record in sent.items()}
    table = [dict(row) for row in expected.values()]
    assert failing(replace(GOOD, comparison=compare(expected, table))) == []
    table[2]["total"] = 2.25
    tampered = replace(GOOD, comparison=compare(expected, table))
    (name,) = failing(tampered)
    assert_says(name, "the table equals", "last state")
    (detail,) = prove(tampered)[4].details
    assert_says(detail, "order_id 2", "column total", "2.25 instead of 2.5")


def test_a_deleted_row_that_is_still_there_fails_the_proof() -> None:
    """It is named as deleted, which a row that nobody sent is not."""
    rows = {n: row_of(Delivered(b'{"order_id":%d}' % n, 0, n, n)) for n in range(3)}
    found = compare({0: rows[0]}, list(rows.values()), {1})
    deleted, invented = found.examples
    assert_says(deleted, "order_id 1", "in the table", "was deleted")
    assert_says(invented, "order_id 2", "in the table", "never sent")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (replace(GOOD, acknowledged=11), "Kafka has every record"),
        (replace(GOOD, offsets=(PartitionOffsets(0, 7, 7), PartitionOffsets(1, 4, 4))), "Kafka has every record"),
        (replace(GOOD, delivery=Delivery(10, 9, 1, 0, 0)), "in an accepted file"),
        (replace(GOOD, delivery=Delivery(10, 11, 0, 1, 0)), "in an accepted file"),
        (replace(GOOD, delivery=Delivery(0, 0, 0, 0, 0)), "in an accepted file"),
        (replace(GOOD, upsert_states={"upserted": 2, "failed": 1}), "target upserted every file"),
        (replace(GOOD, upsert_states={}), "target upserted every file"),
        (replace(GOOD, offsets=(PartitionOffsets(0, 7, 6), PartitionOffsets(1, 5, 5))), "consumer group"),
        (replace(GOOD, offsets=(PartitionOffsets(0, 7, 8), PartitionOffsets(1, 5, 5))), "consumer group"),
        (replace(GOOD, comparison=Comparison(3, 6, 0, ())), "the table equals"),
        (replace(GOOD, comparison=Comparison(4, 6, 1, ("x",))), "the table equals"),
        (replace(GOOD, sink_status=1), "stops cleanly on SIGTERM"),
        (replace(GOOD, sink_status=-9), "stops cleanly on SIGTERM"),
    ],
)
def test_each_fault_fails_its_check_and_no_other(found: Evidence, words: str) -> None:
    """A figure that is off is told by the check that is about it."""
    (name,) = failing(found)
    assert words in name


def test_a_file_sent_twice_is_reported_and_does_not_fail() -> None:
    """Delivery is at least once; the table is what must be right."""
    repeated = replace(GOOD, delivery=Delivery(10, 12, 0, 0, 2))
    assert failing(repeated) == []
    assert "2 repeated" in prove(repeated)[1].figures


def test_a_sink_left_running_is_not_judged_by_its_end() -> None:
    """With --keep there is no exit status yet."""
    assert len(prove(replace(GOOD, sink_status=None))) == 5


@given(st.lists(st.integers(0, 30), min_size=1, max_size=4), st.data())
def test_delivery_compares_identities_and_not_counts(ends: list[int], data: st.DataObject) -> None:
    """A row lost and another invented do not make up for each other."""
    sent = {(p, offset) for p, end in enumerate(ends) for offset in range(end)}
    by_partition = dict(enumerate(ends))
    assert deliver(by_partition, sent) == Delivery(len(sent), len(sent), 0, 0, 0)
    if sent:
        lost = data.draw(st.sampled_from(sorted(sent)))
        wrong = deliver(by_partition, [*(sent - {lost}), (99, 0)])
        assert (wrong.arrived, wrong.missing, wrong.invented) == (len(sent), 1, 1)
        twice = deliver(by_partition, [*sent, lost])
        assert (twice.missing, twice.invented, twice.repeated) == (0, 0, 1)


def test_percentiles_are_nearest_ranks() -> None:
    """Of 1 to 100 the p-th percentile is p."""
    waits = [1_000 * number for number in range(100, 0, -1)]
    assert freshness(waits) == Freshness(records=100, p50_s=50, p90_s=90, p99_s=99, max_s=100)


def test_one_record_is_every_percentile() -> None:
    """A single wait is the median and the maximum."""
    assert freshness([1_500]) == Freshness(1, 1.5, 1.5, 1.5, 1.5)


def test_no_records_have_no_freshness() -> None:
    """There is nothing to say, and no figure is made up."""
    assert freshness([]) is None
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_a_percentile_is_a_value_that_the_share_does_not_exceed(values: list[float], share: float) -> None:
    """At least that share is at or below it."""
    ordered = sorted(values)
    found = percentile(ordered, share)
    assert found in ordered
    assert sum(value <= found for value in ordered) >= share * len(ordered)


def test_waits_go_from_each_records_timestamp_to_the_acceptance_of_its_file() -> None:
    """Every row counts by its own timestamp, within the span asked for."""
    file = ArrivedFile("f", 10, 5_000, "upserted", [0, 0, 0], [0, 1, 2], [1_000, 2_000, 4_900])
    assert waits_ms([file]) == [4_000, 3_000, 100]
    assert waits_ms([file], since_ms=2_000) == [3_000, 100]
    assert waits_ms([file], before_ms=2_000) == [4_000]
