"""What Spark leaves in Java, found among the descriptors of this process, which are as real."""

import os
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from parquet_sink.spark.leftovers import LATE_S, NotedPorts, leaked

ITSELF = Path("/proc/self")


class Descriptors:
    """Opens what Java has open."""

    def __init__(self) -> None:
        self.stack = ExitStack()

    def socket(self, family: socket.AddressFamily = socket.AF_INET) -> socket.socket:
        """One that listens."""
        listening = self.stack.enter_context(socket.socket(family))
        listening.bind(("::1" if family is socket.AF_INET6 else "127.0.0.1", 0))
        listening.listen(1)
        return listening

    def waker(self) -> int:
        number = os.eventfd(0)
        self.stack.callback(os.close, number)
        return number

    def selector(self, *watched: int) -> int:
        epoll = self.stack.enter_context(select.epoll())
        for number in watched:
            epoll.register(number)
        return epoll.fileno()


@pytest.fixture
def descriptors() -> Iterator[Descriptors]:
    """Closed at the end."""
    opened = Descriptors()
    with opened.stack:
        yield opened


def port(listening: socket.socket) -> int:
    """The one it listens on."""
    return int(listening.getsockname()[1])


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_socket_is_found_with_its_selector(descriptors: Descriptors, family: socket.AddressFamily) -> None:
    """All three descriptors of it, and of no other port."""
    first, other = descriptors.socket(family), descriptors.socket(family)
    waker, other_waker = descriptors.waker(), descriptors.waker()
    selector = descriptors.selector(first.fileno(), waker)
    descriptors.selector(other.fileno(), other_waker)
    assert sorted(leaked(ITSELF, {port(first)})) == sorted([selector, first.fileno(), waker])
    assert leaked(ITSELF, set()) == []


def test_a_selector_that_looks_at_more_is_left_alone(descriptors: Descriptors) -> None:
    """It is another's, which is in use: what is closed by its number must be nobody's."""
    listening, waker, other = descriptors.socket(), descriptors.waker(), descriptors.socket()
    descriptors.selector(listening.fileno(), waker, other.fileno())
    assert leaked(ITSELF, {port(listening)}) == []


@pytest.mark.parametrize("wakers", [0, 2])
def test_a_selector_of_another_form_is_left_alone(descriptors: Descriptors, wakers: int) -> None:
    """Another version of Java may make them otherwise."""
    listening = descriptors.socket()
    descriptors.selector(listening.fileno(), *[descriptors.waker() for _ in range(wakers)])
    assert leaked(ITSELF, {port(listening)}) == []


def test_a_socket_without_a_selector_is_left_alone(descriptors: Descriptors) -> None:
    """Of such a one Java knows, and frees it by itself."""
    assert leaked(ITSELF, {port(descriptors.socket())}) == []


def test_a_connection_is_no_socket_that_listens(descriptors: Descriptors) -> None:
    """The one that the process came by has the same port, and is in use."""
    listening = descriptors.socket()
    client = descriptors.stack.enter_context(socket.create_connection(listening.getsockname()))
    accepted = descriptors.stack.enter_context(listening.accept()[0])
    descriptors.selector(accepted.fileno(), descriptors.waker())
    descriptors.selector(client.fileno(), descriptors.waker())
    assert leaked(ITSELF, {port(listening)}) == []


def test_a_port_that_was_noted_is_over_when_no_process_is_awaited() -> None:
    """Spark forgot the port with the process, which ended before anyone looked."""
    noted = NotedPorts()
    assert noted.over({1, 2}, waits=False, now_s=0.0) == {1, 2}
    assert not noted.left
    assert noted.over(set(), waits=False, now_s=1.0) == set()


def test_a_port_may_be_that_of_a_process_that_is_awaited() -> None:
    """It is over once no process can be on its way to it, whatever is noted meanwhile."""
    noted = NotedPorts()
    assert noted.over({1}, waits=True, now_s=0.0) == set()
    assert noted.left
    assert noted.over({1, 2}, waits=True, now_s=LATE_S - 1) == set()
    assert noted.over(set(), waits=True, now_s=LATE_S) == {1}
    assert noted.over(set(), waits=False, now_s=LATE_S) == {2}
