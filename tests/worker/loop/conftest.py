"""Time, queries and groups of these tests are doubles."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from parquet_sink.worker.herder.store import ConfigStore
from parquet_sink.worker.loop import connector as module
from parquet_sink.worker.loop import flow, group_commit, managed_connector, supervisor
from parquet_sink.worker.loop.connector import Connector
from tests.factories import Clock
from tests.worker.loop.doubles import Group, Query
from tests.worker.loop.worker_doubles import Loop


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The connectors' clock."""
    fake = Clock()
    for one in (module, managed_connector, supervisor, flow):
        monkeypatch.setattr(one, "time", fake)
    return fake


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> list[Query]:
    """Every query that was started."""
    queries: list[Query] = []

    def started(self: Connector, spark: object) -> Query:
        queries.append(Query())
        return queries[-1]

    monkeypatch.setattr(Connector, "_start_query", started)
    monkeypatch.setattr(group_commit, "GroupOffsets", Group)
    Group.advanced, Group.committed, Group.error = [], {}, None
    return queries


@pytest.fixture
def make_loop(tmp_path: Path, clock: Clock, launched: list[Query]) -> Iterator[Callable[..., Loop]]:
    """Makes workers' loops; one that is made while another lives is a worker that was started again."""
    loops: list[Loop] = []

    def made(store: ConfigStore | None = None) -> Loop:
        loops.append(Loop(tmp_path / f"loop{len(loops)}", clock, store))
        return loops[-1]

    yield made
    for one in loops:
        one.close()


@pytest.fixture
def loop(make_loop: Callable[..., Loop]) -> Loop:
    """A worker's loop without connectors."""
    return make_loop()
