"""What answers of the push API mean, to a file and to a probe, and what it means that no access token came; pure."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from parquet_sink.net.exchange import Answer, Blame, FailureKind, TokenFailed, asked_wait
from parquet_sink.net.redaction import excerpt, printable, redact
from parquet_sink.targets.http_failures import of_failure
from parquet_sink.targets.outcome import Health, Outcome, ProbeResult, Verdict

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
_URL: Final = "connect.ems.oauth2.token.url"
_ID: Final = "connect.ems.oauth2.client.id"
_SECRET: Final = "connect.ems.oauth2.client.secret"
_TOKEN_CURES: Final = {
    Blame.CLIENT: f"Correct {_ID} and {_SECRET}, or how they are sent (connect.ems.oauth2.client.authentication), and "
    "let that client have the grant client_credentials",
    Blame.SCOPE: "Correct connect.ems.oauth2.scope, or give the client that scope",
    Blame.ADDRESS: f"Correct {_URL}: it must be the token endpoint of an OAuth 2.0 server; redirects are not followed",
    Blame.TLS: "Correct that server's certificate, or name the CA it comes from in connect.ems.tls.ca.file; "
    "certificates are always verified",
    Blame.PROXY: "Check connect.ems.proxy.auth.username and connect.ems.proxy.auth.password, and that the proxy lets "
    "this machine reach that server",
    Blame.NETWORK: f"Check {_URL}, the network and connect.ems.proxy.host",
    Blame.SERVER: "That server is overloaded or in trouble: see its own log; then start the connector again",
}
_NOT_TAKEN: Final = {
    401: f"The target does not take the access tokens that {_URL} gives: check that {_URL} is the target's own, and "
    "connect.ems.oauth2.scope",
    403: f"Give the client in {_ID} the right to push to this pool and table, and name the scope that "
    "it takes in connect.ems.oauth2.scope",
}
_NO_FILE: Final = frozenset({400, 411, 415, 422})
"""What a push target answers to a form without a file."""
_FILE_REFUSED: Final = frozenset({401, 403, 404, 405, 407, 410, 501, 505})
"""Answers that a file would have, too."""


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


def of_probe(outcome: Outcome, signed_with: str = "key") -> ProbeResult:
    """OK for an answer that shows name, TLS, path and key to be right; FAILED when a file would be refused as well."""
    text = f"{outcome.cause}. {outcome.cure}." if outcome.cure else f"{outcome.cause}."
    if outcome.status in _NO_FILE:
        return ProbeResult(
            Health.OK, f"takes the {signed_with}, and refuses a form without a file as it should ({outcome.cause})"
        )
    if outcome.verdict is Verdict.ACCEPTED:
        return ProbeResult(
            Health.WARNING,
            f"{outcome.cause} a form without a file, which a push target refuses. Check the address.",
        )
    redirected = outcome.status is not None and 300 <= outcome.status < 400
    if outcome.status is None or outcome.status < 300 or redirected or outcome.status in _FILE_REFUSED:
        return ProbeResult(Health.FAILED, text)
    return ProbeResult(Health.WARNING, text)


def of_token_failure(failure: TokenFailed) -> Outcome:
    """Nothing of the file was sent, so it is never unknown; and no answer of the target's, so it has no status."""
    verdict = Verdict.RETRIABLE if failure.passing else Verdict.REFUSED
    return Outcome(verdict, failure.cause, _TOKEN_CURES[failure.blame], retry_after_seconds=failure.wait_s)


def with_token_cure(outcome: Outcome) -> Outcome:
    """The outcome of an upload that was signed with a token: what it says to correct are the keys of tokens."""
    cure = _NOT_TAKEN.get(outcome.status or 0)
    return outcome if cure is None else replace(outcome, cure=cure)
