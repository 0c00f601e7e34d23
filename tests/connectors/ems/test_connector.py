"""Connector files: what they become, and what each mistake is answered."""

import re
from collections.abc import Mapping

import pytest

from parquet_sink.config.key import Type
from parquet_sink.config.machine import Machine
from parquet_sink.config.secret import Secret
from parquet_sink.connectors.ems.keys import EMS_KEYS
from parquet_sink.connectors.loading import Loaded, check_unique, load
from parquet_sink.connectors.worker import Worker
from parquet_sink.connectors.worker_file import load_worker
from parquet_sink.convert.converters import JSON_CONVERTER
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.files.settings import FileSettings
from parquet_sink.kafka.settings import FlushSettings, KafkaSettings
from parquet_sink.net.settings import ProxySettings
from parquet_sink.pipeline.settings import SinkSettings
from parquet_sink.shape.settings import ShapeSettings
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.settings import RetrySettings

E = "connect.ems."
CANARY = "canary-51c2-long-enough"
MACHINE = Machine(
    tmp_dir="/var/tmp",
    memory_dir="/dev/shm",
    working_dir="/home/u",
    is_file=lambda path: path in ("/etc/ca.pem", "/home/u/ca.pem", "/a/file"),
    environ={"SECRET": CANARY, "URL": f"http://host/{CANARY}"},
)
WORKER = Worker(machine=MACHINE)
GOOD = {
    "name": "orders",
    "topics": "orders",
    "value.converter": JSON_CONVERTER,
    "value.converter.schemas.enable": "false",
    f"{E}endpoint": "https://team.realm.celonis.cloud/continuous-batch-processing/api/v1/p/items",
    f"{E}authorization.key": "AppKey k",
    f"{E}target.table": "ORDERS",
    f"{E}commit.size.bytes": "10000000",
    f"{E}commit.records": "1000",
    f"{E}commit.interval.ms": "30000",
}


def _load(changes: Mapping[str, str | None] | None = None, worker: Worker = WORKER) -> Loaded:
    properties = {**GOOD, **(changes or {})}
    return load({key: text for key, text in properties.items() if text is not None}, worker, source="f.properties")


def _settings(changes: Mapping[str, str | None] | None = None, worker: Worker = WORKER) -> SinkSettings:
    return _load(changes, worker).require()


def test_the_required_keys_alone_make_a_connector_with_the_documented_defaults() -> None:
    """Every default is the one of the EMS connector, or the decided one."""
    loaded = _load()
    assert loaded.problems == loaded.warnings == ()
    assert loaded.require() == SinkSettings(
        name="orders",
        kafka=KafkaSettings(topics=("orders",), group="connect-orders", client={"bootstrap.servers": "localhost:9092"}),
        flush=FlushSettings(commit_size_bytes=10_000_000, commit_records=1000, commit_interval_ms=30_000),
        shape=ShapeSettings(),
        files=FileSettings(tmp_dir="/var/tmp"),
        target=PushSettings(endpoint=GOOD[f"{E}endpoint"], authorization=Secret("AppKey k"), target_table="ORDERS"),
        value=ConverterSettings(kind="json"),
        key=None,
    )


def test_every_key_arrives_in_the_settings() -> None:
    """A file that sets everything that is built."""
    settings = _settings(
        {
            "tasks.max": "3",
            f"{E}lost.offsets.policy": "continue",
            f"{E}connection.id": "c-1",
            f"{E}data.fallback.varchar.length": "65000",
            f"{E}tmp.dir": "data/tmp",
            f"{E}parquet.compression.codec": "ZSTD",
            f"{E}parquet.row.group.size.bytes": "4096",
            f"{E}debug.keep.parquet.files": "true",
            f"{E}data.primary.key": " id , _line,id,",
            f"{E}allow.null.pk": "true",
            f"{E}order.field.name": "ts",
            f"{E}embed.kafka.metadata": "false",
            f"{E}flattener.collections.discard": "true",
            f"{E}error.policy": "retry",
            f"{E}max.retries": "4",
            f"{E}retry.interval": "1000",
            f"{E}sink.put.timeout.ms": "5000",
            f"{E}http.connect.timeout.ms": "1",
            f"{E}http.response.timeout.ms": "2",
            f"{E}tls.ca.file": "ca.pem",
            f"{E}pool.max.idle": "0",
            f"{E}pool.keepalive": "7",
            f"{E}pool.explicit.close": "true",
            f"{E}proxy.host": "proxy",
            f"{E}proxy.port": "3128",
            f"{E}proxy.type": "socks5",
            f"{E}proxy.auth.type": "BASIC",
            f"{E}proxy.auth.username": "u",
            f"{E}proxy.auth.password": "p",
            "consumer.override.isolation.level": "read_uncommitted",
            "consumer.override.auto.offset.reset": "none",
            "consumer.override.group.id": "my-group",
            "consumer.override.bootstrap.servers": "b:1",
            "consumer.override.ssl.keystore.password": "s",
            "consumer.override.fetch.max.bytes": "9",
        }
    )
    client: dict[str, str | Secret] = {
        "bootstrap.servers": "b:1",
        "ssl.keystore.password": Secret("s"),
        "fetch.max.bytes": "9",
    }
    assert settings == SinkSettings(
        name="orders",
        kafka=KafkaSettings(("orders",), None, "my-group", client, "read_uncommitted", "none", "CONTINUE", tasks_max=3),
        flush=FlushSettings(10_000_000, 1000, 30_000),
        shape=ShapeSettings(True, True, False, ("id", "_line"), True, "ts"),
        files=FileSettings("/home/u/data/tmp", "zstd", 4096, True),
        target=PushSettings(
            endpoint=GOOD[f"{E}endpoint"],
            authorization=Secret("AppKey k"),
            target_table="ORDERS",
            connection_id="c-1",
            fallback_varchar_length=65_000,
            primary_keys=("id", "_line"),
            order_column="ts",
            connect_timeout_ms=1,
            response_timeout_ms=2,
            ca_file="/home/u/ca.pem",
            proxy=ProxySettings("proxy", 3128, "SOCKS5", "u", Secret("p")),
            pool_max_idle=0,
            pool_keepalive_ms=7,
            pool_explicit_close=True,
        ),
        retry=RetrySettings("RETRY", 4, 1000, 5000),
    )


WHOLE = "is not a whole number; write digits only"
PROBLEMS = [
    ("topics", None, "Neither topics nor topics.regex is set; name the topics to read."),
    ("topics", " , ", "It names no topic; name the topics to read."),
    ("topics.regex", "o.*", None),
    ("tasks.max", "0", '"0" is less than 1; give 1 or more.'),
    (
        "connector.class",
        "io.x.S3Sink",
        (
            '"io.x.S3Sink" is no connector class known here; known are parquet_sink.EmsSink, '
            "com.celonis.kafka.connect.ems.sink.EmsSinkConnector. Write one of them, or install the Python package "
            "that has it."
        ),
    ),
    ("name", "a\tb", '"a\\tb" holds control characters; remove them.'),
    (
        f"{E}endpoint",
        None,
        (
            "It is missing; give the full URL of the push API, https://<team>.<realm>.celonis.cloud/"
            "continuous-batch-processing/api/v1/<pool-id>/items."
        ),
    ),
    (
        f"{E}endpoint",
        "https://<<team>>.celonis.cloud/x",
        "It still holds template text (<<...>>); write the URL of your own team, realm and data pool.",
    ),
    (
        f"{E}endpoint",
        "ftp://h/x",
        '"ftp://h/x" is no valid URL; write it as https://<team>.<realm>.celonis.cloud/<path>.',
    ),
    (
        f"{E}endpoint",
        "https:///x",
        '"https:///x" is no valid URL; write it as https://<team>.<realm>.celonis.cloud/<path>.',
    ),
    (
        f"{E}endpoint",
        "http://h/x",
        (
            '"http://h/x" would carry the credential in clear; use https, or permit http with '
            "connect.ems.endpoint.allow.http=true."
        ),
    ),
    (
        f"{E}endpoint",
        f"https://u:{CANARY}@h/x",
        "It holds a user or password; remove them, the credential belongs in connect.ems.authorization.key.",
    ),
    (
        f"{E}endpoint",
        "${env:URL}",
        (
            '"${env:URL}" would carry the credential in clear; use https, or permit http with '
            "connect.ems.endpoint.allow.http=true."
        ),
    ),
    (
        f"{E}authorization.key",
        CANARY,
        'It must begin with "AppKey" or "Bearer" (case counts); write AppKey <key> or Bearer <key>.',
    ),
    (
        f"{E}authorization.key",
        f"AppKey {CANARY}\nX: y",
        "It holds characters that no HTTP header can carry; write printable ASCII on one line.",
    ),
    (f"{E}target.table", "  ", "It is missing; give the name of the table that the target fills."),
    (f"{E}commit.size.bytes", "99999", '"99999" is less than 100000; give 100000 or more.'),
    (f"{E}commit.records", "0", '"0" is less than 1; give 1 or more.'),
    (f"{E}commit.records", "1e3", f'"1e3" {WHOLE}, 1 or more.'),
    (f"{E}commit.records", "2147483648", '"2147483648" is more than 2147483647; give 1 or more.'),
    (f"{E}commit.records", "${env:SECRET}", f'"${{env:SECRET}}" {WHOLE}, 1 or more.'),
    (f"{E}commit.interval.ms", "999", '"999" is less than 1000; give 1000 or more.'),
    (f"{E}tmp.dir", "/a/file", '"/a/file" is a file; name a folder.'),
    (f"{E}tls.ca.file", "/no.pem", 'There is no file "/no.pem"; name an existing PEM file.'),
    (
        f"{E}data.primary.key",
        "a,1b",
        (
            '"1b" cannot be a primary key\'s name; it must begin with a letter or _ and go on '
            "with letters, digits and _ (names are those after flattening)."
        ),
    ),
    (f"{E}data.fallback.varchar.length", "0", '"0" is less than 1; give 1 to 65000.'),
    (f"{E}data.fallback.varchar.length", "-2", '"-2" is less than 1; give 1 to 65000.'),
    (f"{E}data.fallback.varchar.length", "65001", '"65001" is more than 65000; give 1 to 65000.'),
    (f"{E}max.retries", "0", '"0" is less than 1; give 1 or more.'),
    (f"{E}retry.interval", "100", '"100" is less than 1000; give 1000 or more.'),
    (f"{E}allow.null.pk", "yes", '"yes" is neither true nor false; write one of them.'),
    (
        f"{E}error.policy",
        "RETRYY",
        '"RETRYY" is not one of THROW, RETRY; write one of them. Did you mean RETRY?',
    ),
    (
        f"{E}parquet.compression.codec",
        "brotli",
        '"brotli" is not one of snappy, zstd, gzip, lz4, none; write one of them.',
    ),
    (f"{E}proxy.auth.type", "NTLM", '"NTLM" is not BASIC; write it, or remove the key.'),
    (f"{E}proxy.port", "70000", '"70000" is more than 65535; give 1 to 65535.'),
    (
        f"{E}error.policy",
        "continue",
        (
            '"continue" is not built yet: it would pass over records, and there is no '
            "dead-letter store yet to keep them; use RETRY or THROW."
        ),
    ),
    (
        f"{E}error.policy.continue.on.invalid.input",
        "true",
        (
            '"true" is not built yet: there is no dead-letter store yet '
            "to keep such records; set false: the connector then stops at an invalid record and names it."
        ),
    ),
    (
        f"{E}obfuscation.fields",
        "",
        "It is empty; name the fields to obfuscate, or remove the key.",
    ),
    (
        f"{E}obfuscation.fields",
        " , ",
        "It names no field; name the fields to obfuscate, or remove the key.",
    ),
    (
        f"{E}obfuscation.fields",
        "a,b..c",
        '"b..c" has a step without a name; write names with single full stops between.',
    ),
    (f"{E}obfuscation.fields", "a.b,ab,a", '"a" and "a.b" overlap; keep one of them.'),
    (f"{E}flattener.jsonblob.chunks", "0", '"0" is less than 1; give 1 to 2000.'),
    (
        "transforms",
        "insert",
        (
            "Its feature is not built yet: remove it, and transform records before they reach the "
            "topic or after they reached the target."
        ),
    ),
    (
        "predicates",
        "p",
        (
            "Its feature is not built yet: remove it, and transform records before they reach the topic or "
            "after they reached the target."
        ),
    ),
    (
        "errors.tolerance",
        "all",
        (
            '"all" is not built yet: there is no dead-letter store yet to keep such records; set '
            "none: the connector then stops at an invalid record and names it."
        ),
    ),
    (
        "errors.deadletterqueue.topic.name",
        "dlq",
        (
            "Its feature is not built yet: there is no dead-letter store yet; "
            "remove it: the connector then stops at an invalid record and names it."
        ),
    ),
    (
        "value.converter",
        None,
        (
            "It is set neither here nor in the worker file; name the records' converter, for plain JSON objects "
            "org.apache.kafka.connect.json.JsonConverter with value.converter.schemas.enable=false."
        ),
    ),
    (
        "consumer.override.enable.auto.commit",
        "true",
        "It is true, but committing offsets at a poll would lose records at a crash; set false or remove the key.",
    ),
    (
        "consumer.override.value.deserializer",
        "x.S",
        "Records are always read as bytes and decoded by value.converter; remove it.",
    ),
]


@pytest.mark.parametrize(("key", "value", "reason"), PROBLEMS)
def test_a_wrong_value_is_told_with_cause_and_cure(key: str, value: str | None, reason: str | None) -> None:
    """One message for each mistake, naming the key and never a secret."""
    loaded = _load({key: value})
    wanted = (
        (f"Invalid [{key}]. {reason}",)
        if reason
        else ("Invalid [topics]. Both topics and topics.regex are set; keep one of them.",)
    )
    assert loaded.problems == wanted
    assert loaded.settings is None
    with pytest.raises(InvalidConfiguration) as caught:
        loaded.require()
    assert str(caught.value) == f"{wanted[0]} (in f.properties)"
    assert CANARY not in repr(loaded) + repr(caught.value)


def test_all_problems_of_a_file_are_told_at_once() -> None:
    """Nothing hides behind the first mistake."""
    loaded = load({f"{E}flattener.enable": "false", f"{E}flattener.jsonblob.chunks": "4"}, WORKER, source="f")
    keys = [re.findall(r"Invalid \[(.*?)\]", problem)[0] for problem in loaded.problems]
    required = ["endpoint", "authorization.key", "target.table", "commit.size.bytes", "commit.records"]
    assert sorted(keys) == sorted(
        [f"{E}{name}" for name in (*required, "commit.interval.ms", "flattener.enable")]
        + [f"{E}data.fallback.varchar.length", "topics", "value.converter"]
    )


def test_discarding_collections_needs_the_flattener() -> None:
    """The error names the key that would have to change."""
    loaded = _load({f"{E}flattener.enable": "false", f"{E}flattener.collections.discard": "true"})
    assert loaded.problems == (
        f"Invalid [{E}flattener.enable]. It is false, but {E}flattener.collections.discard needs it; set true.",
    )


UNKNOWN = "It is unknown and has no effect."
WARNINGS = [
    (f"{E}commit.interval", f"{UNKNOWN} Did you mean {E}commit.interval.ms?"),
    (f"{E}endpiont.allow.http", f"{UNKNOWN} Did you mean {E}endpoint.allow.http?"),
    ("commit.records", f"{UNKNOWN} Did you mean {E}commit.records?"),
    ("topic", f"{UNKNOWN} Did you mean topics?"),
    ("my.own.note", UNKNOWN),
    (f"{E}zzz", UNKNOWN),
    (
        "consumer.isolation.level",
        "It is unknown in a connector file and has no effect. Did you mean consumer.override.isolation.level?",
    ),
    ("plugin.path", "It belongs in the worker file (--worker) and has no effect in a connector file."),
    (
        f"{E}client.id",
        "It is deprecated and has no effect: the client's name at the target is fixed; remove the key.",
    ),
    (
        f"{E}parquet.write.flush.records",
        (
            f"It is deprecated and has no effect: use {E}parquet.row.group.size.bytes (bytes, not records) or "
            f"remove the "
            "key."
        ),
    ),
    (f"{E}order.field.name", f"It has no effect unless {E}data.primary.key is set."),
    (f"{E}proxy.host", f"It has no effect unless {E}proxy.port is set."),
    (f"{E}obfuscation.sha512.salt", f"It has no effect unless {E}obfuscation.fields is set."),
    ("transforms.a.type", "It has no effect unless transforms is set."),
    (
        "errors.deadletterqueue.context.headers.enable",
        "It has no effect unless errors.deadletterqueue.topic.name is set.",
    ),
]


@pytest.mark.parametrize(("key", "warning"), WARNINGS)
def test_what_changes_nothing_is_warned_about(key: str, warning: str) -> None:
    """The connector runs, and the operator knows; the value is not shown."""
    loaded = _load({key: "98765"})
    assert loaded.problems == ()
    assert loaded.warnings == (f"Warning [{key}]. {warning}",)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("connector.class", "com.celonis.kafka.connect.ems.sink.EmsSinkConnector"),
        ("connector.class", "parquet_sink.EmsSink"),
        ("connector.class", " "),
        ("key.converter", "org.apache.kafka.connect.storage.StringConverter"),
        ("key.converter.schemas.enable", "true"),
        ("header.converter", "any.Converter"),
        ("errors.log.enable", "true"),
        ("errors.log.include.messages", "true"),
        ("errors.tolerance", "none"),
        ("transforms", ""),
        (f"{E}explode.mode", "NONE"),
        (f"{E}obfuscation.method", "FIX"),
        (f"{E}proxy.type", "http"),
        (f"{E}commit.interval.ms", "1000"),
        (f"{E}endpoint", "http://localhost:8085/x"),
        (f"{E}endpoint", "http://[::1]:8085/x"),
        (f"{E}endpoint", "http://127.9.9.9/x"),
        ("consumer.override.enable.auto.commit", "false"),
    ],
)
def test_what_is_already_so_is_accepted_silently(key: str, value: str) -> None:
    """Defaults written out, keys and headers' converters, http to this machine."""
    loaded = _load({key: value})
    assert loaded.problems == loaded.warnings == ()


def test_http_elsewhere_can_be_permitted() -> None:
    """A key of its own is needed to send credentials in clear."""
    settings = _settings({f"{E}endpoint": "http://h/x", f"{E}endpoint.allow.http": "true"})
    assert settings.target.endpoint == "http://h/x"


def test_the_authorization_key_is_cleaned_as_the_ems_connector_cleans_it() -> None:
    """Blanks around it and quotes in it go."""
    assert _settings({f"{E}authorization.key": ' "Bearer a b" '}).target.authorization == Secret("Bearer a b")


def test_a_missing_name_is_replaced_with_a_warning() -> None:
    """The EMS connector's own fallback name, said aloud."""
    loaded = _load({"name": " "})
    assert loaded.require().kafka.group == "connect-MissingSinkName"
    assert loaded.warnings == ("Warning [name]. It is missing, so MissingSinkName is taken; name the connector.",)


def test_unknown_choices_that_the_ems_connector_tolerates_are_read_as_it_reads_them() -> None:
    """An unknown proxy type is HTTP, an unknown explode mode None, each with a warning."""
    changes = {f"{E}proxy.type": "FTP", f"{E}proxy.host": "h", f"{E}proxy.port": "1", f"{E}explode.mode": "All"}
    loaded = _load(dict(changes))
    assert loaded.require().target.proxy == ProxySettings("h", 1, "HTTP")
    assert loaded.warnings == (
        f'Warning [{E}explode.mode]. "All" is not one of None, List; write one of them. It is read as None.',
        f'Warning [{E}proxy.type]. "FTP" is not one of HTTP, SOCKS4, SOCKS5; write one of them. It is read as HTTP.',
    )


def test_proxy_sign_in_needs_user_and_password() -> None:
    """BASIC without a password signs nobody in, and says so."""
    changes = {"proxy.host": "h", "proxy.port": "1", "proxy.auth.type": "BASIC", "proxy.auth.username": "u"}
    loaded = _load({f"{E}{key}": text for key, text in changes.items()})
    assert loaded.require().target.proxy == ProxySettings("h", 1)
    assert loaded.warnings == (
        (
            f"Warning [{E}proxy.auth.password]. It is missing, so nobody signs in at the proxy; set it, or remove the "
            "others."
        ),
    )


def test_primary_keys_without_an_order_field_are_ordered_by_offset() -> None:
    """The added column is named to the target; without keys nothing is."""
    with_keys = _settings({f"{E}data.primary.key": "id"})
    assert (with_keys.target.order_column, with_keys.shape.order_field) == ("__celonis_order", None)
    without = _settings({f"{E}order.field.name": "ts"})
    assert (without.target.order_column, without.shape.order_field) == (None, None)


def test_a_row_group_larger_than_the_file_is_lowered() -> None:
    """As the EMS connector does, with a warning."""
    loaded = _load({f"{E}parquet.row.group.size.bytes": "20000000"})
    assert loaded.require().files.row_group_size_bytes == 10_000_000
    assert loaded.warnings == (
        (
            f"Warning [{E}parquet.row.group.size.bytes]. 20000000 is more than {E}commit.size.bytes and is lowered to "
            "10000000."
        ),
    )


def test_files_in_memory_go_to_the_memory_backed_folder() -> None:
    """tmp.dir and kept files are overridden, and both are said."""
    changes = {f"{E}inmemfs.enable": "true", f"{E}tmp.dir": "/a/file", f"{E}debug.keep.parquet.files": "true"}
    loaded = _load(dict(changes))
    assert loaded.require().files == FileSettings("/dev/shm/parquet-sink", keep_files=False)
    assert len(loaded.warnings) == 2
    assert _load(dict(changes), Worker()).problems == (
        f"Invalid [{E}inmemfs.enable]. This machine has no writable memory-backed folder /dev/shm; set false.",
    )


def test_the_connectors_consumer_settings_win_over_the_workers() -> None:
    """Key by key, isolation level and reset included."""
    file = {
        "bootstrap.servers": "k:1",
        "consumer.fetch.max.bytes": "1",
        "consumer.sasl.password": CANARY,
        "consumer.isolation.level": "read_uncommitted",
        "consumer.auto.offset.reset": "latest",
    }
    worker = load_worker(file, source="w", machine=MACHINE).require()
    kafka = _settings({"consumer.override.fetch.max.bytes": "2"}, worker).kafka
    assert kafka.client == {"bootstrap.servers": "k:1", "fetch.max.bytes": "2", "sasl.password": Secret(CANARY)}
    assert (kafka.isolation_level, kafka.offset_reset) == ("read_uncommitted", "latest")
    nearer = {"consumer.override.isolation.level": "read_committed", "consumer.override.auto.offset.reset": "earliest"}
    kafka = _settings(dict(nearer), worker).kafka
    assert (kafka.isolation_level, kafka.offset_reset) == ("read_committed", "earliest")


def test_the_connectors_own_servers_win_over_the_option_with_a_warning() -> None:
    """The setting nearest to the connector counts, and the option does not lose silently."""
    worker = load_worker({}, source="w", bootstrap_option="o:1").require()
    loaded = _load({"consumer.override.bootstrap.servers": "own:1"}, worker)
    assert loaded.require().kafka.client["bootstrap.servers"] == "own:1"
    assert loaded.warnings == (
        "Warning [consumer.override.bootstrap.servers]. It wins over --bootstrap-servers for this connector.",
    )


@pytest.mark.parametrize(("policy", "refused"), [("All", 0), ("Principal", 1), ("None", 2)])
def test_the_workers_override_policy_is_honoured(policy: str, refused: int) -> None:
    """Principal permits who signs in, None permits nothing."""
    worker = Worker(override_policy=policy, machine=MACHINE)
    changes = {"consumer.override.sasl.mechanism": "PLAIN", "consumer.override.fetch.max.bytes": "1"}
    assert len(_load(dict(changes), worker).problems) == refused


def test_topics_by_pattern() -> None:
    """The pattern is kept as text once it is known to compile."""
    kafka = _settings({"topics": None, "topics.regex": "orders-.*"}).kafka
    assert (kafka.topics, kafka.topics_regex) == ((), "orders-.*")
    (problem,) = _load({"topics": None, "topics.regex": "("}).problems
    assert problem.startswith('Invalid [topics.regex]. "(" is no valid regular expression')


def test_a_failed_placeholder_is_told_once() -> None:
    """A required key whose placeholder cannot be filled is not called missing too."""
    for key in ("topics", "value.converter", f"{E}endpoint", f"{E}authorization.key"):
        assert _load({key: "${env:NONE}"}).problems == (
            f"Invalid [{key}]. ${{env:NONE}}: the environment variable NONE is not set; set it before the start.",
        )


def test_one_name_for_two_connectors_is_refused_naming_both_files() -> None:
    """Two of one name would share a group and a folder; two of one group would share offsets."""
    first, second = _load(), load(dict(GOOD), WORKER, source="g.json")
    assert check_unique([first, second]) == (
        'Invalid [name]. "orders" is used by f.properties and g.json; give each connector its own.',
    )
    third = load({**GOOD, "name": "x", "consumer.override.group.id": "connect-orders"}, WORKER, source="h.json")
    assert check_unique([first, third]) == (
        (
            'Invalid [consumer.override.group.id]. "connect-orders" is used by f.properties and h.json; give '
            "each connector "
            "its own."
        ),
    )
    assert check_unique([first, load({**GOOD, "name": "y"}, WORKER, source="i.json")]) == ()


def test_a_canary_in_every_key_shows_nowhere_but_in_its_own_message() -> None:
    """Secrets set in clear or by a provider are in no repr, message or warning, whatever is wrong around them."""
    secrets = [key.name for key in EMS_KEYS if key.type is Type.PASSWORD]
    secrets += ["consumer.override.sasl.jaas.config", "consumer.override.ssl.keystore.key", f"{E}proxy.auth.passwrd"]
    loaded = _load(dict.fromkeys(secrets, CANARY))
    by_provider = _load({key.name: "${env:SECRET}" for key in EMS_KEYS if not key.is_prefix})
    good = _load({**dict.fromkeys(secrets, CANARY), f"{E}authorization.key": f"AppKey {CANARY}"})
    assert loaded.problems
    assert by_provider.problems
    assert good.settings is not None
    for one in (loaded, by_provider, good):
        assert CANARY not in repr(one) + str(one)
