"""One server for the tests of a module; each test has connectors of its own."""

import logging
from collections.abc import Iterator

import pytest

from tests.worker.rest.fake_herder import FakeHerder
from tests.worker.rest.serving import Client, serving


@pytest.fixture(scope="module")
def _served() -> Iterator[tuple[FakeHerder, Client]]:
    herder = FakeHerder()
    with serving(herder) as client:
        yield herder, client


@pytest.fixture(autouse=True)
def _levels() -> Iterator[None]:
    """All levels are as before, once a test has set them by a request."""
    every = [one for one in logging.Logger.manager.loggerDict.values() if isinstance(one, logging.Logger)]
    before = {one: one.level for one in (*every, logging.getLogger())}
    yield
    for one, level in before.items():
        one.setLevel(level)
    for one in logging.Logger.manager.loggerDict.values():
        if isinstance(one, logging.Logger) and one not in before:
            one.setLevel(logging.NOTSET)


@pytest.fixture
def herder(_served: tuple[FakeHerder, Client]) -> FakeHerder:
    """As it is at the start."""
    found = _served[0]
    found.__init__()  # type: ignore[misc]
    return found


@pytest.fixture
def api(_served: tuple[FakeHerder, Client], herder: FakeHerder) -> Client:
    """A client of the server."""
    return _served[1]
