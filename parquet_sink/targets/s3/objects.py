"""The objects of one bucket: put once and never over another one, looked for, listed, fetched."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, Final

from parquet_sink.files.storage import storage_trouble
from parquet_sink.net.redaction import printable
from parquet_sink.targets.outcome import Outcome, Verdict, of_another_content
from parquet_sink.targets.s3.calls import NOT_S3, TAKEN, Calls, S3Failed, not_of_s3, said
from parquet_sink.targets.s3.client import Connection
from parquet_sink.targets.s3.multipart import FileSlice, LocalFile, MultipartUploads, in_base64
from parquet_sink.targets.s3.settings import BucketSettings

DIGEST: Final = "sha256"
"""Name of the metadata that has the SHA-256 of an object's bytes, hexadecimal."""
FETCH_BYTES: Final = 8 << 20
_ABSENT: Final = {"IfNoneMatch": "*"}
_CONTENT_TYPE: Final = "application/vnd.apache.parquet"


@dataclass(frozen=True)
class Found:
    """An object. sha256: of its bytes, hexadecimal, where it is told. metadata, sha256: not told by a list."""

    key: str
    size_bytes: int
    etag: str = ""
    metadata: Mapping[str, str] | None = None
    sha256: str | None = None


class Objects:
    """One bucket's objects; threads may share it.

    Every call has `seconds`, within which it ends. Those that are no `put` raise S3Failed, whose `outcome` says whether
    it may pass; while it may, they try again themselves within their time.
    """

    def __init__(self, settings: BucketSettings, connection: Connection) -> None:
        self._bucket, self._threshold = settings.bucket, settings.multipart_bytes
        self._calls = Calls(connection.client, connection.transport, connection.secrets)
        self._uploads = MultipartUploads(self._calls, settings.bucket, settings.part_bytes)
        self._trusted, self._conditional = connection.of_aws, True

    def put(self, key: str, file: LocalFile, metadata: Mapping[str, str], seconds: float) -> Outcome:
        """One attempt to store a file under a key, unless there is an object already.

        One of the same content is accepted, one of another content refused. metadata: texts in ASCII; the digest is
        added. Raises StorageFailed when the file cannot be read, and nothing else on purpose.
        """
        with self._calls.within(seconds):
            try:
                return self._put(key, file, {**metadata, DIGEST: file.sha256})
            except S3Failed as error:
                return error.outcome

    def look(self, key: str, seconds: float) -> Found | None:
        """What is under a key, None when nothing is."""
        with self._calls.within(seconds):
            return self._look(key)

    def list(self, prefix: str, seconds: float) -> Iterator[Found]:
        """All objects whose keys begin so, in their order. seconds: for each page of a thousand."""
        more: dict[str, str] = {}
        while True:
            with self._calls.within(seconds):
                page = self._calls.patiently("list_objects_v2", Bucket=self._bucket, Prefix=prefix, **more)
            for one in page.get("Contents", ()):
                name, size_bytes = said(one, "Key", "Size")
                yield Found(name, size_bytes, one.get("ETag", ""))
            if not page.get("IsTruncated"):
                return
            if said(page, "NextContinuationToken") == list(more.values()):
                raise not_of_s3("a list goes on where it was")
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def download(self, key: str, path: str, seconds: float) -> Found:
        """Writes an object to a new local file, synced. Raises S3Failed, also when nothing is there; StorageFailed."""
        with self._calls.within(seconds):
            found = self._look(key)
            if found is None:
                raise S3Failed(Outcome(Verdict.REFUSED, f"there is no object {key}", status=404), "NoSuchKey")
            with storage_trouble(os.path.dirname(path), "write a file from S3"):
                self._write(found, path)
            return found

    def digest(self, key: str, seconds: float) -> str | None:
        """SHA-256 of an object's bytes as they are now, hexadecimal; None when nothing is there. Raises S3Failed."""
        with self._calls.within(seconds):
            found = self._look(key)
            return None if found is None else self._digest(found)

    def sweep(self, prefix: str, is_ours: Callable[[str], bool], seconds: float) -> None:
        """Aborts unfinished uploads that nobody continues; once for a prefix. Trouble is passed over."""
        with self._calls.within(seconds):
            self._uploads.sweep(prefix, is_ours)

    def try_out(self, key: str, seconds: float) -> S3Failed | None:
        """Begins an upload and aborts it, so nothing is stored, then looks for an object: why that is not possible.

        Raises S3Failed when nothing can be put there.
        """
        with self._calls.within(seconds):
            self._uploads.try_out(key)
            try:
                self._look(key)
            except S3Failed as error:
                return error
            return None

    def close(self) -> None:
        """Closes idle connections."""
        self._calls.close()

    def _put(self, key: str, file: LocalFile, metadata: Mapping[str, str]) -> Outcome:
        """A server that may not know `If-None-Match` is asked first; so is any before many parts are sent."""
        in_parts, conditional = file.size_bytes >= self._threshold, self._conditional
        if in_parts or not (self._trusted and conditional):
            found = self._look(key)
            if found is not None:
                return self._compared(found, file)
        try:
            return self._send(key, file, metadata, in_parts, _ABSENT if conditional else {})
        except S3Failed as error:
            if error.code == "NotImplemented" and conditional:
                self._conditional = False
                return self._put(key, file, metadata)
            return self._after(error, key, file)

    def _after(self, error: S3Failed, key: str, file: LocalFile) -> Outcome:
        """The condition may not have held."""
        if error.outcome.status != TAKEN:
            raise error
        found = self._look(key)
        gone = Outcome(Verdict.RETRIABLE, "the object was there, and is gone", status=TAKEN)
        return gone if found is None else self._compared(found, file)

    def _send(
        self, key: str, file: LocalFile, metadata: Mapping[str, str], in_parts: bool, absent: Mapping[str, str]
    ) -> Outcome:
        options = {"Metadata": dict(metadata), "ContentType": _CONTENT_TYPE}
        if in_parts:
            return self._uploads.send(key, file, options, absent, partial(self._outcome, key, file))
        checksum = in_base64(bytes.fromhex(file.sha256))
        body = FileSlice(file.path, 0, file.size_bytes)
        try:
            answer = self._calls.once(
                "put_object",
                Bucket=self._bucket,
                Key=key,
                Body=body,
                ContentLength=file.size_bytes,
                ChecksumSHA256=checksum,
                **options,
                **absent,
            )
        finally:
            body.close()
        return self._outcome(key, file, answer, checksum)

    def _outcome(self, key: str, file: LocalFile, answer: Mapping[str, Any], checksum: str) -> Outcome:
        """An answer is believed that has an ETag and the checksum of what was sent; else the object is looked at.

        A firewall that answers in the place of S3 has neither, some servers of its protocol have no checksum.
        """
        etag, told = answer.get("ETag"), answer.get("ChecksumSHA256")
        if etag and told == checksum:
            return Outcome(Verdict.ACCEPTED, "stored", status=200, answer_id=_plain(etag))
        odd = f"the target answered {_status(answer)} {_oddity(etag, told)}"
        try:
            found = self._look(key)
            if found is not None:
                return self._compared(replace(found, sha256=None) if told else found, file, "stored")
        except S3Failed as error:
            return _unproven(f"{odd}, and it is unknown whether the object is there: {error.outcome.cause}")
        return _unproven(f"{odd}, and the object is not there")

    def _look(self, key: str) -> Found | None:
        try:
            head = self._calls.patiently("head_object", Bucket=self._bucket, Key=key)
        except S3Failed as error:
            if error.outcome.status == 404 and error.code != "NoSuchBucket":
                return None
            raise
        metadata, etag = head.get("Metadata", {}), head.get("ETag", "")
        if DIGEST not in metadata and (not etag or "html" in head.get("ContentType", "")):
            raise not_of_s3("no ETag, or a page, where an object was asked for")
        return Found(key, head["ContentLength"], etag, metadata, metadata.get(DIGEST))

    def _compared(self, found: Found, file: LocalFile, same_is: str = "was stored before") -> Outcome:
        """By size and digest; an object that something else put there has no digest, and is read."""
        same = found.size_bytes == file.size_bytes
        if same:
            same = (found.sha256 or self._digest(found)) == file.sha256
        if same:
            return Outcome(Verdict.ACCEPTED, same_is, status=200, answer_id=_plain(found.etag))
        there, elsewhere = f"s3://{self._bucket}/{found.key}", "connect.ems.s3.prefix to another path"
        return of_another_content(there, file.path, elsewhere, TAKEN)

    def _write(self, found: Found, path: str) -> None:
        digest = sha256()
        with open(path, "xb") as file:
            try:
                for piece in self._pieces(found):
                    digest.update(piece)
                    file.write(piece)
                _verify(found, digest.hexdigest())
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                os.unlink(path)
                raise

    def _digest(self, found: Found) -> str:
        digest = sha256()
        for piece in self._pieces(found):
            digest.update(piece)
        return digest.hexdigest()

    def _pieces(self, found: Found) -> Iterator[bytes]:
        """The bytes of one version of an object."""
        for start in range(0, found.size_bytes, FETCH_BYTES):
            end = min(start + FETCH_BYTES, found.size_bytes) - 1
            asked: dict[str, Any] = {"Bucket": self._bucket, "Key": found.key, "Range": f"bytes={start}-{end}"}
            piece = self._piece({**asked, **({"IfMatch": found.etag} if found.etag else {})})
            if len(piece) != end - start + 1:
                raise not_of_s3(f"{len(piece):,} bytes of {found.key} where {end - start + 1:,} were asked for")
            yield piece

    def _piece(self, asked: Mapping[str, Any]) -> bytes:
        try:
            piece: bytes = self._calls.patiently("get_object", **asked)["Body"].read()
        except S3Failed as error:
            if error.outcome.status == TAKEN:  # of `IfMatch`
                raise not_of_s3(f"{asked['Key']} became another object while it was read") from error
            raise
        return piece


def _plain(etag: str | None) -> str | None:
    return etag.strip('"') or None if etag else None


def _verify(found: Found, digest: str) -> None:
    if found.sha256 not in (None, digest):
        raise not_of_s3(f"the bytes of {found.key} are not those of its SHA-256")


def _status(answer: Mapping[str, Any]) -> int:
    return int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _oddity(etag: str | None, checksum: str | None) -> str:
    """How an answer to what was stored is not as S3's are."""
    if not etag:
        return "without an ETag"
    return "without a checksum" if checksum is None else f"with the checksum of other bytes ({printable(checksum)})"


def _unproven(cause: str) -> Outcome:
    return Outcome(Verdict.UNKNOWN, cause, NOT_S3)
