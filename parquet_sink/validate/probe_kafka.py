"""Tries brokers, topics, group, rights (ACLs) and the dead-letter topic, for `parquet-sink check --connect`.

Nothing is read, committed, made or written.
"""

import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Consumer

from parquet_sink.config.report import printable
from parquet_sink.errors import BrokerAway, InvalidConfiguration, KafkaFailed, KafkaRefused
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.options import NO_EFFECT
from parquet_sink.kafka.client.rights import Right, name_lacking
from parquet_sink.kafka.client_settings import shared_with_consumer
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.cluster.requests import Brokers, Rights
from parquet_sink.kafka.dead_letter_topic import DeadLetterTopic
from parquet_sink.kafka.group.committed import Committed
from parquet_sink.kafka.group.offsets import GroupOffsets
from parquet_sink.kafka.resets import reset_command
from parquet_sink.kafka.settings import DeadLetterSettings, KafkaSettings
from parquet_sink.model.instance import Instance
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.outcome import Health

CONNECT_S: Final = 5.0
TIMEOUT_KEY: Final = "default.api.timeout.ms"
MOST_NAMED: Final = 8
"""Topic-partitions, or missing rights, that are named one by one."""


@dataclass(frozen=True)
class Finding:
    """How one item stands. FAILED: `run` would fail as well. topic: where it is about a topic that is there."""

    health: Health
    item: str
    text: str
    topic: str = ""

    def line(self) -> str:
        """As `check` prints it."""
        return f"  {self.health:<7} {self.item}: {printable(self.text)}"


def probe_kafka(kafka: KafkaSettings, tables: SinkSettings | None = None) -> Iterator[Finding]:
    """Client settings, brokers, topics and group; what cannot be tried after a failure is left out.

    tables: knows the table of each topic.
    """
    try:
        client_options.build(Consumer, client_options.reader_options(kafka)).close()  # fetch settings are its alone
        brokers = Brokers(kafka)
    except InvalidConfiguration as error:
        yield from (Finding(Health.FAILED, "client settings", problem) for problem in error.problems)
        return
    if ignored := sorted((NO_EFFECT & kafka.client.keys()) - {TIMEOUT_KEY}):
        yield Finding(Health.WARNING, "client settings", f"{', '.join(ignored)}: without effect here")
    found = _brokers(brokers, str(kafka.client["bootstrap.servers"]))
    yield found
    if found.health is Health.OK:
        yield from _topics_and_group(kafka, tables)


def _brokers(brokers: Brokers, servers: str) -> Finding:
    """Whether a broker answers; if not, why, and what each address says to a plain connection."""
    item = f"brokers {servers}"
    try:
        count, cluster = brokers.count_and_cluster()
    except BrokerAway as error:
        return Finding(
            Health.FAILED, item, f"{error} Plain connections: {'; '.join(map(_connect, servers.split(',')))}."
        )
    except KafkaFailed as error:
        return Finding(Health.FAILED, item, str(error))
    return Finding(Health.OK, item, f"{count} in cluster {cluster}")


def _connect(server: str) -> str:
    """How a plain TCP connection to `host:port` ends."""
    host, _, port = server.strip().rpartition(":")
    started = time.monotonic()
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except socket.gaierror as error:
        return f"{server}: the name is unknown ({error.strerror})"
    except (OSError, ValueError) as error:
        return f"{server}: {getattr(error, 'strerror', None) or error}"
    return f"{server}: takes connections ({time.monotonic() - started:.1f} s)"


def _topics_and_group(kafka: KafkaSettings, tables: SinkSettings | None) -> Iterator[Finding]:
    try:
        cluster = KafkaCluster(kafka)
        keys = cluster.topic_partitions()
        firsts, readable = cluster.beginning_offsets(keys), cluster.end_offsets(keys)
        lasts, left_out = cluster.high_watermarks(keys), cluster.left_out()
    except KafkaRefused as error:
        lacking = [one for one in of_reading(kafka, kafka.topics) if one.health is Health.FAILED]
        yield from lacking or [Finding(Health.FAILED, "topics", str(error))]
        return
    except KafkaFailed as error:
        yield Finding(Health.FAILED, "topics", str(error))
        return
    yield from of_topics(kafka, keys, firsts, lasts)
    yield from of_open_transactions(lasts, readable)
    if left_out:
        yield Finding(Health.OK, f"topics matching {kafka.topics_regex}", f"left out: {_listed(left_out)}")
    yield from of_reading(kafka, sorted({topic for topic, _ in keys}))
    if tables is not None:
        topics = sorted({topic for topic, _ in keys})
        yield from (of_table(tables, topic) for topic in topics if tables.tables.rules or tables.why_unusable(topic))
    group = GroupOffsets(kafka, Instance.new())
    try:
        yield of_group(kafka, firsts, lasts, group.read(keys))
    except KafkaFailed as error:
        yield Finding(Health.FAILED, "group", str(error))
    finally:
        group.close()


def of_topics(
    kafka: KafkaSettings,
    keys: Sequence[PartitionKey],
    firsts: Mapping[PartitionKey, int],
    lasts: Mapping[PartitionKey, int],
) -> Iterator[Finding]:
    """A line for each topic: its topic-partitions with the offsets that Kafka holds."""
    topics = sorted({topic for topic, _ in keys})
    if not topics:
        yield Finding(Health.WARNING, f"topics matching {kafka.topics_regex}", "there are none yet")
    for topic in topics:
        mine = [key for key in keys if key[0] == topic]
        held = _listed([f"{key[1]} holds {firsts[key]} to {lasts[key]}" for key in mine])
        text = f"{len(mine)} topic-partitions (offsets, end exclusive): {held}"
        yield Finding(Health.OK, f"topic {topic}", text, topic)


def of_open_transactions(lasts: Mapping[PartitionKey, int], readable: Mapping[PartitionKey, int]) -> Iterator[Finding]:
    """Yield a warning about records that open transactions hide. readable: up to where each may be read, exclusive."""
    held = {key: end for key, end in sorted(readable.items()) if end < lasts.get(key, end)}
    if held:
        where = _listed(f"{_named(key)} from offset {end} on ({lasts[key] - end} offsets)" for key, end in held.items())
        yield Finding(Health.WARNING, "open transactions", f"{where}: not delivered before their producers end them")


def of_table(settings: SinkSettings, topic: str) -> Finding:
    """Where a topic's files go, or why they cannot go anywhere."""
    if (reason := settings.why_unusable(topic)) is not None:
        return Finding(Health.FAILED, f"table of topic {topic}", reason)
    return Finding(Health.OK, f"table of topic {topic}", settings.table_of(topic))


def of_group(
    kafka: KafkaSettings,
    firsts: Mapping[PartitionKey, int],
    lasts: Mapping[PartitionKey, int],
    committed: Mapping[PartitionKey, Committed],
) -> Finding:
    """Where the group stands, and whether Kafka still has what comes next."""
    item = f"group {kafka.group}"
    fresh = [key for key in lasts if key not in committed]
    if fresh and kafka.offset_reset == "none":
        command = reset_command(kafka, *_as_words(fresh))
        cure = f"auto.offset.reset is none: commit an offset with {command}, or choose earliest or latest."
        return Finding(Health.FAILED, item, f"no committed offset for {_listed(map(_named, fresh))}. {cure}")
    outside = [key for key, found in committed.items() if not firsts[key] <= found.offset <= lasts[key]]
    if outside:
        what = _listed(f"{_named(key)} at {committed[key].offset}" for key in outside)
        health = Health.FAILED if kafka.lost_offsets == "STOP" else Health.WARNING
        command = reset_command(kafka, *_as_words(outside))
        cure = f"Reset the group with {command}, or set connect.ems.lost.offsets.policy=CONTINUE."
        return Finding(health, item, f"Kafka no longer holds the offsets it stands at: {what}. {cure}")
    if not committed:
        return Finding(Health.OK, item, f"no committed offsets: it begins at the {kafka.offset_reset} record")
    lags = {key: lasts[key] - found.offset for key, found in committed.items()}
    stands = _listed(f"{_named(key)} at {committed[key].offset} (lag {lag})" for key, lag in sorted(lags.items()))
    begins = f"; {len(fresh)} without offset begin at their first record" if fresh else ""
    by = _listed(dict.fromkeys(found.committer() for found in committed.values()))
    return Finding(Health.OK, item, f"lag {sum(lags.values())}: {stands}{begins}; last committed by {by}")


def _named(key: PartitionKey) -> str:
    return f"{key[0]} {key[1]}"


def _listed(words: Iterable[str]) -> str:
    """Some of the words, and how many more there are."""
    every = list(words)
    more = f" and {len(every) - MOST_NAMED} more" if len(every) > MOST_NAMED else ""
    return ", ".join(every[:MOST_NAMED]) + more


def of_reading(kafka: KafkaSettings, topics: Sequence[str]) -> Iterator[Finding]:
    """Whether topics may be read, and offsets committed: a line for each right that is missing, or one that none is."""
    try:
        rights = Rights(kafka)
        group = rights.lacking_to_commit(kafka.group)
        lacking = [*rights.lacking_to_read(topics), *(group or ())]
    except KafkaFailed as error:
        yield Finding(Health.FAILED, "rights", str(error))
        return
    yield from _findings(lacking)
    if not lacking:
        commits = f"and commit offsets of group {kafka.group}"
        unknown = "; whether it may commit is seen at the start, because brokers answer that for groups that exist"
        count = f"{len(topics)} topic{'' if len(topics) == 1 else 's'}"
        yield Finding(Health.OK, "rights", f"it may read {count}{unknown if group is None else f' {commits}'}")


def _as_words(keys: Iterable[PartitionKey]) -> list[str]:
    """As Kafka's tools name topic-partitions: `orders:0,2`."""
    numbers: dict[str, list[str]] = {}
    for topic, partition in sorted(keys):
        numbers.setdefault(topic, []).append(str(partition))
    return [f"{topic}:{','.join(found)}" for topic, found in numbers.items()]


def lacking_to_write(settings: DeadLetterSettings) -> str | None:
    """Which right the user of the producer lacks on the dead-letter topic, which is there; None: none that is known."""
    producer = KafkaSettings(group=settings.label, client=dict(shared_with_consumer(settings.producer)))
    try:
        lacking = Rights(producer, ClientLog(settings.whose), prefix="producer.").lacking_to_write(settings.topic)
    except (KafkaFailed, InvalidConfiguration) as error:
        return str(error)
    return next((f"{right.cure('the user of [producer.override.*]')}." for right in lacking), None)


def _findings(lacking: Iterable[Right]) -> Iterator[Finding]:
    every = list(lacking)
    for right in every[:MOST_NAMED]:
        yield Finding(Health.FAILED, "rights", name_lacking([right]))
    if len(every) > MOST_NAMED:
        yield Finding(Health.FAILED, "rights", f"{len(every) - MOST_NAMED} more are missing.")


def probe_dead_letters(settings: DeadLetterSettings) -> tuple[bool, str]:
    """Whether the dead-letter topic is there or could be made, and how it stands in words."""
    try:
        topic = DeadLetterTopic(settings)
        problem = topic.problem()
        if problem is None and topic.exists():
            problem = lacking_to_write(settings)
            return problem is None, problem or "it is there"
    except (InvalidConfiguration, KafkaFailed) as error:
        return False, str(error)
    factor = settings.replication_factor
    how = "as many replicas as the brokers say" if factor < 0 else f"{factor} replica{'' if factor == 1 else 's'}"
    return problem is None, problem or f"it does not exist, and is created at the start with {how}"
