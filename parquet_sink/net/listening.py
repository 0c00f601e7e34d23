"""Sockets that take connections."""

import socket
from typing import Final

BACKLOG: Final = 2048


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. host: a name or an address, empty for all of this machine's; port 0: any free one.

    Raises OSError.
    """
    family, address = _place(host, port)
    # Only with the protocol named does asyncio set TCP_NODELAY on what it accepts; else an answer may wait 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(bool(host)))
        listener.bind(address)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _place(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """Where to listen: of several addresses IPv4 first, as most clients try it."""
    if not host:
        return (socket.AF_INET6, ("::", port)) if socket.has_dualstack_ipv6() else (socket.AF_INET, ("", port))
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, *_, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    return family, (str(address[0]), port)
