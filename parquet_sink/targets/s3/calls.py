"""Calls of a client: each gives its answer or raises `S3Failed`; some are tried again within the time that is left."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol

from parquet_sink.net.redaction import printable, redact
from parquet_sink.targets.outcome import Verdict
from parquet_sink.targets.s3.failures import CALL_ERRORS, S3Failed, failed, not_of_s3

MOST_TRIES: Final = 4
FIRST_PAUSE_S: Final = 0.2
MOST_PAUSE_S: Final = 5.0
_ALWAYS: Final = {
    "create_multipart_upload": ("UploadId",),
    "upload_part": ("ETag",),
    "head_object": ("ContentLength",),
    "list_objects_v2": ("Name",),
    "list_multipart_uploads": ("Bucket",),
}
"""What S3's API reference has in every answer of an operation, and whoever answers in its place has not."""
_UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""What botocore raises for headers and fields that it cannot read, such as a date."""


class Carries(Protocol):
    """Knows until when the current thread's requests may take."""

    def within(self, seconds: float) -> Any: ...
    def seconds_left(self) -> float: ...
    def close(self) -> None: ...


class Calls:
    """Calls of a boto3 client; threads may share it. now: epoch seconds. sleep, jitter: as in `targets.retry`."""

    def __init__(
        self,
        client: Any,
        transport: Carries,
        secrets: tuple[str, ...] = (),
        *,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._client, self._transport, self._secrets = client, transport, secrets
        self._now, self._sleep, self._jitter = now, sleep, jitter

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Everything herein takes so many seconds at most."""
        with self._transport.within(seconds):
            yield

    def once(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """The answer of one request. Raises S3Failed, and what reading the body raises."""
        try:
            answer: dict[str, Any] = getattr(self._client, operation)(**parameters)
        except CALL_ERRORS as error:
            raise failed(error, self._secrets, self._now()) from error
        except _UNREADABLE as error:
            raise not_of_s3(printable(redact(str(error), self._secrets))) from error
        said(answer, *_ALWAYS.get(operation, ()))
        return answer

    def patiently(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Likewise, tried again when it may pass: for what may be done twice. A body must be able to begin anew."""
        for tried in range(1, MOST_TRIES):
            try:
                return self.once(operation, **parameters)
            except S3Failed as error:
                pause = self._pause(error, tried)
                if error.outcome.verdict is Verdict.REFUSED or pause >= self._transport.seconds_left():
                    raise
            self._sleep(pause)
            if (body := parameters.get("Body")) is not None:
                body.seek(0)
        return self.once(operation, **parameters)

    def close(self) -> None:
        """Closes idle connections."""
        self._transport.close()

    def _pause(self, error: S3Failed, tried: int) -> float:
        asked = error.outcome.retry_after_seconds
        return asked or min(MOST_PAUSE_S, FIRST_PAUSE_S * 2 ** (tried - 1)) * (0.5 + self._jitter() / 2)


def said(answer: Mapping[str, Any], *names: str) -> list[Any]:
    """These fields of an answer. Raises S3Failed when one is not there, or is empty."""
    lacking = next((name for name in names if answer.get(name) in (None, "")), None)
    if lacking is not None:
        raise not_of_s3(f"{lacking} is not in it")
    return [answer[name] for name in names]
