"""The demo's proof: it holds for what is right, and fails for everything that is not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.devkit.demo.expected import Comparison, Delivered, compare, row_of
from parquet_sink.devkit.demo.proof import Delivery, Evidence, Standing, deliver, prove

GOOD = Evidence(
    asked=12,
    acknowledged=12,
    keys=4,
    tombstones=2,
    delivery=Delivery(sent=10, arrived=10, missing=0, invented=0, repeated=0),
    upsert_states={"upserted": 3},
    standings=(Standing(0, 7, 7), Standing(1, 5, 5)),
    comparison=Comparison(rows=4, columns=6, differences=0, told=()),
    sink_status=0,
)


def failing(found: Evidence) -> list[str]:
    """The names of the checks that do not hold."""
    return [check.name for check in prove(found) if not check.ok]


def test_a_right_result_is_proven_by_six_checks() -> None:
    """All hold, and each tells its figures."""
    checks = prove(GOOD)
    assert failing(GOOD) == []
    assert [check.told for check in checks] == [
        "12 records, 4 keys, 2 tombstones (nothing to deliver)",
        "10 rows; 0 missing, 0 invented, 0 repeated",
        "3 of 3 files",
        "lag 0",
        "4 rows x 6 columns compared, 0 differences",
        "exit status 0",
    ]
    assert checks[3].details[0] == "topic-partition 0: end 7, committed 7, lag 0"


def test_a_wrong_row_in_the_table_fails_the_proof() -> None:
    """One altered value among all rows is found, named, and fails the check of the table."""
    sent = {n: Delivered(b'{"order_id":%d,"total":%d.5}' % (n, n), 0, n, 1_000 + n) for n in range(4)}
    expected = {order_id: row_of(record) for order_id, record in sent.items()}
    table = [dict(row) for row in expected.values()]
    assert failing(replace(GOOD, comparison=compare(expected, table))) == []
    table[2]["total"] = 2.25
    tampered = replace(GOOD, comparison=compare(expected, table))
    assert failing(tampered) == ["the table equals the last value of each key"]
    assert prove(tampered)[4].details == ("order_id 2, column total: 2.25 instead of 2.5",)


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (replace(GOOD, acknowledged=11), "Kafka has every record that was sent"),
        (replace(GOOD, standings=(Standing(0, 7, 7), Standing(1, 4, 4))), "Kafka has every record that was sent"),
        (replace(GOOD, delivery=Delivery(10, 9, 1, 0, 0)), "every record with a value is in an accepted file"),
        (replace(GOOD, delivery=Delivery(10, 11, 0, 1, 0)), "every record with a value is in an accepted file"),
        (replace(GOOD, delivery=Delivery(0, 0, 0, 0, 0)), "every record with a value is in an accepted file"),
        (replace(GOOD, upsert_states={"upserted": 2, "failed": 1}), "the target upserted every file"),
        (replace(GOOD, upsert_states={}), "the target upserted every file"),
        (replace(GOOD, standings=(Standing(0, 7, 6), Standing(1, 5, 5))), "the consumer group has nothing left to do"),
        (replace(GOOD, standings=(Standing(0, 7, 8), Standing(1, 5, 5))), "the consumer group has nothing left to do"),
        (replace(GOOD, comparison=Comparison(3, 6, 0, ())), "the table equals the last value of each key"),
        (replace(GOOD, comparison=Comparison(4, 6, 1, ("x",))), "the table equals the last value of each key"),
        (replace(GOOD, sink_status=1), "the sink stops cleanly on SIGTERM"),
        (replace(GOOD, sink_status=-9), "the sink stops cleanly on SIGTERM"),
    ],
)
def test_each_fault_fails_its_check_and_no_other(found: Evidence, name: str) -> None:
    """A figure that is off is told by the check that is about it."""
    assert failing(found) == [name]


def test_a_file_sent_twice_is_reported_and_does_not_fail() -> None:
    """Delivery is at least once; the table is what must be right."""
    repeated = replace(GOOD, delivery=Delivery(10, 12, 0, 0, 2))
    assert failing(repeated) == []
    assert "2 repeated" in prove(repeated)[1].told


def test_a_sink_left_running_is_not_judged_by_its_end() -> None:
    """With --keep there is no exit status yet."""
    assert len(prove(replace(GOOD, sink_status=None))) == 5


@given(st.lists(st.integers(0, 30), min_size=1, max_size=4), st.data())
def test_delivery_compares_identities_and_not_counts(ends: list[int], data: st.DataObject) -> None:
    """Tombstones are not expected; a row lost and another invented do not make up for each other."""
    offsets = {(p, offset) for p, end in enumerate(ends) for offset in range(end)}
    tombstones = data.draw(st.sets(st.sampled_from(sorted(offsets)))) if offsets else set()
    sent = offsets - tombstones
    right = deliver(dict(enumerate(ends)), tombstones, sent)
    assert right == Delivery(len(sent), len(sent), 0, 0, 0)
    if sent:
        lost = data.draw(st.sampled_from(sorted(sent)))
        wrong = deliver(dict(enumerate(ends)), tombstones, [*(sent - {lost}), (99, 0)])
        assert (wrong.arrived, wrong.missing, wrong.invented) == (len(sent), 1, 1)
        twice = deliver(dict(enumerate(ends)), tombstones, [*sent, lost])
        assert (twice.missing, twice.invented, twice.repeated) == (0, 0, 1)
