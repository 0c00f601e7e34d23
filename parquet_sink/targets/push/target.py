"""The push API as a target: one attempt to send one file, and what a form without a file tells about it.

The request is the reference connector's: POST to the configured address, parameters in a fixed order, one multipart
part, streamed from disk. It is sent with Content-Length: the length is known, a target or proxy can refuse too large a
file before it is sent, a cut body can never pass for a whole one, and no proxy has to collect chunks or answer 411.
What an answer means is in `answers`; trying again is the business of `targets.retry`.
"""

import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Final
from urllib.parse import urlencode

from requests import Request

from parquet_sink import __version__
from parquet_sink.config.secret import Secret
from parquet_sink.errors import StorageFailed
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.storage import storage_trouble
from parquet_sink.net.exchange import Answer, Limits, RequestFailed, TokenFailed
from parquet_sink.net.session import proxy_secrets, session_for
from parquet_sink.targets.http_failures import of_failure
from parquet_sink.targets.outcome import Outcome, ProbeResult
from parquet_sink.targets.push.answers import of_answer, of_probe, of_token_failure, with_token_cure
from parquet_sink.targets.push.authorization import authorization_of, signed
from parquet_sink.targets.push.settings import PushSettings

PIECE_BYTES: Final = 256 * 1024
MOST_ANSWER_BYTES: Final = 64 * 1024


class PushTarget:
    """Sends files to one push API through pooled connections; threads may share it.

    Raises InvalidConfiguration when the CA file cannot be read.
    """

    def __init__(
        self,
        settings: PushSettings,
        client_version: str = __version__,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._settings = settings
        self._version = client_version
        self._headers = _headers(settings, client_version)
        self._authorization = authorization_of(settings, environment)
        self._secrets = (*self._authorization.secrets, *proxy_secrets(settings.proxy))
        self._http = session_for(settings, environment)

    @property
    def name(self) -> str:
        """The configured address."""
        return self._settings.endpoint

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        """One attempt, within `seconds_left`. Raises StorageFailed when the file cannot be read; nothing else.

        Where the target does not take an access token the attempt goes on with a new one.
        """
        return self._attempt(lambda: MultipartFile(file.path, file.name, file.size_bytes), seconds_left, file.table)

    def probe(self, seconds_left: float) -> ProbeResult:
        """Sends a form without a file: its refusal shows that name, TLS, path and key are right, and stores nothing."""
        signed_with = "key" if isinstance(self._settings.authorization, Secret) else "token"
        return of_probe(self._attempt(EmptyForm, seconds_left), signed_with)

    def close(self) -> None:
        """Closes idle connections."""
        self._http.close()

    def _attempt(
        self, make_body: Callable[[], "MultipartFile | EmptyForm"], seconds_left: float, table: str | None = None
    ) -> Outcome:
        def send(header: str, seconds: float) -> Answer:
            body = make_body()
            headers = {**self._headers, "Authorization": header, "Content-Type": body.content_type}
            data = b"".join(body) if len(body) <= PIECE_BYTES else body  # one piece takes less CPU, here and there
            request = Request("POST", push_url(self._settings, self._version, table), headers=headers, data=data)
            return self._http.exchange(request, self._limits(seconds))

        try:
            answer, header = signed(self._authorization, seconds_left, send)
        except TokenFailed as failed:
            return of_token_failure(failed)
        except RequestFailed as error:
            return of_failure(error.kind, error.detail, self._secrets)
        outcome = of_answer(answer, (*self._secrets, header), time.time())
        return outcome if isinstance(self._settings.authorization, Secret) else with_token_cure(outcome)

    def _limits(self, seconds: float) -> Limits:
        return Limits(
            total_seconds=seconds,
            connect_seconds=self._settings.connect_timeout_ms / 1000,
            answer_seconds=self._settings.response_timeout_ms / 1000,
            answer_bytes=MOST_ANSWER_BYTES,
        )


def push_url(settings: PushSettings, client_version: str, table: str | None = None) -> str:
    """The configured address with the query of the push API, its parameters in the reference's order.

    table: None for that of the settings.
    """
    query = [("targetName", table or settings.target_table)]
    if settings.connection_id:
        query.append(("connectionId", settings.connection_id))
    query.append(("clientId", f"Kafka2Ems {client_version}"))
    if settings.fallback_varchar_length is not None:
        query.append(("fallbackVarcharLength", str(settings.fallback_varchar_length)))
    if settings.primary_keys:
        query.append(("primaryKeys", ",".join(settings.primary_keys)))
        if settings.order_column:
            query.append(("duplicateRemovalOrderColumn", settings.order_column))
    joint = "&" if "?" in settings.endpoint else "?"
    return f"{settings.endpoint}{joint}{urlencode(query)}"


def _headers(settings: PushSettings, client_version: str) -> dict[str, str]:
    return {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"parquet-sink/{client_version}",
        **({"Connection": "Close"} if settings.closes else {}),
    }


class MultipartFile:
    """Iterable of bytes with a known length; make a fresh one for each attempt.

    Iterating raises StorageFailed when the file cannot be read or is shorter than it was.
    """

    def __init__(self, path: str, name: str, size_bytes: int) -> None:
        self._path, self._size = path, size_bytes
        boundary = uuid.uuid4().hex
        self.content_type = f"multipart/form-data; boundary={boundary}"
        self._head = (
            f"--{boundary}\r\n"
            f'Content-Disposition: form-data; name="file"; filename="{_quoted(name)}"\r\n'
            f"Content-Transfer-Encoding: binary\r\n\r\n"
        ).encode()
        self._tail = f"\r\n--{boundary}--\r\n".encode()

    def __len__(self) -> int:
        return len(self._head) + self._size + len(self._tail)

    def __iter__(self) -> Iterator[bytes]:
        left = self._size
        with storage_trouble(os.path.dirname(self._path), "read a finished file"):
            file = open(self._path, "rb", buffering=0)  # noqa: SIM115 - closed below; sending is not storage trouble
        with file:
            yield self._head
            while left > 0:
                with storage_trouble(os.path.dirname(self._path), "read a finished file"):
                    piece = file.read(min(PIECE_BYTES, left))
                if not piece:
                    raise StorageFailed(
                        f"File {self._path} is {left:,} bytes shorter than when it was verified: something changed it. "
                        f"It is not sent. Keep other programs out of connect.ems.tmp.dir."
                    )
                left -= len(piece)
                yield piece
        yield self._tail


class EmptyForm:
    """A form without a file, for trying a target: a push target refuses it, so nothing is stored."""

    def __init__(self) -> None:
        boundary = uuid.uuid4().hex
        self.content_type = f"multipart/form-data; boundary={boundary}"
        part = f'--{boundary}\r\nContent-Disposition: form-data; name="check"\r\n\r\nno file\r\n--{boundary}--\r\n'
        self._body = part.encode()

    def __len__(self) -> int:
        return len(self._body)

    def __iter__(self) -> Iterator[bytes]:
        yield self._body


def _quoted(name: str) -> str:
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
