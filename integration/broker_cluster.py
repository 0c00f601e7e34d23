"""Three brokers of one cluster, each broker and controller at once, so that one of them may be lost."""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.broker_files import META, cluster_id
from parquet_sink.addons.devkit.ports import HOST, free_port

COUNT: Final = 3
_REPLICATED: Final = {
    "offsets.topic.replication.factor": str(COUNT),
    "transaction.state.log.replication.factor": str(COUNT),
    "transaction.state.log.min.isr": str(COUNT - 1),
    "default.replication.factor": str(COUNT),
    "min.insync.replicas": str(COUNT - 1),
    # On a busy machine no broker is taken for lost, and elections end.
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
    "controller.quorum.election.timeout.ms": "5000",
    "controller.quorum.election.backoff.max.ms": "5000",
    "controller.quorum.fetch.timeout.ms": "10000",
    "controller.quorum.request.timeout.ms": "10000",
}


LOOK_S: Final = 0.2
ASK_S: Final = 10.0


class BrokerCluster(Broker):
    """Clients are given the addresses of all `brokers`, which are started and killed by themselves, by ids from 1."""

    def __init__(self, folder: Path, brokers: Sequence[Broker]) -> None:
        super().__init__(data_dir=folder)
        self.brokers = dict(enumerate(brokers, 1))

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(one.bootstrap_servers for one in self.brokers.values())

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, str] | None = None,
        replicas: Sequence[Sequence[int]] = (),
    ) -> None:
        """Each topic-partition at all brokers, led by one after the other."""
        ids = list(self.brokers)
        placed = [ids[number % COUNT :] + ids[: number % COUNT] for number in range(partitions)]
        super().create_topic(name, config=config, replicas=replicas or placed)

    def coordinator(self, group: str) -> int:
        """The id of the broker that coordinates a group. Raises KafkaException."""
        admin = self._admin()
        return int(admin.describe_consumer_groups([group])[group].result(ASK_S).coordinator.id)

    def leader(self, topic: str) -> int:
        """The id of the broker that leads the first topic-partition. Raises KafkaException."""
        return int(self._admin().list_topics(topic, ASK_S).topics[topic].partitions[0].leader)

    def until_in_sync(self, timeout_s: float) -> None:
        """Waits until all brokers have all of every topic. Raises TimeoutError."""
        admin, deadline_s = self._admin(), time.monotonic() + timeout_s
        while not _in_sync(admin):
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"not all brokers were in sync within {timeout_s:g} s")
            time.sleep(LOOK_S)


def _in_sync(admin: AdminClient) -> bool:
    try:
        topics = admin.list_topics(timeout=ASK_S).topics.values()
    except KafkaException:
        return False
    return all(len(one.isrs) == COUNT for topic in topics for one in topic.partitions.values())


@contextmanager
def three_brokers(folder: Path, more: Mapping[str, str] | None = None) -> Iterator[BrokerCluster]:
    """Started. more: further server properties of all of them."""
    ports: list[int] = []
    while len(ports) < 2 * COUNT:
        ports.append(free_port(*ports))
    controllers, cluster = ports[COUNT:], cluster_id()
    voters = ",".join(f"{number}@{HOST}:{port}" for number, port in enumerate(controllers, 1))
    brokers = []
    for number, (port, controller) in enumerate(zip(ports, controllers, strict=False), 1):
        own = {
            **_REPLICATED,
            "node.id": str(number),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
            **(more or {}),
        }
        data = folder / f"broker-{number}" / "data"
        data.mkdir(parents=True)
        ids = {"version": "1", "cluster.id": cluster, "node.id": str(number), "directory.id": cluster_id()}
        (data / META).write_text("".join(f"{key}={value}\n" for key, value in ids.items()))
        brokers.append(Broker(port=port, data_dir=data.parent, properties=own))
    try:
        start(brokers)
        yield BrokerCluster(folder, brokers)
    finally:
        for broker in brokers:
            broker.kill()


def start(brokers: list[Broker]) -> None:
    """At once: none is ready before it sees another. Raises SetupError."""
    with ThreadPoolExecutor(len(brokers)) as pool:
        list(pool.map(Broker.start, brokers))
