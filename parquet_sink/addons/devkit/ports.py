"""Ports of loopback: which are free, and whether somebody answers."""

import random
import socket
from typing import Final

from parquet_sink.errors import SetupError

HOST: Final = "127.0.0.1"
# Below the ephemeral ports of Linux and macOS: a client that connects again and again to an ephemeral port of
# loopback may at last reach itself, and then a restarted broker cannot have its port back.
FREE_PORTS: Final = range(20_000, 32_000)


def free_port(*taken: int) -> int:
    """A port of loopback that nobody listens on now, and none of those `taken` by what is about to start."""
    for port in random.sample(FREE_PORTS, 200):
        if port not in taken and not port_in_use(port):
            return port
    raise SetupError(f"No free port was found on {HOST} between {FREE_PORTS.start} and {FREE_PORTS.stop}.")


def refuse_used_port(port: int) -> None:
    """Raises SetupError when somebody listens on this port."""
    if port_in_use(port):
        raise SetupError(
            f"Port {port} of {HOST} cannot be used: another program, maybe another broker, listens there. "
            f"End that program, or choose another port."
        )


def port_in_use(port: int) -> bool:
    """Whether a server could not listen on this port of loopback; closing connections do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return True
    return False


def accepts_connections(port: int) -> bool:
    """Whether somebody answers on this port of loopback."""
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True
