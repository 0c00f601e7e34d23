"""Connector files: what each mistake is answered."""

import re

import pytest

from parquet_sink.config.key import Type
from parquet_sink.connectors.ems.sink import EMS_KEYS
from parquet_sink.connectors.loading import check_unique, load
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.plugins import BUILT_IN, CONNECTORS
from tests.connectors.ems.connector_files import CANARY, GOOD, WORKER, E, load_file
from tests.messages import assert_says

PROBLEMS = [
    ("topics", None, ("topics.regex", "set", "name the topics")),
    ("topics", " , ", ("names no topic", "name the topics")),
    ("tasks.max", "0", ('"0"', "less than 1", "1 or more")),
    (
        "connector.class",
        "io.x.Unknown",
        (
            '"io.x.Unknown"',
            "not a known connector class",
            ", ".join(BUILT_IN[CONNECTORS]),
            "install the Python package",
        ),
    ),
    ("name", "a\tb", ('"a\\tb"', "control characters", "remove them")),
    ("name", ".", ('"."', "path of the REST API", "another name")),
    ("name", "..", ('".."', "path of the REST API", "another name")),
    (
        f"{E}endpoint",
        None,
        ("missing", "https://<team>.<realm>.celonis.cloud/continuous-batch-processing/api/v1/<pool-id>/items"),
    ),
    (f"{E}endpoint", "https://<<team>>.celonis.cloud/x", ("template text", "<<...>>", "your own team")),
    (f"{E}endpoint", "ftp://h/x", ('"ftp://h/x"', "not a valid URL", "https://<team>.<realm>.celonis.cloud/<path>")),
    (f"{E}endpoint", "https:///x", ('"https:///x"', "not a valid URL", "https://<team>.<realm>.celonis.cloud/<path>")),
    (f"{E}endpoint", "http://h/x", ('"http://h/x"', "in clear", "use https", f"{E}endpoint.allow.http=true")),
    (f"{E}endpoint", f"https://u:{CANARY}@h/x", ("user or password", "remove them", f"{E}authorization.key")),
    (f"{E}endpoint", "${env:URL}", ('"${env:URL}"', "in clear", "use https", f"{E}endpoint.allow.http=true")),
    (f"{E}authorization.key", CANARY, ('"AppKey"', '"Bearer"', "AppKey <key>", "Bearer <key>")),
    (f"{E}authorization.key", f"AppKey {CANARY}\nX: y", ("no HTTP header", "printable ASCII")),
    (f"{E}target.table", "  ", ("missing", "name of the table")),
    (f"{E}commit.size.bytes", "99999", ('"99999"', "less than 100000", "100000 or more")),
    (f"{E}commit.records", "0", ('"0"', "less than 1", "1 or more")),
    (f"{E}commit.records", "1e3", ('"1e3"', "not a whole number", "digits only", "1 or more")),
    (f"{E}commit.records", "2147483648", ('"2147483648"', "more than 2147483647", "1 or more")),
    (f"{E}commit.records", "${env:SECRET}", ('"${env:SECRET}"', "not a whole number", "digits only", "1 or more")),
    (f"{E}commit.interval.ms", "999", ('"999"', "less than 1000", "1000 or more")),
    (f"{E}tmp.dir", "/a/file", ('"/a/file"', "is a file", "name a folder")),
    (f"{E}tls.ca.file", "/no.pem", ("no file", '"/no.pem"', "existing PEM file")),
    (f"{E}data.primary.key", "a,1b", ('"1b"', "cannot be", "begin with a letter", "letters, digits and _")),
    (f"{E}data.fallback.varchar.length", "0", ('"0"', "less than 1", "1 to 65000")),
    (f"{E}data.fallback.varchar.length", "-2", ('"-2"', "less than 1", "1 to 65000")),
    (f"{E}data.fallback.varchar.length", "65001", ('"65001"', "more than 65000", "1 to 65000")),
    (f"{E}max.retries", "0", ('"0"', "less than 1", "1 or more")),
    (f"{E}retry.interval", "100", ('"100"', "less than 1000", "1000 or more")),
    (f"{E}allow.null.pk", "yes", ('"yes"', "neither true nor false", "one of them")),
    (f"{E}error.policy", "RETRYY", ('"RETRYY"', "not one of", "THROW, RETRY, CONTINUE", "Did you mean RETRY?")),
    (f"{E}parquet.compression.codec", "brotli", ('"brotli"', "not one of", "snappy, zstd, gzip, lz4, none")),
    (f"{E}proxy.auth.type", "NTLM", ('"NTLM"', "not BASIC", "remove the key")),
    (f"{E}proxy.port", "70000", ('"70000"', "more than 65535", "1 to 65535")),
    (f"{E}obfuscation.fields", "", ("empty", "name the fields", "remove the key")),
    (f"{E}obfuscation.fields", " , ", ("names no field", "name the fields", "remove the key")),
    (f"{E}obfuscation.fields", "a,b..c", ('"b..c"', "without a name", "single full stops")),
    (f"{E}obfuscation.fields", "a.b,ab,a", ('"a"', '"a.b"', "overlap", "keep one")),
    (f"{E}flattener.jsonblob.chunks", "0", ('"0"', "less than 1", "1 to 2000")),
    ("errors.tolerance", "some", ('"some"', "not one of", "none, all")),
    (
        "errors.deadletterqueue.topic.name",
        "orders",
        ('"orders"', "connector's own topics", "topics names it", "name another"),
    ),
    ("errors.deadletterqueue.topic.name", "my dlq", ('"my dlq"', "not a topic name", "1 to 249", "hyphens")),
    ("errors.deadletterqueue.topic.replication.factor", "0", ("0 replicas", "1 or more", "-1 for")),
    ("errors.log.enable", "on", ('"on"', "neither true nor false", "one of them")),
    ("producer.override.bootstrap.servers", "host", ('"host"', "not a broker address", "host:port")),
    (
        "value.converter",
        None,
        (
            *("neither here", "the worker file", "org.apache.kafka.connect.json.JsonConverter"),
            "value.converter.schemas.enable=false",
        ),
    ),
    ("consumer.override.enable.auto.commit", "true", ("true", "lose records", "set false", "remove the key")),
    ("consumer.override.value.deserializer", "x.S", ("as bytes", "value.converter", "remove it")),
]


@pytest.mark.parametrize(("key", "value", "told"), PROBLEMS)
def test_a_wrong_value_is_told_with_cause_and_cure(key: str, value: str | None, told: tuple[str, ...]) -> None:
    """One message for each mistake, naming the key and never a secret."""
    loaded = load_file({key: value})
    (problem,) = loaded.problems
    assert_says(problem, f"Invalid [{key}]", *told)
    assert loaded.settings is None
    with pytest.raises(InvalidConfiguration) as caught:
        loaded.require()
    assert str(caught.value) == f"{problem} (in f.properties)"
    assert CANARY not in repr(loaded) + repr(caught.value)


def test_topics_are_named_in_one_way() -> None:
    """Names beside a pattern are one problem."""
    (problem,) = load_file({"topics.regex": "o.*"}).problems
    assert_says(problem, "Invalid [topics]", "topics.regex", "keep one")


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
    (problem,) = loaded.problems
    assert_says(problem, f"[{E}flattener.enable]", "false", f"{E}flattener.collections.discard", "set true")


def test_a_failed_placeholder_is_told_once() -> None:
    """A required key whose placeholder cannot be filled is not called missing too."""
    for key in ("topics", "value.converter", f"{E}endpoint", f"{E}authorization.key"):
        (problem,) = load_file({key: "${env:NONE}"}).problems
        assert_says(problem, f"[{key}]", "${env:NONE}", "environment variable NONE", "not set", "before the start")


def test_one_name_for_two_connectors_is_refused_naming_both_files() -> None:
    """Two of one name would share a group and a folder; two of one group would share offsets."""
    first, second = load_file(), load(dict(GOOD), WORKER, source="g.json")
    (name,) = check_unique([first, second])
    assert_says(name, "[name]", '"orders"', "f.properties", "g.json", "its own")
    third = load({**GOOD, "name": "x", "consumer.override.group.id": "connect-orders"}, WORKER, source="h.json")
    (group,) = check_unique([first, third])
    assert_says(group, "[consumer.override.group.id]", '"connect-orders"', "f.properties", "h.json", "its own")
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
