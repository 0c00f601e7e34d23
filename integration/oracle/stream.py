"""One topic of a run with its connector: the load, the oracle, and the group's offsets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from integration.letters import each_letter
from integration.oracle.group import Group
from integration.oracle.judge import Stop, judge
from integration.oracle.load import Load
from integration.oracle.oracle import Oracle
from integration.oracle.raw import KEYS, RawOracle
from integration.s3.book import BucketReader
from integration.sink_process import connector, dead_letters_of
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.client import TargetClient


@dataclass(frozen=True)
class Kind:
    """What a stream is like. latency_s: how long the target takes to answer, so that kills find uploads under way.

    raw: of a connector that keeps records as they came.
    """

    topic: str
    table: str
    partitions: int
    latency_s: float
    keys: dict[str, str]
    value: Callable[[int], bytes | None]
    per_second: float
    at_least: int
    raw: bool = False


class Stream:
    """The topic is made at the start."""

    def __init__(self, kind: Kind, broker: Broker) -> None:
        self.kind = kind
        self.oracle = RawOracle() if kind.raw else Oracle()
        self.load = Load(
            broker.bootstrap_servers,
            kind.topic,
            kind.partitions,
            self.oracle,
            per_second=kind.per_second,
            at_least=kind.at_least,
            value_of=kind.value,
        )
        self._broker = broker
        self.group = Group(broker.bootstrap_servers, f"connect-{kind.topic}", kind.topic, kind.partitions)
        self.committed: dict[int, int] = {}

    @property
    def _dead_letters(self) -> str:
        return dead_letters_of(self.kind.topic)

    def create(self) -> None:
        """Its topic, and that of its dead letters."""
        self._broker.create_topic(self.kind.topic, self.kind.partitions)
        self._broker.create_topic(self._dead_letters, 1, {"message.timestamp.type": "LogAppendTime"})

    def start(self) -> None:
        """Creates the topics, and starts the load."""
        self.create()
        self.load.start()

    def connector(self, endpoint: str, tmp_dir: Path) -> dict[str, str]:
        """Its connector file's settings."""
        raw = KEYS if self.kind.raw else {}
        return connector(self.kind.topic, endpoint, tmp_dir, self.kind.table) | self.kind.keys | raw

    def look(self) -> None:
        """Asks for the committed offsets."""
        self.committed = self.group.committed()

    def reached(self, ends: Mapping[int, int]) -> bool:
        """Whether everything below these offsets was committed at the last look."""
        return all(self.committed.get(partition, 0) >= end for partition, end in ends.items())

    def stopped(self, client: TargetClient | BucketReader) -> Stop:
        """How things stand after SIGTERM."""
        return Stop.of(self.group.committed(), client.files(self.kind.table))

    def judge(
        self,
        client: TargetClient | BucketReader,
        stop: Stop,
        progress: Callable[[int, int], None] = lambda done, files: None,
    ) -> Sequence[int]:
        """The oracle's word; the sizes of the accepted files. progress: see `judge`."""
        found = each_letter(self._broker, self._dead_letters)
        return judge(self.oracle, client, self.kind.table, self.group.samples, stop, found, progress)

    def close(self) -> None:
        self.load.stop()
        self.group.close()
