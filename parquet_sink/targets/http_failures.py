"""What it means for an upload that no answer came over HTTP, for every target that is reached so."""

from collections.abc import Sequence
from typing import Final

from parquet_sink.net.exchange import FailureKind
from parquet_sink.net.redaction import printable, redact
from parquet_sink.targets.outcome import Outcome, Verdict

ENDPOINT_KEY: Final = "connect.ems.endpoint"

_FAILURES: Final = {
    FailureKind.CONNECT: (Verdict.RETRIABLE, "no connection to the target"),
    FailureKind.CONNECT_TIMEOUT: (Verdict.RETRIABLE, "no connection to the target in time"),
    FailureKind.PROXY: (
        Verdict.RETRIABLE,
        "the proxy could not reach the target, or could not be reached itself",
    ),
    FailureKind.PROXY_REFUSED: (Verdict.REFUSED, "the proxy refused the connection"),
    FailureKind.TLS: (Verdict.REFUSED, "the target's certificate or TLS version is not acceptable"),
    FailureKind.BROKEN: (Verdict.UNKNOWN, "the connection broke before the whole answer had come"),
    FailureKind.NO_ANSWER: (Verdict.UNKNOWN, "no whole answer came in time"),
}
_REACH: Final = "Check {address}, the network and connect.ems.proxy.host"
_CURES: Final = {
    FailureKind.CONNECT: _REACH,
    FailureKind.CONNECT_TIMEOUT: f"{_REACH}, or raise connect.ems.http.connect.timeout.ms",
    FailureKind.PROXY: "Check connect.ems.proxy.host, connect.ems.proxy.port and the proxy itself",
    FailureKind.PROXY_REFUSED: "Check connect.ems.proxy.auth.username and connect.ems.proxy.auth.password, "
    "and that the proxy lets this machine reach the target",
    FailureKind.TLS: "Correct the target's certificate, or name the CA it comes from in connect.ems.tls.ca.file; "
    "certificates are always verified",
    FailureKind.BROKEN: "Check the target and what stands between",
    FailureKind.NO_ANSWER: "Check the target's load, or raise connect.ems.http.response.timeout.ms",
}


def of_failure(
    failure: FailureKind, detail: str = "", secrets: Sequence[str] = (), address_key: str = ENDPOINT_KEY
) -> Outcome:
    """What an attempt without a usable answer means.

    detail: the words of the system or the library. address_key: names where the target is.
    """
    verdict, cause = _FAILURES[failure]
    shown = printable(redact(detail, secrets))
    cure = _CURES[failure].format(address=address_key)
    return Outcome(verdict, f"{cause} ({shown})" if shown else cause, cure)
