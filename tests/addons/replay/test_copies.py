"""What of a replay comes from an archive, and what of it is left for Kafka."""

from dataclasses import replace

import pytest

from parquet_sink.addons.replay.copies import Copy, Span, copies_of
from parquet_sink.addons.replay.plan import (
    Cutting,
    Held,
    Past,
    ReplayPlan,
    Survey,
    make_plan,
    range_from_dict,
    range_to_dict,
)
from parquet_sink.addons.replay.selection import Selection, chosen
from parquet_sink.archive.archive import ArchivedFile, path_of
from parquet_sink.files.naming import file_name
from parquet_sink.history.records import UploadRecord
from parquet_sink.kafka.settings import FlushSettings
from tests.history.uploads import span, upload

KEY = ("orders", 0)
CUTTING = Cutting(FlushSettings(1_000_000, 1_000, 1_000))
FILES = [upload(0, 9, oldest_ms=1_000), upload(10, 17, oldest_ms=2_000), upload(20, 29, oldest_ms=3_000)]
"""Of two ranges; offsets 18 and 19 have no row."""
PAST = Past([span(0, 20, done_until=20), span(20, 30, done_until=30)], FILES)


def archived(one: UploadRecord) -> ArchivedFile:
    """As an archive has it."""
    return ArchivedFile(path_of(one.topic, one.file_name), one.size_bytes)


def copies(*files: UploadRecord, past: Past = PAST) -> dict[tuple[str, int], list[Copy]]:
    """Of these files in an archive."""
    return copies_of(map(archived, files), {KEY: past.files})


def planned(wanted: Span, held: Held, *files: UploadRecord, past: Past = PAST) -> ReplayPlan:
    """With an archive of these files."""
    return make_plan({KEY: [wanted]}, {KEY: held}, {KEY: past}, CUTTING, copies(*files, past=past))


def told(plan: ReplayPlan) -> list[tuple[int, int, bool]]:
    """Each range, and whether it is from the archive."""
    return [(one.planned.start, one.planned.end, one.copy is not None) for one in plan.ranges]


def test_what_kafka_has_is_read_from_kafka() -> None:
    """The archive is there for what is gone."""
    assert told(planned((0, 30), Held(0, 40, "id", False), *FILES)) == [(0, 20, False), (20, 30, False)]


@pytest.mark.parametrize("low", [1, 12, 20])
def test_a_range_of_which_anything_is_gone_is_taken_whole(low: int) -> None:
    """Its files depend on all of it; nothing is missing, and offsets without a row are no gap."""
    plan = planned((0, 30), Held(low, 40, "id", False), *FILES)
    assert told(plan) == [(0, 10, True), (10, 18, True), (20, 30, False)]
    assert plan.missing == ()
    assert all(one.foretold for one in plan.ranges)


def test_what_the_archive_does_not_have_either_is_missing() -> None:
    """Of a range of which it has some files, these are sent, and the others as far as Kafka has them."""
    plan = planned((0, 30), Held(12, 40, "id", False), FILES[0])
    assert told(plan) == [(0, 10, True), (12, 20, False), (20, 30, False)]
    assert [(one.start, one.end) for one in plan.missing] == [(10, 12)]


def test_compaction_may_have_taken_anything() -> None:
    """All that the archive has of such a topic comes from there."""
    assert told(planned((0, 40), Held(0, 40, "id", True), *FILES)) == [
        *((0, 10, True), (10, 18, True), (20, 30, True)),
        (30, 40, False),
    ]


def test_only_files_with_a_chosen_offset_are_sent() -> None:
    """They are sent whole."""
    assert told(planned((5, 12), Held(40, 40), *FILES)) == [(0, 10, True), (10, 18, True)]


def test_what_the_history_has_forgotten_is_known_by_its_name() -> None:
    """Only before all that the history has; what lies within, and it does not have, is not sent."""
    old = upload(0, 4, file_name=file_name("orders", 0, 0, 4, 1_234, 5))
    past = Past([], [upload(10, 19)])
    stray = upload(12, 14)
    found = copies(old, stray, upload(10, 19), past=past)[KEY]
    assert [(one.first, one.last, one.rows, one.digest) for one in found] == [(0, 4, 5, None), (10, 19, 10, "ab" * 32)]
    damaged = replace(archived(old), size_bytes=1)
    assert copies_of([damaged], {KEY: past.files}) == {}


@pytest.mark.parametrize(
    ("selection", "wanted"),
    [
        (Selection(), (0, 100)),
        (Selection(first=12), (12, 100)),
        (Selection(since_ms=1_500), (10, 100)),
        (Selection(since_ms=9_000), (60, 100)),
        (Selection(until_ms=2_500), (0, 20)),
        (Selection(topic="orders", partition=0, first=3, last=8), (3, 9)),
    ],
)
def test_a_choice_reaches_back_into_the_archive(selection: Selection, wanted: Span) -> None:
    """From its first file on, unless a begin was chosen; by times, by the oldest record of each file."""
    since = {} if selection.since_ms is None else {KEY: 60}
    until = {} if selection.until_ms is None else {KEY: 60}
    found = Survey({KEY: Held(60, 200, "id")}, {KEY: 100}, since, until)
    assert chosen(selection, found, {KEY: PAST}, elsewhere=False, copies=copies(*FILES)) == {KEY: [wanted]}


def test_a_file_that_only_the_archive_knows_can_be_named() -> None:
    """The history has forgotten it."""
    old = upload(0, 4)
    past = Past([], [upload(10, 19)])
    found = Survey({KEY: Held(60, 60)}, {}, {}, {})
    selection = Selection(files=(old.file_name,))
    assert chosen(selection, found, {KEY: past}, elsewhere=False, copies=copies(old, past=past)) == {KEY: [(0, 5)]}


def test_a_copy_survives_json() -> None:
    """So that a replay goes on with it."""
    [one, *_] = planned((0, 10), Held(40, 40), *FILES).ranges
    assert one.copy is not None
    assert range_from_dict(range_to_dict(one)) == one
