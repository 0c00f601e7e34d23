"""The addresses of the REST API, taken before anything else is started, so that one that is in use is told at once."""

import socket
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from parquet_sink.errors import SetupError
from parquet_sink.net.listening import listen
from parquet_sink.worker_config.rest.addresses import Address
from parquet_sink.worker_config.rest.settings import RestSettings


@dataclass(frozen=True)
class Listening:
    """Sockets in the order of the addresses. settings: with the port that was found in place of 0."""

    settings: RestSettings
    sockets: tuple[socket.socket, ...]
    admin_sockets: tuple[socket.socket, ...] = ()

    def close(self) -> None:
        """Gives the addresses back. May be called more than once."""
        for one in (*self.sockets, *self.admin_sockets):
            one.close()


def open_listeners(settings: RestSettings) -> Listening:
    """Takes all addresses, or none. Raises SetupError that names the key, the address and the cure."""
    with ExitStack() as taken:
        plain = [taken.enter_context(_listen("listeners", one)) for one in settings.listeners]
        admin = [taken.enter_context(_listen("admin.listeners", one)) for one in settings.admin or ()]
        taken.pop_all()
    found = replace(
        settings,
        listeners=_with_ports(settings.listeners, plain),
        admin=None if settings.admin is None else _with_ports(settings.admin, admin),
    )
    return Listening(found, tuple(plain), tuple(admin))


def _listen(key: str, address: Address) -> socket.socket:
    try:
        return listen(address.host, address.port)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SetupError(
            f"Invalid [{key}]. {address} cannot be listened on: {reason}. Name a free port, or 0 for any, on a host of "
            "this machine."
        ) from error


def _with_ports(addresses: Sequence[Address], sockets: Sequence[socket.socket]) -> tuple[Address, ...]:
    return tuple(replace(address, port=one.getsockname()[1]) for address, one in zip(addresses, sockets, strict=True))
