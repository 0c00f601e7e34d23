"""The objects of one bucket: put once and never over another one, looked for, listed, fetched."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from parquet_sink.files.storage import storage_trouble
from parquet_sink.targets.outcome import Outcome, Verdict
from parquet_sink.targets.s3.calls import Calls
from parquet_sink.targets.s3.client import Connection
from parquet_sink.targets.s3.failures import TAKEN, S3Failed
from parquet_sink.targets.s3.local_file import FileSlice, LocalFile, in_base64
from parquet_sink.targets.s3.multipart import MultipartUploads
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
    """One bucket's objects; threads may share it. monotonic: seconds.

    Every call has `seconds`, within which it ends. Those that are no `put` raise S3Failed, whose `outcome` says whether
    it may pass; while it may, they try again themselves within their time.
    """

    def __init__(
        self, settings: BucketSettings, connection: Connection, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._bucket, self._threshold = settings.bucket, settings.multipart_bytes
        self._calls = Calls(connection.client, connection.transport, connection.secrets)
        self._uploads = MultipartUploads(self._calls, settings.bucket, settings.part_bytes)
        self._trusted, self._conditional = connection.of_aws, True
        self._monotonic = monotonic

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
                yield Found(one["Key"], one["Size"], one.get("ETag", ""))
            if not page.get("IsTruncated"):
                return
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
            etag = self._send(key, file, metadata, in_parts, _ABSENT if conditional else {})
        except S3Failed as error:
            if error.code == "NotImplemented" and conditional:
                self._conditional = False
                return self._put(key, file, metadata)
            return self._after(error, key, file)
        return Outcome(Verdict.ACCEPTED, "stored", status=200, answer_id=_plain(etag))

    def _after(self, error: S3Failed, key: str, file: LocalFile) -> Outcome:
        """The condition may not have held."""
        if error.outcome.status != TAKEN:
            raise error
        found = self._look(key)
        gone = Outcome(Verdict.RETRIABLE, "the object was there, and is gone", status=TAKEN)
        return gone if found is None else self._compared(found, file)

    def _send(
        self, key: str, file: LocalFile, metadata: Mapping[str, str], in_parts: bool, absent: Mapping[str, str]
    ) -> str | None:
        options = {"Metadata": dict(metadata), "ContentType": _CONTENT_TYPE}
        if in_parts:
            return self._uploads.send(key, file, options, absent)
        body = FileSlice(file.path, 0, file.size_bytes)
        try:
            answer = self._calls.once(
                "put_object",
                Bucket=self._bucket,
                Key=key,
                Body=body,
                ContentLength=file.size_bytes,
                ChecksumSHA256=in_base64(bytes.fromhex(file.sha256)),
                **options,
                **absent,
            )
        finally:
            body.close()
        return answer.get("ETag")

    def _look(self, key: str) -> Found | None:
        try:
            head = self._calls.patiently("head_object", Bucket=self._bucket, Key=key)
        except S3Failed as error:
            if error.outcome.status == 404 and error.code != "NoSuchBucket":
                return None
            raise
        metadata = head.get("Metadata", {})
        return Found(key, head["ContentLength"], head.get("ETag", ""), metadata, metadata.get(DIGEST))

    def _compared(self, found: Found, file: LocalFile) -> Outcome:
        """By size and digest; an object that something else put there has no digest, and is read."""
        same = found.size_bytes == file.size_bytes
        if same:
            same = (found.sha256 or self._digest(found)) == file.sha256
        if same:
            return Outcome(Verdict.ACCEPTED, "was stored before", status=200, answer_id=_plain(found.etag))
        return Outcome(
            Verdict.REFUSED,
            f"s3://{self._bucket}/{found.key} is there with another content than {file.path}, and is not overwritten",
            "Find out what wrote it, another connector perhaps; then move it away, or set connect.ems.s3.prefix to "
            "another path",
            status=TAKEN,
        )

    def _write(self, found: Found, path: str) -> None:
        with open(path, "xb") as file:
            try:
                file.writelines(self._pieces(found))
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
            answer = self._calls.patiently("get_object", **asked, **({"IfMatch": found.etag} if found.etag else {}))
            piece = answer["Body"].read()
            if len(piece) != end - start + 1:
                raise S3Failed(Outcome(Verdict.UNKNOWN, f"{found.key} is shorter than it was told to be"))
            yield piece


def _plain(etag: str | None) -> str | None:
    return etag.strip('"') or None if etag else None
