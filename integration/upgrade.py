"""An upgrade, and the way back, on a real broker: `python -m integration.upgrade CHECKOUT [FOLDER]`.

CHECKOUT: a working tree of an earlier version (`git worktree add ../before TAG`). It delivers, and is killed with a
range in flight; this version goes on with its folder; then the earlier one goes on with what this version left. FOLDER:
where what the earlier one left is copied, as tests/golden/upgrade has it. Ends with 0 when each record came once.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from integration.numbered import numbered
from integration.sink_process import SinkProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess

NAME: Final = "upgraded"
PATIENCE_S: Final = 180.0
HERE: Final = Path(__file__).parents[1]


class Missing(Exception):
    """Records did not come, or not once."""


def until(done: Callable[[], bool], what: str) -> None:
    """Raises Missing."""
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > deadline:
            raise Missing(f"{what}: not within {PATIENCE_S:.0f} s")
        time.sleep(0.2)


class Scene:
    """A broker, a target, and one connector that two versions run in turn. Its folder is below `folder`."""

    def __init__(self, broker: Broker, target: TargetProcess, folder: Path, before: Path) -> None:
        self.broker, self.target, self.left = broker, target, folder / "left"
        connector = {
            "name": NAME,
            "connector.class": "com.celonis.kafka.connect.ems.sink.EmsSinkConnector",
            "topics": NAME,
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "connect.ems.endpoint": target.endpoint(),
            "connect.ems.authorization.key": "AppKey demo",
            "connect.ems.target.table": "T",
            "connect.ems.commit.size.bytes": "1000000",
            "connect.ems.commit.records": "100",
            "connect.ems.commit.interval.ms": "1000",
            "connect.ems.retry.interval": "1000",
            "connect.ems.tmp.dir": str(self.left),
        }
        self._options = ("--bootstrap-servers", broker.bootstrap_servers)
        sinks = ({"PYTHONPATH": str(root)} for root in (before, HERE))
        self.before, self.now = (SinkProcess([connector], folder, environment) for environment in sinks)
        self._produced = 0
        broker.create_topic(NAME, 1)

    def produce(self, count: int) -> None:
        self.broker.produce(NAME, numbered(count, self._produced))
        self._produced += count

    def arrived(self) -> list[int]:
        """The numbers that the target has, in order."""
        if "T" not in self.target.client.tables():
            return []
        return sorted(self.target.client.table("T").column("n").to_pylist())

    def committed(self) -> str:
        """The metadata beside the group's offset."""
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap_servers, "group.id": f"connect-{NAME}"})
        try:
            return str(consumer.committed([TopicPartition(NAME, 0)], timeout=10)[0].metadata)
        finally:
            consumer.close()

    def left_in_the_middle(self) -> None:
        """The earlier version delivers, tries again what the target refuses to take now, and is killed."""
        self.before.start(*self._options)
        self.produce(300)
        until(lambda: self.arrived() == list(range(300)), "the earlier version's first records")
        self.target.client.order_faults({"status": 503})
        self.produce(250)
        until(lambda: self.target.client.faults()[0]["fired"] > 0, "an upload that is refused")
        self.before.end_all()
        self.target.client.clear_faults()

    def caught_up(self, sink: SinkProcess, whose: str) -> None:
        """Raises Missing."""
        status = sink.run_to_end(PATIENCE_S, *self._options, "--until-caught-up")
        self.target.client.sync()
        if status or self.arrived() != list(range(self._produced)):
            raise Missing(f"{whose} ended with {status} and {len(self.arrived())} of {self._produced} records")


def play(before: Path, copy: Path | None) -> None:
    """Raises Missing."""
    with tempfile.TemporaryDirectory() as temporary, Broker() as broker, TargetProcess() as target:
        os.chdir(temporary)  # `python -m` looks for modules where it stands, before all else
        scene = Scene(broker, target, Path(temporary), before)
        try:
            scene.left_in_the_middle()
            metadata = scene.committed()
            if copy is not None:
                shutil.copytree(scene.left, copy, ignore=shutil.ignore_patterns("*.parquet", "*.tmp"))
                (copy / "metadata.json").write_text(metadata + "\n", encoding="utf-8")
            print(f"beside the offset: {metadata}")
            scene.caught_up(scene.now, "this version")
            scene.produce(50)
            scene.caught_up(scene.before, "the earlier version again")
            scene.produce(50)
            scene.caught_up(scene.now, "this version again")
        finally:
            scene.before.end_all()
            scene.now.end_all()
            log = Path(temporary, "sink.log") if Path(temporary, "sink.log").exists() else scene.now.log
            print("\n".join(line for line in log.read_text(encoding="utf-8").splitlines() if " INFO " not in line))
    print("each record came once, by the earlier version, this one, the earlier one and this one")


def main(words: list[str]) -> int:
    """The exit status."""
    before, *copies = (Path(word).absolute() for word in words)
    try:
        play(before, copies[0] if copies else None)
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
