"""Answers that S3 never gives: no operation takes one for a success, none ends in anything but an outcome."""

import os
import random
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from integration.s3.front import Fault, S3Front
from integration.s3.server import ACCESS_KEY, REGION, SECRET_KEY, S3Server
from integration.scripted_target import Behaviour, Connection, ScriptedTarget
from parquet_sink.archive.archive import Archive, open_archive
from parquet_sink.archive.archive import LocalFile as ToKeep
from parquet_sink.archive.archiver import Archiver
from parquet_sink.archive.settings import URL, ArchiveSettings
from parquet_sink.archive.waiting import WaitingFolder
from parquet_sink.config.secret import Secret
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.naming import file_name
from parquet_sink.files.rotation import Reason
from parquet_sink.model.receipts import Archiving
from parquet_sink.targets.outcome import Health, Outcome, Verdict
from parquet_sink.targets.s3 import calls
from parquet_sink.targets.s3.calls import S3Failed
from parquet_sink.targets.s3.client import connect
from parquet_sink.targets.s3.multipart import LocalFile
from parquet_sink.targets.s3.objects import Objects
from parquet_sink.targets.s3.settings import BucketSettings, BucketStore, S3Settings, StaticCredentials
from parquet_sink.targets.s3.target import S3Target
from parquet_sink.targets.settings import RetrySettings

SECONDS = 20.0
SMALL, LARGE = 9_001, 120_007
KEY = "orders/file.parquet"
Make = Callable[[int], LocalFile]
OPERATIONS = {
    "PutObject": r"^PUT [^?]+ HTTP",
    "CreateMultipartUpload": r"^POST \S+\?uploads",
    "UploadPart": r"^PUT \S+partNumber=2",
    "CompleteMultipartUpload": r"^POST \S+uploadId=",
    "AbortMultipartUpload": "^DELETE ",
    "HeadObject": "^HEAD ",
    "GetObject": r"^GET /[^/?]+/[^?]+ HTTP",
    "ListObjectsV2": r"^GET \S+list-type=2",
    "ListMultipartUploads": r"^GET \S+\?uploads",
}
"""How the request of each looks."""
WHILE_PUTTING = [one for one in OPERATIONS if one not in {"PutObject", "GetObject", "ListObjectsV2"}]
"""Of a file in parts."""
_PAGE = b"<!DOCTYPE html><html><body>Blocked<br></body></html>"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are tried again without a pause."""
    monkeypatch.setattr(calls, "FIRST_PAUSE_S", 0.0)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes files of random bytes."""

    def made(size: int) -> LocalFile:
        path, content = tmp_path / os.urandom(4).hex(), os.urandom(size)
        path.write_bytes(content)
        return LocalFile(str(path), size, sha256(content).hexdigest())

    return made


def says(status: int, body: bytes = b"", *headers: str, length: bool = True) -> Behaviour:
    """This answer, and nothing is done."""

    def behave(connection: Connection) -> None:
        connection.read_body()
        told = (f"Content-Length: {len(body)}",) if length else ()
        lines = [f"HTTP/1.1 {status} Fine", *told, *headers, "Connection: close", "", ""]
        connection.send("\r\n".join(lines).encode() + body)
        connection.socket.shutdown(socket.SHUT_WR)

    return behave


def without(*names: str) -> Behaviour:
    """It is done, and the answer lacks these headers and fields."""
    gone = re.compile("|".join(rf"\r\n{name}:[^\r]*|<{name}>[^<]*</{name}>" for name in names).encode(), re.IGNORECASE)
    return _done(lambda head, body: (gone.sub(b"", head), gone.sub(b"", body)))


def _done(changed: Callable[[bytes, bytes], tuple[bytes, bytes]]) -> Behaviour:
    """It is done, and the client hears this of the answer; its length is right."""

    def behave(connection: Connection) -> None:
        assert isinstance(connection.server, S3Front)
        head, _, body = connection.server.answer_of(connection).partition(b"\r\n\r\n")
        told, shown = changed(head, body)
        if shown != body:
            told = re.sub(rb"(?i)content-length:[^\r]*", b"Content-Length: %d" % len(shown), told)
        connection.send(told + b"\r\n\r\n" + shown)

    return behave


def _other_etag(text: bytes) -> bytes:
    return re.sub(rb'(?i)(etag(?:: "|>"|>&quot;))\w', rb"\1z", text)


def _in_other_words(status: bytes, body: bytes, kind: bytes = b"text/html") -> Behaviour:
    head = b"HTTP/1.1 %s Fine\r\nContent-Type: %s\r\nContent-Length: 0\r\nConnection: close" % (status, kind)
    return _done(lambda _, __: (head, body))


BLOCKED: dict[str, Behaviour] = {
    "a page": says(200, _PAGE, "Content-Type: text/html"),
    "a page with an ETag": says(200, _PAGE, "Content-Type: text/html", 'ETag: "5f3-1b"'),
    "a page that is XML": says(200, b"<html><body>Blocked</body></html>", "Content-Type: text/html"),
    "nothing": says(200),
    "204": says(204, length=False),
    "202": says(202, b"queued"),
    "words": says(200, b"ok", 'ETag: "0123"', length=False),
    "an ETag alone": says(200, b"", 'ETag: "0123"'),
    "an error with 200": says(200, b"<Error><Code>InternalError</Code><Message>so</Message></Error>"),
    "XML that is cut": says(200, b"<?xml version='1.0'?><Result><ETag>0123</ETag><UploadId>4", 'ETag: "0123"'),
    "fields that are none": says(
        200,
        b"<R><Name>b</Name><Bucket>b</Bucket><Contents><Size>x</Size></Contents><Upload><Initiated>x</Initiated>"
        b"</Upload><IsTruncated>true</IsTruncated></R>",
        *("Last-Modified: yesterday", "x-amz-missing-meta: many", "x-amz-mp-parts-count: x"),
    ),
    "another checksum": says(200, b"", 'ETag: "0123"', f"x-amz-checksum-sha256: {'A' * 43}="),
}
"""Whoever answers in the place of S3."""
AS_AN_OBJECT = {"an ETag alone", "XML that is cut", "another checksum"}
"""What says so to HEAD has an object there that is none of ours: that may be refused."""
ALTERED: dict[str, Behaviour] = {
    "no ETag": without("ETag"),
    "another ETag": _done(lambda head, body: (_other_etag(head), _other_etag(body))),
    "a page": _in_other_words(b"200", _PAGE),
    "nothing": _in_other_words(b"200", b""),
    "204": _in_other_words(b"204", b""),
    "half of it": _done(lambda head, body: (head, body[: len(body) // 2])),
    "an error with 200": _in_other_words(b"200", b"<Error><Code>InternalError</Code></Error>", b"application/xml"),
    "lacks what it is for": without("UploadId", "Content-Length", "Name", "Bucket", "Key", "Size"),
}
"""S3 does as it was asked, and its answer is changed on the way."""


@contextmanager
def opened(s3: S3Server, bucket: str, *faults: Fault) -> Iterator[tuple[Objects, S3Front]]:
    """Objects of a bucket, reached by a front with these faults."""
    with S3Front(s3.port, *faults) as front:
        settings = s3.settings(bucket, front.endpoint, multipart_bytes=60_000, part_bytes=50_000)
        objects = Objects(settings, connect(settings, {}))
        yield objects, front
        objects.close()


@pytest.mark.parametrize("name", BLOCKED)
@pytest.mark.parametrize(
    ("operation", "size"), [("PutObject", SMALL), ("HeadObject", SMALL), *((one, LARGE) for one in WHILE_PUTTING)]
)
def test_what_was_not_done_is_never_taken_for_done(
    s3: S3Server, make: Make, operation: str, name: str, size: int
) -> None:
    """Accepted is only what is there whole; once somebody answers as S3 does, it is, and nothing else stays."""
    bucket, file = s3.bucket(), make(size)
    with opened(s3, bucket, fault := Fault(OPERATIONS[operation], BLOCKED[name], 9)) as (objects, _):
        first = objects.put(KEY, file, {}, SECONDS)
        if first.verdict is Verdict.ACCEPTED:
            assert s3.content(bucket, KEY) == Path(file.path).read_bytes()
        else:
            refused = first.verdict is Verdict.REFUSED
            assert not refused or (operation == "HeadObject" and name in AS_AN_OBJECT)
            assert first.cause
            assert first.cure
        fault.times = 0
        assert objects.put(KEY, file, {}, SECONDS).verdict is Verdict.ACCEPTED
    assert s3.content(bucket, KEY) == Path(file.path).read_bytes()
    assert s3.unfinished(bucket) == [] or operation == "ListMultipartUploads"


@pytest.mark.parametrize("name", ALTERED)
@pytest.mark.parametrize(("operation", "size"), [("PutObject", SMALL), ("CompleteMultipartUpload", LARGE)])
def test_what_was_stored_is_found_by_a_look(s3: S3Server, make: Make, operation: str, name: str, size: int) -> None:
    """Whatever became of the answer: the file is there once, and by the second attempt at the latest it is known."""
    bucket, file = s3.bucket(), make(size)
    with opened(s3, bucket, Fault(OPERATIONS[operation], ALTERED[name])) as (objects, front):
        outcomes = [objects.put(KEY, file, {}, SECONDS)]
        if outcomes[0].verdict is not Verdict.ACCEPTED:
            outcomes.append(objects.put(KEY, file, {}, SECONDS))
        assert front.asked("^PUT") == (1 if size == SMALL else 3)
    assert [one.verdict for one in outcomes] in ([Verdict.ACCEPTED], [Verdict.UNKNOWN, Verdict.ACCEPTED])
    assert name in {"a page", "half of it", "an error with 200"} or len(outcomes) == 1
    assert s3.content(bucket, KEY) == Path(file.path).read_bytes()
    assert s3.unfinished(bucket) == []


READING = [
    pytest.param(operation, behave, id=f"{operation}-{name}")
    for operation in ("HeadObject", "GetObject", "ListObjectsV2")
    for name, behave in [*BLOCKED.items(), *((f"altered: {name}", behave) for name, behave in ALTERED.items())]
    if operation != "HeadObject" or name not in AS_AN_OBJECT
]


@pytest.mark.parametrize(("operation", "behave"), READING)
def test_what_is_read_is_true_or_not_known(
    s3: S3Server, make: Make, tmp_path: Path, operation: str, behave: Behaviour
) -> None:
    """A look, a list, a digest and a download tell what is there, or fail with what may pass."""
    bucket, file, copy = s3.bucket(), make(SMALL), tmp_path / "copy"
    s3.client.put_object(Bucket=bucket, Key=KEY, Body=Path(file.path).read_bytes(), Metadata={"sha256": file.sha256})
    asked: dict[object, Callable[[Objects], object]] = {
        (SMALL, file.sha256): lambda objects: (
            (found := objects.look(KEY, SECONDS)) and (found.size_bytes, found.sha256)
        ),
        ((KEY, SMALL),): lambda objects: tuple((one.key, one.size_bytes) for one in objects.list("", SECONDS)),
        file.sha256: lambda objects: objects.digest(KEY, SECONDS),
        SMALL: lambda objects: objects.download(KEY, str(copy), SECONDS).size_bytes,
    }
    with opened(s3, bucket, Fault(OPERATIONS[operation], behave, 99)) as (objects, _):
        for truth, ask in asked.items():
            try:
                told = ask(objects)
            except S3Failed as error:
                told = error.outcome.verdict
            assert told in (truth, Verdict.UNKNOWN)
    assert not copy.exists() or copy.read_bytes() == Path(file.path).read_bytes()


def test_an_archive_behind_the_connector_outlives_odd_answers(s3: S3Server, make: Make, tmp_path: Path) -> None:
    """Each operation answers oddly in between: what waits is archived all the same, and nothing else is there."""
    bucket, waiting = s3.bucket(), WaitingFolder(str(tmp_path / "c" / ".archive"), 10**9)
    files = [make(size) for size in (SMALL, LARGE) * 3]
    for number, file in enumerate(files):
        assert waiting.put(ToKeep(file.path, f"orders/{number}", file.size_bytes, file.sha256)) is None
    odd = [Fault(OPERATIONS[one], random.choice(list(BLOCKED.values())), 2) for one in ("PutObject", *WHILE_PUTTING)]
    noted = dict[str, Archiving]()
    with S3Front(s3.port, *odd) as front:
        place = BucketStore(s3.settings(bucket, front.endpoint, multipart_bytes=60_000, part_bytes=50_000), "kept", URL)
        settings = ArchiveSettings(place, "c", str(tmp_path / "c" / ".archive"), required=False)
        retry = RetrySettings(max_retries=30, retry_interval_ms=1, error_policy="RETRY")
        archiver = Archiver(settings, retry, open_archive, noted.__setitem__)
        archiver.start()
        deadline = time.monotonic() + 60
        while len(noted) < len(files):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        while not archiver.finished(SECONDS):
            time.sleep(0.05)
        archiver.close()
    assert {one.cause for one in noted.values()} == {None}
    there = {key: sha256(s3.content(bucket, key)).hexdigest() for key in s3.keys(bucket)}
    assert there == {f"kept/c/orders/{number}": file.sha256 for number, file in enumerate(files)}


def test_an_answer_as_of_aws_needs_no_look(s3: S3Server, make: Make) -> None:
    """With an ETag and the checksum of what was sent, small or in parts, it is believed; else one look is added."""
    bucket = s3.bucket()
    for checksums, looks in ((True, [1, 1]), (False, [2, 2])):
        with opened(s3, bucket) as (objects, front):
            front.checksums = checksums
            heads = []
            for size in (SMALL, LARGE):
                assert objects.put(f"{checksums}-{size}", make(size), {}, SECONDS).cause == "stored"
                heads.append(front.asked("^HEAD") - sum(heads))
        assert heads == looks


def test_a_target_that_altered_what_it_took_is_refused(s3: S3Server, make: Make) -> None:
    """Its checksum is another one, and so are the bytes, whatever the metadata says."""
    bucket, file = s3.bucket(), make(SMALL)

    def altering(connection: Connection) -> None:
        s3.client.put_object(Bucket=bucket, Key=KEY, Body=b"x" * SMALL, Metadata={"sha256": file.sha256})
        BLOCKED["another checksum"](connection)

    with opened(s3, bucket, Fault(OPERATIONS["PutObject"], altering)) as (objects, _):
        outcome = objects.put(KEY, file, {}, SECONDS)
    assert (outcome.verdict, "another content" in outcome.cause) == (Verdict.REFUSED, True)


def _finished(local: LocalFile) -> FinishedFile:
    name = file_name("orders", 0, 0, 9, local.size_bytes, 10)
    about = ("orders", 0, 0, 9, 10, 10, local.size_bytes, Reason.SIZE, 0.0, 0.0, None)
    return FinishedFile(local.path, name, *about, digest=local.sha256)


def _chance(connection: Connection) -> None:
    """Any 2xx, with any of the headers and bodies that somebody may answer with."""
    status = random.choice([200, 201, 202, 203, 204, 206])
    etag, checksum = random.randbytes(16).hex(), "A" * 43 + "="
    xml = (
        f"<R><UploadId>1</UploadId><ETag>{etag}</ETag><ChecksumSHA256>{checksum}-2</ChecksumSHA256>"
        f"<Name>b</Name><Bucket>b</Bucket><Key>k</Key></R>"
    )
    bodies = [b"", _PAGE, b"ok", xml.encode(), xml[: random.randrange(len(xml))].encode(), random.randbytes(30)]
    headers = [
        *(f'ETag: "{etag}"', "Content-Type: text/html", "Content-Type: application/xml", "Last-Modified: now"),
        *(f"x-amz-checksum-sha256: {checksum}", "x-amz-meta-topic: orders", "x-amz-request-id: 1", "Retry-After: 0"),
    ]
    body = b"" if status == 204 else random.choice(bodies)
    some = random.sample(headers, random.randrange(len(headers)))
    says(status, body, *some, length=random.random() < 0.8 and status != 204)(connection)


@pytest.mark.parametrize(
    "then", [*BLOCKED.values(), *[_chance] * 9], ids=[*BLOCKED, *(f"chance {n}" for n in range(9))]
)
def test_nothing_is_accepted_where_nothing_is_stored(make: Make, then: Behaviour) -> None:
    """By target and archive, small and in parts, whatever is answered with 2xx; nor does a probe call it fine."""
    with ScriptedTarget(then=then) as server:
        signed = StaticCredentials(ACCESS_KEY, Secret(SECRET_KEY))
        endpoint = f"http://127.0.0.1:{server.port}"
        place = BucketSettings(
            "b", endpoint=endpoint, region=REGION, credentials=signed, multipart_bytes=60_000, part_bytes=50_000
        )
        target, archive = S3Target(S3Settings(place, "")), Archive(BucketStore(place, "kept", URL).open(), "orders")
        outcomes: list[Outcome] = []
        for file in map(make, (SMALL, LARGE)):
            done = _finished(file)
            outcomes.append(target.push(done, SECONDS))
            outcomes.append(
                archive.keep(ToKeep(done.path, f"orders/{done.name}", done.size_bytes, done.digest), SECONDS)
            )
        probed = [one.probe(SECONDS).health for one in (target, archive)]
        target.close()
        archive.close()
    assert not any(one.verdict is Verdict.ACCEPTED for one in outcomes)
    assert all(one.cause and SECRET_KEY not in repr(one) for one in outcomes)
    assert then is _chance or Health.OK not in probed
