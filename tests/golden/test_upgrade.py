"""What earlier versions left is read by this one: files of a real run that was killed, and records of a group.

`upgrade/` has them. State, history and metadata are of commit 0c220d1e, whose run `python -m integration.upgrade` plays
on a broker; records of a group of workers are of b7f8ac89.
"""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from parquet_sink.distributed.assignment import MemberInfo, Placement, Release
from parquet_sink.distributed.records import LOGGER, RESTART, ConnectorReport, Entry, RestartAsked
from parquet_sink.distributed.state import ConfigState, StatusState
from parquet_sink.history.records import UploadOutcome
from parquet_sink.history.settings import HistorySettings
from parquet_sink.history.sqlite import read_history, write_history
from parquet_sink.kafka.group.committed import Committed, RangePlan
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import STARTED
from parquet_sink.worker.herder.values import State, TargetState

LEFT = Path(__file__).with_name("upgrade")
RECORDS = json.loads((LEFT / "distributed.json").read_text(encoding="utf-8"))


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """The folder as it was left: databases made of their dumps."""
    for name in ("state", "history"):
        with closing(sqlite3.connect(tmp_path / f".{name}.db")) as database:
            database.executescript((LEFT / f"{name}.sql").read_text(encoding="utf-8"))
    return tmp_path


def test_what_was_learned_and_planned_is_read(left: Path) -> None:
    """The range in flight comes back by the settings' digest of then; the run of then is over, its fields forgotten."""
    with closing(sqlite3.connect(left / ".state.db")) as database:
        ((recipe,),) = database.execute("select recipe from planned").fetchall()
    with closing(SqliteStore.for_new_run(left / ".state.db")) as store:
        planned = store.planned(recipe)["upgraded", 0]
        assert (planned.start, planned.end, planned.reason) == (300, 500, "records")
        assert store.planned("digest of this version") == {}
        assert store.learned()["upgraded"].bytes_per_row is not None
        assert (store.accepted(), store.progress(), store.get(STARTED)) == ([], [], False)


def test_a_range_in_flight_beside_the_offset_is_read() -> None:
    """Who committed, the range and the topic's id."""
    found = Committed(300, (LEFT / "metadata.json").read_text(encoding="utf-8"))
    assert found.plan == RangePlan(300, 500, "records")
    assert found.topic_id == "4u6mTV27T3OoXNFzSSNN5w"
    assert "host" in found.committer()


def test_the_history_is_read_and_goes_on(left: Path) -> None:
    """Uploads and ranges of then are listed, before and after this version adds its own tables and rows."""
    with closing(read_history(left / ".history.db")) as history:
        before = list(history.files())
        assert [(one.first_offset, one.last_offset, one.outcome) for one in before] == [
            *((start, start + 99, UploadOutcome.ACCEPTED) for start in (0, 100, 200)),
            (300, 399, UploadOutcome.WAITING),
        ]
        assert [(one.start, one.end, one.version) for one in history.ranges()] == [(0, 300, "0.1.0")]
    with closing(write_history(left / ".history.db", HistorySettings())) as history:
        history.append_files([replace(before[-1], outcome=UploadOutcome.ACCEPTED, at_ms=before[-1].at_ms + 1)])
        assert [one.outcome for one in history.files()] == [UploadOutcome.ACCEPTED] * 4


def test_the_version_before_can_open_what_this_one_leaves(left: Path) -> None:
    """No column of then is gone and none is obligatory that it does not know: so it goes on with these files."""
    columns: dict[str, dict[str, set[str]]] = {}
    for when in ("then", "now"):
        columns[when] = {}
        for name in ("state", "history"):
            with closing(sqlite3.connect(left / f".{name}.db")) as database:
                tables = [table for (table,) in database.execute("select name from sqlite_master where type = 'table'")]
                for table in tables:
                    rows = database.execute(f"pragma table_info({table})").fetchall()
                    columns[when][f"{name}.{table}"] = {row[1] for row in rows}
        with closing(SqliteStore.for_new_run(left / ".state.db")):
            write_history(left / ".history.db", HistorySettings()).close()
    assert {name: columns["now"].get(name) for name in columns["then"]} == columns["then"]


def test_records_of_a_group_of_then_are_read() -> None:
    """Assignment, release, status and topics, each as what it said; none is unreadable."""
    entries: dict[str, list[Entry]] = {"config": [], "status": []}
    for number, (topic, key, value) in enumerate(RECORDS):
        entries[topic].append(Entry(key.encode(), value.encode(), number))
    config, status = ConfigState().fold(entries["config"]), StatusState().fold(entries["status"])
    assert (config.unreadable, status.unreadable) == ({}, {})
    assigned = config.assignment
    assert (assigned.epoch, assigned.leader, assigned.form) == (7, "w2:8083", 1)
    assert assigned.members["w1:8083"] == MemberInfo("w1:8083", "m-1", "http://w1:8083", 1764115000000)
    assert assigned.placements["orders"] == Placement("w1:8083", "w2:8083", "a worker joined", 6, 1764115150000)
    assert (config.connectors["orders"]["topics"], config.targets) == ("orders", {"orders": TargetState.PAUSED})
    assert (config.of(LOGGER), config.cluster) == ({"parquet_sink": "DEBUG"}, "g")
    assert config.of(RESTART) == {"orders": RestartAsked(include_tasks=True, only_failed=False)}
    assert status.releases == {"orders": Release("w2:8083", "m-2", 6)}
    assert status.connectors == {"orders": ConnectorReport(State.RUNNING, "", "w1:8083", 7)}
    assert status.topics == {"orders": ("orders",)}
