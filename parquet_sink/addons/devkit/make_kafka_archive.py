"""Makes the archive of a local broker's Java classes (`kafka_archive`), once for a machine.

    python -m parquet_sink.addons.devkit.make_kafka_archive      make it, print its path

A broker that does a little of everything loads the classes, and Java dumps them when it ends.
"""

import fcntl
import sys
import tempfile
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.broker_files import stem, usable_archive
from parquet_sink.addons.devkit.jars import fetch
from parquet_sink.errors import KafkaFailed, SetupError
from parquet_sink.process.cache import whole_name

KEPT: Final = 2
"""Archives in the folder for one Kafka: of this Java and of one other."""
DUMP_S: Final = 300.0


def make() -> Path:
    """The archive, made if need be, which takes some seconds. Of several processes one makes it, the others wait.

    Raises SetupError when there is no Java or Kafka, or Java makes none; KafkaFailed when the broker does not serve;
    OSError when the cache folder cannot be used.
    """
    jars, java = fetch()
    with jars.with_name(f"{jars.name}.archive.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if (found := usable_archive(jars, java)) is not None:
            return found
        with tempfile.TemporaryDirectory(prefix=f"{jars.name}.making-", dir=jars.parent) as work:
            made = Path(work, "made.jsa")
            _practise(made)
            if not made.exists():
                raise SetupError("Java made no archive of the broker's classes.")
            archive = made.replace(jars.with_name(whole_name(stem(jars, java), made)))
    for other in sorted(jars.parent.glob(f"{jars.name}-*.jsa"), key=lambda path: path.stat().st_mtime)[:-KEPT]:
        other.unlink()
    return archive


def _practise(archive: Path) -> None:
    """Topics, records in and out, offsets of a group; at the orderly end Java dumps what it has loaded."""
    broker = Broker(java_options=[f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:disable"])
    with broker:
        broker.create_topic("practice", 2)
        broker.produce("practice", [(b"key", b"value")] * 100, partition=0)
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "practice", "log_level": 0})
        try:
            consumer.assign([TopicPartition("practice", 0, 0)])
            consumer.consume(100, timeout=20)
            consumer.commit(offsets=[TopicPartition("practice", 0, 100)], asynchronous=False)
        finally:
            consumer.close()
        broker.delete_topic("practice")
        broker.stop(DUMP_S)


def main() -> int:
    """Makes it and prints its path; the exit status."""
    try:
        print(make())
    except (SetupError, KafkaFailed, KafkaException, OSError) as error:
        print(f"No archive of the broker's Java classes, so its starts take longer: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
