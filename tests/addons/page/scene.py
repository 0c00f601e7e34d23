"""A worker with connectors in every state and their histories on disk: what tests and pictures look at."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette

from parquet_sink.addons.page.frame import Pages
from parquet_sink.addons.page.hour import LastHour
from parquet_sink.addons.page.site import make_pages
from parquet_sink.config.machine import Machine
from parquet_sink.connectors.loading import load
from parquet_sink.history.records import Origin, UploadOutcome, UploadRecord
from parquet_sink.history.settings import HistorySettings
from parquet_sink.history.sqlite import write_history
from parquet_sink.model.ranges import Attempt
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.worker.herder.errors import NotReadable
from parquet_sink.worker.herder.values import (
    ConnectorProgress,
    ConnectorStatus,
    LastError,
    LastUpload,
    LiveWarning,
    PartitionProgress,
    State,
    TargetState,
    TaskStatus,
    WarningKind,
)
from parquet_sink.worker.rest.app import make_admin_app, make_app
from parquet_sink.worker.rest.peers import Peers
from parquet_sink.worker.rest.server import RestServer, open_listeners
from parquet_sink.worker_config.rest.settings import RestSettings
from parquet_sink.worker_config.worker import Worker
from tests.worker.rest.fake_herder import WORKER, FakeHerder, Kept
from tests.worker.rest.serving import GOOD, LOOPBACK, Client, by_keys

REFUSED = (
    "The target refused file topic-orders_partition-0_offsets-1200-1399_rows-200.parquet: status 401, the key is not "
    "valid. Write a valid key to connect.ems.authorization.key, then restart the connector. Nothing is lost: nothing "
    "from offset 1200 on is committed."
)
WAITS = "The target at https://example.com/push does not answer (connection refused); it is tried again in 8 s."
LATE = (
    "the flush interval of 30 s is exceeded: 3 topic-partitions waited up to 71.2 s to be flushed. Raise the "
    "interval, or give more Spark slots (--master, tasks.max) or cores; if uploads take long, look at the target."
)


@dataclass(frozen=True)
class Part:
    """How one connector stands. lag: None for no topic-partitions known."""

    state: State = State.RUNNING
    waits: str = ""
    error: str = ""
    late: str = ""
    partitions: tuple[tuple[int, float | None, float], ...] = ((7, 4.2, 20.0),)
    trace: str = ""


class SceneHerder(FakeHerder):
    """The fake, with states and figures as a scene says; folder: where the connectors keep their files."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.parts: dict[str, Part] = {}
        self.read: dict[str, tuple[dict[str, str], ConnectorSettings]] = {}
        self.worker = Worker(machine=Machine(is_file=lambda path: Path(path).is_file(), tmp_dir=str(folder)))

    def add(self, name: str, part: Part | None = None, **config: str) -> None:
        own = {one.replace("__", "."): text for one, text in config.items()}
        self.kept[name] = Kept({**GOOD, "name": name, "connect.ems.commit.interval.ms": "30000", **own})
        self.parts[name] = part or Part()

    def settings(self, name: str, worker_id: str | None = None) -> ConnectorSettings:
        config = self._find(name).config
        if name not in self.read or self.read[name][0] != config:
            loaded = load(config, self.worker, source=name)
            if loaded.settings is None:
                raise NotReadable("\n".join(loaded.problems))
            self.read[name] = dict(config), loaded.settings
        return self.read[name][1]

    def status(self, name: str) -> ConnectorStatus:
        kept, part = self._find(name), self.parts.get(name, Part())
        state = State.PAUSED if kept.target is TargetState.PAUSED else part.state
        state = State.STOPPED if kept.target is TargetState.STOPPED else state
        trace = f"parquet_sink.errors.UploadRefused: {part.trace}" if part.trace and state is State.FAILED else ""
        tasks = () if state is State.STOPPED else (TaskStatus(0, state, WORKER, trace),)
        return ConnectorStatus(name, state, WORKER, tasks, trace, part.waits)

    def progress(self) -> tuple[ConnectorProgress, ...]:
        return tuple(self._progress(name) for name in self.names())

    def _progress(self, name: str) -> ConnectorProgress:
        part, now = self.parts.get(name, Part()), time.time()
        partitions = tuple(
            PartitionProgress("orders", number, lag, oldest, rate, away=False)
            for number, (lag, oldest, rate) in enumerate(part.partitions)
        )
        error = LastError(part.error, now - 95) if part.error else None
        last = None if part.state is State.UNASSIGNED else LastUpload("orders", 0, 1000, 1199, 200, 48_213, now - 12)
        late = (LiveWarning(WarningKind.FLUSH_INTERVAL_EXCEEDED, part.late),) if part.late else ()
        return ConnectorProgress(
            *(self.status(name), 812, 162_400, 39_148_956, 0, last, error, partitions), live_warnings=late
        )


def uploads(begin_ms: int, end_ms: int, seed: int = 1, partitions: int = 3) -> list[UploadRecord]:
    """Files of some topic-partitions over a time, a few of them not accepted at once."""
    chance = random.Random(seed)
    offsets = dict.fromkeys(range(partitions), 1000)
    found, at_ms = [], begin_ms
    while at_ms < end_ms:
        partition = chance.randrange(partitions)
        rows = chance.choice((40, 180, 600, 1000))
        reason = "records" if rows == 1000 else chance.choice(("interval", "interval", "interval", "size", "schema"))
        first, failed = offsets[partition], chance.random() < 0.04
        tries = 3 if chance.random() < 0.08 else 1
        attempts = tuple(
            Attempt(at_ms - 900 * (tries - n), 0.21, "retry", 503, "status 503, the target is busy")
            for n in range(1, tries)
        )
        found.append(
            UploadRecord(
                file_name=f"topic-orders_partition-{partition}_offsets-{first}-{first + rows - 1}_rows-{rows}.parquet",
                table="orders",
                topic="orders",
                partition=partition,
                first_offset=first,
                last_offset=first + rows - 1,
                rows=rows,
                records=rows,
                size_bytes=int(rows * chance.uniform(180, 290)),
                digest="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                reason=reason,
                oldest_ms=at_ms - int(chance.uniform(4_000, 31_000)),
                outcome=UploadOutcome.REFUSED if failed else UploadOutcome.ACCEPTED,
                at_ms=at_ms,
                attempts=tries,
                tried=(
                    *attempts,
                    Attempt(at_ms, 0.18, "refused", 400, "status 400, column total is not a number")
                    if failed
                    else Attempt(at_ms, 0.18, "accepted", 200),
                ),
                upload_s=0.18 * tries,
                write_s=0.05,
                status=400 if failed else 200,
                answer_id=None if failed else f"chunk-{first}",
                cause="status 400, column total is not a number" if failed else None,
                target="https://example.com/push",
                origin=Origin.RUN,
            )
        )
        if not failed:
            offsets[partition] += rows
        at_ms += int(chance.uniform(8_000, 55_000))
    return found


def remember(herder: SceneHerder, name: str, records: Sequence[UploadRecord]) -> None:
    """Writes a connector's history."""
    settings = herder.settings(name)
    assert isinstance(settings, SinkSettings)
    path = Path(settings.history_file)
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(write_history(path, HistorySettings())) as history:
        history.append_files(records)


def park(herder: SceneHerder, name: str) -> None:
    """Parks some records of a connector, one with a value that is JSON, one with a value that is not text."""
    settings = herder.settings(name)
    assert isinstance(settings, SinkSettings)
    folder = ParkedFolder(settings.parked_folder, name, 1 << 30)
    folder.prepare()
    wrong = "Column total has an integer where the others have a text"
    bad = [
        Rejected("orders", 0, 1240 + n, Stage.SHAPE, wrong, b"k%d" % n, b'{"order_id": %d, "total": 12}' % n, (), 1)
        for n in range(7)
    ]
    header = (("trace", b"4bf92f"),)
    broken = Rejected("orders", 1, 1300, Stage.VALUE_CONVERTER, "The value is not UTF-8", None, b"\xff\xfe", header, 1)
    folder.append("orders", 0, bad, 1_700_000_000_000)
    folder.append("orders", 1, [broken], 1_700_000_060_000)


def every_state(folder: Path) -> SceneHerder:
    """A connector in each state, and some that run; those that are named have histories."""
    herder = SceneHerder(folder)
    busy = ((812, 21.4, 240.0), (330, 12.1, 96.5), (95, 4.0, 31.0))
    herder.add("orders", Part(partitions=busy))
    herder.add("invoices-refused", Part(State.FAILED, trace=REFUSED, error=REFUSED, partitions=((51_200, 512.0, 0.0),)))
    herder.add("shipments", Part(State.RESTARTING, waits=WAITS, error=WAITS, partitions=((1_930, 44.0, 0.0),)))
    herder.add("clicks", Part(late=LATE, partitions=((480_210, 71.2, 5_120.0), (12, 1.0, 88.0))))
    herder.add(
        "returns",
        Part(State.UNASSIGNED, waits="Its start is being checked: brokers, topics and offsets.", partitions=()),
    )
    herder.add("archive-2019", Part(partitions=()))
    herder.add("payroll", Part(partitions=((4, 3.0, 0.0),)))
    herder.kept["archive-2019"].target = TargetState.STOPPED
    herder.kept["payroll"].target = TargetState.PAUSED
    for number, name in enumerate(("customers", "products", "stock-levels", "tickets")):
        herder.add(name, Part(partitions=((number * 31, 2.0 + number * 5, 3.4 * number),)))
    now_ms = int(time.time() * 1000)
    for number, name in enumerate(("orders", "invoices-refused", "clicks", "customers", "products", "tickets")):
        remember(herder, name, uploads(now_ms - 3_600_000, now_ms - 15_000, seed=number))
    park(herder, "orders")
    return herder


def many(folder: Path, count: int = 600) -> SceneHerder:
    """So many connectors without histories, mostly running."""
    herder, chance = SceneHerder(folder), random.Random(7)
    for number in range(count):
        part = Part(partitions=tuple((chance.randrange(900), chance.uniform(0, 29), 5.0) for _ in range(3)))
        if number % 97 == 0:
            part = Part(State.FAILED, trace=REFUSED, error=REFUSED)
        elif number % 89 == 0:
            part = Part(waits=WAITS, error=WAITS)
        herder.add(f"connector-{number:03}", part)
        herder.settings(f"connector-{number:03}")  # a worker has read them, too
    return herder


class Shown(Client):
    """Asks the worker. stop: ends it before its time."""

    def __init__(self, port: int, stop: Callable[[], None]) -> None:
        super().__init__(port)
        self.stop = stop


def make_scene_app(
    herder: SceneHerder, hours: LastHour | None, settings: RestSettings, peers: Peers | None
) -> tuple[Starlette, Pages]:
    """Return the application that a worker with a page serves, and its page."""
    pages = make_pages(herder, hours or LastHour())
    text = b"x 1\n", "text/plain"
    return make_app(herder, herder.worker, settings, lambda: text, by_keys(herder.worker), peers, pages), pages


@contextmanager
def showing(
    herder: SceneHerder, hours: LastHour | None = None, settings: RestSettings | None = None, peers: Peers | None = None
) -> Iterator[Shown]:
    """The worker's REST API with its page, on loopback."""
    settings = settings or RestSettings(listeners=LOOPBACK)
    app, pages = make_scene_app(herder, hours, settings, peers)
    listening = open_listeners(settings)
    server = RestServer(app, make_admin_app(herder, settings, peers), listening)
    server.start()

    def stop() -> None:
        pages.close()
        server.stop()

    try:
        yield Shown(listening.settings.listeners[0].port, stop)
    finally:
        stop()
