"""How much one connector's trouble costs another: the freshness of a trickle alone, and beside three noisy neighbours.

`python -m integration.isolation`: BACKLOG records (5,000,000), SHARES (`4,8`: slots that one connector may take),
ROUNDS (2) of SECONDS (40) alone and as many beside them, in turn, so that what else the machine does meets both alike.
LATENCY_S (0): what the target takes to answer the backlog's files.
"""

import itertools
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

from integration.harness import ends
from integration.worker_process import WorkerProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.errors import SinkError

TRICKLE: Final = "trickle"
PARTITIONS: Final = 8
"""Of the backlog: more than any share."""
ACCEPTED: Final = re.compile(
    r"^(\S+ \S+) INFO connector trickle: accepted \S+_firstOffset-(\d+)_lastOffset-(\d+)_", re.MULTILINE
)


@dataclass
class Figures:
    """Seconds from a record's production to its delivery, alone and beside others; records a second of the backlog."""

    alone_s: list[float] = field(default_factory=list)
    beside_s: list[float] = field(default_factory=list)
    backlog_rates: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Of the 99th percentiles."""
        return p99(self.beside_s) / p99(self.alone_s)

    def told(self) -> str:
        """One line."""
        each = [
            f"{name} p50 {statistics.median(of):.2f} s, p99 {p99(of):.2f} s ({len(of)})"
            for name, of in (("alone", self.alone_s), ("beside", self.beside_s))
        ]
        return f"{'; '.join(each)}; p99 {self.ratio:.2f} times; backlog {statistics.mean(self.backlog_rates):,.0f}/s"


def p99(found: Sequence[float]) -> float:
    """The 99th percentile: one of those that were found."""
    return sorted(found)[max(-(-len(found) * 99 // 100) - 1, 0)]


class Neighbours:
    """A worker with the trickle and its three neighbours, which are stopped."""

    def __init__(
        self, worker: WorkerProcess, broker: Broker, target: TargetProcess, folder: Path, producer: Producer
    ) -> None:
        self._worker, self._broker, self._target, self._folder = worker, broker, target, folder
        self._producer = producer
        self._next = 0

    def make_topics(self, backlog: int) -> None:
        """Once for a broker."""
        for name in (TRICKLE, "bad", "dead"):
            self._broker.create_topic(name)
        self._broker.create_topic("backlog", PARTITIONS)
        for n in range(backlog):
            self._producer.produce(
                "backlog", b'{"n": %d, "who": "somebody", "where": "somewhere"}' % n, partition=n % 8
            )
            if n % 5_000 == 0:
                self._producer.poll(0)
                while len(self._producer) > 80_000:
                    self._producer.poll(0.1)
        assert self._producer.flush(300) == 0

    def make_connectors(self) -> None:
        """All but the trickle are stopped."""
        (self._next,) = ends(self._broker, TRICKLE)
        away = f"http://127.0.0.1:{free_port()}/"
        dead = {"endpoint": away, "max.retries": "100000", "sink.put.timeout.ms": "3600000", "error.policy": "RETRY"}
        self._make(TRICKLE, {}, {}, "RUNNING")
        self._make("backlog", {}, {}, "STOPPED")
        self._make("bad", {"errors.tolerance": "all"}, {}, "STOPPED")
        self._make("dead", {}, dead, "STOPPED")
        self._worker.until(lambda: self._worker.states().get(TRICKLE) == "RUNNING", 240)

    def _make(self, name: str, more: Mapping[str, str], ems: Mapping[str, str], state: str) -> None:
        keys = {
            "endpoint": self._target.endpoint(),
            "authorization.key": "AppKey demo",
            "target.table": name,
            "commit.size.bytes": "10000000",
            "commit.records": "100000",
            "commit.interval.ms": "1000",
            "retry.interval": "1000",
            "tmp.dir": str(self._folder / "files"),
            **ems,
        }
        config = {"connector.class": "EmsSink", "topics": name, **more}
        config |= {f"connect.ems.{key}": text for key, text in keys.items()}
        self._worker.do("POST", "/connectors", {"name": name, "config": config, "initial_state": state})

    def freshness(self, seconds: float) -> list[float]:
        """Of one record of the trickle a second, whatever became of those before; the neighbours get a hundred each."""
        sent: dict[int, float] = {}
        began = time.monotonic()
        for number in itertools.count():
            if number >= seconds:
                break
            time.sleep(max(began + number - time.monotonic(), 0.0))
            sent[self._next] = time.time()
            self._next += 1
            self._producer.produce(TRICKLE, b'{"n": 1}')
            for n in range(100):
                self._producer.produce("bad", b"{" if n % 2 else b'{"n": 1}')
                self._producer.produce("dead", b'{"n": 1}')
            self._producer.flush(10)
        self._worker.until(lambda: max(self._delivered(), default=-1) >= self._next - 1, 300)
        delivered = self._delivered()
        return [delivered[offset] - at_s for offset, at_s in sent.items()]

    def _delivered(self) -> dict[int, float]:
        """When each record of the trickle was delivered, by the log of the worker: the first time counts."""
        found: dict[int, float] = {}
        for at, first, last in ACCEPTED.findall(self._worker.command.said):
            seconds = time.mktime(time.strptime(at[:19], "%Y-%m-%d %H:%M:%S")) + int(at[20:23]) / 1_000
            for offset in range(int(first), int(last) + 1):
                found.setdefault(offset, seconds)
        return found

    def begin(self) -> None:
        """The neighbours run, the backlog from its first record on."""
        self._worker.do("DELETE", "/connectors/backlog/offsets")
        for name in ("dead", "bad", "backlog"):
            self._worker.do("PUT", f"/connectors/{name}/resume")
        self._worker.until(lambda: set(self._worker.states().values()) == {"RUNNING"}, 240)
        self._worker.until(lambda: self.backlog()[1] > 0 and bool(self._progress("dead")["status"]["waits_for"]), 240)

    def end(self) -> None:
        """The neighbours are stopped."""
        for name in ("dead", "bad", "backlog"):
            self._worker.do("PUT", f"/connectors/{name}/stop")
        self._worker.until(lambda: list(self._worker.states().values()).count("STOPPED") == 3, 240)

    def backlog(self) -> tuple[int, int]:
        """Rows that were delivered of the backlog, and its lag."""
        found = self._progress("backlog")
        return found["rows"], sum(one["lag"] for one in found["partitions"])

    def _progress(self, name: str) -> Any:
        (found,) = [one for one in self._worker.do("GET", "/progress") if one["status"]["name"] == name]
        return found


def measure(neighbours: Neighbours, rounds: int, seconds: float) -> Figures:
    """Fails when the backlog was at its end too early."""
    figures = Figures()
    neighbours.freshness(10)  # the first micro-batches take longer
    for _ in range(rounds):
        figures.alone_s += neighbours.freshness(seconds)
        neighbours.begin()
        (before, _), began = neighbours.backlog(), time.monotonic()
        figures.beside_s += neighbours.freshness(seconds)
        after, lag = neighbours.backlog()
        figures.backlog_rates.append((after - before) / (time.monotonic() - began))
        assert lag > 0, "the backlog was too small to say anything"
        neighbours.end()
    return figures


def main() -> int:
    """Prints a line for each share."""
    backlog, rounds = int(os.environ.get("BACKLOG", "5000000")), int(os.environ.get("ROUNDS", "2"))
    latency_s = float(os.environ.get("LATENCY_S", "0"))
    seconds, shares = float(os.environ.get("SECONDS", "40")), os.environ.get("SHARES", "4,8").split(",")
    try:
        with tempfile.TemporaryDirectory() as temporary, Broker() as broker, TargetProcess() as target:
            producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5})
            if latency_s:
                with closing(target.client) as client:
                    client.order_faults({"latency_s": latency_s, "match": "backlog"})
            for number, share in enumerate(shares):
                folder = Path(temporary) / str(number)
                folder.mkdir()
                worker = WorkerProcess(folder, broker)
                try:
                    worker.start("--master", f"local[{int(share) + 3},4]")
                    neighbours = Neighbours(worker, broker, target, folder, producer)
                    if number == 0:
                        neighbours.make_topics(backlog)
                    neighbours.make_connectors()
                    print(f"share {share}: {measure(neighbours, rounds, seconds).told()}", flush=True)
                    for name in worker.states():
                        worker.do("DELETE", f"/connectors/{name}")
                    worker.stop()
                finally:
                    worker.close()
    except SinkError as error:
        print(f"isolation: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
