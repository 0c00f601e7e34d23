"""The demo's acts: set the stage, let the orders flow, read what became of them, prove it."""

import re
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Self

from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.demo.expected import Cell, compare, row_of
from parquet_sink.addons.devkit.demo.feed import Feed
from parquet_sink.addons.devkit.demo.proof import Check, Evidence, Freshness, deliver, freshness, prove
from parquet_sink.addons.devkit.demo.read_back import ArrivedFile, ConsumerGroup, TargetReader, waits_ms
from parquet_sink.addons.devkit.demo.replays import (
    TIMES,
    UNORDERED,
    Replays,
    Where,
    judge_ordered,
    judge_table,
    judge_unordered,
)
from parquet_sink.addons.devkit.demo.show import Show, Snapshot
from parquet_sink.addons.devkit.demo.sinkrun import SinkRun, counted, tail
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.errors import DemoFailed, SetupError

FOLDER: Final = Path(__file__).with_name("config")
WORKER: Final = "worker.properties"
CONNECTOR: Final = "orders.properties"
_TOMBSTONES: Final = re.compile(r"^connect\.ems\.tombstones=.*$", re.MULTILINE)
_ENDPOINT: Final = re.compile(r"^connect\.ems\.endpoint=.*$", re.MULTILINE)
TOPIC: Final = "orders"
PARTITIONS: Final = 4
GROUP: Final = "connect-orders"
TABLE: Final = "ORDERS"
DELETED: Final = "__deleted"
POOL: Final = "demo-pool"
STALL_S: Final = 90.0
"""Without any progress for so long (the start of Spark is in it) the demo gives up."""
LOOK_S: Final = 0.5
FILES_EACH: Final = 5
"""Files of each topic-partition, at least, of the connector whose rows go back in time."""
MOST_LIVE_PER_S: Final = 500


@dataclass(frozen=True)
class Size:
    """records in all; the last of them come over `duration_s` seconds, at most MOST_LIVE_PER_S a second.

    replay: whether all of it is replayed in the end, to a target that does not know files by their names.
    """

    records: int
    duration_s: float
    seed: int
    replay: bool = False

    @property
    def trickle(self) -> int:
        """Records that come while the sink has caught up."""
        return min(self.records // 5, round(self.duration_s * MOST_LIVE_PER_S))


class Stage:
    """Everything that runs. As a context manager it ends all of it, in order: sink, orders, target, broker, folder."""

    def __init__(self, show: Show, size: Size) -> None:
        self._show, self._size = show, size
        self._stack = ExitStack()
        self.broker: Broker
        self.target: TargetProcess
        self.feed: Feed
        self.sink: SinkRun
        self.connector: Path

    def __enter__(self) -> Self:
        try:
            self._set()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _set(self) -> None:
        """Starts each part after its end is arranged for, so that an interruption in between leaves nothing."""
        show, size = self._show, self._size
        self.folder = Path(self._stack.enter_context(_temporary()))
        self.broker = Broker(report=show.note)
        self._stack.callback(self.broker.close)
        show.step("starting Kafka")
        self.broker.start()
        self.broker.create_topic(TOPIC, PARTITIONS)
        show.note(f"{self.broker.bootstrap_servers}, topic {TOPIC} with {PARTITIONS} topic-partitions")
        self.target = TargetProcess(deleted_column=DELETED, repeats="forget" if size.replay else "recognise")
        self._stack.push(self.target.__exit__)
        show.step("starting the reference target")
        self.target.start()
        show.note(self.target.url)
        self.group = ConsumerGroup(self.broker.bootstrap_servers, GROUP, TOPIC, PARTITIONS)
        self._stack.callback(self.group.close)
        self.target_reader = TargetReader(self.target.url, TABLE)
        self._stack.callback(self.target_reader.close)
        self.feed = Feed(
            self.broker.bootstrap_servers,
            TOPIC,
            seed=size.seed,
            backlog=size.records - size.trickle,
            trickle=size.trickle,
            duration_s=size.duration_s,
        )
        self._stack.callback(self.feed.stop)
        self.sink = self._sink()

    def _sink(self) -> SinkRun:
        """The sink, ready to start, with the shipped files; of the connector file a copy with this target's address."""
        self.connector = connector = self.folder / CONNECTOR
        connector.write_text(with_endpoint(shipped(CONNECTOR).read_text(), self.target.endpoint(POOL)))
        sink = SinkRun(shipped(WORKER), connector, self.broker.bootstrap_servers, self.folder)
        self._stack.callback(sink.close)
        self._show.step("starting the sink, as you would:")
        self._show.note(sink.command)
        self._show.note(f"({connector.name} is the shipped {shipped(CONNECTOR)}, but for one line:")
        self._show.note(f" connect.ems.endpoint={self.target.endpoint(POOL)})")
        return sink

    def further_commands(self) -> Iterator[str]:
        """What may be tried on the running sink, for a shell."""
        servers = self.broker.bootstrap_servers
        yield f"export TMPDIR={shlex.quote(str(self.sink.tmp))} PARQUET_SINK_BOOTSTRAP_SERVERS={servers}"
        worker, connector = ("--worker", str(shipped(WORKER))), str(self.connector)
        yield shlex.join(("parquet-sink", "history", "--summary", *worker, connector))
        yield shlex.join(("parquet-sink", "replay", "--last", "4", "--verify", *worker, "--connector", connector))
        yield shlex.join(("parquet-sink", "tune", "--records", "1000", "--freshness", "5s", *worker, connector))

    def flow(self) -> None:
        """A backlog, then orders as they come; returns when all of it is delivered. Raises DemoFailed."""
        self.sink.start()
        self.feed.start()
        with self._show.progress(self.feed.total):
            self._show.step(f"sending a backlog of {self.feed.backlog:,} records, while the sink starts")
            self._wait_until(lambda now: self.feed.backlog_sent and now.lag == 0)
            self._show.step(f"caught up; {self.feed.trickle:,} more come over {self._size.duration_s:g} s")
            self.feed.go_on()
            self._wait_until(lambda now: self.feed.done and now.lag == 0)
        self._show.step("everything sent is delivered and committed: lag 0")

    def _wait_until(self, reached: Callable[[Snapshot], bool]) -> None:
        last, moved_at = None, time.monotonic()
        while True:
            self.check()
            done = self.feed.done
            now = self._look()
            self._show.snapshot(now)
            if reached(now) and done == self.feed.done:
                return
            if now != last:
                last, moved_at = now, time.monotonic()
            elif time.monotonic() - moved_at > STALL_S:
                raise DemoFailed(f"Nothing moved for {STALL_S:.0f} s with lag {now.lag:,}.\n{self.sink.last_words()}")
            time.sleep(LOOK_S)

    def check(self) -> None:
        """Raises DemoFailed when a part ended by itself."""
        self.sink.check()
        self.feed.check()
        if not self.broker.running:
            words = tail("Kafka's log", self.broker.log_path)
            raise DemoFailed(f"Kafka ended by itself.\n{words}")

    def _look(self) -> Snapshot:
        delivered = sum(self.group.committed().values())
        produced, totals, reasons = self.feed.produced, self.target_reader.totals(), self.sink.reasons()
        rotated_by = counted(list(reasons.values()))
        return Snapshot(produced, delivered, self.feed.total, totals.files, totals.rows, rotated_by)

    def expected_rows(self) -> dict[int, dict[str, Cell]]:
        """What the table must be, by order."""
        return {order_id: row_of(record) for order_id, record in self.feed.last.items()}

    def replay(self, files: Sequence[ArrivedFile]) -> list[Check]:
        """Replays all of it twice, out of order, in two scenes. files: as they were delivered. Raises DemoFailed."""
        times = sorted(ms for file in files for ms in file.timestamps_ms)
        middle = times[len(times) // 2]
        where = Where(shipped(WORKER), self.broker.bootstrap_servers, self.folder, self.sink.tmp)
        replays = Replays(self._show, where)
        self._show.step(f"all of it again, {TIMES} times, the newer half first, to a target that forgets files' names.")
        self._show.note("connect.ems.order.field.name is not set, so the sink adds the offset as the order column:")
        halves = replays.out_of_order(self.connector, middle)
        compared = compare(self.expected_rows(), self.target_reader.rows(), self.feed.deleted)
        checks = [judge_ordered(halves, TABLE), judge_table(compared, TABLE)]
        other = self.folder / "orders-by-creation.properties"
        # A file with any chosen record is sent whole, so that halves differ only where there are several files.
        most = max(1, len(times) // (PARTITIONS * FILES_EACH))
        other.write_text(ordered_by(self.connector.read_text(), "created_at", other.stem, UNORDERED, most))
        replays.deliver(other)
        self._show.step(
            "the same replays of it; connect.ems.order.field.name is created_at, the same in all changes of"
        )
        self._show.note("an order, so of an older and a newer row the target takes the one that comes last:")
        halves = replays.out_of_order(other, middle)
        now = {int(row["order_id"]): row for row in self.target_reader.rows(UNORDERED)}
        return [*checks, judge_unordered(halves, self.feed.last, now, UNORDERED)]


def _temporary() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="parquet-sink-demo-", ignore_cleanup_errors=True)


@dataclass(frozen=True)
class Result:
    """What the demo ends with."""

    checks: tuple[Check, ...]
    files: tuple[ArrivedFile, ...]
    rows: int
    reasons: Counter[str]
    live: Freshness | None
    backlog: Freshness | None


def prove_stage(stage: Stage, sink_status: int | None) -> Result:
    """Reads everything and compares it. sink_status: None while the sink is left running. Raises DemoFailed."""
    feed, files = stage.feed, tuple(stage.target_reader.files())
    arrived = (identity for file in files for identity in zip(file.partitions, file.offsets, strict=True))
    found = Evidence(
        requested=feed.total,
        acknowledged=feed.produced,
        keys=len(feed.last),
        deleted=len(feed.deleted),
        delivery=deliver(feed.ends, arrived),
        upsert_states=Counter(file.upsert_state for file in files),
        offsets=stage.group.offsets(),
        comparison=compare(stage.expected_rows(), stage.target_reader.rows(), feed.deleted),
        sink_status=sink_status,
    )
    return Result(
        checks=tuple(prove(found)),
        files=files,
        rows=found.comparison.rows,
        reasons=_reasons(files, stage.sink.reasons()),
        live=freshness(waits_ms(files, since_ms=feed.live_since_ms)),
        backlog=freshness(waits_ms(files, before_ms=feed.live_since_ms)),
    )


def _reasons(files: Sequence[ArrivedFile], by_name: dict[str, str]) -> Counter[str]:
    return Counter(by_name.get(file.name, "not in the sink's log") for file in files)


def shipped(name: str) -> Path:
    """The file of this name. Raises SetupError when the package was installed without it."""
    path = FOLDER / name
    if not path.is_file():
        raise SetupError(
            f"The shipped file {name} was not found at {path}. Run from a checkout, or install the package again."
        )
    return path.resolve()


def ordered_by(connector: str, column: str, name: str, table: str, records: int) -> str:
    """The text of a connector file under another name, for another table, ordered by a column; deletions are left out.

    records: the most in a file. Raises ValueError when the text does not have name, table and records once.
    """
    changed = {"name": name, "connect.ems.target.table": table, "connect.ems.commit.records": str(records)}
    for key, value in changed.items():
        connector, found = re.subn(rf"^{re.escape(key)}=.*$", f"{key}={value}", connector, flags=re.MULTILINE)
        if found != 1:
            raise ValueError(f"{key} stands {found} times in the connector file, and must stand once")
    return f"{_TOMBSTONES.sub('', connector)}\nconnect.ems.order.field.name={column}\n"


def with_endpoint(connector: str, endpoint: str) -> str:
    """The text of a connector file with another `connect.ems.endpoint`, and nothing else changed.

    Raises ValueError when the text does not have exactly one.
    """
    text, found = _ENDPOINT.subn(lambda _: f"connect.ems.endpoint={endpoint}", connector)
    if found != 1:
        raise ValueError(f"connect.ems.endpoint stands {found} times in the connector file, and must stand once")
    return text
