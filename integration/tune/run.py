"""Runs loads at once, on one sink process with a connector for each, and simulates the same."""

import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from integration.bench import load as bench_load
from integration.bench.running import SinkProcess, accepted, connector_file
from integration.tune.compare import Compared, Figures, load_of, measured
from integration.tune.feed import Feed
from integration.tune.loads import SETTLE_S, MeasuredLoad
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.addons.tune.measured import durations_of
from parquet_sink.addons.tune.model import Durations, Machine, Sizes
from parquet_sink.addons.tune.outcome import Window
from parquet_sink.addons.tune.simulate import simulate_together
from parquet_sink.files import naming
from parquet_sink.model.events import Event
from parquet_sink.planner.admission import tick_ms
from parquet_sink.spark.slots import LEAST_SLOTS
from parquet_sink.state.sqlite import SqliteStore

WHOLE_S = 60
"""The simulation begins at a whole minute, so that its ticks come when Spark's do."""
WARM = 1
"""Records of each topic-partition that are delivered before."""
PATIENCE_S = 180.0
SIZES = Sizes(((0, 1_800), (1, 3_300), (100, 8_000), (5_000, 150_000), (50_000, 1_200_000)), record_bytes=152)
"""Of the benchmark's orders."""


@dataclass(frozen=True)
class Stand:
    """What runs beside the sink."""

    broker: Broker
    target: TargetProcess
    folder: Path


@contextmanager
def stand() -> Iterator[Stand]:
    """A broker, and a target that takes files and throws them away."""
    with (
        tempfile.TemporaryDirectory(prefix="parquet-sink-tune-") as folder,
        Broker() as broker,
        TargetProcess(discard=True) as target,
    ):
        yield Stand(broker, target, Path(folder))


def _file(ready: Stand, one: MeasuredLoad, topic: str) -> Path:
    flush = {
        "commit.size.bytes": one.thresholds.commit_size_bytes,
        "commit.records": one.thresholds.commit_records,
        "commit.interval.ms": one.thresholds.commit_interval_ms,
    }
    return connector_file(ready.folder, topic, topic, ready.target.endpoint(), flush, {})


def _events(ready: Stand, connector: str, since_s: float) -> Sequence[Event]:
    """What happened to a connector since then, epoch seconds."""
    folder = naming.connector_folder(str(ready.folder / "files"), connector)
    with closing(SqliteStore(Path(folder) / naming.STATE_FILE)) as state:
        return [event for event in state.events_after(0).events if event.at_s >= since_s]


def compare(
    ready: Stand, seconds: float, loads: Sequence[MeasuredLoad], durations: Durations | None = None
) -> tuple[list[Compared], Durations, int]:
    """Loads of a group for so long, measured and predicted; how long micro-batches took, and how many there were.

    durations: what is predicted with; None: what micro-batches took in this run, so that it is the simulation that is
    compared and not the machine. Raises SetupError, KafkaFailed, ValueError.
    """
    servers, values = ready.broker.bootstrap_servers, bench_load.pool(20_000)
    topics = {one.name: f"{one.name}-{uuid.uuid4().hex[:6]}" for one in loads}
    for one in loads:
        ready.broker.create_topic(topics[one.name], one.partitions)
        bench_load.fill(servers, topics[one.name], one.partitions, WARM, values)
    files = [_file(ready, one, topics[one.name]) for one in loads]
    feed = Feed(servers, loads, seconds, values, first_offset=WARM)
    with SinkProcess(files, servers, ready.folder) as sink, closing(ready.target.client) as client:
        rows, warmed = lambda: int(client.statistics()["rows"]), WARM * sum(one.partitions for one in loads)
        before = rows()
        sink.wait("the first records delivered", lambda: rows() - before >= warmed, PATIENCE_S)
        began = time.time() + 1.0
        feed.run(began, topics)
        wanted = warmed + sum(map(len, feed.stamps.values()))
        sink.wait("all records delivered", lambda: rows() - before >= wanted, PATIENCE_S)
        found = {one.name: accepted(client, topics[one.name]) for one in loads}
        logs = [_events(ready, topics[one.name], began) for one in loads]
    stamps = feed.stamps
    took, batches = durations_of(logs, Durations(), max(tick_ms(one.thresholds) for one in loads))
    base_s = began // WHOLE_S * WHOLE_S
    window = Window((began - base_s + SETTLE_S - 1) * 1000, (began - base_s + seconds) * 1000)
    whole_s = began - base_s + seconds
    simulated = simulate_together(
        [(load_of(one, stamps[one.name], base_s, whole_s, SIZES), one.thresholds) for one in loads],
        durations or took,
        Machine(slots=LEAST_SLOTS + len(loads) - 1, connectors=len(loads)),
        [window] * len(loads),
    )
    low, high = base_s + window.from_ms / 1000, base_s + window.to_ms / 1000
    compared = [
        Compared(
            one.name,
            Figures.of(result),
            measured(stamps[one.name], found[one.name], base_s, window),
            sum(low <= at < high for at in stamps[one.name].values()),
        )
        for one, result in zip(loads, simulated, strict=True)
    ]
    return compared, replace(took, variation=tuple(round(one, 2) for one in took.variation)), batches
