"""Calls of an S3 client, retried within the time that is left, and what its errors mean, by their codes."""

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from parquet_sink.net.exchange import RequestFailed, asked_wait
from parquet_sink.net.redaction import printable, redact
from parquet_sink.targets.http_failures import of_failure
from parquet_sink.targets.outcome import Outcome, Verdict
from parquet_sink.targets.s3 import settings as keys
from parquet_sink.targets.s3.client import STATUS_HEADER, Transport

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

TAKEN: Final = 412
CALL_ERRORS: Final = (ClientError, BotoCoreError, ResponseParserError, RequestFailed)
"""What a call of a client raises."""
NOT_S3: Final = f"Correct {keys.ENDPOINT}, or see to what answers in the place of the target: a proxy or a firewall"
_LIVES: Final = "Look whether what holds it is alive; then start the connector again"
_KEYS: Final = (
    f"Correct {keys.ACCESS_KEY} and {keys.SECRET_KEY}, or what {keys.PROFILE} or the environment has in their place"
)
_BUCKET: Final = f"Make the bucket, or correct {keys.BUCKET}, {keys.ENDPOINT} and {keys.PATH_STYLE}"
_RIGHTS: Final = (
    "Give who signs the requests the rights that docs/how-to/s3.md lists (s3:PutObject, s3:GetObject and "
    "s3:AbortMultipartUpload on its objects, s3:ListBucket and s3:ListBucketMultipartUploads on the bucket), or "
    "correct the credentials"
)
_REGION: Final = f"Set {keys.REGION} to the region that the bucket is in"
_CURES: Final = {
    "InvalidAccessKeyId": _KEYS,
    "SignatureDoesNotMatch": f"{_KEYS}; and {keys.REGION} must be the one that the server signs with",
    "ExpiredToken": f"Renew the credentials: {keys.SESSION_TOKEN} has expired",
    "InvalidToken": f"Correct {keys.SESSION_TOKEN}",
    "AccessDenied": _RIGHTS,
    "AllAccessDisabled": _RIGHTS,
    "403": _RIGHTS,
    "NoSuchBucket": _BUCKET,
    "InvalidBucketName": _BUCKET,
    "404": _BUCKET,
    "405": f"Correct {keys.ENDPOINT}: it is no S3 server's address",
    "PermanentRedirect": _REGION,
    "AuthorizationHeaderMalformed": _REGION,
    "301": _REGION,
    "RequestTimeTooSkewed": "Set this machine's clock: it differs from the server's by more than S3 permits",
    "EntityTooLarge": "Lower connect.ems.commit.size.bytes",
    "KeyTooLongError": f"Shorten {keys.PREFIX}: with the file's name an object's name has at most 1,024 bytes",
    "QuotaExceeded": "Raise the bucket's quota, or remove objects",
}
_RETRIABLE_CODES: Final = frozenset(
    {
        *("SlowDown", "ServiceUnavailable", "RequestTimeout", "RequestTimeoutException", "Throttling", "Busy"),
        *("ThrottlingException", "TooManyRequests", "RequestLimitExceeded", "BandwidthLimitExceeded"),
        *("BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", "IncompleteBody"),
        *("NoSuchUpload", "InvalidPart", "InvalidPartOrder", "EntityTooSmall"),
        *("ConditionalRequestConflict", "OperationAborted", "SlowDownRead", "SlowDownWrite"),
    }
)
"""The object is certainly not there by this request, and another attempt may succeed. Of parts: one was lost."""
_OF_FILE: Final = frozenset({"EntityTooLarge"})
_RETRIABLE: Final = frozenset({408, 421, 425, 429, 503})
_REFUSED_5XX: Final = frozenset({501, 505})
_TROUBLE: Final = "The target is overloaded or in trouble: see its own log; then start the connector again"


class S3Failed(Exception):
    """A call that did not come to its end. code: what S3 calls it, empty where no answer came."""

    def __init__(self, outcome: Outcome, code: str = "") -> None:
        super().__init__(outcome, code)
        self.outcome, self.code = outcome, code

    def __str__(self) -> str:
        return f"{self.outcome.cause}. {self.outcome.cure}." if self.outcome.cure else f"{self.outcome.cause}."


def not_of_s3(detail: str) -> S3Failed:
    """For an answer that no S3 server gives: a firewall, a proxy or a web server may answer with 200, too."""
    return S3Failed(Outcome(Verdict.UNKNOWN, f"the answer is none of S3 ({detail})", NOT_S3))


class Calls:
    """Calls of a boto3 client; threads may share it."""

    def __init__(self, client: Any, transport: Transport, secrets: tuple[str, ...]) -> None:
        self._client, self._transport, self._secrets = client, transport, secrets

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
            raise failed(error, self._secrets, time.time()) from error
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
                asked = error.outcome.retry_after_seconds
                spread = random.uniform(0.5, 1.0)  # noqa: S311 -- spreads load, guards nothing
                pause = asked or min(MOST_PAUSE_S, FIRST_PAUSE_S * 2 ** (tried - 1)) * spread
                if error.outcome.verdict is Verdict.REFUSED or pause >= self._transport.seconds_left():
                    raise
            time.sleep(pause)
            if (body := parameters.get("Body")) is not None:
                body.seek(0)
        return self.once(operation, **parameters)

    def close(self) -> None:
        """Closes idle connections."""
        self._transport.close()


def said(answer: Mapping[str, Any], *names: str) -> list[Any]:
    """These fields of an answer. Raises S3Failed when one is not there, or is empty."""
    lacking = next((name for name in names if answer.get(name) in (None, "")), None)
    if lacking is not None:
        raise not_of_s3(f"{lacking} is not in it")
    return [answer[name] for name in names]


def failed(error: Exception, secrets: Sequence[str], now: float) -> S3Failed:
    """What a call raised, as an outcome. error: one of CALL_ERRORS. now: epoch seconds, for waits that are asked."""
    if isinstance(error, RequestFailed):
        return S3Failed(of_failure(error.kind, error.detail, secrets, keys.ENDPOINT))
    if isinstance(error, ClientError):
        return _of_answer(error.response, secrets, now)
    return S3Failed(_of_library(error, secrets))


def _of_answer(response: Mapping[str, Any], secrets: Sequence[str], now: float) -> S3Failed:
    told, meta = response.get("Error", {}), response.get("ResponseMetadata", {})
    headers, code = meta.get("HTTPHeaders", {}), str(told.get("Code", ""))
    status = int(headers.get(STATUS_HEADER) or meta.get("HTTPStatusCode") or 0)
    if status < 300 and code == str(meta.get("HTTPStatusCode")):
        return not_of_s3(f"{status} with a body of the type {printable(headers.get('content-type', 'none'))}")
    text = printable(redact(f"{code}: {told.get('Message', '')}" if code != str(status) else "", secrets))
    cause = f"the target answered {status}" + (f" {text}" if text else " without a text")
    verdict = _verdict(status, code)
    wait = asked_wait(status, headers, now)
    cure = _CURES.get(code, "Correct what the answer names" if verdict is Verdict.REFUSED else _TROUBLE)
    return S3Failed(Outcome(verdict, cause, cure, status, wait, of_file=code in _OF_FILE), code)


def _verdict(status: int, code: str) -> Verdict:
    if code in _RETRIABLE_CODES or status in _RETRIABLE:
        return Verdict.RETRIABLE
    return Verdict.REFUSED if 300 <= status < 500 or status in _REFUSED_5XX else Verdict.UNKNOWN


def _of_library(error: Exception, secrets: Sequence[str]) -> Outcome:
    """No answer of S3's: credentials that are not there or did not come, or an answer that is none of S3."""
    kind, text = type(error).__name__, printable(redact(str(error), secrets))
    if kind in ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound"):
        return Outcome(Verdict.REFUSED, f"no credentials were found ({text})", _KEYS)
    if kind in ("CredentialRetrievalError", "MetadataRetrievalError", "InvalidIMDSEndpointError"):
        return Outcome(Verdict.RETRIABLE, f"credentials did not come ({text})", _LIVES)
    if kind == "ResponseParserError":
        return not_of_s3(text).outcome
    return Outcome(Verdict.REFUSED, f"the request could not be made ({kind}: {text})", _KEYS)
