"""Bodies of requests from a local file; a large file in parts, each with its SHA-256 and retried by itself.

An upload whose program died is aborted when the same object is sent again, which a crash always comes to, because a
range is repeated as the same files. What nobody repeats (a connector that was given up) is aborted by `sweep`.
"""

import base64
import io
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Any, Final

from parquet_sink.errors import StorageFailed
from parquet_sink.files.storage import storage_trouble
from parquet_sink.targets.outcome import Outcome, Verdict
from parquet_sink.targets.s3.calls import Calls, S3Failed, said

_PIECE_BYTES: Final = 1 << 20
MOST_PARTS: Final = 10_000
ABANDONED: Final = timedelta(days=1)
"""How old an unfinished upload must be before it is taken for one that nobody continues."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LocalFile:
    """size_bytes: as it was verified. sha256: of its bytes, hexadecimal."""

    path: str
    size_bytes: int
    sha256: str


class FileSlice:
    """Bytes [start, start + size_bytes) of a file, read as a body; `seek` as botocore needs it to sign or repeat.

    Reading raises StorageFailed when the file cannot be read or is shorter than it was.
    """

    def __init__(self, path: str, start: int, size_bytes: int) -> None:
        self._path, self._start, self._size = path, start, size_bytes
        self._at = 0
        with storage_trouble(os.path.dirname(path), "read a finished file"):
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by `close`

    def __len__(self) -> int:
        return self._size

    def read(self, size: int | None = -1, /) -> bytes:
        """At most so many bytes; all that are left for None or -1."""
        left = self._size - self._at
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted <= 0:
            return b""
        with storage_trouble(os.path.dirname(self._path), "read a finished file"):
            piece = os.pread(self._file.fileno(), wanted, self._start + self._at)
        if not piece:
            raise StorageFailed(
                f"File {self._path} is {left:,} bytes shorter than when it was verified: something changed it. "
                f"It is not sent. Keep other programs out of connect.ems.tmp.dir."
            )
        self._at += len(piece)
        return piece

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        self._file.close()

    def digest(self) -> bytes:
        """SHA-256 of these bytes; it stands at their start afterwards."""
        found = sha256()
        self.seek(0)
        while piece := self.read(_PIECE_BYTES):
            found.update(piece)
        self.seek(0)
        return found.digest()


def in_base64(digest: bytes) -> str:
    """A digest as S3's headers have it."""
    return base64.b64encode(digest).decode("ascii")


class MultipartUploads:
    """Sends files in parts to one bucket; threads may share it, each with objects of its own."""

    def __init__(self, calls: Calls, bucket: str, part_bytes: int) -> None:
        self._calls, self._bucket, self._part_bytes = calls, bucket, part_bytes
        self._swept: set[str] = set()

    def send(
        self,
        key: str,
        file: LocalFile,
        options: Mapping[str, Any],
        if_absent: Mapping[str, str],
        outcome_of: Callable[[Mapping[str, Any], str], Outcome],
    ) -> Outcome:
        """Sends a whole file. if_absent: the condition, which S3 looks at when the parts are put together.

        outcome_of: what S3's last answer comes to, and the checksum that is to be in it. Unless the file is accepted no
        part of it stays, as far as S3 could be told. Raises S3Failed, StorageFailed.
        """
        self._abort_earlier(key)
        begun = self._calls.once(
            "create_multipart_upload", Bucket=self._bucket, Key=key, ChecksumAlgorithm="SHA256", **options
        )
        named = {"Bucket": self._bucket, "Key": key, "UploadId": begun["UploadId"]}
        try:
            parts = [self._part(named, file, number, start) for number, start in enumerate(self._starts(file), 1)]
            done = self._calls.once("complete_multipart_upload", **named, MultipartUpload={"Parts": parts}, **if_absent)
            outcome = outcome_of(done, checksum_of(parts))
        except BaseException:
            self._abort(named)
            raise
        if outcome.verdict is not Verdict.ACCEPTED:
            self._abort(named)
        return outcome

    def sweep(self, prefix: str, is_ours: Callable[[str], bool]) -> None:
        """Aborts uploads of objects of ours that were begun long ago; once for a prefix. Trouble is passed over."""
        if prefix in self._swept:
            return
        self._swept.add(prefix)
        with suppress(S3Failed):  # a right that only this needs may not be there
            for key, upload_id, age in self._unfinished(prefix):
                if age > ABANDONED and is_ours(key):
                    self._abort({"Bucket": self._bucket, "Key": key, "UploadId": upload_id})

    def try_out(self, key: str) -> None:
        """Begins an upload and takes it back. Raises S3Failed when either is refused."""
        begun = self._calls.once("create_multipart_upload", Bucket=self._bucket, Key=key)
        self._calls.once("abort_multipart_upload", Bucket=self._bucket, Key=key, UploadId=begun["UploadId"])

    def _starts(self, file: LocalFile) -> range:
        return range(0, max(1, file.size_bytes), self._size_of_part(file))

    def _size_of_part(self, file: LocalFile) -> int:
        return max(self._part_bytes, -(-file.size_bytes // MOST_PARTS))

    def _part(self, named: Mapping[str, str], file: LocalFile, number: int, start: int) -> dict[str, Any]:
        size = min(self._size_of_part(file), file.size_bytes - start)
        body = FileSlice(file.path, start, size)
        try:
            digest = in_base64(body.digest())
            answer = self._calls.patiently(
                "upload_part", **named, PartNumber=number, Body=body, ContentLength=size, ChecksumSHA256=digest
            )
        finally:
            body.close()
        return {"PartNumber": number, "ETag": answer["ETag"], "ChecksumSHA256": digest}

    def _abort_earlier(self, key: str) -> None:
        """What an attempt left that died: who owns the topic-partition is the only one to send this object."""
        with suppress(S3Failed):
            for of_key, upload_id, _ in self._unfinished(key):
                if of_key == key:
                    self._abort({"Bucket": self._bucket, "Key": key, "UploadId": upload_id})

    def _abort(self, named: Mapping[str, str]) -> None:
        """Within the time that is left: if there is none, the next attempt at the object does it."""
        try:
            self._calls.once("abort_multipart_upload", **named)
        except S3Failed as error:
            logger.debug("An unfinished upload of %s was not aborted: %s", named["Key"], error)

    def _unfinished(self, prefix: str) -> Iterator[tuple[str, str, timedelta]]:
        """Keys, ids and ages of unfinished uploads, by the server's own clock; without that they count as young."""
        at: dict[str, str] = {}
        while True:
            page = self._calls.once("list_multipart_uploads", Bucket=self._bucket, Prefix=prefix, **at)
            now = _date(page)
            for upload in page.get("Uploads", ()):
                begun = upload.get("Initiated")
                key, upload_id = said(upload, "Key", "UploadId")
                yield key, upload_id, now - begun if now is not None and begun is not None else timedelta()
            if not page.get("IsTruncated"):
                return
            next_key, next_id = said(page, "NextKeyMarker", "NextUploadIdMarker")
            at = {"KeyMarker": next_key, "UploadIdMarker": next_id}


def _date(answer: Mapping[str, Any]) -> datetime | None:
    with suppress(ValueError, TypeError, KeyError):
        return parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
    return None


def checksum_of(parts: list[dict[str, Any]]) -> str:
    """The SHA-256 of an object in parts, as S3 has it: that of the digests of its parts, and how many there are."""
    whole = sha256(b"".join(base64.b64decode(part["ChecksumSHA256"]) for part in parts))
    return f"{in_base64(whole.digest())}-{len(parts)}"
