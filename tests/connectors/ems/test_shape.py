"""From record to row: chunks, explode, lower case, decimals and obfuscation as a connector file sets them."""

import pytest

from parquet_sink.config.machine import Machine
from parquet_sink.config.secret import Secret
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.rows.settings import ObfuscationSettings, ShapeSettings
from parquet_sink.worker_config.worker import Worker
from tests.connectors.ems.connector_files import load_file
from tests.messages import assert_says

E = "connect.ems."
CANARY = "canary-2f90-and-long"
MACHINE = Machine(environ={"SECRET": CANARY})
BASE = {
    "name": "orders",
    "topics": "orders",
    "value.converter": "bytes",
    f"{E}endpoint": "https://h/x",
    f"{E}authorization.key": "AppKey k",
    f"{E}target.table": "ORDERS",
    f"{E}commit.size.bytes": "10000000",
    f"{E}commit.records": "1000",
    f"{E}commit.interval.ms": "30000",
}


def _load(settings: dict[str, str]) -> Loaded:
    """settings: without the prefix."""
    properties = {**BASE, **{E + name: text for name, text in settings.items()}}
    return load(properties, Worker(machine=MACHINE), source="f")


def _shape(settings: dict[str, str]) -> ShapeSettings:
    loaded = _load(settings)
    assert loaded.warnings == ()
    return loaded.require().shape


def _obfuscation(settings: dict[str, str]) -> ObfuscationSettings | None:
    return _shape({"obfuscation.fields": "name", **settings}).obfuscation


def test_every_shape_can_be_asked_for() -> None:
    """Chunks, explode, lower case and decimals, alone and together."""
    assert _shape({"convert.decimals.to.double": "true"}) == ShapeSettings(decimals_to_double=True)
    assert _shape({"convert.lowercase.fields": "TRUE"}) == ShapeSettings(lowercase=True)
    assert _shape({"explode.mode": "list"}) == ShapeSettings(explode=True)
    chunks = {"flattener.jsonblob.chunks": "4", "data.fallback.varchar.length": "65000"}
    assert _shape({**chunks, "explode.mode": "List"}) == ShapeSettings(chunks=4, chunk_bytes=65_000, explode=True)
    assert _shape({"data.fallback.varchar.length": "65000"}) == ShapeSettings()


def test_chunks_need_a_length_and_the_flattener() -> None:
    """Each error names the key that would have to change."""
    chunks = {"flattener.jsonblob.chunks": "4"}
    (problem,) = _load(chunks).problems
    needed = f"{E}flattener.jsonblob.chunks needs it"
    assert_says(problem, f"[{E}data.fallback.varchar.length]", "missing", needed, "1 to 65000")
    both = {**chunks, "data.fallback.varchar.length": "10", "flattener.enable": "false"}
    (problem,) = _load(both).problems
    assert_says(problem, f"[{E}flattener.enable]", "false", needed, "set true")


METHODS = [
    ({}, ObfuscationSettings(("name",))),
    ({"obfuscation.method": "FIX"}, ObfuscationSettings(("name",))),
    ({"obfuscation.method": "Sha1"}, ObfuscationSettings(("name",), "sha1")),
    ({"obfuscation.method": "sha256"}, ObfuscationSettings(("name",), "sha256")),
    (
        {"obfuscation.method": "SHA512", "obfuscation.sha512.salt": " pepper "},
        ObfuscationSettings(("name",), "sha512", salt=Secret("pepper")),
    ),
    (
        {"obfuscation.method": "sha512", "obfuscation.sha512.randomsalt": "true"},
        ObfuscationSettings(("name",), "sha512", random_salt=True),
    ),
    (
        {"obfuscation.method": "HMAC-SHA256", "obfuscation.hmac.key": "${env:SECRET}"},
        ObfuscationSettings(("name",), "hmac-sha256", hmac_key=Secret(CANARY)),
    ),
    ({"obfuscation.fields": " a.b , c_d,a.b,"}, ObfuscationSettings(("a.b", "c_d"))),
    (
        {"obfuscation.fields": "players.value.name,tags.value"},
        ObfuscationSettings(("players.value.name", "tags.value")),
    ),
    ({"obfuscation.fields": "a.b,a.bc,ab"}, ObfuscationSettings(("a.b", "a.bc", "ab"))),
]


@pytest.mark.parametrize(("settings", "wanted"), METHODS)
def test_obfuscation_arrives(settings: dict[str, str], wanted: ObfuscationSettings) -> None:
    """Methods in any case, salts and keys as secrets, paths without repetitions."""
    assert _obfuscation(settings) == wanted
    assert CANARY not in repr(_load({"obfuscation.fields": "name", **settings}))


def test_without_fields_nothing_is_obfuscated() -> None:
    """A method alone is warned about."""
    loaded = _load({"obfuscation.method": "sha256"})
    assert loaded.require().shape.obfuscation is None
    (warning,) = loaded.warnings
    assert_says(warning, f"[{E}obfuscation.method]", "no effect", f"unless {E}obfuscation.fields")


def test_a_fixed_salt_wins_over_random_ones() -> None:
    """As in the EMS connector, and said."""
    both = {"obfuscation.sha512.salt": "s", "obfuscation.sha512.randomsalt": "true"}
    loaded = _load({"obfuscation.fields": "a", "obfuscation.method": "sha512", **both})
    assert loaded.require().shape.obfuscation == ObfuscationSettings(("a",), "sha512", salt=Secret("s"))
    (warning,) = loaded.warnings
    assert_says(warning, f"[{E}obfuscation.sha512.randomsalt]", "no effect", f"{E}obfuscation.sha512.salt is set")


def test_salts_and_keys_of_other_methods_are_warned_about() -> None:
    """They are not kept either."""
    others = {"obfuscation.sha512.salt": "s", "obfuscation.hmac.key": CANARY}
    loaded = _load({"obfuscation.fields": "a", "obfuscation.method": "sha256", **others})
    assert loaded.require().shape.obfuscation == ObfuscationSettings(("a",), "sha256")
    salt, key = loaded.warnings
    assert_says(salt, f"[{E}obfuscation.sha512.salt]", "no effect", f"unless {E}obfuscation.method is sha512")
    assert_says(key, f"[{E}obfuscation.hmac.key]", "no effect", f"unless {E}obfuscation.method is hmac-sha256")


NO_SALT = ("missing", f"{E}obfuscation.method=sha512 needs it", "give a salt", f"{E}obfuscation.sha512.randomsalt=true")
LOWER = ("matches nothing", f"{E}convert.lowercase.fields")
CHUNKS = {"flattener.jsonblob.chunks": "2", "data.fallback.varchar.length": "9"}
PROBLEMS = [
    ({"obfuscation.fields": " "}, "fields", ("empty", "name the fields", "remove the key")),
    ({"obfuscation.fields": ",,"}, "fields", ("names no field", "name the fields", "remove the key")),
    ({"obfuscation.fields": "a,.b"}, "fields", ('".b"', "without a name", "single full stops")),
    (
        {"obfuscation.fields": "a,payload_chunk2", **CHUNKS},
        "fields",
        ('"payload_chunk2"', "the sink adds", "fields of the record"),
    ),
    (
        {"obfuscation.fields": "kafkaPartitionOffset"},
        "fields",
        ('"kafkaPartitionOffset"', "the sink adds", "fields of the record"),
    ),
    ({"obfuscation.fields": "a.b.c,a.b"}, "fields", ('"a.b"', '"a.b.c"', "overlap", "keep one")),
    (
        {"obfuscation.method": "md5"},
        "method",
        ('"md5"', "not one of", "fix, sha1, sha512, sha256, hmac-sha256"),
    ),
    ({"obfuscation.method": "sha512"}, "sha512.salt", NO_SALT),
    ({"obfuscation.method": "sha512", "obfuscation.sha512.randomsalt": "false"}, "sha512.salt", NO_SALT),
    (
        {"obfuscation.method": "hmac-sha256"},
        "hmac.key",
        ("missing", f"{E}obfuscation.method=hmac-sha256 needs it", "16 bytes or more"),
    ),
    (
        {"obfuscation.method": "hmac-sha256", "obfuscation.hmac.key": "0123456789abcde"},
        "hmac.key",
        ("15 bytes", "too short", "16 bytes or more"),
    ),
    (
        {"convert.lowercase.fields": "true", "obfuscation.fields": "Customer.Name"},
        "fields",
        ('"Customer.Name"', *LOWER, 'write "customer.name"'),
    ),
]


@pytest.mark.parametrize(("settings", "name", "told"), PROBLEMS)
def test_a_wrong_obfuscation_is_told_with_cause_and_cure(
    settings: dict[str, str], name: str, told: tuple[str, ...]
) -> None:
    """Nothing that would leave a field in clear is let through."""
    (problem,) = _load({"obfuscation.fields": "name", **settings}).problems
    assert_says(problem, f"[{E}obfuscation.{name}]", *told)


def test_a_key_of_sixteen_bytes_is_long_enough_in_any_script() -> None:
    """Bytes are counted, not characters."""
    assert _obfuscation({"obfuscation.method": "hmac-sha256", "obfuscation.hmac.key": "éééééééé"}) is not None


def test_names_that_lower_case_makes_unreachable_are_refused() -> None:
    """Primary keys and the order column, too; the sink's own columns keep their names."""
    for key in ("data.primary.key", "order.field.name"):
        settings = {"data.primary.key": "id", key: "orderId", "convert.lowercase.fields": "true"}
        (problem,) = _load(settings).problems
        assert_says(problem, f"[{E}{key}]", '"orderId"', *LOWER, 'write "orderid"')
    own = {"data.primary.key": "kafkaPartitionOffset,id", "convert.lowercase.fields": "true"}
    assert _load(own).problems == ()


@pytest.mark.parametrize("column", ["kafkaPartition", "kafkaPartitionOffset"])
def test_an_order_column_that_orders_nothing_is_warned_about(column: str) -> None:
    """Those of Kafka's columns that do not tell which row is newer; a record's own column of such a name may."""
    keys = {f"{E}data.primary.key": "id", f"{E}order.field.name": column}
    loaded = load_file(keys)
    assert loaded.problems == ()
    (warning,) = loaded.warnings
    assert_says(warning, f"[{E}order.field.name]", f'"{column}"', "not say", "newer", "take kafkaOffset")
    assert load_file({**keys, f"{E}embed.kafka.metadata": "false"}).warnings == ()
