"""Connector files: what each mistake is answered."""

import re

import pytest

from parquet_sink.config.key import Type
from parquet_sink.connectors.ems.sink import EMS_KEYS
from parquet_sink.connectors.loading import check_unique, load
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.plugins import BUILT_IN, CONNECTORS
from tests.connectors.ems.connector_files import CANARY, GOOD, WORKER, E, load_file

WHOLE = "is not a whole number; write digits only"


PROBLEMS = [
    ("topics", None, "Neither topics nor topics.regex is set; name the topics to read."),
    ("topics", " , ", "It names no topic; name the topics to read."),
    ("topics.regex", "o.*", None),
    ("tasks.max", "0", '"0" is less than 1; give 1 or more.'),
    (
        "connector.class",
        "io.x.Unknown",
        (
            f'"io.x.Unknown" is not a known connector class; known are {", ".join(BUILT_IN[CONNECTORS])}. Write one '
            "of them, or install the Python package that has it."
        ),
    ),
    ("name", "a\tb", '"a\\tb" holds control characters; remove them.'),
    ("name", ".", '"." cannot stand in a path of the REST API; choose another name.'),
    ("name", "..", '".." cannot stand in a path of the REST API; choose another name.'),
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
        '"ftp://h/x" is not a valid URL; write it as https://<team>.<realm>.celonis.cloud/<path>.',
    ),
    (
        f"{E}endpoint",
        "https:///x",
        '"https:///x" is not a valid URL; write it as https://<team>.<realm>.celonis.cloud/<path>.',
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
        '"RETRYY" is not one of THROW, RETRY, CONTINUE; write one of them. Did you mean RETRY?',
    ),
    (
        f"{E}parquet.compression.codec",
        "brotli",
        '"brotli" is not one of snappy, zstd, gzip, lz4, none; write one of them.',
    ),
    (f"{E}proxy.auth.type", "NTLM", '"NTLM" is not BASIC; write it, or remove the key.'),
    (f"{E}proxy.port", "70000", '"70000" is more than 65535; give 1 to 65535.'),
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
    ("errors.tolerance", "some", '"some" is not one of none, all; write one of them.'),
    (
        "errors.deadletterqueue.topic.name",
        "orders",
        (
            '"orders" is one of the connector\'s own topics (topics names it), so it would read its dead letters; '
            "name another."
        ),
    ),
    (
        "errors.deadletterqueue.topic.name",
        "my dlq",
        ('"my dlq" is not a topic name; a topic has 1 to 249 letters, digits, dots, underscores and hyphens.'),
    ),
    (
        "errors.deadletterqueue.topic.replication.factor",
        "0",
        "0 replicas are no topic; give 1 or more, or -1 for the brokers' default.",
    ),
    ("errors.log.enable", "on", '"on" is neither true nor false; write one of them.'),
    (
        "producer.override.bootstrap.servers",
        "host",
        '"host" is not a broker address; write host:port, several separated by commas.',
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
    loaded = load_file({key: value})
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
    loaded = load_file({f"{E}flattener.enable": "false", f"{E}flattener.collections.discard": "true"})
    assert loaded.problems == (
        f"Invalid [{E}flattener.enable]. It is false, but {E}flattener.collections.discard needs it; set true.",
    )


def test_a_failed_placeholder_is_told_once() -> None:
    """A required key whose placeholder cannot be filled is not called missing too."""
    for key in ("topics", "value.converter", f"{E}endpoint", f"{E}authorization.key"):
        assert load_file({key: "${env:NONE}"}).problems == (
            f"Invalid [{key}]. ${{env:NONE}}: the environment variable NONE is not set; set it before the start.",
        )


def test_one_name_for_two_connectors_is_refused_naming_both_files() -> None:
    """Two of one name would share a group and a folder; two of one group would share offsets."""
    first, second = load_file(), load(dict(GOOD), WORKER, source="g.json")
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
    loaded = load_file(dict.fromkeys(secrets, CANARY))
    by_provider = load_file({key.name: "${env:SECRET}" for key in EMS_KEYS if not key.is_prefix})
    every = dict.fromkeys(secrets, CANARY)
    by_key = load_file({**every, f"{E}authorization.key": f"AppKey {CANARY}", f"{E}oauth2.client.secret": None})
    by_client = load_file({**every, f"{E}oauth2.client.id": "sink", f"{E}authorization.key": None})
    assert loaded.problems
    assert by_provider.problems
    assert by_key.settings is not None
    assert by_client.settings is not None
    for one in (loaded, by_provider, by_key, by_client):
        assert CANARY not in repr(one) + str(one)


def test_a_wrong_class_hides_no_other_problem() -> None:
    """Values that no class takes are told with it; what only a class asks for is not, since nobody knows which."""
    wrong = {"connector.class": "S3Snk", f"{E}commit.records": "-1", "tasks.max": "0", f"{E}endpoint": None}
    loaded = load_file({**wrong, "transforms": "a", "transforms.a.type": "Nothing"})
    assert loaded.settings is None
    named = [problem.partition("]")[0].removeprefix("Invalid [") for problem in loaded.problems]
    assert named[0] == "connector.class"
    assert sorted(named[1:]) == sorted([f"{E}commit.records", "tasks.max", "transforms.a.type"])
    assert [one for one in load_file({"connector.class": "S3Snk"}).problems if "connector.class" not in one] == []


def test_a_name_in_two_ways_is_told_once() -> None:
    """Of transforms that are known there are some with a short name that differs in case alone."""
    (problem,) = load_file({"transforms": "a", "transforms.a.type": "Nothing"}).problems
    known = problem.partition("known are ")[2].partition(". ")[0].split(", ")
    assert len({one.lower() for one in known}) == len(known) > 10
