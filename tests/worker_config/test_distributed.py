"""Keys of distributed mode: Kafka's own file as it comes, what is wrong with each key and with several together."""

import base64
from collections.abc import Mapping

import pytest

from parquet_sink.config.machine import Machine
from parquet_sink.config.secret import Secret
from parquet_sink.worker_config.distributed import DistributedSettings, SealingKey
from parquet_sink.worker_config.worker_file import LoadedWorker, load_worker
from tests.messages import assert_says

KAFKAS_FILE = {
    "bootstrap.servers": "localhost:9092",
    "group.id": "connect-cluster",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "true",
    "value.converter.schemas.enable": "true",
    "offset.storage.topic": "connect-offsets",
    "offset.storage.replication.factor": "1",
    "config.storage.topic": "connect-configs",
    "config.storage.replication.factor": "1",
    "status.storage.topic": "connect-status",
    "status.storage.replication.factor": "1",
    "offset.flush.interval.ms": "10000",
}
"""config/connect-distributed.properties of Kafka 4.1, without its comments."""
OTHERS = {
    "listeners": "http://localhost:8083",
    "rest.advertised.host.name": "worker-1",
    "rest.advertised.port": "8083",
    "rest.advertised.listener": "http",
    "offset.storage.partitions": "25",
    "status.storage.partitions": "5",
    "config.storage.partitions": "1",
    "session.timeout.ms": "10000",
    "heartbeat.interval.ms": "3000",
    "rebalance.timeout.ms": "60000",
    "scheduled.rebalance.max.delay.ms": "300000",
    "worker.sync.timeout.ms": "3000",
    "worker.unsync.backoff.ms": "300000",
    "connect.protocol": "sessioned",
    "exactly.once.source.support": "disabled",
    "inter.worker.key.generation.algorithm": "HmacSHA256",
    "inter.worker.key.ttl.ms": "3600000",
    "inter.worker.signature.algorithm": "HmacSHA256",
    "inter.worker.verification.algorithms": "HmacSHA256",
    "topic.tracking.enable": "true",
    "topic.tracking.allow.reset": "true",
    "request.timeout.ms": "40000",
    "retry.backoff.ms": "100",
    "retry.backoff.max.ms": "1000",
    "reconnect.backoff.ms": "50",
    "reconnect.backoff.max.ms": "1000",
    "metadata.max.age.ms": "300000",
    "metadata.recovery.strategy": "rebootstrap",
    "metadata.recovery.rebootstrap.trigger.ms": "300000",
    "connections.max.idle.ms": "540000",
    "send.buffer.bytes": "131072",
    "receive.buffer.bytes": "32768",
    "socket.connection.setup.timeout.ms": "10000",
    "client.dns.lookup": "use_all_dns_ips",
    "security.protocol": "SSL",
    "ssl.truststore.location": "/t.pem",
    "sasl.mechanism": "PLAIN",
}
"""Other keys that Kafka Connect's distributed mode has, as by default; all of them have an effect here, or its own."""
WITHOUT_EFFECT = {
    "offset.flush.interval.ms": "10000",
    "offset.flush.timeout.ms": "5000",
    "task.shutdown.graceful.timeout.ms": "5000",
    "plugin.discovery": "hybrid_warn",
    "metric.reporters": "x",
    "metrics.num.samples": "2",
    "client.id": "x",
    "topic.creation.enable": "true",
    "socket.connection.setup.timeout.max.ms": "30000",
    "connect.protocol": "eager",
    "worker.unsync.backoff.ms": "1",
    "config.storage.partitions": "3",
}
CONFIG, STATUS = "config.storage.topic", "status.storage.topic"
ALGORITHMS = "inter.worker.verification.algorithms"
KEY = base64.b64encode(bytes(range(32))).decode()


def _load(more: Mapping[str, str] | None = None, **others: object) -> LoadedWorker:
    return load_worker({**KAFKAS_FILE, **(more or {})}, source="w.properties", **others)  # type: ignore[arg-type]


def _settings(more: Mapping[str, str] | None = None) -> DistributedSettings:
    loaded = _load(more)
    assert loaded.problems == ()
    assert loaded.worker.distributed is not None
    return loaded.worker.distributed


def _problems(more: Mapping[str, str]) -> tuple[str, ...]:
    return _load(more).problems


def test_kafkas_own_file_is_taken_as_it_comes() -> None:
    """Its keys and nothing else make a cluster; all others have Kafka Connect's defaults, but the delay."""
    assert _settings() == DistributedSettings(
        group_id="connect-cluster",
        config_topic="connect-configs",
        config_replication=1,
        status_topic="connect-status",
        status_partitions=5,
        status_replication=1,
        state_topic="connect-cluster-state",
        state_partitions=5,
        state_replication=1,
        offset_topic="connect-offsets",
        offset_partitions=25,
        offset_replication=1,
        topic_settings={f"{name}.storage.": {} for name in ("config", "status", "parquet-sink.state", "offset")},
        session_ms=10_000,
        heartbeat_ms=3_000,
        rebalance_ms=60_000,
        delay_ms=0,
        sync_ms=3_000,
        key_ttl_ms=3_600_000,
        kafka={"bootstrap.servers": "localhost:9092"},
    )


def test_each_other_key_of_connect_is_known() -> None:
    """With Kafka Connect's defaults written out there is no problem, and nothing is said."""
    loaded = _load({**OTHERS, "offset.flush.interval.ms": ""})
    assert (loaded.problems, loaded.warnings) == ((), ())


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_a_key_without_effect_is_said_in_distributed_mode_too(name: str) -> None:
    """One warning, which names it."""
    loaded = _load({"offset.flush.interval.ms": "", name: WITHOUT_EFFECT[name]})
    assert loaded.problems == ()
    (warning,) = loaded.warnings
    assert_says(warning, f"Warning [{name}]", "no effect")


@pytest.mark.parametrize("name", ["config.storage.topic", "status.storage.topic", "offset.storage.topic"])
def test_a_cluster_without_one_of_its_topics_is_refused(name: str) -> None:
    """The key is named, and a name to give."""
    loaded = _load({name: ""})
    (problem,) = loaded.problems
    assert_says(problem, f"Invalid [{name}]", "missing", "name the topic", "connect-")
    assert loaded.worker.distributed is None


def test_without_a_group_there_is_no_cluster() -> None:
    """The other keys of distributed mode do not make one."""
    assert load_worker({"bootstrap.servers": "k:1"}, source="w").require().distributed is None
    problems = _problems({"group.id": ""})
    assert [one.partition("]")[0] for one in problems] == [
        "Invalid [config.storage.topic",
        "Invalid [status.storage.topic",
    ]


@pytest.mark.parametrize(
    ("more", "key", "words"),
    [
        (
            {"status.storage.topic": "connect-configs"},
            CONFIG,
            ("connect-configs", "in status.storage.topic", "give each"),
        ),
        (
            {"offset.storage.topic": "connect-status"},
            STATUS,
            ("connect-status", "in offset.storage.topic", "give each"),
        ),
        ({"config.storage.topic": "connect-cluster-state"}, CONFIG, ("connect-cluster-state", "in parquet-sink.state")),
        (
            {"group.id": "my cluster"},
            "parquet-sink.state.storage.topic",
            ('"my cluster-state"', "not a topic name", "name a topic"),
        ),
        ({"config.storage.topic": "a/b"}, CONFIG, ('"a/b"', "not a topic name", "1 to 249")),
        (
            {"config.storage.cleanup.policy": "delete"},
            "config.storage.cleanup.policy",
            ("is compacted", "remove the key"),
        ),
        (
            {"offset.storage.cleanup.policy": "delete"},
            "offset.storage.cleanup.policy",
            ("is compacted", "remove the key"),
        ),
        (
            {"config.storage.replication.factor": "0"},
            "config.storage.replication.factor",
            ("0 is not possible", "1 or more", "-1 for"),
        ),
        (
            {"session.timeout.ms": "3000"},
            "heartbeat.interval.ms",
            ("It is 3000", "session.timeout.ms is 3000", "a third"),
        ),
        (
            {"exactly.once.source.support": "enabled"},
            "exactly.once.source.support",
            ('"enabled"', "not built yet", "disabled or preparing"),
        ),
        ({"inter.worker.signature.algorithm": "HmacSHA512"}, ALGORITHMS, ("lacks HmacSHA512", "add it")),
        (
            {"inter.worker.verification.algorithms": "HmacSHA1"},
            ALGORITHMS,
            ('"HmacSHA1"', "not one of", "HmacSHA256, HmacSHA384, HmacSHA512"),
        ),
        (
            {"inter.worker.key.size": "12"},
            "inter.worker.key.size",
            ("12 is not", "length of a key", "from 128 to 4096"),
        ),
        (
            {"parquet-sink.config.secrets": "sealed"},
            "parquet-sink.config.sealing.keys",
            ("missing", "beside parquet-sink.config.secrets", "give a key", "ID:BASE64"),
        ),
        (
            {"offset.storage.file.filename": "/o"},
            "offset.storage.topic",
            ("offset.storage.file.filename is set", "remove one"),
        ),
    ],
)
def test_keys_that_cannot_be_honoured_are_refused(more: dict[str, str], key: str, words: tuple[str, ...]) -> None:
    """One by one, or together with others; each once, with the cure."""
    (found,) = _problems(more)
    assert_says(found, f"Invalid [{key}]", *words)


def test_a_late_heartbeat_is_warned_of() -> None:
    """More than a third of the session leaves no room for two that are late."""
    (warning,) = _load({"offset.flush.interval.ms": "", "heartbeat.interval.ms": "3334"}).warnings
    assert_says(warning, "[heartbeat.interval.ms]", "It is 3334", "a third of session.timeout.ms", "give less")
    assert _load({"offset.flush.interval.ms": "", "heartbeat.interval.ms": "3333"}).warnings == ()


def test_settings_of_topics_go_to_those_that_are_made() -> None:
    """All that begins like a topic's keys and is none of ours; the folder of connectors is one of ours."""
    found = _settings(
        {
            "config.storage.min.insync.replicas": "2",
            "config.storage.folder": "/store",
            "config.storage.cleanup.policy": "compact",
            "parquet-sink.state.storage.segment.ms": " 1000 ",
            "offset.storage.retention.bytes": "-1",
        }
    )
    assert found.topic_settings == {
        "config.storage.": {"min.insync.replicas": "2", "cleanup.policy": "compact"},
        "status.storage.": {},
        "parquet-sink.state.storage.": {"segment.ms": "1000"},
        "offset.storage.": {"retention.bytes": "-1"},
    }


def test_own_clients_have_the_bare_settings_and_connectors_do_not() -> None:
    """As in Kafka Connect's distributed mode; positions of sources are reached by the worker's own clients."""
    more = {
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": "canary",
        "request.timeout.ms": "5000",
        "consumer.bootstrap.servers": "other:1",
        "consumer.security.protocol": "SSL",
    }
    loaded = _load(more)
    worker = loaded.require()
    assert worker.distributed is not None
    assert worker.offset_storage is not None
    assert worker.distributed.kafka == {
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": Secret("canary"),
        "request.timeout.ms": "5000",
        "bootstrap.servers": "localhost:9092",
    }
    assert worker.offset_storage.client == worker.distributed.kafka
    assert (worker.bootstrap_servers, worker.consumer["security.protocol"]) == ("other:1", "SSL")
    assert "sasl.jaas.config" not in worker.consumer
    assert "canary" not in repr(loaded)


def test_an_option_names_the_brokers_of_own_clients_too() -> None:
    """`--bootstrap-servers` wins over all."""
    loaded = _load({"consumer.bootstrap.servers": "other:1"}, bootstrap_option="option:1")
    assert loaded.worker.distributed is not None
    assert loaded.worker.distributed.kafka["bootstrap.servers"] == "option:1"


def test_brokers_of_consumers_are_those_of_own_clients_where_no_others_are_named() -> None:
    """Somebody who names brokers once means them."""
    loaded = _load({"bootstrap.servers": "", "consumer.bootstrap.servers": "other:1"})
    assert loaded.worker.distributed is not None
    assert loaded.worker.distributed.kafka["bootstrap.servers"] == "other:1"


def test_replicas_of_the_state_topic_are_those_of_the_config_topic() -> None:
    """So Kafka's own file works with one broker; the key wins."""
    assert _settings({"config.storage.replication.factor": "2"}).state_replication == 2
    assert _settings({"parquet-sink.state.storage.replication.factor": "-1"}).state_replication == -1


def test_sealing_keys_are_read_in_order_and_never_shown() -> None:
    """The first seals."""
    text = f" new:{KEY} ,old.1:{KEY}"
    loaded = _load({"parquet-sink.config.secrets": "sealed", "parquet-sink.config.sealing.keys": text})
    found = loaded.require().distributed
    assert found is not None
    assert [one.id for one in found.sealing_keys] == ["new", "old.1"]
    assert found.sealing_keys[0].data == bytes(range(32))
    assert KEY not in repr(loaded)


def test_sealing_keys_may_come_from_a_config_provider() -> None:
    """A placeholder is filled as anywhere."""
    machine = Machine(environ={"KEYS": f"k:{KEY}"})
    more = {"config.providers": "env", "parquet-sink.config.sealing.keys": "${env:KEYS}"}
    found = _load(more, machine=machine).require().distributed
    assert found is not None
    assert found.sealing_keys == (SealingKey("k", Secret(KEY)),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (KEY, ("Key 1", "no name", "write ID:BASE64")),
        (f"a:{KEY},:{KEY}", ("Key 2", "no name", "write ID:BASE64")),
        (f"a b:{KEY}", ("Key 1", "no name", "write ID:BASE64")),
        ("a:canaryc", ("Key 1", "not 32 bytes", "`openssl rand -base64 32`")),
        ("a:!!canary!!", ("Key 1", "not 32 bytes", "`openssl rand -base64 32`")),
        (f"a:{KEY},a:{KEY}", ("Key 2", "the name of another", "its own")),
    ],
)
def test_a_wrong_sealing_key_is_refused_without_showing_it(text: str, words: tuple[str, ...]) -> None:
    """By its place in the list: what stands there may be a key."""
    (problem,) = _problems({"parquet-sink.config.sealing.keys": text})
    assert_says(problem, "[parquet-sink.config.sealing.keys]", *words)
    assert "canary" not in problem
    assert KEY not in problem
