"""Connector files: what becomes of records without a row, and of the clients of the dead-letter topic."""

from dataclasses import replace

import pytest

from parquet_sink.kafka.settings import DeadLetterSettings
from parquet_sink.settings.connector import ErrorSettings
from parquet_sink.worker_config.worker_file import load_worker
from tests.connectors.ems.connector_files import CANARY, MACHINE, WORKER, E, load_file, settings_of
from tests.messages import assert_says

NAME = "errors.deadletterqueue.topic.name"
SERVERS = {"bootstrap.servers": "localhost:9092"}
ALL = "errors.tolerance"


@pytest.mark.parametrize(
    ("keys", "passed_over"),
    [
        ({}, (False, False)),
        ({ALL: "none"}, (False, False)),
        ({ALL: "all"}, (True, False)),
        ({f"{E}error.policy": "RETRY"}, (False, False)),
        ({f"{E}error.policy": "continue"}, (True, True)),
        ({f"{E}error.policy.continue.on.invalid.input": "true"}, (True, False)),
        ({ALL: "none", f"{E}error.policy": "CONTINUE"}, (True, True)),
    ],
)
def test_what_is_passed_over(keys: dict[str, str], passed_over: tuple[bool, bool]) -> None:
    """Records without a row by any of three keys; refused files by one."""
    loaded = load_file(keys)
    assert loaded.warnings == ()
    errors = loaded.require().errors
    assert (errors.invalid_records, errors.refused_files) == passed_over


def test_without_any_key_an_error_stops_the_connector() -> None:
    """As in Kafka Connect."""
    assert settings_of().errors == ErrorSettings()


def test_the_dead_letter_topic_is_as_in_kafka_connect() -> None:
    """Defaults, and what is set."""
    assert settings_of({NAME: "dlq", ALL: "all"}).errors.dead_letters == DeadLetterSettings(
        "dlq", 3, False, SERVERS, SERVERS
    )
    keys = {
        NAME: "dlq",
        ALL: "all",
        "errors.deadletterqueue.topic.replication.factor": "-1",
        "errors.deadletterqueue.context.headers.enable": "true",
        "errors.log.enable": "true",
        "errors.log.include.messages": "true",
    }
    found = settings_of(keys).errors
    assert found.dead_letters == DeadLetterSettings("dlq", -1, True, SERVERS, SERVERS)
    assert (found.log, found.log_content) == (True, True)
    assert not settings_of({"errors.log.include.messages": "true"}).errors.log_content


def test_its_clients_sign_in_as_the_consumer_does_unless_told_otherwise() -> None:
    """The connector's keys win over the worker's, and those over the consumer's."""
    worker = load_worker(
        {
            "bootstrap.servers": "a:1",
            "consumer.security.protocol": "SASL_SSL",
            "consumer.sasl.jaas.config": f"module {CANARY};",
            "consumer.fetch.max.bytes": "1000",
            "producer.compression.type": "gzip",
            "producer.sasl.mechanism": "PLAIN",
            "admin.request.timeout.ms": "5000",
        },
        source="w",
        machine=MACHINE,
    )
    assert (worker.problems, worker.warnings) == ((), ())
    keys = {
        NAME: "dlq",
        ALL: "all",
        "producer.override.compression.type": "zstd",
        "producer.override.bootstrap.servers": "b:2",
        "admin.override.security.protocol": "PLAINTEXT",
    }
    found = load_file(keys, worker.require())
    assert found.warnings == ()
    letters = found.require().errors.dead_letters
    assert letters is not None
    assert {name: str(value) for name, value in letters.producer.items() if "jaas" not in name} == {
        "bootstrap.servers": "b:2",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "compression.type": "zstd",
    }
    assert {name: str(value) for name, value in letters.admin.items() if "jaas" not in name} == {
        "bootstrap.servers": "a:1",
        "security.protocol": "PLAINTEXT",
        "request.timeout.ms": "5000",
    }
    assert CANARY not in repr(letters)


def test_what_is_fixed_of_its_producer_is_told() -> None:
    """An acknowledgement of one broker would lose dead letters with it."""
    keys = {NAME: "dlq", ALL: "all", "producer.override.acks": "1", "producer.override.enable.idempotence": "false"}
    acks, idempotence = load_file(keys).warnings
    assert_says(acks, "[producer.override.acks]", "no effect", "in-sync replicas")
    assert_says(idempotence, "[producer.override.enable.idempotence]", "no effect", "not twice")
    assert load_file({NAME: "dlq", ALL: "all", "producer.override.acks": "all"}).warnings == ()


def test_topics_that_the_connector_writes_are_left_out_of_its_pattern() -> None:
    """It would read its own dead letters and notices, for ever."""
    written = {NAME: "orders-dlq", f"{E}notify.topic": "orders-notices"}
    found = load_file({"topics": None, "topics.regex": "orders.*", **written, ALL: "all"})
    assert found.problems == ()
    kafka = found.require().kafka
    topics = ("orders", "orders-dlq", "orders-notices", "dlq")
    assert [topic for topic in topics if kafka.reads(topic)] == ["orders"]
    assert [topic for topic in topics if kafka.leaves_out(topic)] == ["orders-dlq", "orders-notices"]


def test_a_dead_letter_topic_that_is_of_little_use_is_told() -> None:
    """The connector stops at the first record there, which few want who name a topic."""
    (warning,) = load_file({NAME: "dlq"}).warnings
    assert_says(warning, f"[{NAME}]", "errors.tolerance=none", "stops at the first", "set all")
    assert load_file({NAME: "dlq", f"{E}error.policy": "CONTINUE"}).warnings == ()


def test_the_workers_policy_on_overrides_holds_for_all_clients() -> None:
    """As in Kafka Connect."""
    worker = replace(WORKER, override_policy="None")
    found = load_file({NAME: "dlq", ALL: "all", "producer.override.linger.ms": "5"}, worker)
    assert [problem.split("]")[0] for problem in found.problems] == ["Invalid [producer.override.linger.ms"]


def test_files_depend_on_what_obfuscates_fields() -> None:
    """A range is not repeated under its old names after a key or a salt changed; a password changes no file."""
    obfuscated = {f"{E}obfuscation.fields": "a", f"{E}obfuscation.method": "hmac-sha256"}
    keys = ("0123456789abcdef", "0123456789abcdeg")
    one, other = (settings_of({**obfuscated, f"{E}obfuscation.hmac.key": key}).fingerprint for key in keys)
    assert one != other
    registry = {"value.converter": "io.confluent.connect.avro.AvroConverter"}
    registry |= {"value.converter.schema.registry.url": "http://localhost:1"}
    registry |= {"value.converter.basic.auth.credentials.source": "USER_INFO"}
    passwords = ({**registry, "value.converter.basic.auth.user.info": f"u:{word}"} for word in ("a", "b"))
    assert len({settings_of(changes).fingerprint for changes in passwords}) == 1


def test_files_depend_on_whether_records_are_passed_over() -> None:
    """A range that was interrupted is not repeated under the other setting: its files would be others."""
    assert settings_of().fingerprint != settings_of({ALL: "all"}).fingerprint
    assert settings_of({ALL: "all"}).fingerprint == settings_of({ALL: "all", NAME: "dlq"}).fingerprint
