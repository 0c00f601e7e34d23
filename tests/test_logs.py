"""What is told of libraries, and what is not."""

import logging
from collections.abc import Callable, Iterator

import pytest

from parquet_sink import logs


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """The loggers of this process, as they were before the test."""
    found = {name: logging.getLogger(name) for name in ("root", "py4j", *logs.CHATTY)}
    levels, handlers = {name: one.level for name, one in found.items()}, logging.getLogger().handlers[:]
    yield
    for name, one in found.items():
        one.setLevel(levels[name])
    logging.getLogger().handlers[:] = handlers


@pytest.mark.parametrize("configure", [logs.configure_program, logs.configure_worker])
def test_requests_are_not_told(
    configure: Callable[[], None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A schema that is fetched is no news in either kind of process; trouble of a library is."""
    monkeypatch.setenv(logs.VARIABLE, "1")
    caplog.set_level(logging.DEBUG)
    configure()
    for name in ("httpx2", "httpcore2.http11", "urllib3.connectionpool"):
        logging.getLogger(name).info("HTTP Request: GET http://registry/schemas/ids/1")
        logging.getLogger(name).warning("trouble in %s", name)
    assert [message.split()[0] for message in caplog.messages] == ["trouble"] * 3
