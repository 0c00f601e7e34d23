"""What integration tests share: one Kafka broker, one target, topics of their own."""

import signal
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Protocol

import pytest
from confluent_kafka import Producer
from xdist.workermanage import WorkerController

from integration import by_file
from integration.by_file import ByFile
from integration.harness import sink, spark
from integration.registry import RegistryServer
from integration.s3.server import S3Server
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from tests.thorough import IN_TURN, THOROUGH, turn

# Under `nohup`, and in the background of a script; what the tests start is to hear them.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

__all__ = ["sink", "spark"]  # fixtures of the harness, for all tests


class TopicFactory(Protocol):
    """Creates a topic with a new name and returns the name."""

    def __call__(
        self, partitions: int = 1, *, prefix: str = "topic", config: Mapping[str, str] | None = None
    ) -> str: ...


LONGEST = (
    *("documents", "distributed", "connect_group", "kafka_planner", "file_source", "rolling_upgrade", "cli", "demo"),
    *("signals", "steps", "worker", "canary", "connect_rest", "canary_group", "cluster", "run_kafka"),
    *("commands_of_a_worker", "broker", "broker_security", "run_basic", "run_bad_input", "file_sink"),
    *("run_formats_bad", "run_parked", "flush", "membership", "run_formats", "ranges_ahead", "fence"),
    *("run_files_lost", "s3_answers"),
)
"""Files of integration tests in the order of the time that they take, as far as it matters."""
USUAL_S = 20
"""What a test that takes turns takes, where its mark does not say."""
LONGEST_UNIT = (
    *("files", "browser", "life", "source_life", "import_graph", "regular_expressions", "cuts", "every_class"),
    *("hostile_growth", "equal"),
)
"""Likewise of unit tests, which compute and wait for nothing."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile | None:
    """For `--dist loadfile`: the pages, each minutes of starts, are shared out."""
    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """A process is told which tests are its. Who asks for some by `-k` gets those that take turns, too."""
    if node.config.getoption("dist") == "loadfile":
        by_file.tell(node, None if THOROUGH or node.config.getoption("keyword") else turn())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest integration tests first, the longest unit tests last: short files are left for the end of a run.

    Tests that take turns wait for another commit where it is not theirs.
    """
    items.sort(key=lambda item: rank(item.path))
    turn: int | None = getattr(config, "workerinput", {}).get(by_file.TURN)
    if turn is not None:
        found = [(item, item.get_closest_marker(IN_TURN)) for item in items]
        seconds = {item.nodeid: mark.kwargs.get("seconds", USUAL_S) for item, mark in found if mark is not None}
        chosen = by_file.of_the_turn(seconds, turn)
        left = [item for item in items if item.nodeid in seconds and item.nodeid not in chosen]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


def rank(path: Path) -> int:
    """Where a file of tests comes in the queue."""
    name = path.stem.removeprefix("test_")
    if path.parent == Path(__file__).parent:
        return LONGEST.index(name) if name in LONGEST else len(LONGEST)
    return len(LONGEST) + 1 + (len(LONGEST_UNIT) - LONGEST_UNIT.index(name) if name in LONGEST_UNIT else 0)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """The broker that all tests share; it allows short sessions. A test that stops or kills a broker starts its own."""
    with Broker(properties={"group.min.session.timeout.ms": "1500"}) as shared:
        yield shared


@pytest.fixture
def topic(broker: Broker) -> TopicFactory:
    """A factory of topics that no other test knows: `topic(partitions=4, prefix="orders")`."""

    def create(partitions: int = 1, *, prefix: str = "topic", config: Mapping[str, str] | None = None) -> str:
        name = f"{prefix}-{uuid.uuid4().hex[:10]}"
        broker.create_topic(name, partitions, config)
        return name

    return create


@pytest.fixture
def producer(broker: Broker) -> Iterator[Producer]:
    """A producer of the shared broker; what a test leaves unsent is sent at its end."""
    in_order = {"enable.idempotence": True}  # a batch that is sent again, on a busy machine, stays before the next
    client = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5, **in_order})
    yield client
    assert client.flush(30) == 0


@pytest.fixture(scope="session")
def target_process() -> Iterator[TargetProcess]:
    """The target that all tests share; use `target`, which is empty at the start of each test."""
    with TargetProcess(deleted_column="__deleted") as shared:
        yield shared


@pytest.fixture
def target(target_process: TargetProcess) -> TargetProcess:
    """The shared target without files, tables and faults; started again if the last test killed it."""
    with closing(target_process.client) as client:
        if target_process.pid is None or not client.healthy():
            target_process.restart()
    with closing(target_process.client) as client:
        client.reset()
    return target_process


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """The S3 server that all tests share; each makes buckets of its own."""
    with S3Server() as started:
        yield started


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    """An empty schema registry, at an address of its own: what processes keep of others is not taken for its."""
    with RegistryServer() as started:
        yield started
