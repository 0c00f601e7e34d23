"""What an access token that did not come, or was not taken, means for an upload."""

from dataclasses import replace
from typing import Final

from parquet_sink.net.access_token import Blame, TokenFailed
from parquet_sink.targets.outcome import Outcome, Verdict

_URL: Final = "connect.ems.oauth2.token.url"
_ID: Final = "connect.ems.oauth2.client.id"
_SECRET: Final = "connect.ems.oauth2.client.secret"
_CURES: Final = {
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


def of_token_failure(failure: TokenFailed) -> Outcome:
    """Nothing of the file was sent, so it is never unknown; and no answer of the target's, so it has no status."""
    verdict = Verdict.RETRIABLE if failure.passing else Verdict.REFUSED
    return Outcome(verdict, failure.cause, _CURES[failure.blame], retry_after_seconds=failure.wait_s)


def with_token_cure(outcome: Outcome) -> Outcome:
    """The outcome of an upload that was signed with a token: what it says to correct are the keys of tokens."""
    cure = _NOT_TAKEN.get(outcome.status or 0)
    return outcome if cure is None else replace(outcome, cure=cure)
