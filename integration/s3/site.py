"""A bucket on moto's server in the place of `TargetProcess`: for the crash campaign and the benchmark."""

import contextlib
import socket
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from integration.s3.book import BucketReader, NotingFront
from integration.s3.server import ACCESS_KEY, REGION, SECRET_KEY, S3Server

MULTIPART_BYTES: Final = 5 << 20


class S3Site:
    """A server, a bucket, and a front that notes what is taken. `kill` cuts everybody off; objects stay.

    moto holds objects in memory, so it cannot be killed itself.
    """

    def __init__(self) -> None:
        self._server = S3Server()
        self._folder = tempfile.TemporaryDirectory(prefix="parquet-sink-bucket-")
        self._front: NotingFront | None = None
        self._bucket = ""
        self.pid: int | None = None

    def __enter__(self) -> Self:
        self._server.__enter__()
        self.pid = self._server.pid
        self._bucket = self._server.bucket()
        self._front = NotingFront(self._server.port)
        self._front.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.front.__exit__(kind, error, at)
        self._server.__exit__(kind, error, at)
        self._folder.cleanup()

    @property
    def front(self) -> NotingFront:
        assert self._front is not None
        return self._front

    @property
    def client(self) -> BucketReader:
        """A reader of the bucket."""
        return BucketReader(self._server, self._bucket, self.front, Path(self._folder.name))

    @property
    def keys(self) -> dict[str, str]:
        """Of connector files, in place of those of a push API; an empty text takes one back."""
        return {
            "connect.ems.endpoint": "",
            "connect.ems.authorization.key": "",
            "connect.ems.target.type": "s3",
            "connect.ems.s3.endpoint": self.front.endpoint,
            "connect.ems.s3.region": REGION,
            "connect.ems.s3.bucket": self._bucket,
            "connect.ems.s3.prefix": "{table}/p={partition}",
            "connect.ems.s3.access.key.id": ACCESS_KEY,
            "connect.ems.s3.secret.access.key": SECRET_KEY,
            "connect.ems.s3.multipart.threshold.bytes": str(MULTIPART_BYTES),
            "connect.ems.s3.multipart.part.bytes": str(MULTIPART_BYTES),
        }

    def endpoint(self) -> str:
        """None of a push API."""
        return ""

    def unfinished(self) -> list[str]:
        """Uploads in parts that nobody finished or aborted."""
        return self._server.unfinished(self._bucket)

    def kill(self) -> None:
        """Nobody listens any more, and every request under way is cut."""
        self.front.down()
        for one in list(self.front.live):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def restart(self) -> None:
        """The same address listens again."""
        self.front.up()
