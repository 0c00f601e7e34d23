"""Objects of a bucket on moto's server, with trouble in between: once there, never over another one, never half."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from integration import scripted_target as script
from integration.certificates import make as make_certificates
from integration.certificates import server_context
from integration.s3.front import Fault, S3Front, error, taken_and_cut
from integration.s3.server import SECRET_KEY, S3Server
from integration.scripted_target import Behaviour, ConnectProxy
from parquet_sink.config.secret import Secret
from parquet_sink.errors import StorageFailed
from parquet_sink.net.settings import ProxySettings
from parquet_sink.targets.outcome import Outcome, Verdict
from parquet_sink.targets.s3.calls import S3Failed
from parquet_sink.targets.s3.client import connect
from parquet_sink.targets.s3.multipart import LocalFile
from parquet_sink.targets.s3.objects import Objects
from tests.messages import assert_says

SECONDS = 20.0
LARGE = 120_007
KEY = "orders/date=2026-01-31/file 1.parquet"
Make = Callable[[int], LocalFile]


@pytest.fixture
def bucket(s3: S3Server) -> str:
    """An empty one."""
    return s3.bucket()


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes files of random bytes."""

    def made(size: int) -> LocalFile:
        path = tmp_path / f"{size}-{os.urandom(4).hex()}"
        content = os.urandom(size)
        path.write_bytes(content)
        return LocalFile(str(path), size, sha256(content).hexdigest())

    return made


@contextmanager
def opened(s3: S3Server, bucket: str, *faults: Fault, **more: Any) -> Iterator[tuple[Objects, S3Front]]:
    """Objects of a bucket, reached by a front with these faults."""
    with ExitStack() as stack:
        front = stack.enter_context(S3Front(s3.port, *faults))
        settings = s3.settings(bucket, front.endpoint, multipart_bytes=60_000, part_bytes=50_000, **more)
        objects = Objects(settings, connect(settings, {}))
        stack.callback(objects.close)
        yield objects, front


def content(file: LocalFile) -> bytes:
    """What a file holds."""
    return Path(file.path).read_bytes()


@pytest.mark.parametrize("size", [1, LARGE])
def test_an_object_is_put_once(s3: S3Server, bucket: str, make: Make, size: int) -> None:
    """Whole, with metadata and digest; the same again is accepted, another of the name refused, and nothing is lost."""
    file, other = make(size), make(size)
    with opened(s3, bucket) as (objects, front):
        first, again, refused = (objects.put(KEY, one, {"first-offset": "7"}, SECONDS) for one in (file, file, other))
        found = objects.look(KEY, SECONDS)
        assert [(one.key, one.size_bytes) for one in objects.list("orders/", SECONDS)] == [(KEY, size)]
        assert front.asked("^PUT") == (1 if size == 1 else 3)
    assert (first.verdict, again.verdict, refused.verdict) == (Verdict.ACCEPTED, Verdict.ACCEPTED, Verdict.REFUSED)
    assert first.answer_id == again.answer_id
    assert_says(refused.cause, f"s3://{bucket}/{KEY} is there", "another content", f"{other.path}")
    assert found is not None
    assert (found.size_bytes, found.sha256) == (size, file.sha256)
    assert found.metadata == {"first-offset": "7", "sha256": file.sha256}
    assert s3.content(bucket, KEY) == content(file)
    assert s3.unfinished(bucket) == []


@pytest.mark.parametrize("size", [5, LARGE])
def test_what_others_put_there_is_judged_by_its_bytes(
    s3: S3Server, bucket: str, make: Make, tmp_path: Path, size: int
) -> None:
    """The same content without a digest is accepted; and what is fetched is what is there."""
    file, other = make(size), make(size)
    s3.client.put_object(Bucket=bucket, Key=KEY, Body=content(file))
    with opened(s3, bucket) as (objects, _):
        verdicts = [objects.put(KEY, one, {}, SECONDS).verdict for one in (file, other)]
        objects.download(KEY, str(tmp_path / "fetched"), SECONDS)
        with pytest.raises(S3Failed, match="there is no object absent"):
            objects.download("absent", str(tmp_path / "absent"), SECONDS)
    assert verdicts == [Verdict.ACCEPTED, Verdict.REFUSED]
    assert (tmp_path / "fetched").read_bytes() == content(file)
    assert not (tmp_path / "absent").exists()


ATTEMPTS: dict[str, tuple[str, Behaviour, Verdict, str]] = {
    "slow down": ("^PUT", error(503, "SlowDown"), Verdict.RETRIABLE, "503 SlowDown"),
    "internal": ("^PUT", error(500, "InternalError"), Verdict.UNKNOWN, "500 InternalError"),
    "no text": ("^PUT", script.answer(502, b"", "Connection: close"), Verdict.UNKNOWN, "502"),
    "cut body": ("^PUT", script.cut(100), Verdict.UNKNOWN, "the connection broke"),
    "cut answer": ("^PUT", taken_and_cut, Verdict.UNKNOWN, "the connection broke"),
    "silence": ("^PUT", script.hang, Verdict.UNKNOWN, "in time"),
    "drip": ("^PUT", script.drip(b"HTTP/1.1 200 OK\r\n\r\n"), Verdict.UNKNOWN, "in time"),
    "digest": ("^PUT", error(400, "BadDigest"), Verdict.RETRIABLE, "BadDigest"),
    "conflict": ("^PUT", error(409, "ConditionalRequestConflict"), Verdict.RETRIABLE, "409"),
}


@pytest.mark.parametrize("name", ATTEMPTS)
def test_what_may_pass_passes(s3: S3Server, bucket: str, make: Make, name: str) -> None:
    """The first attempt says what happened, the next has the object there, once."""
    pattern, behave, verdict, words = ATTEMPTS[name]
    file = make(40_000)
    with opened(s3, bucket, Fault(pattern, behave), response_timeout_ms=300) as (objects, front):
        first = objects.put(KEY, file, {}, SECONDS)
        settled = objects.put(KEY, file, {}, SECONDS)
        assert front.asked("^PUT") <= 2
    assert (first.verdict, settled.verdict) == (verdict, Verdict.ACCEPTED)
    assert words in first.cause
    assert SECRET_KEY not in repr(first)
    assert s3.content(bucket, KEY) == content(file)


REFUSALS = {
    "wrong key": (error(403, "InvalidAccessKeyId"), "connect.ems.s3.access.key.id"),
    "wrong secret": (error(403, "SignatureDoesNotMatch", f"not {SECRET_KEY}"), "connect.ems.s3.secret.access.key"),
    "no right": (error(403, "AccessDenied"), "s3:PutObject"),
    "expired": (error(400, "ExpiredToken"), "connect.ems.s3.session.token"),
    "clock": (error(403, "RequestTimeTooSkewed"), "clock"),
    "region": (error(400, "AuthorizationHeaderMalformed"), "connect.ems.s3.region"),
    "elsewhere": (script.answer(301, b"", "Location: http://evil.example/", "Connection: close"), "s3.region"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_would_be_the_same_again_is_refused(s3: S3Server, bucket: str, make: Make, name: str) -> None:
    """With the key to correct, and without the secret; a redirect leads to no other server."""
    behave, cure = REFUSALS[name]
    with opened(s3, bucket, Fault("^PUT", behave, 9)) as (objects, front):
        outcome = objects.put(KEY, make(9), {}, SECONDS)
        assert front.asked("^PUT") == (2 if name == "elsewhere" else 1)
    assert outcome.verdict is Verdict.REFUSED
    assert cure in outcome.cure
    assert SECRET_KEY not in repr(outcome)
    assert s3.keys(bucket) == []


def test_a_bucket_that_is_not_there(s3: S3Server, make: Make) -> None:
    """Refused, small or large; nobody makes it."""
    with opened(s3, "no-such-bucket") as (objects, _):
        found = [objects.put(KEY, make(size), {}, SECONDS) for size in (9, LARGE)]
    assert [outcome.verdict for outcome in found] == [Verdict.REFUSED] * 2
    assert all("NoSuchBucket" in outcome.cause and "connect.ems.s3.bucket" in outcome.cure for outcome in found)


def test_a_server_without_conditions_is_asked_first(s3: S3Server, bucket: str, make: Make) -> None:
    """501 to `If-None-Match`: it is sent without, after a look; and another content is refused all the same."""
    file = make(9)
    with opened(s3, bucket, Fault("^PUT", error(501, "NotImplemented"))) as (objects, front):
        front.checksums = True
        outcomes = [objects.put(KEY, one, {}, SECONDS) for one in (file, make(9))]
        assert [r.line.split()[0] for r in front.requests] == ["HEAD", "PUT", "HEAD", "PUT", "HEAD"]
        sent = [r.headers.get("if-none-match") for r in front.requests if r.line.startswith("PUT")]
    assert [outcome.verdict for outcome in outcomes] == [Verdict.ACCEPTED, Verdict.REFUSED]
    assert sent == ["*", None]
    assert s3.content(bucket, KEY) == content(file)


def test_tls_and_proxies_are_those_of_the_push_api(s3: S3Server, bucket: str, make: Make, tmp_path: Path) -> None:
    """Only a certificate of the named authority is taken; at a proxy the sink signs in, and asks for a tunnel."""
    certificates, file = make_certificates(tmp_path), make(1_000)
    trusted = {"ca_file": str(certificates / "ca.pem"), "connect_timeout_ms": 5_000}
    with S3Front(s3.port, tls=server_context(certificates, "good")) as front, ConnectProxy() as proxy:
        through = ProxySettings("127.0.0.1", proxy.port, username="u", password=Secret("canary-of-the-proxy"))
        ways: tuple[dict[str, Any], ...] = ({}, trusted, {**trusted, "proxy": through})
        outcomes = []
        for number, way in enumerate(ways):
            settings = s3.settings(bucket, front.endpoint, **way)
            objects = Objects(settings, connect(settings, {}))
            outcomes.append(objects.put(f"{number}", file, {}, SECONDS))
            objects.close()
        heads = [head.line for head in proxy.heads]
        assert "proxy-authorization" in proxy.heads[0].headers
    assert [one.verdict for one in outcomes] == [Verdict.REFUSED, Verdict.ACCEPTED, Verdict.ACCEPTED]
    assert "connect.ems.tls.ca.file" in outcomes[0].cure
    assert all(line.startswith("CONNECT 127.0.0.1:") for line in heads)
    assert s3.keys(bucket) == ["1", "2"]


PARTS: dict[str, tuple[Fault, ...]] = {
    "slow down": (Fault("partNumber=2", error(503, "SlowDown"), 2),),
    "cut": (Fault("partNumber=1", script.cut(100)),),
    "answer lost": (Fault("partNumber=3", taken_and_cut),),
    "silence": (Fault("partNumber=2", script.hang),),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_are_tried_again_by_themselves(s3: S3Server, bucket: str, make: Make, name: str) -> None:
    """One attempt at the file is enough, and only the part that failed is sent again."""
    file = make(LARGE)
    with opened(s3, bucket, *PARTS[name], response_timeout_ms=1_000) as (objects, front):
        outcome = objects.put(KEY, file, {}, SECONDS)
        assert (front.asked("POST.*uploads"), front.asked("^PUT")) == (1, 5 if name == "slow down" else 4)
    assert outcome.verdict is Verdict.ACCEPTED
    assert s3.content(bucket, KEY) == content(file)
    assert s3.unfinished(bucket) == []


UNFINISHED: dict[str, tuple[Fault, Verdict, str]] = {
    "a part lost": (
        Fault("partNumber=2", script.answer(200, b"", 'ETag: "0123"', "Connection: close")),
        Verdict.RETRIABLE,
        "InvalidPart",
    ),
    "parts refused": (Fault("partNumber=2", error(403, "AccessDenied"), 9), Verdict.REFUSED, "AccessDenied"),
    "parts never taken": (Fault("partNumber=2", error(503, "SlowDown"), 4), Verdict.RETRIABLE, "SlowDown"),
    "the end cut": (Fault("POST.*uploadId", script.cut(None)), Verdict.UNKNOWN, "broke"),
    "an error with 200": (Fault("POST.*uploadId", error(200, "InternalError")), Verdict.UNKNOWN, "InternalError"),
}


@pytest.mark.parametrize("name", UNFINISHED)
def test_an_upload_that_does_not_end_leaves_nothing(s3: S3Server, bucket: str, make: Make, name: str) -> None:
    """Neither an object nor parts that cost money; the next attempt begins anew."""
    fault, verdict, words = UNFINISHED[name]
    file = make(LARGE)
    with opened(s3, bucket, fault) as (objects, _):
        first = objects.put(KEY, file, {}, SECONDS)
        assert (first.verdict, s3.keys(bucket), s3.unfinished(bucket)) == (verdict, [], [])
        assert words in first.cause
        fault.times = 0
        assert objects.put(KEY, file, {}, SECONDS).verdict is Verdict.ACCEPTED
    assert s3.content(bucket, KEY) == content(file)


def test_an_end_that_was_not_heard_is_recognised(s3: S3Server, bucket: str, make: Make) -> None:
    """The object is there: the next attempt sends no part again."""
    file = make(LARGE)
    with opened(s3, bucket, Fault("POST.*uploadId", taken_and_cut)) as (objects, front):
        outcomes: list[Outcome] = [objects.put(KEY, file, {}, SECONDS) for _ in range(2)]
        assert front.asked("^PUT") == 3
    assert [one.verdict for one in outcomes] == [Verdict.UNKNOWN, Verdict.ACCEPTED]
    assert s3.unfinished(bucket) == []


def test_what_a_crash_left_is_aborted(s3: S3Server, bucket: str, make: Make) -> None:
    """Of the same object when it is sent again; of others of ours by a sweep, of strangers never."""
    for key in (KEY, "orders/given-up.parquet", "orders/alien.bin", "elsewhere/given-up.parquet"):
        s3.client.create_multipart_upload(Bucket=bucket, Key=key)
    with opened(s3, bucket) as (objects, front):
        assert objects.put(KEY, make(LARGE), {}, SECONDS).verdict is Verdict.ACCEPTED
        assert KEY not in s3.unfinished(bucket)
        for _ in range(2):
            objects.sweep("orders/", lambda key: key.endswith(".parquet"), SECONDS)
        assert front.asked("GET.*uploads") == 2
    assert sorted(s3.unfinished(bucket)) == ["elsewhere/given-up.parquet", "orders/alien.bin"]


def test_a_file_that_became_shorter_is_not_sent(s3: S3Server, bucket: str, make: Make) -> None:
    """It is storage trouble, and what had begun is taken back."""
    for size in (1_000, LARGE):
        file = make(size)
        os.truncate(file.path, size - 1)
        with opened(s3, bucket) as (objects, _), pytest.raises(StorageFailed, match="1 bytes shorter"):
            objects.put(KEY, file, {}, SECONDS)
    assert (s3.keys(bucket), s3.unfinished(bucket)) == ([], [])


def test_time_that_is_over_ends_an_attempt(s3: S3Server, bucket: str, make: Make) -> None:
    """However many requests it takes, and before the first one."""
    with opened(s3, bucket, Fault("partNumber=2", error(503, "SlowDown"), 99)) as (objects, front):
        assert objects.put(KEY, make(9), {}, 0.0).verdict is Verdict.RETRIABLE
        assert front.requests == []
        assert objects.put(KEY, make(LARGE), {}, 1.5).verdict is Verdict.RETRIABLE
    assert s3.keys(bucket) == []
