"""What the Kafka client's words about an address mean for an operator, and whether waiting may cure it."""

import re
from dataclasses import dataclass
from typing import Final

CREDENTIALS: Final = "Check security.protocol, sasl.mechanism and the credentials"
TRUST: Final = "Check the ssl.truststore.* settings, and the broker's certificate"
OWN: Final = "Check the ssl.keystore.* settings"
MOST_OF_ANSWER: Final = 300

_REFUSED: Final = re.compile(r"Connect to ipv\d#(\S+) failed: (.+)", re.DOTALL)
_NO_NAME: Final = re.compile(r"Failed to resolve '[^']*': (.+)", re.DOTALL)
_TOKEN: Final = re.compile(
    r'(?>.*?Failed to retrieve \w++ token from "(?P<url>[^"]*+)": )(?P<answer>.*) \((?P<status>-?\d{1,9})\)', re.DOTALL
)
_ALERT: Final = re.compile(r"SSL alert number (\d+)")
_VERIFY: Final = "certificate verify failed"
_NO_TOKEN: Final = "no token available"
_NO_LOGINS: Final = "not valid in current SASL state"
_LOCAL: Final = "Local: "
"""How the client begins errors of its own: the connection broke, or nobody answered in time."""
_ALERTS: Final = {
    40: "the broker ends the handshake: it wants a certificate of ours, or has no cipher suite in common",
    42: "the broker misses our certificate, or finds it bad",
    43: "the broker does not take certificates of our kind",
    44: "our certificate was revoked",
    45: "our certificate has expired, says the broker",
    46: "the broker does not accept our certificate: it may have expired, or be of an authority that it does not know",
    48: "the broker does not know the authority of our certificate",
    70: "the broker does not speak TLS 1.2 or 1.3",
    116: "the broker wants a certificate of ours, and there is none",
}
"""TLS alerts of a broker, by RFC 8446."""


@dataclass(frozen=True)
class ClientProblem:
    """Why one address cannot be used, and what to do about it.

    lasting: somebody answered and refuses us, so waiting alone cures nothing. unverified: the broker's certificate is
    not accepted, for a reason that the client does not tell. vague: a wrong protocol may be behind it.
    """

    words: str
    cure: str
    lasting: bool = False
    unverified: bool = False
    vague: bool = False


@dataclass(frozen=True)
class Cause:
    """Why brokers cannot be reached, by address, and the cure; both "" without a problem lately.

    vague: the addresses themselves may tell more.
    """

    words: str = ""
    cure: str = ""
    lasting: bool = False
    vague: bool = True


UNKNOWN: Final = Cause()


def explain(words: str) -> ClientProblem:
    """What the client's words about an address mean."""
    for kind in (_unreachable, _alert, _stranger, _login, _handshake):
        if (found := kind(words)) is not None:
            return found
    return ClientProblem(words, "Check [bootstrap.servers] and the broker")


def _unreachable(words: str) -> ClientProblem | None:
    if found := _REFUSED.fullmatch(words):
        return ClientProblem(f"{found[2].lower()} ({found[1]})", "Check [bootstrap.servers], and that the broker runs")
    if found := _NO_NAME.fullmatch(words):
        return ClientProblem(f"the name is unknown ({found[1]})", "Check the names in [bootstrap.servers]")
    return None


def _alert(words: str) -> ClientProblem | None:
    """What the broker said against our side of a handshake."""
    found = _ALERT.search(words)
    if found is None:
        return None
    number = int(found[1])
    return ClientProblem(f"TLS failed: {_ALERTS.get(number, words)} (alert {number})", OWN, lasting=True)


def _stranger(words: str) -> ClientProblem | None:
    if not words.startswith(("Disconnected", "Receive failed", "ApiVersionRequest failed")):
        return None
    cure = "Check [bootstrap.servers] and security.protocol"
    return ClientProblem(f"it does not answer as a Kafka broker: {words}", cure, vague=True)


def _login(words: str) -> ClientProblem | None:
    """A login that broke off, or waited for a token, may succeed the next time; one that was refused does not."""
    if "SASL" not in words and "uthenticat" not in words:
        return None
    lasting = _LOCAL not in words and _NO_TOKEN not in words
    return ClientProblem(f"authentication failed: {words}", CREDENTIALS, lasting, vague=_NO_LOGINS in words)


def _handshake(words: str) -> ClientProblem | None:
    if _VERIFY in words:
        return ClientProblem("TLS failed: the broker's certificate is not accepted", TRUST, True, unverified=True)
    if "SSL" in words or "ertificate" in words:
        return ClientProblem(f"TLS failed: {words}", "Check security.protocol and the ssl.* settings", vague=True)
    return None


def explain_token(words: str) -> tuple[str, ClientProblem] | None:
    """The token endpoint that the client's words are about, and what they mean; None when they are about none."""
    found = _TOKEN.match(words)
    if found is None:
        return None
    answer, status = found["answer"].strip()[:MOST_OF_ANSWER], int(found["status"])
    said = " ".join("".join(char if char.isprintable() else " " for char in answer).split())
    untrusted = status < 0 and "certificate" in said
    if status > 0:
        said = f"answered {status}: {said}"
    cure = "Check sasl.oauthbearer.token.endpoint.url, and the client's id and secret"
    if untrusted:
        cure = "Check the token endpoint's certificate, and https.ca.location"
    lasting = untrusted or 400 <= status < 429
    return found["url"], ClientProblem(f"no token for OAUTHBEARER: {said}", cure, lasting)
