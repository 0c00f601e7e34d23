"""What a broker's address says to a handshake of ours, when the Kafka client cannot say why it fails there.

The client has no reason for a certificate that it does not accept, and no word for a listener that wants TLS or a
login. Nothing is sent but handshakes: of TLS, and a question for a way to sign in that there is not.
"""

import re
import socket
import ssl
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from parquet_sink.kafka.client.causes import ClientProblem

LOOK_S: Final = 3.0
HOST_NAMES: Final = "ssl.endpoint.identification.algorithm"
_ADDRESS: Final = re.compile(r"(?:\w+://)?\[?(?P<host>[^\]]+?)\]?:(?P<port>\d{1,5})")
_ASKED: Final = struct.pack(">hhihh1s", 17, 1, 1, -1, 1, b"?")
"""A SaslHandshake request (17, version 1), numbered 1, of a client without a name, for the mechanism `?`."""
_NO_SUCH_MECHANISM: Final = 33
"""What a listener with logins answers, and then names those that it has."""
_NO_LOGINS: Final = 34
_MOST_ANSWERED: Final = 4096


class Doorstep:
    """Looks at addresses as a client with these options would. options: librdkafka's."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        servers = str(options.get("bootstrap.servers", "")).split(",")
        self.addresses = [one.strip() for one in servers if one.strip()]

    def why_unverified(self, address: str) -> str | None:
        """Why the certificate at `host:port` is not accepted, in OpenSSL's words.

        None when it is, or when nobody can say.
        """
        try:
            with _connected(address, self._verifying()):
                return None
        except ssl.SSLCertVerificationError as error:
            return error.verify_message.rstrip(".")
        except (OSError, ValueError):
            return None

    def wrong_protocol(self, address: str) -> ClientProblem | None:
        """What is wrong with `security.protocol` for the listener at `host:port`; None when nobody can say."""
        ours = str(self._options.get("security.protocol", "PLAINTEXT")).upper()
        logins = _mechanisms(address, None) if _listens(address) else None
        tls = logins is None and _speaks_tls(address)
        if logins is None and not tls:
            return None
        if tls:
            logins = _mechanisms(address, _careless())
        signs_in = ours.startswith("SASL_") if logins is None else bool(logins)
        theirs = f"{'SASL_' if signs_in else ''}{'SSL' if tls else 'PLAINTEXT'}"
        if theirs == ours:
            return None
        ways = f" (with {', '.join(logins)})" if logins else ""
        also = ", and give sasl.mechanism and sasl.jaas.config" if signs_in and not ours.startswith("SASL_") else ""
        words = f"it speaks {theirs}{ways}, and security.protocol={ours} does not"
        cure = f"Set security.protocol to {theirs}{also}, or give another listener's address in [bootstrap.servers]"
        return ClientProblem(words, cure, lasting=True)

    def _verifying(self) -> ssl.SSLContext:
        """As the client's: the same authorities, and host names checked or not."""
        place, text = self._options.get("ssl.ca.location"), self._options.get("ssl.ca.pem")
        if text:
            context = ssl.create_default_context(cadata=str(text))
        elif place and place != "probe":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(str(place))
        else:
            context = ssl.create_default_context()
        context.check_hostname = self._options.get(HOST_NAMES, "https") == "https"
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # of Python 3.13 and newer; the client is not so strict
        return context


def _listens(address: str) -> bool:
    try:
        with _connected(address, None):
            return True
    except (OSError, ValueError):
        return False


def _speaks_tls(address: str) -> bool:
    """Whether a TLS handshake begins at `host:port`, whatever comes of it."""
    try:
        with _connected(address, _careless()):
            return True
    except ssl.SSLError as error:
        return "ALERT" in str(error.reason)  # it wants a certificate of ours, or another version
    except (OSError, ValueError):
        return False


def _mechanisms(address: str, context: ssl.SSLContext | None) -> list[str] | None:
    """The ways to sign in of the listener at `host:port`, none where it wants no login; None when it does not say."""
    try:
        with _connected(address, context) as connection:
            connection.sendall(struct.pack(">i", len(_ASKED)) + _ASKED)
            answer = connection.recv(_MOST_ANSWERED)
        size, number, code = struct.unpack_from(">iih", answer)
        if size != len(answer) - 4 or number != 1 or code not in (_NO_SUCH_MECHANISM, _NO_LOGINS):
            return None
        return [] if code == _NO_LOGINS else _named(answer[10:])
    except (OSError, ValueError, struct.error):
        return None


def _named(answer: bytes) -> list[str]:
    """An array of texts. Raises ValueError, struct.error."""
    (count,), at, found = struct.unpack_from(">i", answer), 4, []
    for _ in range(count):
        (size,) = struct.unpack_from(">h", answer, at)
        found.append(answer[at + 2 : at + 2 + size].decode("ascii"))
        at += 2 + size
    return found


@contextmanager
def _connected(address: str, context: ssl.SSLContext | None) -> Iterator[socket.socket]:
    """A connection, with TLS where there is a context. Raises OSError, ValueError for what is not an address."""
    found = _ADDRESS.fullmatch(address.strip())
    if found is None:
        raise ValueError(address)
    host = found["host"]
    with socket.create_connection((host, int(found["port"])), LOOK_S) as connection:
        if context is None:
            yield connection
        else:
            with context.wrap_socket(connection, server_hostname=host.rstrip(".")) as secured:
                yield secured


def _careless() -> ssl.SSLContext:
    """Trusts anybody: what is sent is not a secret."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
