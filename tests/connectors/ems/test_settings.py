"""Connector files: what they become."""

import pytest

from parquet_sink.config.secret import Secret
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.files.settings import FileSettings
from parquet_sink.kafka.settings import FlushSettings, KafkaSettings
from parquet_sink.net.settings import ProxySettings
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.settings import RetrySettings
from parquet_sink.worker_config.worker import Worker
from parquet_sink.worker_config.worker_file import load_worker
from tests.connectors.ems.connector_files import CANARY, GOOD, MACHINE, E, load_file, settings_of
from tests.messages import assert_says


def test_the_required_keys_alone_make_a_connector_with_the_documented_defaults() -> None:
    """Every default is the one of the EMS connector, or the decided one."""
    loaded = load_file()
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
    settings = settings_of(
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
        shape=ShapeSettings(
            discard_collections=True,
            embed_metadata=False,
            primary_keys=("id", "_line"),
            allow_null_primary_keys=True,
            order_field="ts",
        ),
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


def test_http_elsewhere_can_be_permitted() -> None:
    """A key of its own is needed to send credentials in clear."""
    settings = settings_of({f"{E}endpoint": "http://h/x", f"{E}endpoint.allow.http": "true"})
    assert settings.target.endpoint == "http://h/x"


def test_the_authorization_key_is_cleaned_as_the_ems_connector_cleans_it() -> None:
    """Blanks around it and quotes in it go."""
    assert settings_of({f"{E}authorization.key": ' "Bearer a b" '}).target.authorization == Secret("Bearer a b")


def test_a_missing_name_is_replaced_with_a_warning() -> None:
    """The EMS connector's own fallback name, said aloud."""
    loaded = load_file({"name": " "})
    assert loaded.require().kafka.group == "connect-MissingSinkName"
    (warning,) = loaded.warnings
    assert_says(warning, "[name]", "missing", "MissingSinkName", "name the connector")


def test_unknown_choices_that_the_ems_connector_tolerates_are_read_as_it_reads_them() -> None:
    """An unknown proxy type is HTTP, an unknown explode mode None, each with a warning."""
    changes = {f"{E}proxy.type": "FTP", f"{E}proxy.host": "h", f"{E}proxy.port": "1", f"{E}explode.mode": "All"}
    loaded = load_file(dict(changes))
    assert loaded.require().target.proxy == ProxySettings("h", 1, "HTTP")
    mode, proxy = loaded.warnings
    assert_says(mode, f"[{E}explode.mode]", '"All"', "not one of", "None, List", "read as None")
    assert_says(proxy, f"[{E}proxy.type]", '"FTP"', "not one of", "HTTP, SOCKS4, SOCKS5", "read as HTTP")


def test_proxy_sign_in_needs_user_and_password() -> None:
    """BASIC without a password signs nobody in, and says so."""
    changes = {"proxy.host": "h", "proxy.port": "1", "proxy.auth.type": "BASIC", "proxy.auth.username": "u"}
    loaded = load_file({f"{E}{key}": text for key, text in changes.items()})
    assert loaded.require().target.proxy == ProxySettings("h", 1)
    (warning,) = loaded.warnings
    assert_says(warning, f"[{E}proxy.auth.password]", "missing", "nobody signs in", "set it", "remove the others")


def test_primary_keys_without_an_order_field_are_ordered_by_offset() -> None:
    """The added column is named to the target; without keys nothing is."""
    with_keys = settings_of({f"{E}data.primary.key": "id"})
    assert (with_keys.target.order_column, with_keys.shape.order_field) == ("__celonis_order", None)
    without = settings_of({f"{E}order.field.name": "ts"})
    assert (without.target.order_column, without.shape.order_field) == (None, None)


def test_units_make_the_same_settings() -> None:
    """Digests of settings, too, so that files come out the same; what Kafka's clients are given stays as written."""
    plain = {f"{E}commit.size.bytes": "10000000", f"{E}commit.interval.ms": "90000", f"{E}retry.interval": "1000"}
    written = {f"{E}commit.size.bytes": "10MB", f"{E}commit.interval.ms": "1.5m", f"{E}retry.interval": "1 s"}
    assert settings_of(written) == settings_of(plain)
    assert settings_of(written).fingerprint == settings_of(plain).fingerprint
    theirs = settings_of({"consumer.override.fetch.max.wait.ms": "300"}).kafka
    assert settings_of({"consumer.override.fetch.max.wait.ms": "1s"}).kafka != theirs


def test_a_row_group_larger_than_the_file_is_lowered() -> None:
    """As the EMS connector does, with a warning."""
    loaded = load_file({f"{E}parquet.row.group.size.bytes": "20000000"})
    assert loaded.require().files.row_group_size_bytes == 10_000_000
    (warning,) = loaded.warnings
    size = f"[{E}parquet.row.group.size.bytes]"
    assert_says(warning, size, "20000000", f"more than {E}commit.size.bytes", "lowered to 10000000")


def test_files_in_memory_go_to_the_memory_backed_folder() -> None:
    """tmp.dir and kept files are overridden, and both are said."""
    changes = {f"{E}inmemfs.enable": "true", f"{E}tmp.dir": "/a/file", f"{E}debug.keep.parquet.files": "true"}
    loaded = load_file(dict(changes))
    assert loaded.require().files == FileSettings("/dev/shm/parquet-sink", keep_files=False)
    assert len(loaded.warnings) == 2
    (problem,) = load_file(dict(changes), Worker()).problems
    assert_says(problem, f"[{E}inmemfs.enable]", "memory-backed folder /dev/shm", "set false")


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
    kafka = settings_of({"consumer.override.fetch.max.bytes": "2"}, worker).kafka
    assert kafka.client == {"bootstrap.servers": "k:1", "fetch.max.bytes": "2", "sasl.password": Secret(CANARY)}
    assert (kafka.isolation_level, kafka.offset_reset) == ("read_uncommitted", "latest")
    nearer = {"consumer.override.isolation.level": "read_committed", "consumer.override.auto.offset.reset": "earliest"}
    kafka = settings_of(dict(nearer), worker).kafka
    assert (kafka.isolation_level, kafka.offset_reset) == ("read_committed", "earliest")


def test_the_connectors_own_servers_win_over_the_option_with_a_warning() -> None:
    """The setting nearest to the connector counts, and the option does not lose silently."""
    worker = load_worker({}, source="w", bootstrap_option="o:1").require()
    loaded = load_file({"consumer.override.bootstrap.servers": "own:1"}, worker)
    assert loaded.require().kafka.client["bootstrap.servers"] == "own:1"
    (warning,) = loaded.warnings
    assert_says(warning, "[consumer.override.bootstrap.servers]", "wins over --bootstrap-servers")


@pytest.mark.parametrize(("policy", "refused"), [("All", 0), ("Principal", 1), ("None", 2)])
def test_the_workers_override_policy_is_honoured(policy: str, refused: int) -> None:
    """Principal permits who signs in, None permits nothing."""
    worker = Worker(override_policy=policy, machine=MACHINE)
    changes = {"consumer.override.sasl.mechanism": "PLAIN", "consumer.override.fetch.max.bytes": "1"}
    assert len(load_file(dict(changes), worker).problems) == refused


def test_topics_by_pattern() -> None:
    """The pattern is kept as text once it is known to compile."""
    kafka = settings_of({"topics": None, "topics.regex": "orders-.*"}).kafka
    assert (kafka.topics, kafka.topics_regex) == ((), "orders-.*")
    (problem,) = load_file({"topics": None, "topics.regex": "("}).problems
    assert_says(problem, "[topics.regex]", '"("', "not a valid regular expression", "correct it")
