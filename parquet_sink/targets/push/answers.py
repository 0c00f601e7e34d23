"""What an answer of the push API, or its absence, means: the table from HTTP to outcomes."""

import json
from collections.abc import Sequence
from typing import Any, Final

from parquet_sink.net.exchange import Answer, FailureKind, asked_wait
from parquet_sink.net.redaction import excerpt, printable, redact
from parquet_sink.targets.outcome import Outcome, Verdict
from parquet_sink.targets.reaching import of_failure

_RETRIABLE: Final = frozenset({408, 421, 425, 429})
_REFUSED_5XX: Final = frozenset({501, 505})
_OF_FILE: Final = frozenset({400, 409, 413, 422})
"""What a target says of a file. All other refusals are of the key, the address or the protocol: of every file."""
_CONFLICT: Final = 409
"""About how the target stands, and not only about what is in the file: some answer so to a name that they know."""
_NOT_A_PUSH_TARGET: Final = (
    "connect.ems.endpoint is not a push target, or something between answers in its place: correct the address"
)
_CURES: Final = {
    400: "Correct what the answer names: connect.ems.target.table, connect.ems.data.primary.key, "
    "connect.ems.order.field.name, connect.ems.connection.id or the records",
    401: "Correct connect.ems.authorization.key: the target does not know it, or it has expired",
    403: "Give the key in connect.ems.authorization.key the right to push to this pool and table",
    404: "Correct connect.ems.endpoint: there is no push API at that address",
    405: "Correct connect.ems.endpoint: it does not take POST",
    407: "Correct connect.ems.proxy.auth.username and connect.ems.proxy.auth.password",
    410: "Correct connect.ems.endpoint: that address is gone",
    413: "Lower connect.ems.commit.size.bytes or connect.ems.commit.records: the file is too large for the target",
}
_REDIRECT_CURE: Final = (
    "Set connect.ems.endpoint to the address it points to, if you trust that: redirects are never followed, "
    "because the key goes to the configured address only"
)
_WAIT_CURE: Final = "The target is overloaded or in trouble: see its own log; then start the connector again"


def of_answer(answer: Answer, secrets: Sequence[str] = (), now: float = 0.0) -> Outcome:
    """What an answer means. secrets: hidden in what is quoted of it. now: epoch seconds, for waits that are asked."""
    if 200 <= answer.status < 300:
        return _of_success(answer, secrets)
    verdict = verdict_of_status(answer.status)
    text = _failure_text(answer.body, secrets)
    cause = f"the target answered {answer.status}" + (f": {text}" if text else " without a text")
    wait = asked_wait(answer.status, answer.headers, now)
    cure, of_file = _cure(answer.status, verdict), answer.status in _OF_FILE
    return Outcome(verdict, cause, cure, answer.status, wait, of_file=of_file, of_name=answer.status == _CONFLICT)


def verdict_of_status(status: int) -> Verdict:
    """Class of a status that is not 2xx."""
    if status in _RETRIABLE:
        return Verdict.RETRIABLE
    if 300 <= status < 500 or status in _REFUSED_5XX:
        return Verdict.REFUSED
    return Verdict.UNKNOWN


def _of_success(answer: Answer, secrets: Sequence[str]) -> Outcome:
    if answer.broken is FailureKind.NO_ANSWER:
        return of_failure(FailureKind.NO_ANSWER)
    fields = _push_answer(answer.body) if answer.complete else None
    if fields is not None:
        answer_id = fields.get("id")
        shown = None if answer_id is None else printable(redact(str(answer_id), secrets))
        return Outcome(Verdict.ACCEPTED, f"accepted with {answer.status}", "", answer.status, answer_id=shown)
    shown = excerpt(answer.body, secrets)
    kind = printable(answer.headers.get("content-type", "")) or "no content type"
    came = "an answer of the push API" if answer.complete else "a whole answer"
    cause = f"the target answered {answer.status}, but not with {came} ({kind}): {shown or 'empty body'}"
    return Outcome(Verdict.UNKNOWN, cause, _NOT_A_PUSH_TARGET, answer.status)


def _push_answer(body: bytes) -> dict[str, Any] | None:
    """The fields of an answer of the push API, None when it is something else. id and bucketId may be null."""
    fields = _json_object(body)
    if fields is None or not all(isinstance(fields.get(name), str) for name in ("fileName", "flushStatus")):
        return None
    return fields


def _failure_text(body: bytes, secrets: Sequence[str]) -> str:
    """The text of a failure: `message`, the list `errors`, or its text."""
    fields = _json_object(body) or {}
    if isinstance(message := fields.get("message"), str) and message:
        return printable(redact(message, secrets))
    if isinstance(errors := fields.get("errors"), list) and errors:
        return printable(redact("; ".join(_error_text(error) for error in errors[:10]), secrets))
    return excerpt(body, secrets)


def _error_text(error: object) -> str:
    if not isinstance(error, dict):
        return str(error)
    return " ".join(str(error[name]) for name in ("attribute", "error", "errorCode") if error.get(name) is not None)


def _json_object(body: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _cure(status: int, verdict: Verdict) -> str:
    if status in _CURES:
        return _CURES[status]
    if 300 <= status < 400:
        return _REDIRECT_CURE
    return "Correct what the answer names" if verdict is Verdict.REFUSED else _WAIT_CURE
