"""A connector file whose target is a bucket of S3."""

from collections.abc import Mapping

import pytest

from parquet_sink.config.secret import Secret
from parquet_sink.connectors.loading import Loaded
from parquet_sink.net.settings import ProxySettings
from parquet_sink.targets.s3.settings import BucketSettings, S3Settings, StaticCredentials
from tests.connectors.ems.connector_files import CANARY, E, load_file
from tests.messages import assert_says

PUSH_ONLY = (f"{E}endpoint", f"{E}authorization.key", f"{E}target.table")


def loaded(changes: Mapping[str, str | None] | None = None, connector_class: str = "S3Sink") -> Loaded:
    """A file of one of the two classes, with these keys behind `connect.ems.` changed."""
    own = {f"{E}{name}": text for name, text in {"s3.bucket": "lake", **(changes or {})}.items()}
    kind = {"connector.class": connector_class} | ({} if connector_class == "S3Sink" else {f"{E}target.type": "s3"})
    return load_file({**dict.fromkeys(PUSH_ONLY), **kind, **own})


@pytest.mark.parametrize("connector_class", ["S3Sink", "EmsSink"])
def test_a_bucket_is_enough_for_aws(connector_class: str) -> None:
    """No endpoint, credential or table of a push API is asked for; files are not compressed."""
    found = loaded(connector_class=connector_class)
    assert (found.problems, found.warnings) == ((), ())
    settings = found.require()
    assert settings.target == S3Settings(BucketSettings("lake", path_style=False), "{topic}")
    assert settings.files.codec == "none"
    assert settings.summary() == "orders -> s3://lake/*"


def test_every_key_is_heeded() -> None:
    """Of the bucket, and those of HTTP, TLS and proxies that the push API has."""
    found = loaded(
        {
            "s3.endpoint": "https://minio:9000",
            "s3.region": "eu-1",
            "s3.prefix": "a/{table}/{topic}",
            "s3.access.key.id": "id",
            "s3.secret.access.key": CANARY,
            "s3.session.token": "token",
            "s3.path.style": "false",
            "s3.multipart.threshold.bytes": "6000000",
            "s3.multipart.part.bytes": "5300000",
            "target.table": "T",
            "parquet.compression.codec": "snappy",
            "http.connect.timeout.ms": "1",
            "http.response.timeout.ms": "2",
            "tls.ca.file": "ca.pem",
            "proxy.host": "p",
            "proxy.port": "3",
            "pool.max.idle": "4",
            "pool.keepalive": "5",
            "pool.explicit.close": "true",
        }
    )
    assert (found.problems, found.warnings) == ((), ())
    bucket = BucketSettings(
        bucket="lake",
        endpoint="https://minio:9000",
        region="eu-1",
        path_style=False,
        credentials=StaticCredentials("id", Secret(CANARY), Secret("token")),
        multipart_bytes=6_000_000,
        part_bytes=5_300_000,
        connect_timeout_ms=1,
        response_timeout_ms=2,
        ca_file="/home/u/ca.pem",
        proxy=ProxySettings("p", 3),
        pool_max_idle=4,
        pool_keepalive_ms=5,
        pool_explicit_close=True,
    )
    assert found.require().target == S3Settings(bucket, "a/{table}/{topic}", "T")
    assert found.require().files.codec == "snappy"
    assert CANARY not in repr(found)


def test_a_server_of_the_protocol_has_the_bucket_in_the_path() -> None:
    """Names of buckets as hosts need a DNS for it; so does an own address without further word."""
    target = loaded({"s3.endpoint": "https://minio:9000"}).require().target
    assert isinstance(target, S3Settings)
    assert target.bucket.path_style


PROBLEMS = {
    "no bucket": ({"s3.bucket": None}, "s3.bucket", ("missing", "name of the bucket")),
    "an address": ({"s3.bucket": "s3://lake"}, "s3.bucket", ('"s3://lake"', "an address", "name alone")),
    "no name": ({"s3.bucket": "a/b"}, "s3.bucket", ('"a/b"', "not a name", "3 or more")),
    "in clear": ({"s3.endpoint": "http://minio:9000"}, "s3.endpoint", ("in clear", "use https")),
    "a path": ({"s3.endpoint": "https://minio/lake"}, "s3.endpoint", ("has a path", "https://host:port")),
    "a user": ({"s3.endpoint": f"https://u:{CANARY}@minio"}, "s3.endpoint", ("user or password", "remove")),
    "no URL": ({"s3.endpoint": "minio:9000"}, "s3.endpoint", ('"minio:9000"', "not a valid URL", "https://host")),
    "region": ({"s3.region": "eu central"}, "s3.region", ('"eu central"', "not a region", "eu-central-1")),
    "field": ({"s3.prefix": "{month}"}, "s3.prefix", ("{month}", "not a field", "use {topic}")),
    "no table": ({"s3.prefix": "{table}"}, "target.table", ("missing", "has {table}")),
    "half a key": ({"s3.access.key.id": "id"}, "s3.secret.access.key", ("missing beside", "both, or neither")),
    "half a secret": ({"s3.secret.access.key": CANARY}, "s3.access.key.id", ("missing beside", "both, or neither")),
    "blanks": (
        {"s3.access.key.id": "id", "s3.secret.access.key": f"{CANARY} x"},
        "s3.secret.access.key",
        ("no credential", "without blanks"),
    ),
    "part": (
        {"s3.multipart.part.bytes": "100"},
        "s3.multipart.part.bytes",
        ('"100"', "less than 5242880", "5242880 to"),
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_mistake_is_told_with_its_key(name: str) -> None:
    """One problem, by either class, without what is secret."""
    changes, key, words = PROBLEMS[name]
    for connector_class in ("S3Sink", "EmsSink"):
        [problem] = loaded(changes, connector_class).problems
        assert_says(problem, f"Invalid [{E}{key}]", *words)
        assert CANARY not in problem


def test_two_ways_to_sign_are_one_too_many() -> None:
    """A profile beside an access key."""
    given = {"s3.profile": "p", "s3.access.key.id": "id", "s3.secret.access.key": CANARY}
    [problem] = loaded(given).problems
    assert_says(problem, f"[{E}s3.profile]", "Both", f"{E}s3.access.key.id are set", "keep the profile")
    assert CANARY not in problem


def test_what_has_no_effect_is_told() -> None:
    """Keys of a push API beside a bucket, tables that no prefix has, and keys of a bucket beside a push API."""
    found = loaded({"authorization.key": "AppKey k", "target.table": "T", "connection.id": "c"}, "EmsSink")
    assert [text.split("]")[0].split(E)[1] for text in found.warnings] == [
        *("target.table", "authorization.key", "connection.id"),
    ]
    beside = load_file({f"{E}s3.bucket": "lake"})
    assert beside.problems == ()
    (warning,) = beside.warnings
    assert_says(warning, f"[{E}s3.bucket]", "no effect", f"set {E}target.type=s3")


def test_an_unknown_type_of_target_is_one_problem() -> None:
    """What else would be missing depends on the type, and is not guessed."""
    [problem] = load_file({**dict.fromkeys(PUSH_ONLY), f"{E}target.type": "s4"}).problems
    assert_says(problem, f"[{E}target.type]", '"s4"', "not one of", "push, s3")
