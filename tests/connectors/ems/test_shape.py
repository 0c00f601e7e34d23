"""From record to row: chunks, explode, lower case, decimals and obfuscation as a connector file sets them."""

import pytest

from parquet_sink.config.machine import Machine
from parquet_sink.config.secret import Secret
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.rows.settings import ObfuscationSettings, ShapeSettings
from parquet_sink.worker_config.worker import Worker
from tests.connectors.ems.connector_files import load_file

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
    assert problem == (
        f"Invalid [{E}data.fallback.varchar.length]. It is missing, but {E}flattener.jsonblob.chunks needs it; give 1 "
        "to 65000."
    )
    both = {**chunks, "data.fallback.varchar.length": "10", "flattener.enable": "false"}
    assert _load(both).problems == (
        f"Invalid [{E}flattener.enable]. It is false, but {E}flattener.jsonblob.chunks needs it; set true.",
    )


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
    assert loaded.warnings == (
        f"Warning [{E}obfuscation.method]. It has no effect unless {E}obfuscation.fields is set.",
    )


def test_a_fixed_salt_wins_over_random_ones() -> None:
    """As in the EMS connector, and said."""
    both = {"obfuscation.sha512.salt": "s", "obfuscation.sha512.randomsalt": "true"}
    loaded = _load({"obfuscation.fields": "a", "obfuscation.method": "sha512", **both})
    assert loaded.require().shape.obfuscation == ObfuscationSettings(("a",), "sha512", salt=Secret("s"))
    assert loaded.warnings == (
        f"Warning [{E}obfuscation.sha512.randomsalt]. It has no effect, because {E}obfuscation.sha512.salt is set.",
    )


def test_salts_and_keys_of_other_methods_are_warned_about() -> None:
    """They are not kept either."""
    others = {"obfuscation.sha512.salt": "s", "obfuscation.hmac.key": CANARY}
    loaded = _load({"obfuscation.fields": "a", "obfuscation.method": "sha256", **others})
    assert loaded.require().shape.obfuscation == ObfuscationSettings(("a",), "sha256")
    assert loaded.warnings == (
        f"Warning [{E}obfuscation.sha512.salt]. It has no effect unless {E}obfuscation.method is sha512.",
        f"Warning [{E}obfuscation.hmac.key]. It has no effect unless {E}obfuscation.method is hmac-sha256.",
    )


NO_KEY = f"It is missing, but {E}obfuscation.method=hmac-sha256 needs it; give a secret of 16 bytes or more."
SHORT = "bytes, which is too short to be safe; give a secret of 16 bytes or more."
LOWER = f"matches nothing, because {E}convert.lowercase.fields turns names into lower case before; write"
CHUNKS = {"flattener.jsonblob.chunks": "2", "data.fallback.varchar.length": "9"}
PROBLEMS = [
    ({"obfuscation.fields": " "}, "fields", "It is empty; name the fields to obfuscate, or remove the key."),
    ({"obfuscation.fields": ",,"}, "fields", "It names no field; name the fields to obfuscate, or remove the key."),
    (
        {"obfuscation.fields": "a,.b"},
        "fields",
        '".b" has a step without a name; write names with single full stops between.',
    ),
    (
        {"obfuscation.fields": "a,payload_chunk2", **CHUNKS},
        "fields",
        '"payload_chunk2" is a column that the sink adds; name fields of the record.',
    ),
    (
        {"obfuscation.fields": "kafkaPartitionOffset"},
        "fields",
        '"kafkaPartitionOffset" is a column that the sink adds; name fields of the record.',
    ),
    ({"obfuscation.fields": "a.b.c,a.b"}, "fields", '"a.b" and "a.b.c" overlap; keep one of them.'),
    (
        {"obfuscation.method": "md5"},
        "method",
        '"md5" is not one of fix, sha1, sha512, sha256, hmac-sha256; write one of them.',
    ),
    (
        {"obfuscation.method": "sha512"},
        "sha512.salt",
        (
            f"It is missing, but {E}obfuscation.method=sha512 needs it; give a salt, or set "
            f"{E}obfuscation.sha512.randomsalt=true."
        ),
    ),
    (
        {"obfuscation.method": "sha512", "obfuscation.sha512.randomsalt": "false"},
        "sha512.salt",
        (
            f"It is missing, but {E}obfuscation.method=sha512 needs it; give a salt, or set "
            f"{E}obfuscation.sha512.randomsalt=true."
        ),
    ),
    ({"obfuscation.method": "hmac-sha256"}, "hmac.key", NO_KEY),
    (
        {"obfuscation.method": "hmac-sha256", "obfuscation.hmac.key": "0123456789abcde"},
        "hmac.key",
        f"It has 15 {SHORT}",
    ),
    (
        {"convert.lowercase.fields": "true", "obfuscation.fields": "Customer.Name"},
        "fields",
        f'"Customer.Name" {LOWER} "customer.name".',
    ),
]


@pytest.mark.parametrize(("settings", "name", "reason"), PROBLEMS)
def test_a_wrong_obfuscation_is_told_with_cause_and_cure(settings: dict[str, str], name: str, reason: str) -> None:
    """Nothing that would leave a field in clear is let through."""
    loaded = _load({"obfuscation.fields": "name", **settings})
    assert loaded.problems == (f"Invalid [{E}obfuscation.{name}]. {reason}",)


def test_a_key_of_sixteen_bytes_is_long_enough_in_any_script() -> None:
    """Bytes are counted, not characters."""
    assert _obfuscation({"obfuscation.method": "hmac-sha256", "obfuscation.hmac.key": "éééééééé"}) is not None


def test_names_that_lower_case_makes_unreachable_are_refused() -> None:
    """Primary keys and the order column, too; the sink's own columns keep their names."""
    for key in ("data.primary.key", "order.field.name"):
        settings = {"data.primary.key": "id", key: "orderId", "convert.lowercase.fields": "true"}
        assert _load(settings).problems == (f'Invalid [{E}{key}]. "orderId" {LOWER} "orderid".',)
    own = {"data.primary.key": "kafkaPartitionOffset,id", "convert.lowercase.fields": "true"}
    assert _load(own).problems == ()


@pytest.mark.parametrize("column", ["kafkaPartition", "kafkaPartitionOffset"])
def test_an_order_column_that_orders_nothing_is_warned_about(column: str) -> None:
    """Those of Kafka's columns that do not tell which row is newer; a record's own column of such a name may."""
    keys = {f"{E}data.primary.key": "id", f"{E}order.field.name": column}
    loaded = load_file(keys)
    assert loaded.problems == ()
    (warning,) = loaded.warnings
    assert warning.startswith(f'Warning [{E}order.field.name]. "{column}" does not say which row is newer: ')
    assert load_file({**keys, f"{E}embed.kafka.metadata": "false"}).warnings == ()
