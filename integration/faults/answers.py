"""The table of what may become of one HTTP attempt: each fault as a behaviour, its class, what is said of it."""

import email.utils
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from integration import scripted_target as script
from integration.scripted_target import Behaviour, Connection

REFUSED: Final = "refused"
RETRIABLE: Final = "retriable"
UNKNOWN: Final = "unknown"
HTML: Final = b"<html><body>Sign in</body></html>"


@dataclass(frozen=True)
class Answer:
    """behave: what the front does. kind: its class. words: what the last words must hold when it is refused.

    whole: whether the body arrives, so that the target may have taken the file. wait_s: the least pause before the
    next attempt. tls: the certificate shown in place of any answer. port: what is done to the port instead. keys:
    of the connector file.
    """

    behave: Behaviour | None
    kind: str
    words: tuple[str, ...] = ()
    whole: bool = True
    wait_s: float = 0.0
    tls: str = ""
    port: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)


def _retry_date(connection: Connection) -> None:
    script.answer(429, b"", f"Retry-After: {email.utils.formatdate(time.time() + 4, usegmt=True)}")(connection)


def _cut_in_the_middle(connection: Connection) -> None:
    script.cut(int(connection.request.headers["content-length"]) // 2)(connection)


def _status(status: int, *words: str) -> Answer:
    return Answer(script.answer(status, b"because"), REFUSED, (f"answered {status}: because", *words))


_CURES: Final = {
    401: "connect.ems.authorization.key",
    404: "connect.ems.endpoint",
    413: "connect.ems.commit.size.bytes",
}
_REFUSED: Final = (400, 401, 403, 404, 405, 409, 410, 411, 413, 415, 422, 431, 501, 505)
HTTP: Final[Mapping[str, Answer]] = {
    **{f"{s}": _status(s, *filter(None, [_CURES.get(s)])) for s in _REFUSED},
    "302, a redirect": Answer(script.answer(302, b"", "Location: /elsewhere"), REFUSED, ("answered 302", "redirects")),
    "307, a redirect": Answer(script.answer(307, b"", "Location: /elsewhere"), REFUSED, ("answered 307", "redirects")),
    "413 before the body": Answer(script.answer(413, b"big", read=False), REFUSED, ("answered 413: big",), whole=False),
    "403, its text without end": Answer(script.endless(403), REFUSED, ("answered 403: yyy",)),
    "403, error.policy=RETRY": Answer(script.answer(403), RETRIABLE, keys={"connect.ems.error.policy": "RETRY"}),
    **{f"{s}": Answer(script.answer(s), RETRIABLE) for s in (408, 421, 425, 429)},
    "429, Retry-After in seconds": Answer(script.answer(429, b"", "Retry-After: 3"), RETRIABLE, wait_s=3),
    "429, Retry-After as a date": Answer(_retry_date, RETRIABLE, wait_s=2.5),
    "429, Retry-After junk": Answer(script.answer(429, b"", "Retry-After: soon"), RETRIABLE),
    **{f"{s}": Answer(script.answer(s, b"trouble"), UNKNOWN) for s in (500, 502, 503, 504)},
    "200, HTML": Answer(script.answer(200, HTML, "Content-Type: text/html"), UNKNOWN),
    "200, empty": Answer(script.answer(200), UNKNOWN),
    "204": Answer(script.answer(204), UNKNOWN),
    "200, other JSON": Answer(script.answer(200, b'{"status":"up"}'), UNKNOWN),
    "200, undecodable JSON": Answer(script.answer(200, script.ACCEPTED[:-5]), UNKNOWN),
    "200, its text without end": Answer(script.endless(200), UNKNOWN),
}
CONNECTION: Final[Mapping[str, Answer]] = {
    "reset before the body": Answer(script.cut(0), UNKNOWN, whole=False),
    "reset in the middle of the body": Answer(_cut_in_the_middle, UNKNOWN, whole=False),
    "reset after the body": Answer(script.cut(None), UNKNOWN),
    "closed without an answer": Answer(script.close_silently, UNKNOWN),
    "body not taken": Answer(script.never_read, UNKNOWN, whole=False),
    "no answer": Answer(script.hang, UNKNOWN),
    "answer half sent, then closed": Answer(script.truncated, UNKNOWN),
    "answer half sent, then silence": Answer(script.drip(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n{"), UNKNOWN),
    "answer's head drips": Answer(script.drip(b"HTTP/1.1 200 OK\r\nX: "), UNKNOWN),
    "answer without length or end": Answer(script.open_ended, UNKNOWN),
    "answer is not HTTP": Answer(script.garbage, UNKNOWN),
    "connection refused": Answer(None, RETRIABLE, ("Connection refused",), whole=False, port="down"),
    "connect timeout": Answer(None, RETRIABLE, ("in time",), whole=False, port="full"),
}
TLS: Final[Mapping[str, Answer]] = {
    "certificate expired": Answer(None, REFUSED, ("expired", "connect.ems.tls.ca.file"), whole=False, tls="expired"),
    "certificate of another host": Answer(
        None, REFUSED, ("mismatch", "connect.ems.tls.ca.file"), whole=False, tls="other"
    ),
    "certificate of an unknown CA": Answer(
        None, REFUSED, ("certificate", "connect.ems.tls.ca.file"), whole=False, tls="unknown"
    ),
}
