"""The worker file: defaults for all connectors, and an answer to each key of Kafka Connect's."""

import pytest

from parquet_sink.config.machine import Machine
from parquet_sink.config.secret import Secret
from parquet_sink.connectors.connector_class import find_class
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.worker_config.worker import BOOTSTRAP_VARIABLE
from parquet_sink.worker_config.worker_file import LoadedWorker, load_worker

GOOD = {"bootstrap.servers": "k1:9092, k2:9092"}


def _load(properties: dict[str, str] | None = None, **more: str) -> LoadedWorker:
    return load_worker({**GOOD, **(properties or {})}, source="w.properties", connector_keys=find_class().keys, **more)  # type: ignore[arg-type]


def test_a_worker_file_gives_the_defaults_of_connectors() -> None:
    """Servers, converter and consumer settings arrive, secrets marked."""
    loaded = _load(
        {
            "value.converter": "JsonConverter",
            "value.converter.schemas.enable": "FALSE",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "consumer.isolation.level": "read_uncommitted",
            "consumer.auto.offset.reset": "latest",
            "consumer.sasl.jaas.config": "canary",
            "consumer.fetch.max.bytes": " 1000 ",
            "consumer.client.rack": "",
        }
    )
    worker = loaded.require()
    assert loaded.warnings == ()
    assert (worker.bootstrap_servers, worker.bootstrap_origin) == ("k1:9092,k2:9092", "bootstrap.servers")
    assert worker.converters.text("value.converter") == "JsonConverter"
    assert not worker.converters.flag("value.converter.schemas.enable")
    assert (worker.isolation_level, worker.offset_reset) == ("read_uncommitted", "latest")
    assert worker.consumer["fetch.max.bytes"] == "1000"
    assert worker.consumer["sasl.jaas.config"] == Secret("canary")
    assert "client.rack" not in worker.consumer
    assert "canary" not in repr(loaded)


def test_servers_come_from_option_then_environment_then_file() -> None:
    """Each place wins over the next one."""
    machine = Machine(environ={BOOTSTRAP_VARIABLE: "env:1"})
    file = {"bootstrap.servers": "file:1", "consumer.bootstrap.servers": "consumer:1"}
    by_option = load_worker(file, source="w", bootstrap_option="option:1", machine=machine)
    assert by_option.worker.bootstrap_servers == "option:1"
    assert load_worker(file, source="w", machine=machine).worker.bootstrap_servers == "env:1"
    assert load_worker(file, source="w").worker.bootstrap_servers == "consumer:1"


def test_without_any_server_kafkas_default_is_taken_with_a_warning() -> None:
    """Kafka Connect's default is localhost:9092; taking it is said."""
    loaded = load_worker({}, source="no worker file")
    assert loaded.require().bootstrap_servers == "localhost:9092"
    assert loaded.warnings == (
        (
            "Warning [bootstrap.servers]. No broker is named, so localhost:9092 is taken; name it in the worker file "
            "(--worker), with --bootstrap-servers or in PARQUET_SINK_BOOTSTRAP_SERVERS."
        ),
    )


@pytest.mark.parametrize(
    ("key", "value", "warning"),
    [
        (
            "offset.flush.interval.ms",
            "10000",
            "It has no effect here: offsets are committed after each upload or sending, not on a clock.",
        ),
        ("plugin.discovery", "x", "It has no effect here: there are no Java plug-ins to load."),
        (
            "task.shutdown.graceful.timeout.ms",
            "5000",
            "It has no effect here: a stop waits for the flush in progress; a second signal ends it.",
        ),
        (
            "sasl.mechanism",
            "PLAIN",
            (
                "It has no effect here: without group.id there are no clients of the worker's own; write "
                "consumer.sasl.* for those of sinks."
            ),
        ),
        ("session.timeout.ms", "9000", "It has no effect unless group.id is set."),
        ("status.storage.min.insync.replicas", "2", "It has no effect unless group.id is set."),
        ("boostrap.servers", "x:1", "It is unknown and has no effect. Did you mean bootstrap.servers?"),
        ("topics", "x", "It belongs in a connector file and has no effect in the worker file."),
    ],
)
def test_a_key_without_effect_is_said_with_its_reason(key: str, value: str, warning: str) -> None:
    """Nothing in a worker file is passed over silently."""
    loaded = _load({key: value})
    assert loaded.problems == ()
    assert loaded.warnings == (f"Warning [{key}]. {warning}",)


def test_settings_of_both_kinds_of_clients_are_not_warned_of() -> None:
    """A worker file of Kafka Connect has each setting of a login for its own clients, and for those of connectors."""
    login = {"security.protocol": "SSL", "ssl.truststore.location": "/t", "sasl.mechanism": "PLAIN"}
    named = {f"consumer.{name}": text for name, text in login.items()}
    assert _load({**login, **named}).warnings == ()
    del named["consumer.sasl.mechanism"]
    (warning,) = _load({**login, **named}).warnings
    assert warning.startswith("Warning [sasl.mechanism]. It has no effect here")


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (
            "config.storage.topic",
            "c",
            "It is for distributed mode, and group.id is missing; name the cluster there, or remove it.",
        ),
        (
            "status.storage.topic",
            "s",
            "It is for distributed mode, and group.id is missing; name the cluster there, or remove it.",
        ),
        (
            "consumer.group.id",
            "g",
            "All connectors would share one group; set consumer.override.group.id in the connector that needs it.",
        ),
        (
            "consumer.enable.auto.commit",
            "true",
            "It is true, but committing offsets at a poll would lose records at a crash; set false or remove the key.",
        ),
        (
            "consumer.isolation.level",
            "serializable",
            '"serializable" is not one of read_committed, read_uncommitted; write one of them.',
        ),
        (
            "bootstrap.servers",
            "k1",
            '"k1" is not a broker address; write host:port, several separated by commas.',
        ),
    ],
)
def test_a_key_that_cannot_be_honoured_is_refused_by_name(key: str, value: str, problem: str) -> None:
    """Topics of a cluster without a name, and settings against the design are errors."""
    loaded = _load({key: value})
    assert loaded.problems == (f"Invalid [{key}]. {problem}",)
    with pytest.raises(InvalidConfiguration, match="in w.properties"):
        loaded.require()


def test_a_bad_option_is_named_as_the_option() -> None:
    """The operator is told where the wrong address stands."""
    loaded = _load(bootstrap_option="localhost")
    assert loaded.problems == (
        (
            'Invalid [--bootstrap-servers]. "localhost" is not a broker address; write host:port, several separated '
            "by commas."
        ),
    )


@pytest.mark.parametrize("servers", ["k:1", "[::1]:9092", "PLAINTEXT://k:9092", "a:1,b:65535"])
def test_addresses_of_every_form_are_accepted(servers: str) -> None:
    """Names, IPv6 addresses, protocol prefixes and lists."""
    assert _load({"bootstrap.servers": servers}).require().bootstrap_servers == servers


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("none", "None"),
        ("PrincipalConnectorClientConfigOverridePolicy", "Principal"),
        ("org.apache.kafka.connect.connector.policy.AllConnectorClientConfigOverridePolicy", "All"),
    ],
)
def test_override_policies_have_kafkas_names_too(text: str, policy: str) -> None:
    """Short, or as the class is called."""
    loaded = load_worker({"connector.client.config.override.policy": text}, source="w")
    assert (loaded.problems, loaded.worker.override_policy) == ((), policy)


def test_an_unknown_override_policy_is_refused() -> None:
    """With the choices."""
    loaded = load_worker({"connector.client.config.override.policy": "Some"}, source="w")
    (problem,) = loaded.problems
    assert problem.startswith(
        'Invalid [connector.client.config.override.policy]. "Some" is not one of All, None, Princ'
    )


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({}, None),
        ({"HOME": "/h"}, "/h/.local/state/parquet-sink"),
        ({"HOME": "/h", "XDG_STATE_HOME": "/x"}, "/x/parquet-sink"),
        ({"HOME": "/h", "STATE_DIRECTORY": "/var/lib/one:/var/lib/two"}, "/var/lib/one"),
    ],
)
def test_where_connectors_are_kept(environment: dict[str, str], folder: str | None) -> None:
    """As systemd says, else where a user's programs keep their state; the key wins."""
    machine = Machine(environ=environment)
    assert load_worker({}, source="w", machine=machine).worker.store_folder == folder
    given = load_worker({"config.storage.folder": "/mine"}, source="w", machine=machine)
    assert (given.problems, given.worker.store_folder) == ((), "/mine")
