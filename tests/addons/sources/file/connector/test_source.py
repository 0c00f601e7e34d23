"""The file source's connector file: Kafka's own, and everything that may be wrong with one."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.config.machine import Machine
from parquet_sink.config.secret import dump_with_secrets, load_with_secrets
from parquet_sink.connectors.check import check_files
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.convert.connect_values.settings import SIMPLE_HEADER
from parquet_sink.convert.json.settings import JsonConverter
from parquet_sink.validate.preflight import inspect
from parquet_sink.worker_config.worker import Worker
from parquet_sink.worker_config.worker_file import load_worker
from tests.messages import assert_says

HOME = Machine(working_dir="/srv/kafka")
STANDALONE = {
    "bootstrap.servers": "localhost:9092",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "true",
    "value.converter.schemas.enable": "true",
    "offset.storage.file.filename": "/tmp/connect.offsets",
    "offset.flush.interval.ms": "10000",
}
"""Kafka's connect-standalone.properties."""
FILE_SOURCE = {
    "name": "local-file-source",
    "connector.class": "FileStreamSource",
    "tasks.max": "1",
    "file": "test.txt",
    "topic": "connect-test",
}
"""Kafka's connect-file-source.properties."""


def worker(machine: Machine = HOME, **changes: str) -> Worker:
    """Kafka's worker file, changed; an empty text removes a key."""
    merged = {**STANDALONE, **{name.replace("__", "."): text for name, text in changes.items()}}
    return load_worker({name: text for name, text in merged.items() if text}, source="w", machine=machine).require()


def loaded(changes: Mapping[str, str | None], of: Worker | None = None) -> Loaded:
    """Kafka's connector file, changed; None removes a key."""
    merged = {**FILE_SOURCE, **changes}
    given = {name: text for name, text in merged.items() if text is not None}
    return load(given, of or worker(), source="c")


def settings(changes: Mapping[str, str | None] | None = None, of: Worker | None = None) -> SourceSettings:
    """What runs."""
    found = loaded(changes or {}, of)
    assert found.problems == ()
    assert isinstance(found.settings, SourceSettings)
    return found.settings


@pytest.mark.parametrize("name", ["FileStreamSource", "FileStreamSourceConnector", None])
def test_kafkas_own_files_are_taken_as_they_are(name: str | None) -> None:
    """The quick start's files say what is read, where it goes, and where positions are, by any name of the class."""
    found = loaded({"connector.class": name or "org.apache.kafka.connect.file.FileStreamSourceConnector"})
    made = found.settings
    assert isinstance(made, SourceSettings)
    assert (found.warnings, made.kind, made.group, made.topics) == ((), "source", None, ("connect-test",))
    assert made.storage is not None
    assert made.storage.file == "/tmp/connect.offsets"
    (task,) = made.tasks
    assert task == {
        "file": "/srv/kafka/test.txt",
        "name": "test.txt",
        "topic": "connect-test",
        "batch.size": "2000",
        "longest.line": "1048576",
    }
    assert (made.value, made.key, made.header) == (JsonConverter(), JsonConverter(), SIMPLE_HEADER)
    assert made.summary() == "file test.txt -> topic connect-test"


def test_settings_survive_the_way_to_spark() -> None:
    """What Spark's processes read is what the file said, passwords included."""
    made = settings(
        {
            "producer.override.sasl.jaas.config": "x;",
            "transforms": "h",
            "transforms.h.type": "HoistField$Value",
            "transforms.h.field": "line",
        }
    )
    assert load_with_secrets(dump_with_secrets(made)) == made


def test_producers_have_the_connectors_settings_above_the_workers() -> None:
    """producer.override.* wins over the worker's producer.*, and that over the consumer's brokers and security."""
    base = worker(consumer__security__protocol="SSL", producer__linger__ms="7", producer__max__request__size="5000")
    made = settings({"producer.override.linger.ms": "9"}, base)
    assert made.producer["security.protocol"] == "SSL"
    assert made.producer["linger.ms"] == "9"
    assert (made.max_request_bytes, made.tasks[0]["longest.line"]) == (5000, "5000")


def test_positions_may_be_kept_in_a_topic() -> None:
    """Kafka Connect's keys of distributed mode name the topic, and how it is made."""
    base = worker(
        offset__storage__file__filename="",
        offset__storage__topic="connect-offsets",
        offset__storage__partitions="5",
        offset__storage__replication__factor="1",
    )
    storage = settings(of=base).storage
    assert storage is not None
    assert (storage.file, storage.topic, storage.partitions, storage.replication_factor) == (
        None,
        "connect-offsets",
        5,
        1,
    )
    assert storage.client == {"bootstrap.servers": "localhost:9092"}


def test_without_a_file_standard_input_is_read() -> None:
    """Where there is a standard input it is copied to a file of the connector, and no position is kept."""
    made = settings({"file": None, "connect.ems.tmp.dir": "/var/tmp"}, worker(offset__storage__file__filename=""))
    assert made.storage is None
    assert made.spool == "/var/tmp/local-file-source/.standard-input"
    assert made.tasks[0]["file"] == made.spool


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"topic": None}, "topic", ("missing", "name the topic")),
        ({"topic": "a b"}, "topic", ('"a b"', "not a topic name", "1 to 249")),
        ({"name": None}, "name", ("missing", "name the connector")),
        ({"batch.size": "0"}, "batch.size", ('"0"', "less than 1", "1 or more")),
        ({"value.converter": "io.confluent.connect.avro.AvroConverter", "value.converter.schema.registry.url": "http://r"},
         "value.converter", ('"io.confluent.connect.avro.AvroConverter"', "only reads", "set StringConverter")),
        ({"transforms": "i", "transforms.i.type": "InsertField$Value", "transforms.i.offset.field": "o"},
         "transforms.i.offset.field", ("none before", "remove the key")),
        ({"transforms": "s", "transforms.s.type": "SetSchemaMetadata$Value", "transforms.s.schema.name": "n"},
         "transforms.s.type", ("SetSchemaMetadata", "names schemas", "set value.converter.schemas.enable=false")),
        ({"topic.creation.enable": "true"}, "topic.creation.enable", ("not made here", "remove the key")),
        ({"exactly.once.support": "required"}, "exactly.once.support", ("at least once", "set requested")),
        ({"offsets.storage.topic": "own"}, "offsets.storage.topic", ("not built yet", "set offset.storage.topic")),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(changes: Mapping[str, str | None], key: str, words: tuple[str, ...]) -> None:
    """Each wrong key is an error that names it, before anything is read."""
    found = loaded(changes)
    assert found.settings is None
    (problem,) = [one for one in found.problems if one.startswith(f"Invalid [{key}]")]
    assert_says(problem, *words)


def test_a_worker_without_a_place_for_positions_is_told() -> None:
    """A source needs a file or a topic for its positions, and both together are one too many."""
    found = loaded({}, worker(offset__storage__file__filename=""))
    assert_says(
        found.problems[0], "[offset.storage.file.filename]", "its positions", "offset.storage.topic", "name one"
    )
    both = load_worker({**STANDALONE, "offset.storage.topic": "o"}, source="w", machine=HOME)
    (problem,) = both.problems
    assert_says(problem, "[offset.storage.topic]", "offset.storage.file.filename is set", "remove one")


def test_no_standard_input_is_told() -> None:
    """A worker in the background cannot read standard input, and says why."""
    found = loaded({"file": None}, worker(Machine(no_standard_input="it is /dev/null")))
    (problem,) = found.problems
    assert_says(problem, "[file]", "not set", "standard input", "/dev/null", "name a file")


def test_the_machine_and_the_client_are_asked_before_anything_starts(tmp_path: Path) -> None:
    """`check` tells of a client setting that the client refuses, and of a folder for positions that is not there."""
    files = {"c": {**FILE_SOURCE, "producer.override.linger.ms": "soon"}, "w": STANDALONE}
    files["w"] = {**STANDALONE, "offset.storage.file.filename": str(tmp_path / "no" / "offsets")}
    for name, keys in files.items():
        (tmp_path / name).write_text("".join(f"{key}={text}\n" for key, text in keys.items()))
    found = inspect(check_files([str(tmp_path / "c")], str(tmp_path / "w"))).problems
    assert any(one.startswith("Invalid [producer.override.linger.ms]. ") for one in found), found
    assert any(one.startswith("Invalid [offset.storage.file.filename]. Folder ") for one in found), found
