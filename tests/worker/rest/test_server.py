"""The server's life: it starts once its addresses are its own, and gives them back."""

import socket
import threading
from dataclasses import replace

import pytest

from parquet_sink.errors import SetupError
from parquet_sink.worker.rest.app import make_admin_app
from parquet_sink.worker.rest.server import Listening, RestServer, open_listeners
from parquet_sink.worker_config.rest.settings import RestSettings
from parquet_sink.worker_config.rest.values import Address
from parquet_sink.worker_config.worker import Worker
from tests.messages import saying
from tests.worker.rest.fake_herder import FakeHerder, Kept
from tests.worker.rest.serving import GOOD, LOOPBACK, Client, app_of, serving

SETTINGS = RestSettings(listeners=LOOPBACK)


def _server(settings: RestSettings) -> RestServer:
    return served(open_listeners(settings))


def served(listening: Listening) -> RestServer:
    """A server of these addresses, not started yet."""
    herder, settings = FakeHerder(), listening.settings
    return RestServer(app_of(herder, Worker(), settings), make_admin_app(herder, settings), listening)


@pytest.mark.parametrize("key", ["listeners", "admin.listeners"])
def test_an_address_in_use_is_told_with_its_key(key: str) -> None:
    """And those that were taken before are given back."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = Address("http", "127.0.0.1", taken.getsockname()[1])
        with socket.create_server(("127.0.0.1", 0)) as free:
            first = Address("http", "127.0.0.1", free.getsockname()[1])
        listeners = (first, busy) if key == "listeners" else (first,)
        settings = RestSettings(listeners=listeners, admin=None if key == "listeners" else (busy,))
        with pytest.raises(SetupError, match=saying(f"[{key}]", str(busy), "already in use", "free port")):
            open_listeners(settings)
        with socket.create_server((first.host, first.port)):
            pass


def test_a_host_that_is_not_this_machine_is_told() -> None:
    """With what the system says."""
    with pytest.raises(SetupError, match=saying("[listeners]", "http://192.0.2.1:1", "cannot be listened on")):
        open_listeners(RestSettings(listeners=(Address("http", "192.0.2.1", 1),)))


def test_addresses_can_be_taken_before_the_server_starts() -> None:
    """So that the worker knows its id, and that nobody else has it, before it starts anything that takes long."""
    listening = open_listeners(SETTINGS)
    port = listening.settings.listeners[0].port
    assert (port > 0, listening.settings.worker_id) == (True, f"127.0.0.1:{port}")
    server = served(listening)
    server.start()
    try:
        assert Client(port).get("/health").status == 200
    finally:
        server.stop()
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_several_addresses_have_one_api() -> None:
    """What is made at one is there at the other."""
    herder = FakeHerder()
    with serving(herder, replace(SETTINGS, listeners=(*LOOPBACK, *LOOPBACK))) as client:
        herder.kept["c"] = Kept(dict(GOOD))
        assert [Client(port).get("/connectors").json for port in client.ports] == [["c"], ["c"]]
        assert len(set(client.ports)) == 2


def test_a_server_that_stops_leaves_nothing_behind() -> None:
    """No thread, no socket; it may be stopped twice, and before it was started."""
    before = threading.active_count()
    never = _server(SETTINGS)
    never.stop()
    server = _server(SETTINGS)
    server.start()
    port = server.addresses[0].port
    kept_alive = Client(port).connection()
    kept_alive.request("GET", "/health")
    assert kept_alive.getresponse().read()
    server.stop()
    server.stop()
    kept_alive.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    assert [one.name for one in threading.enumerate() if one.name == "rest"] == []
    assert threading.active_count() <= before + 64
