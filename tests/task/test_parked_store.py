"""Parking as a connector does it: what is passed over is in files before its offsets count."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.errors import StorageFailed
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordBatch
from parquet_sink.parked import folder as module
from parquet_sink.parked.folder import ParkedFolder, ParkedStore
from parquet_sink.parked.scan import scan
from parquet_sink.parked.settings import ParkedSettings
from parquet_sink.settings.connector import ErrorSettings
from parquet_sink.task.record_steps import DivertPolicy, RecordSteps, StopAtRejected, policy_for
from tests.messages import assert_says
from tests.parked.records import offsets, rejected
from tests.task.fakes import BAD_FILE, SPAN, Run, Target, block, good, made
from tests.thorough import FIXTURES_SHARED, examples

PASSING = ErrorSettings(invalid_records=True, refused_files=True)
BAD = b"not JSON"


@pytest.fixture
def folder(tmp_path: Path) -> ParkedFolder:
    """One that is ready."""
    found = ParkedFolder(str(tmp_path / "parked"), "sink", 10**8)
    found.prepare()
    return found


def steps(folder: ParkedFolder) -> RecordSteps:
    """A connector that parks, for JSON without a schema."""
    return RecordSteps(policy=DivertPolicy(PASSING, ParkedStore(folder)))


def with_bad(count: int, *bad: int) -> list[bytes | None]:
    """So many records, of which those at some places have no row."""
    return [BAD if number in bad else value for number, value in enumerate(good(count))]


def test_what_is_passed_over_is_parked_and_counts(run: Run, folder: ParkedFolder) -> None:
    """Rejected records, and those of a refused file, are in the topic-partition's file; the range counts."""
    target = Target(BAD_FILE)
    feed = (SPAN, [block(SPAN, 100, with_bad(100, 3, 80))])
    outcome = run(target, feed, records=20, steps=steps(folder), errors=PASSING)["orders", 0]
    assert (outcome.accepted_until, outcome.failure) == (200, None)
    parked = offsets(folder)
    assert sorted(parked) == [*range(100, 121), 180]
    assert sorted(parked + target.offsets) == list(range(100, 200))
    assert len(scan(folder.path).files) == 1


def test_nothing_counts_when_nothing_can_be_parked(run: Run, folder: ParkedFolder) -> None:
    """The folder is gone: the connector stops at the first record that it would have had to keep."""
    Path(folder.path, ".parquet-sink-parked").unlink()
    feed = (SPAN, [block(SPAN, 100, with_bad(100, 30, 60))])
    outcome = run(Target(), feed, records=10, steps=steps(folder), errors=PASSING)["orders", 0]
    assert outcome.accepted_until == 130
    assert outcome.failure is not None
    assert (outcome.failure.kind, "connect.ems.parked.dir" in outcome.failure.message) == ("StorageFailed", True)


def test_at_the_bound_the_connector_stops(run: Run, tmp_path: Path) -> None:
    """Nothing from the record that has no room is accepted; with more room the next attempt goes on there."""
    small = ParkedFolder(str(tmp_path / "small"), "sink", 6_000)
    small.prepare()
    kept = [b"no JSON " + os.urandom(200) for _ in range(100)]
    one_by_one = [block(SPAN, 100 + n, [kept[n]]) for n in range(100)]
    span, until = SPAN, 0
    for at in range(100):
        span = replace(SPAN, start=100 + at, end=101 + at, accepted=100 + at)
        outcome = run(Target(), (span, [one_by_one[at]]), steps=steps(small), errors=PASSING)["orders", 0]
        until = outcome.accepted_until
        if outcome.failure is not None:
            break
    else:
        pytest.fail("it never became full")
    assert outcome.failure.kind == "ParkedFull"
    assert "connect.ems.parked.max.bytes=6000" in outcome.failure.message
    assert (until, offsets(small)) == (span.start, list(range(100, span.start)))
    larger = ParkedFolder(small.path, "sink", 10**8)
    outcome = run(Target(), (span, [one_by_one[span.start - 100]]), steps=steps(larger), errors=PASSING)["orders", 0]
    assert (outcome.accepted_until, outcome.failure, offsets(larger)[-1]) == (span.end, None, span.start)


def test_all_that_has_room_is_parked_and_the_first_without_is_named(run: Run, tmp_path: Path) -> None:
    """However many come at once; the error says how much there is, and what cures it."""
    small = ParkedFolder(str(tmp_path / "small"), "sink", 30_000)
    small.prepare()
    bad = [b"no JSON " + os.urandom(1_000) for _ in range(100)]
    outcome = run(Target(), (SPAN, [block(SPAN, 100, bad)]), steps=steps(small), errors=PASSING)["orders", 0]
    there = offsets(small)
    assert outcome.failure is not None
    message = outcome.failure.message
    assert there == list(range(100, 100 + len(there)))
    assert 15 < len(there) < 30
    assert_says(message, f"offset {100 + len(there)}:", "not JSON", f" {scan(small.path).size_bytes:,} bytes")
    assert_says(message, small.path, "parquet-sink parked drop")
    tiny = ParkedFolder(str(tmp_path / "tiny"), "sink", 1_000)
    tiny.prepare()
    outcome = run(Target(), (SPAN, [block(SPAN, 100, bad)]), steps=steps(tiny), errors=PASSING)["orders", 0]
    assert outcome.failure is not None
    assert_says(outcome.failure.message, " 0 bytes", tiny.path)
    assert_says(outcome.failure.message, "Raise connect.ems.parked.max.bytes", "name a dead-letter topic")


def test_many_records_are_written_before_they_fill_memory(
    folder: ParkedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They need not wait for the end of their range; what is there already is not written again at its end."""
    monkeypatch.setattr(module, "WAITING_BYTES", 5_700)
    store = ParkedStore(folder)
    for offset in range(100):
        store.put(rejected(offset))
    early = offsets(folder)
    assert 50 < len(early) < 100
    store.flush(SPAN)
    assert offsets(folder) == list(range(100))


def test_what_could_not_be_written_is_tried_again(folder: ParkedFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flush that failed has forgotten nothing: it fails again, or keeps everything."""
    store, real = ParkedStore(folder), folder.append
    store.put(rejected(1))

    def fail(*_args: object) -> int:
        raise StorageFailed("the disk is full")

    monkeypatch.setattr(folder, "append", fail)
    for _ in range(2):
        with pytest.raises(StorageFailed):
            store.flush(SPAN)
    monkeypatch.setattr(folder, "append", real)
    store.flush(SPAN)
    assert offsets(folder) == [1]


def test_what_was_not_flushed_is_forgotten_at_the_end(folder: ParkedFolder) -> None:
    """The task has ended without acknowledging: its records come again."""
    store = ParkedStore(folder)
    store.put(rejected(1))
    store.close()
    store.flush(SPAN)
    assert offsets(folder) == []


def test_a_connector_parks_where_its_settings_say(tmp_path: Path) -> None:
    """Only one that passes over something; its folder is the one that is named, or below `tmp.dir`."""
    plain = made(tmp_path, 10)
    assert isinstance(policy_for(plain), StopAtRejected)
    for errors in (ErrorSettings(invalid_records=True), ErrorSettings(refused_files=True)):
        passing = replace(plain, errors=errors, parked=ParkedSettings(str(tmp_path / "far"), 77))
        assert passing.parked_folder == str(tmp_path / "far" / "sink")
        assert isinstance(policy_for(passing), DivertPolicy)


cuts = st.lists(st.integers(1, 15), min_size=1, max_size=8)


@settings(
    suppress_health_check=FIXTURES_SHARED,
    max_examples=examples(40),
    deadline=None,
)
@given(st.lists(st.booleans(), min_size=1, max_size=60), cuts, cuts, st.integers(1, 20))
def test_a_range_that_comes_again_parks_the_same_records(
    run: Run, tmp_path: Path, bad: list[bool], first: list[int], second: list[int], records: int
) -> None:
    """However its records are cut into batches: after two attempts each rejected record is parked once."""
    folder = ParkedFolder(str(tmp_path / f"p{id(bad)}-{len(list(tmp_path.iterdir()))}"), "sink", 10**8)
    folder.prepare()
    span = PlannedRange("orders", 0, 0, len(bad), "records")
    values = [BAD if one else b'{"a":%d}' % n for n, one in enumerate(bad)]
    for cut in (first, second):
        blocks = list(batches(span, values, cut))
        outcome = run(Target(), (span, blocks), records=records, steps=steps(folder), errors=PASSING)["orders", 0]
        assert (outcome.accepted_until, outcome.failure) == (len(bad), None)
    assert offsets(folder) == [n for n, one in enumerate(bad) if one]


def batches(span: PlannedRange, values: Sequence[bytes | None], cut: list[int]) -> list[RecordBatch]:
    """The records in batches of these sizes, over and over."""
    found, at, turn = [], 0, 0
    while at < len(values):
        size = cut[turn % len(cut)]
        found.append(block(span, at, values[at : at + size]))
        at, turn = at + size, turn + 1
    return found
