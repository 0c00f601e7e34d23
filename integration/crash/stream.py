"""One topic of a crash run with its connector: the load, the oracle, and the group's offsets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from integration.crash import records
from integration.crash.group import Group
from integration.crash.judge import Stop, judge
from integration.crash.load import Load
from integration.crash.oracle import Oracle
from integration.crash.sink import TABLE, connector, dead_letters_of
from integration.letters import letters
from parquet_sink.devkit.broker import Broker
from parquet_sink.devkit.target.client import TargetClient

LARGE_RECORDS_PER_SECOND: Final = 600
"""About 2.5 MB/s: a file of LARGE_FILE_BYTES in ten seconds."""
LARGE_RECORDS: Final = 15_000
"""At least so many, for some files of that size whatever is killed."""
LARGE_COMMIT_BYTES: Final = 24_000_000
LARGE_FILE_BYTES: Final = 20_000_000
SMALL: Final = {
    "connect.ems.commit.size.bytes": "100000",
    "connect.ems.commit.records": "500",
    "connect.ems.commit.interval.ms": "1000",
}
LARGE: Final = {
    "connect.ems.commit.size.bytes": str(LARGE_COMMIT_BYTES),
    "connect.ems.commit.records": "1000000",
    "connect.ems.commit.interval.ms": "20000",
}


@dataclass(frozen=True)
class Kind:
    """What a stream is like. latency_s: how long the target takes to answer, so that kills find uploads under way."""

    topic: str
    table: str
    partitions: int
    latency_s: float
    keys: dict[str, str]
    value: Callable[[int], bytes | None]
    per_second: float
    at_least: int


def small(topic: str, per_second: float, at_least: int) -> Kind:
    """Many small files of several topic-partitions."""
    return Kind(topic, TABLE, 4, 0.1, SMALL, records.value_of, per_second, at_least)


def large(topic: str) -> Kind:
    """Files of more than 20 MB: columns of many data pages, row groups that memory or size ends."""
    return Kind(topic, f"{TABLE}_LARGE", 1, 1.0, LARGE, records.large_value_of, LARGE_RECORDS_PER_SECOND, LARGE_RECORDS)


class Stream:
    """The topic is made at the start."""

    def __init__(self, kind: Kind, broker: Broker) -> None:
        self.kind = kind
        self.oracle = Oracle()
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

    def start(self) -> None:
        self._broker.create_topic(self.kind.topic, self.kind.partitions)
        self._broker.create_topic(self._dead_letters, 1, {"message.timestamp.type": "LogAppendTime"})
        self.load.start()

    def connector(self, endpoint: str, tmp_dir: Path) -> dict[str, str]:
        """Its connector file's settings."""
        return connector(self.kind.topic, endpoint, tmp_dir, self.kind.table) | self.kind.keys

    def look(self) -> None:
        """Asks for the committed offsets."""
        self.committed = self.group.committed()

    def reached(self, ends: dict[int, int]) -> bool:
        """Whether everything below these offsets was committed at the last look."""
        return all(self.committed.get(partition, 0) >= end for partition, end in ends.items())

    def stopped(self, client: TargetClient) -> Stop:
        """How things stand after SIGTERM."""
        return Stop.of(self.group.committed(), client.files(self.kind.table))

    def judge(self, client: TargetClient, stop: Stop) -> Sequence[int]:
        """The oracle's word; the sizes of the accepted files."""
        found = letters(self._broker, self._dead_letters)
        return judge(self.oracle, client, self.kind.table, self.group.samples, stop, found)

    def close(self) -> None:
        self.load.stop()
        self.group.close()
