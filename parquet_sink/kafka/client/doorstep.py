"""What a broker's address says to a TLS handshake of ours, when the Kafka client cannot say why it fails there.

The client has no reason for a certificate that it does not accept, and no word for a listener that wants TLS. Nothing
is sent but the handshake.
"""

import re
import socket
import ssl
from collections.abc import Mapping
from typing import Any, Final

LOOK_S: Final = 3.0
_ADDRESS: Final = re.compile(r"(?:\w+://)?\[?(?P<host>[^\]]+?)\]?:(?P<port>\d{1,5})")
HOST_NAMES: Final = "ssl.endpoint.identification.algorithm"


def why_unverified(address: str, options: Mapping[str, Any]) -> str | None:
    """Why the certificate at `host:port` is not accepted, in OpenSSL's words. options: the client's own.

    None when it is, or when nobody can say.
    """
    try:
        _handshake(address, _context(options))
    except ssl.SSLCertVerificationError as error:
        return error.verify_message.rstrip(".")
    except (OSError, ValueError):
        return None
    return None


def speaks_tls(address: str) -> bool:
    """Whether a TLS handshake begins at `host:port`, whatever comes of it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        _handshake(address, context)
    except ssl.SSLCertVerificationError:
        return True
    except (OSError, ValueError):
        return False
    return True


def _handshake(address: str, context: ssl.SSLContext) -> None:
    found = _ADDRESS.fullmatch(address.strip())
    if found is None:
        raise ValueError(address)
    host = found["host"]
    with (
        socket.create_connection((host, int(found["port"])), LOOK_S) as connection,
        context.wrap_socket(connection, server_hostname=host.rstrip(".")),
    ):
        pass


def _context(options: Mapping[str, Any]) -> ssl.SSLContext:
    """As the client's: the same authorities, and host names checked or not."""
    place, text = options.get("ssl.ca.location"), options.get("ssl.ca.pem")
    if text:
        context = ssl.create_default_context(cadata=str(text))
    elif place and place != "probe":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(str(place))
    else:
        context = ssl.create_default_context()
    context.check_hostname = options.get(HOST_NAMES, "https") == "https"
    return context
