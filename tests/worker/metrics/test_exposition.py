"""A page of figures: how connectors stand, which of them are there, and names that are odd."""

import threading
from dataclasses import replace

import pytest

from parquet_sink.model.events import ConnectorRestarting
from parquet_sink.process.usage import Usage
from parquet_sink.worker.herder.errors import ShuttingDown
from parquet_sink.worker.herder.values import ConnectorProgress, PartitionProgress, State, WorkerInfo, Workers
from parquet_sink.worker.metrics import gauges
from parquet_sink.worker.metrics.gauges import STANDS_S
from tests.worker.metrics.figures import ACCEPTED, WORKER_ID, World, connector, watched

LATE = PartitionProgress("t", 0, lag=100, oldest_s=90.0, records_per_s=5.0, away=False)
AWAY = PartitionProgress("t", 1, lag=7, oldest_s=None, records_per_s=0.0, away=True)


def test_a_connector_has_one_state() -> None:
    """A series for each state, so that none vanishes when it changes; and whether it waits for something."""
    world = World(connector("a", State.FAILED), connector("b", State.RUNNING, waits_for="the broker"))
    page = world.page()
    found = {
        (name, state): page.get("parquet_sink_connector_state", connector=name, state=state)
        for name in "ab"
        for state in State
    }
    assert {key for key, value in found.items() if value == 1} == {("a", State.FAILED), ("b", State.RUNNING)}
    assert set(found.values()) == {0, 1}
    assert page.all("parquet_sink_connector_waiting", "connector") == {"a": 0, "b": 1}


def test_files_that_wait_for_the_archive_are_told() -> None:
    """Of each connector; none wait where there is none."""
    page = World(replace(connector("orders"), archive_waiting=3), connector("new")).page()
    assert page.all("parquet_sink_archive_waiting_files", "connector") == {"orders": 3, "new": 0}


def test_missing_topics_are_counted() -> None:
    """Of each connector."""
    page = World(replace(connector("orders"), missing_topics=("a", "b")), connector("new")).page()
    assert page.all("parquet_sink_missing_topics", "connector") == {"orders": 2, "new": 0}


def test_lag_and_age_are_of_all_topic_partitions() -> None:
    """Summed up, and at most, for the connector, if any is known; of each by itself; the age's bound is beside it."""
    world = World(connector("orders", State.RUNNING, LATE, AWAY, uploaded_s=950.0), connector("new"))
    world.metrics.refresh([watched("orders", 30_000)])
    page = world.page()
    values = {
        name: page.all(f"parquet_sink_{name}", "connector")
        for name in ("lag_records", "oldest_unflushed_seconds", "partitions", "away_partitions")
    }
    assert values == {
        "lag_records": {"orders": 107},
        "oldest_unflushed_seconds": {"orders": 90},
        "partitions": {"orders": 2, "new": 0},
        "away_partitions": {"orders": 1, "new": 0},
    }
    assert page.all("parquet_sink_flush_interval_seconds", "connector") == {"orders": 30}
    assert page.all("parquet_sink_last_upload_timestamp_seconds", "connector") == {"orders": 950}
    of = {"connector": "orders", "topic": "t"}
    assert page.get("parquet_sink_partition_lag_records", **of, partition="0") == 100
    assert page.get("parquet_sink_partition_oldest_unflushed_seconds", **of, partition="1") == 0
    assert page.get("parquet_sink_partition_away", **of, partition="1") == 1
    assert page.get("parquet_sink_partition_records_per_second", **of, partition="0") == 5


def test_topic_partitions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same ones each time, however they come; sums are of all, and the page says how many it leaves out."""
    monkeypatch.setattr(gauges, "MOST_PARTITIONS", 3)
    of_b = [replace(LATE, partition=number) for number in (11, 2, 0)]
    world = World(connector("b", State.RUNNING, *of_b), connector("a", State.RUNNING, LATE))
    page = world.page()
    shown = {labels for name, labels in page.samples if name == "parquet_sink_partition_lag_records"}
    assert {(dict(one)["connector"], dict(one)["partition"]) for one in shown} == {("a", "0"), ("b", "0"), ("b", "2")}
    assert page.get("parquet_sink_unlisted_partitions") == 1
    assert page.get("parquet_sink_lag_records", connector="b") == 300
    world.connectors = [connector("b", State.RUNNING, *reversed(of_b)), connector("a", State.RUNNING, LATE)]
    assert {labels for name, labels in world.page().samples if name == "parquet_sink_partition_lag_records"} == shown


def test_a_connector_that_is_removed_leaves_nothing() -> None:
    """No series names it any more, also not after an event that comes late; the others stay."""
    world = World(connector("gone"), connector("stays"))
    for name in ("gone", "stays"):
        world.metrics.on_event(replace(ACCEPTED, connector=name))
    assert world.page().of("gone")
    world.connectors = [connector("stays")]
    assert world.page().of("gone") == []
    world.metrics.on_event(replace(ACCEPTED, connector="gone"))
    page = world.page()
    assert page.of("gone") == []
    assert page.get("parquet_sink_rows_total", connector="stays", topic="t") == 30


def test_a_connector_that_comes_back_begins_anew() -> None:
    """A name that is used again is another connector."""
    world = World(connector("orders"))
    world.metrics.on_event(ACCEPTED)
    world.page()
    world.connectors = []
    world.page()
    world.connectors = [connector("orders")]
    page = world.page()
    assert page.get("parquet_sink_rows_total", connector="orders", topic="t") is None
    assert page.get("parquet_sink_files_total", connector="orders", reason="interval") == 0


def test_what_happens_before_a_connector_is_listed_counts() -> None:
    """Events and lists come by two ways, and either may be first."""
    world = World()
    world.metrics.on_event(ACCEPTED)
    assert world.page().get("parquet_sink_rows_total", connector="orders", topic="t") == 30
    world.connectors = [connector("orders")]
    assert world.page().get("parquet_sink_rows_total", connector="orders", topic="t") == 30


@pytest.mark.parametrize("name", ["a/b", "100 %", 'say "hi"\n', "back\\slash", "日本", "x" * 300, "{le=1}", "\udcff"])
def test_any_name_can_be_read_back(name: str) -> None:
    """Names of connectors are anything; what is no Unicode is told as an escape."""
    world = World(connector(name, State.RUNNING, LATE))
    world.metrics.on_event(replace(ACCEPTED, connector=name))
    world.metrics.on_event(ConnectorRestarting(name, 1.0, "why", 2.0))
    shown = name.encode("utf-8", "backslashreplace").decode()
    assert world.page().get("parquet_sink_restarts_total", connector=shown) == 1
    assert world.page().get("parquet_sink_partition_lag_records", connector=shown, topic="t", partition="0") == 100


def test_figures_are_there_while_the_worker_ends() -> None:
    """What happened may be asked for to the end, when nobody tells any more how things stand."""

    class Ending(World):
        def own_progress(self) -> tuple[ConnectorProgress, ...]:
            raise ShuttingDown("The worker ends.")

        def workers(self) -> Workers:
            raise ShuttingDown("The worker ends.")

    world = Ending()
    world.metrics.on_event(ACCEPTED)
    page = world.page()
    assert page.get("parquet_sink_rows_total", connector="orders", topic="t") == 30
    assert "parquet_sink_workers" not in page.names()


def test_a_group_s_workers_are_counted() -> None:
    """How many there are, whether this one leads, and what nobody has; one that is alone leads, and has no group."""
    alone = World().page()
    figures = ("workers", "leads", "unassigned_connectors")
    assert [alone.get(f"parquet_sink_{name}", group="") for name in figures] == [1, 1, 0]
    world = World()
    one, other = (WorkerInfo(name, "", leads=name != WORKER_ID, since_ms=0, connectors=()) for name in (WORKER_ID, "b"))
    world.group = Workers(3, 0, (one, other), ("orders", "bills"), "cluster")
    page = world.page()
    assert [page.get(f"parquet_sink_{name}", group="cluster") for name in figures] == [2, 0, 2]
    world.group = Workers(3, 0, (replace(one, leads=True), replace(other, leads=False)), (), "cluster")
    assert world.page().get("parquet_sink_leads", group="cluster") == 1


def test_usage_is_no_older_than_its_cost_allows() -> None:
    """A page that follows the start of Java shows Java as it is by now, not as it was in its first moments."""
    world = World()
    world.cost_s, world.usage = 0.02, {"java": Usage(12_646_400)}
    assert world.page().all("parquet_sink_memory_bytes", "process") == {"java": 12_646_400}
    world.usage = {"java": Usage(300 << 20)}
    world.clock.sleep(1.5)
    assert world.page().all("parquet_sink_memory_bytes", "process") == {"java": 12_646_400}
    world.clock.sleep(0.6)
    assert world.page().all("parquet_sink_memory_bytes", "process") == {"java": 300 << 20}


def test_usage_is_measured_now_and_then() -> None:
    """By kind of process; not for each page, since it takes time."""
    world = World()
    page = world.page()
    assert page.all("parquet_sink_memory_bytes", "process") == {"program": 100, "java": 900}
    assert page.all("parquet_sink_open_fds", "process") == {"program": 7, "java": 400}
    assert page.all("parquet_sink_threads", "process") == {"program": 5, "java": 90}
    assert (page.get("parquet_sink_memory_limit_bytes") or 0) > 1 << 20
    world.usage = {"program": Usage(200)}
    world.clock.sleep(STANDS_S - 1)
    assert world.page().all("parquet_sink_memory_bytes", "process") == {"program": 100, "java": 900}
    world.clock.sleep(1)
    assert world.page().all("parquet_sink_memory_bytes", "process") == {"program": 200}
    assert world.measured == 2


def test_pages_and_events_do_not_hurt_each_other() -> None:
    """Several threads ask while events come and connectors come and go: each page is whole, and no count is lost."""
    world = World(connector("orders"))
    trouble: list[BaseException] = []
    done = threading.Event()

    def ask() -> None:
        try:
            while not done.is_set():
                world.page()
        except BaseException as error:  # noqa: BLE001 - told below
            trouble.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(300):
        world.metrics.on_event(ACCEPTED)
        world.metrics.on_event(replace(ACCEPTED, connector=f"c{number % 7}"))
        world.connectors = [connector("orders"), *([connector(f"c{number % 5}")] if number % 2 else [])]
    done.set()
    for thread in threads:
        thread.join()
    assert trouble == []
    assert world.page().get("parquet_sink_rows_total", connector="orders", topic="t") == 9_000


def test_the_page_is_of_the_format_that_prometheus_reads() -> None:
    """Each figure has a text, and the content type names the format."""
    page = World(connector("orders", State.RUNNING, LATE)).page()
    assert page.content_type.startswith("text/plain; version=0.0.4")
    assert [family.name for family in page.families if not family.documentation] == []
    assert [name for name in page.names() if name.endswith("_created")] == []
