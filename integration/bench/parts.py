"""What all parts of the benchmark share: one broker, one target (a push API discards), one pool of records."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from integration.bench import load
from integration.bench.sizes import Sizes
from integration.bench.targets import BenchTarget, bench_target
from parquet_sink.addons.devkit.broker import Broker

RAW: Final = {
    "connect.ems.mode": "raw",
    "connect.ems.data.primary.key": "topic,partition,offset",
    "connect.ems.flattener.enable": "",
    "value.converter": "",
    "value.converter.schemas.enable": "",
}
"""An empty text takes back what the bench's connector files have."""


@dataclass(frozen=True)
class Work:
    """What a measured topic holds. keys: of the connector file, on top of the bench's own.

    record: what each record has beside its value, as a producer takes it: `key`, `headers`. invalid: which of the
    values have no row.
    """

    name: str
    partitions: int
    records: int
    values: Sequence[bytes]
    keys: Mapping[str, str] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)
    invalid: frozenset[int] = frozenset()

    def rows(self, per_partition: int) -> int:
        """Rows of one pass."""
        if not self.invalid:
            return per_partition * self.partitions
        sent = load.pieces(self.partitions, per_partition)
        size = len(self.values)
        return sum(number % size not in self.invalid for _, numbers in sent for number in numbers)


@dataclass(frozen=True)
class Stand:
    """The test stand. values: serialized records to choose from."""

    sizes: Sizes
    broker: Broker
    target: BenchTarget
    client: Any
    folder: Path
    values: list[bytes]

    @property
    def flush(self) -> Mapping[str, int]:
        """`commit.*` keys that every part starts from."""
        return {
            "commit.records": self.sizes.commit_records,
            "commit.size.bytes": self.sizes.commit_size_bytes,
            "commit.interval.ms": self.sizes.commit_interval_ms,
        }

    @property
    def servers(self) -> str:
        return self.broker.bootstrap_servers

    @property
    def keys(self) -> Mapping[str, str]:
        """Of every connector file, on top of the bench's own."""
        return {**(RAW if self.sizes.mode == "raw" else {}), **self.target.keys}

    def orders(self, partitions: int) -> Work:
        """JSON orders on so many topic-partitions."""
        name, sizes = f"bench-{partitions}", self.sizes
        return Work(name, partitions, sizes.records, self.values, self.keys, sizes.record)

    def patience_s(self, records: int) -> float:
        """How long so many records may take before the benchmark gives up."""
        return 180.0 + records / 10_000

    def rows(self) -> int:
        """Rows that the target took since its start, repeats not counted."""
        return int(self.client.statistics()["rows"])

    @contextmanager
    def topic(self, name: str, partitions: int) -> Iterator[str]:
        """A new topic, deleted at the end so that its records do not stay on the disk."""
        self.broker.create_topic(name, partitions)
        yield name
        self.broker.delete_topic(name)

    @contextmanager
    def part_folder(self, name: str) -> Iterator[Path]:
        """A folder for one part."""
        folder = self.folder / name
        folder.mkdir()
        yield folder
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def stand(sizes: Sizes) -> Iterator[Stand]:
    """Starts everything but the sink, and ends it."""
    values = load.pool()
    with (
        tempfile.TemporaryDirectory(prefix="parquet-sink-bench-") as folder,
        Broker(properties={"file.delete.delay.ms": "1000"}) as broker,
        bench_target(sizes.target) as target,
        closing(target.client) as client,
    ):
        yield Stand(sizes, broker, target, client, Path(folder), values)


def describe_machine() -> str:
    """Return how busy and how quick the machine is now."""
    began = time.perf_counter()
    for _ in range(10_000_000):
        pass
    took = time.perf_counter() - began
    return f"load average {os.getloadavg()[0]:.1f}, ten million loops take {took:.2f} s"


def report(text: str = "") -> None:
    """Prints at once, also into a pipe."""
    print(text, flush=True)
