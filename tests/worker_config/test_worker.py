"""The worker file: defaults for all connectors, and an answer to each key of Kafka Connect's."""

import pytest

from parquet_sink.config.machine import Machine
from parquet_sink.config.secret import Secret
from parquet_sink.connectors.connector_class import find_class
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.worker_config.worker import BOOTSTRAP_VARIABLE
from parquet_sink.worker_config.worker_file import LoadedWorker, load_worker
from tests.messages import assert_says

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
    (warning,) = loaded.warnings
    assert_says(warning, "[bootstrap.servers]", "No broker", "localhost:9092 is taken")
    assert_says(warning, "--worker", "--bootstrap-servers", BOOTSTRAP_VARIABLE)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("offset.flush.interval.ms", "10000", ("after each upload", "not on a clock")),
        ("plugin.discovery", "x", ("no Java plug-ins",)),
        ("task.shutdown.graceful.timeout.ms", "5000", ("a stop waits", "a second signal")),
        ("sasl.mechanism", "PLAIN", ("without group.id", "write consumer.sasl.*")),
        ("session.timeout.ms", "9000", ("unless group.id is set",)),
        ("status.storage.min.insync.replicas", "2", ("unless group.id is set",)),
        ("boostrap.servers", "x:1", ("unknown", "Did you mean bootstrap.servers?")),
        ("topics", "x", ("in a connector file",)),
    ],
)
def test_a_key_without_effect_is_said_with_its_reason(key: str, value: str, words: tuple[str, ...]) -> None:
    """Nothing in a worker file is passed over silently."""
    loaded = _load({key: value})
    assert loaded.problems == ()
    (warning,) = loaded.warnings
    assert_says(warning, f"Warning [{key}]", "no effect", *words)


def test_settings_of_both_kinds_of_clients_are_not_warned_of() -> None:
    """A worker file of Kafka Connect has each setting of a login for its own clients, and for those of connectors."""
    login = {"security.protocol": "SSL", "ssl.truststore.location": "/t", "sasl.mechanism": "PLAIN"}
    named = {f"consumer.{name}": text for name, text in login.items()}
    assert _load({**login, **named}).warnings == ()
    del named["consumer.sasl.mechanism"]
    (warning,) = _load({**login, **named}).warnings
    assert_says(warning, "Warning [sasl.mechanism]", "no effect", "write consumer.sasl.*")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("config.storage.topic", "c", ("group.id is missing", "name the cluster", "remove it")),
        ("status.storage.topic", "s", ("group.id is missing", "name the cluster", "remove it")),
        ("consumer.group.id", "g", ("share one group", "set consumer.override.group.id")),
        ("consumer.enable.auto.commit", "true", ("true", "lose records", "set false", "remove the key")),
        (
            "consumer.isolation.level",
            "serializable",
            ('"serializable"', "not one of", "read_committed, read_uncommitted"),
        ),
        ("bootstrap.servers", "k1", ('"k1"', "not a broker address", "host:port")),
    ],
)
def test_a_key_that_cannot_be_honoured_is_refused_by_name(key: str, value: str, words: tuple[str, ...]) -> None:
    """Topics of a cluster without a name, and settings against the design are errors."""
    loaded = _load({key: value})
    (problem,) = loaded.problems
    assert_says(problem, f"Invalid [{key}]", *words)
    with pytest.raises(InvalidConfiguration, match="in w.properties"):
        loaded.require()


def test_a_bad_option_is_named_as_the_option() -> None:
    """The operator is told where the wrong address stands."""
    loaded = _load(bootstrap_option="localhost")
    (problem,) = loaded.problems
    assert_says(problem, "[--bootstrap-servers]", '"localhost"', "not a broker address", "host:port")


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
    key = "[connector.client.config.override.policy]"
    assert_says(problem, key, '"Some"', "not one of", "All, None, Principal")


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
