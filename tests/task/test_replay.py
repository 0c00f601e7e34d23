"""Replaying: parked records take the way of records from Kafka, and leave the folder when they were accepted."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.errors import RetryLater
from parquet_sink.model.ranges import LearnedSchema
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.parked import folder as folders
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.parked.scan import Selection, scan
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.targets.settings import RetrySettings
from parquet_sink.targets.table_map import parse
from parquet_sink.task import replay as replaying
from parquet_sink.task.record_steps import RecordSteps
from parquet_sink.task.replay import Replay, Replayed
from parquet_sink.transform.building import NamedTransform
from parquet_sink.transform.chain import Step, TransformChain
from tests.messages import assert_says
from tests.parked.crashes import Crash, crash_at
from tests.spark_task import Handed
from tests.task.fakes import ACCEPTED, BAD_FILE, ONCE, REFUSED, SPAN, UNKNOWN, Target, block, left, made, names
from tests.thorough import FIXTURES_SHARED, examples
from tests.transform.doubles import Fails

ALL = Selection()
BAD = b"not JSON"


@pytest.fixture
def folder(tmp_path: Path) -> ParkedFolder:
    """One that is ready."""
    found = ParkedFolder(str(tmp_path / "parked"), "sink", 10**8)
    found.prepare()
    return found


def parked(offset: int, value: bytes | None, topic: str = "orders", partition: int = 0) -> Rejected:
    """A record that was passed over, whatever is in it now."""
    stage, reason = Stage.VALUE_CONVERTER, "the registry had another schema"
    return Rejected(topic, partition, offset, stage, reason, b"k", value, (("h", b"1"),), 5_000 + offset)


def park(folder: ParkedFolder, records: Sequence[Rejected]) -> None:
    """Parks them as they come, those of one topic-partition together."""
    for key in dict.fromkeys((one.topic, one.partition) for one in records):
        folder.append(*key, [one for one in records if (one.topic, one.partition) == key], 7)


def rest(folder: ParkedFolder) -> list[tuple[int, str]]:
    """Offsets and reasons of what is still parked."""
    tables = [file.read(["offset", "reason"]) for file in scan(folder.path).files]
    return [(row["offset"], row["reason"]) for table in tables for row in table.to_pylist()]


@pytest.fixture
def replayed(tmp_path: Path, folder: ParkedFolder) -> Callable[..., list[Replayed]]:
    """Replays the folder against a target."""

    def run(
        target: Target,
        selection: Selection = ALL,
        *,
        records: int = 1_000,
        retry: RetrySettings = ONCE,
        known: dict[str, LearnedSchema] | None = None,
        registry_patience_ms: int = 0,
        **more: Any,
    ) -> list[Replayed]:
        prepared = replace(
            made(tmp_path / "work", records, retry), target=Handed(target), registry_patience_ms=registry_patience_ms
        )
        return list(Replay(prepared, more.pop("folder", folder), known or {}, **more).run(selection))

    return run


Run = Callable[..., list[Replayed]]


def test_what_is_accepted_now_leaves_the_folder(replayed: Run, folder: ParkedFolder, tmp_path: Path) -> None:
    """Rows are those that would have been: offsets, times, topic-partition and file names are Kafka's."""
    park(folder, [parked(offset, b'{"id":%d}' % offset) for offset in (3, 4, 90)])
    target = Target()
    (found,) = replayed(target)
    assert found == Replayed("orders", 0, 3, 3, 0, 1)
    assert [(row["id"], row["kafkaOffset"], row["kafkaTimestamp"]) for row in target.rows] == [
        (n, n, 5_000 + n) for n in (3, 4, 90)
    ]
    assert "topic-orders_partition-0_firstOffset-3_lastOffset-90" in names(target)[0]
    assert rest(folder) == []
    assert [path for path in Path(folder.path).rglob("*") if path.is_dir() or "parked-" in path.name] == []
    assert left(tmp_path / "work") == []


def test_what_is_rejected_again_stays_with_its_new_reason(replayed: Run, folder: ParkedFolder) -> None:
    """The others are delivered; a tombstone, and what a transform drops, needs no row and is done with."""
    park(folder, [parked(1, b'{"id":1}'), parked(2, BAD), parked(3, None), parked(4, b'{"id":4}')])
    target = Target()
    assert replayed(target) == [Replayed("orders", 0, 4, 3, 1, 1)]
    assert target.offsets == [1, 4]
    ((offset, reason),) = rest(folder)
    assert offset == 2
    assert "not JSON" in reason
    kept = scan(folder.path).files[0].read().to_pylist()[0]
    assert (kept["value"], kept["key"], kept["parked_at"].timestamp()) == (BAD, b"k", 0.007)
    assert replayed(target) == [Replayed("orders", 0, 1, 0, 1, 0)]


def test_a_refused_file_stays(replayed: Run, folder: ParkedFolder) -> None:
    """Its records have the target's reason now; files behind it go on."""
    park(folder, [parked(offset, b'{"id":1}') for offset in range(30)])
    target = Target(ACCEPTED, BAD_FILE)
    assert replayed(target, records=10) == [Replayed("orders", 0, 30, 20, 10, 2)]
    assert [offset for offset, _ in rest(folder)] == list(range(10, 20))
    assert all(reason.endswith("the target answered 422") for _, reason in rest(folder))
    assert {stage.as_py() for stage in scan(folder.path).files[0].read().column("stage")} == {"TASK_PUT"}


@pytest.mark.parametrize("verdict", [REFUSED, UNKNOWN])
def test_a_target_that_takes_nothing_ends_the_replay(replayed: Run, folder: ParkedFolder, verdict: Any) -> None:
    """What was accepted before is out, all else stays as it is, and nothing of other topic-partitions is tried."""
    park(folder, [parked(offset, b'{"id":1}') for offset in range(30)])
    park(folder, [parked(offset, b'{"id":1}', partition=1) for offset in range(3)])
    target = Target(ACCEPTED, verdict)
    (found,) = replayed(target, records=10)
    assert (found.accepted, found.rejected, found.files) == (10, 0, 1)
    assert found.failure is not None
    assert_says(found.failure.message, "not accepted", "still parked")
    assert [offset for offset, _ in rest(folder)] == [*range(10, 30), 0, 1, 2]
    assert {reason for _, reason in rest(folder)} == {"the registry had another schema"}


def test_a_target_that_is_busy_is_tried_again(replayed: Run, folder: ParkedFolder) -> None:
    """There is no planner, so the replay waits by itself; files come out the same."""
    park(folder, [parked(offset, b'{"id":%d}' % offset) for offset in range(30)])
    waits: list[float] = []
    retry = RetrySettings(max_retries=5, retry_interval_ms=60_000)
    target = Target(ACCEPTED, UNKNOWN, UNKNOWN)
    (found,) = replayed(target, records=10, retry=retry, sleep=waits.append)
    assert (found.accepted, found.files, found.failure, len(waits)) == (30, 3, None, 2)
    assert min(waits) > 20
    assert target.offsets == list(range(30))


def test_a_transform_that_cannot_work_is_tried_again_for_as_long_as_the_settings_say(
    replayed: Run, folder: ParkedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With pauses that grow; then the replay ends, and what was not accepted is still parked."""
    away = NamedTransform("transforms.f", "Fails", Fails(2, RetryLater("the map is being loaded")))
    monkeypatch.setattr(
        replaying, "steps_for", lambda settings, policy: RecordSteps(None, TransformChain([Step(away)]), policy)
    )
    park(folder, [parked(offset, b'{"id":1}') for offset in range(3)])
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        assert len(waits) < 20, "it never ends"
        waits.append(seconds)

    (found,) = replayed(Target(), registry_patience_ms=2_000, sleep=sleep, monotonic=lambda: 0.0)
    assert waits == pytest.approx([0.3, 0.6, 1.1])
    assert found.failure is not None
    assert "the map is being loaded" in found.failure.message
    assert [offset for offset, _ in rest(folder)] == [0, 1, 2]


def test_tries_of_a_transform_count_as_long_as_they_take(
    replayed: Run, folder: ParkedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short pauses do not make the patience longer."""
    away = NamedTransform("transforms.f", "Fails", Fails(0, RetryLater("the map is being loaded")))
    monkeypatch.setattr(
        replaying, "steps_for", lambda settings, policy: RecordSteps(None, TransformChain([Step(away)]), policy)
    )
    park(folder, [parked(0, b'{"id":1}')])
    waits: list[float] = []
    seconds = iter(range(100))
    (found,) = replayed(
        Target(), registry_patience_ms=5_000, sleep=waits.append, monotonic=lambda: float(next(seconds))
    )
    assert found.failure is not None
    assert len(waits) == 4


def test_only_what_is_chosen_is_replayed(replayed: Run, folder: ParkedFolder) -> None:
    """By topic, topic-partition, offsets and stage; all else stays."""
    everything = [parked(n, b'{"id":1}', topic, p) for topic in ("a", "b") for p in (0, 1) for n in (1, 2, 3)]
    park(folder, everything)
    target = Target()
    replayed(target, Selection("a", 1, (2, 3)))
    replayed(target, Selection(stage="SHAPE"))
    assert [(file.topic, file.partition) for file in target.files] == [("a", 1)]
    assert target.offsets == [2, 3]
    assert len(rest(folder)) == 10
    replayed(target, Selection(stage="VALUE_CONVERTER"))
    assert rest(folder) == []


def test_a_topic_whose_files_cannot_go_anywhere_stays(folder: ParkedFolder, tmp_path: Path) -> None:
    """The map of tables may have changed since: nothing goes to another table, and the reason says why."""
    park(folder, [parked(1, b'{"id":1}')])
    unusable = replace(made(tmp_path / "work", 10, ONCE), tables=parse("orders-?(.*):$1"))
    (found,) = Replay(unusable, folder, {}).run(ALL)
    assert found.failure is not None
    assert_says(found.failure.message, "[connect.ems.target.table.map]", "Topic orders", "go to table")
    assert (found.records, found.accepted, found.files, rest(folder)) == (
        1,
        0,
        0,
        [(1, "the registry had another schema")],
    )


def test_a_dry_run_changes_nothing(replayed: Run, folder: ParkedFolder) -> None:
    """It says what would become of the records."""
    park(folder, [parked(1, b'{"id":1}'), parked(2, BAD)])
    before = rest(folder)
    assert replayed(Target(), changes=False) == [Replayed("orders", 0, 2, 1, 1, 1)]
    assert rest(folder) == before


def test_records_parked_later_with_lower_offsets_come_in_their_place(replayed: Run, folder: ParkedFolder) -> None:
    """Whatever the order in which they were parked, rows are sent in offset order."""
    for offsets in ((50, 51), (10, 60), (20, 55)):
        park(folder, [parked(n, b'{"id":%d}' % n) for n in offsets])
    target = Target()
    replayed(target)
    assert target.offsets == [10, 20, 50, 51, 55, 60]


def test_several_records_at_one_offset_are_all_replayed(replayed: Run, folder: ParkedFolder) -> None:
    """Of a topic that was made anew: each is a record of its own, those parked first go first."""
    park(folder, [parked(5, b'{"id":1}'), parked(6, b'{"id":2}')])
    park(folder, [parked(5, b'{"id":3}')])
    park(folder, [parked(5, BAD)])
    target = Target()
    assert replayed(target) == [Replayed("orders", 0, 4, 3, 1, 2)]
    assert [row["id"] for row in target.rows] == [1, 2, 3]
    assert [offset for offset, _ in rest(folder)] == [5]


def test_what_is_parked_meanwhile_stays(replayed: Run, folder: ParkedFolder) -> None:
    """The connector may run beside: what it parks while a file is sent is not taken for replayed."""
    park(folder, [parked(1, b'{"id":1}'), parked(2, BAD)])

    class Busy(Target):
        def push(self, *args: Any) -> Any:
            park(folder, [parked(7, b'{"id":7}'), parked(0, b'{"id":0}')])
            return super().push(*args)

    assert replayed(Busy()) == [Replayed("orders", 0, 2, 1, 1, 1)]
    assert sorted(offset for offset, _ in rest(folder)) == [0, 2, 7]


def test_rows_have_the_columns_that_the_topic_is_known_to_have(replayed: Run, folder: ParkedFolder) -> None:
    """What the connector learned of a topic holds here, too: a number that is a fraction elsewhere is a fraction."""
    shaper = RowBuilder(made(Path("/tmp"), 10).shape)
    list(shaper.shape(block(SPAN, 100, [b'{"id":1.5,"other":"x"}'])))
    assert shaper.known is not None
    known = {"orders": LearnedSchema(shaper.known.serialize().to_pybytes())}
    park(folder, [parked(1, b'{"id":1}')])
    target = Target()
    replayed(target, known=known)
    assert isinstance(target.rows[0]["id"], float)


@pytest.mark.parametrize("step", range(6))
def test_a_crash_loses_nothing(replayed: Run, folder: ParkedFolder, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the target accepted, at whichever change of the parked files: a second replay ends with the same rows."""
    monkeypatch.setattr(folders, "FILE_BYTES", 1_500)
    for n in range(20):
        park(folder, [parked(n, BAD if n % 5 == 0 else b'{"id":%d,"t":"%s"}' % (n, os.urandom(100).hex().encode()))])
    assert len(scan(folder.path).files) > 2
    target, change = Target(), folder.change

    def changing(*args: Any) -> None:
        with crash_at(step):
            change(*args)

    monkeypatch.setattr(folder, "change", changing)
    try:
        replayed(target)
    except Crash:
        monkeypatch.setattr(folder, "change", change)
        replayed(target)
    assert set(target.offsets) == {n for n in range(20) if n % 5}
    assert [offset for offset, _ in rest(folder)] == [0, 5, 10, 15]


values = st.sampled_from([b'{"a":1}', b'{"a":2.5}', b'{"a":"x"}', b'{"b":[1]}', None, BAD])
appends = st.lists(
    st.lists(st.tuples(st.integers(0, 30), values), max_size=12, unique_by=lambda one: one[0]), max_size=5
)
verdicts = st.lists(st.sampled_from([ACCEPTED, BAD_FILE, REFUSED, UNKNOWN]), max_size=5)


@settings(
    suppress_health_check=FIXTURES_SHARED,
    max_examples=examples(60),
    deadline=None,
)
@given(appends, verdicts, st.integers(1, 8), st.integers(100, 3_000))
def test_each_record_is_at_the_target_or_parked(
    replayed: Run, tmp_path: Path, parks: list[list[tuple[int, Any]]], outcomes: list[Any], size: int, file_bytes: int
) -> None:
    """However records were parked and whatever the target says, again and again: none is in neither place."""
    folder = ParkedFolder(str(tmp_path / os.urandom(8).hex()), "sink", 10**8)
    folder.prepare()
    before, folders.FILE_BYTES = folders.FILE_BYTES, file_bytes  # type: ignore[misc]
    try:
        for records in parks:
            park(folder, [parked(offset, value) for offset, value in sorted(records)])
        wanted = {(offset, value) for records in parks for offset, value in records}
        target = Target(*outcomes)
        for _ in range(len(outcomes) + 1):
            replayed(target, records=size, folder=folder)
            kept = [row for file in scan(folder.path).files for row in file.read().to_pylist()]
            held = {(row["offset"], row["value"]) for row in kept}
            assert len(held) == len(kept)
            assert held <= wanted
            assert {offset for offset, value in wanted - held if value not in (None, BAD)} <= set(target.offsets)
        assert {value for _, value in held} <= {BAD}
    finally:
        folders.FILE_BYTES = before  # type: ignore[misc]
