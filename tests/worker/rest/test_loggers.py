"""`/admin/loggers`: levels as log4j has them, of this program's loggers alone."""

import logging

import pytest

from parquet_sink.worker.herder import log_levels
from parquet_sink.worker.herder.errors import Elsewhere, NotLeader, TimedOut, UnknownLogger
from parquet_sink.worker.rest.call import Call, Reply, RestError
from parquet_sink.worker.rest.peers import SIGNATURE, Forwarded
from parquet_sink.worker.rest.service import Loggers
from parquet_sink.worker_config.rest.settings import RestSettings
from parquet_sink.worker_config.rest.values import Address
from tests.worker.rest.fake_herder import FakeHerder
from tests.worker.rest.serving import LOOPBACK, Client, serving

NAMES = ("parquet_sink.test_a", "parquet_sink.test_a.inner", "parquet_sink.test_abc")
KAFKA_CONNECT_NO_LEVEL = "Desired 'level' parameter was not specified in request."


@pytest.fixture(autouse=True)
def _known() -> None:
    """Loggers that are there before any is asked for."""
    for name in NAMES:
        logging.getLogger(name)


def _set(loggers: Loggers, name: str, level: object) -> object:
    return loggers.set(Call({"logger": name}, body={"level": level})).content


def test_a_level_holds_for_a_logger_and_those_below() -> None:
    """Not for one whose name only begins alike; when it was changed is told in milliseconds."""
    loggers = Loggers(FakeHerder(), now=lambda: 1700000000.5)
    assert _set(loggers, "parquet_sink.test_a", "debug") == ["parquet_sink.test_a", "parquet_sink.test_a.inner"]
    assert logging.getLogger(NAMES[1]).getEffectiveLevel() == logging.DEBUG
    found = loggers.all(Call()).content
    assert found["parquet_sink.test_a"] == {"level": "DEBUG", "last_modified": 1700000000500}
    assert NAMES[2] not in found
    one = loggers.get(Call({"logger": NAMES[2]})).content
    assert one["last_modified"] is None


@pytest.mark.parametrize("level", ["ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF"])
def test_every_level_of_log4j_comes_back_as_it_was_set(level: str) -> None:
    """In any case of letters."""
    loggers = Loggers(FakeHerder())
    _set(loggers, NAMES[0], level.lower())
    assert loggers.get(Call({"logger": NAMES[0]})).content["level"] == level


def test_the_root_logger_is_set_with_all_of_ours_and_no_other() -> None:
    """Libraries keep their level: at DEBUG they tell what may not be told."""
    py4j = logging.getLogger("py4j")
    before = py4j.level
    changed = _set(Loggers(FakeHerder()), "ROOT", "DEBUG")
    assert isinstance(changed, list)
    assert {"root", *NAMES} <= set(changed)
    assert all(name.partition(".")[0] in ("root", "parquet_sink", "spark") for name in changed)
    assert py4j.level == before


@pytest.mark.parametrize("name", ["py4j", "urllib3.connectionpool", "parquet_sink.nothing", "parquet_sink.test_", ""])
def test_a_logger_that_is_not_ours_is_not_there(name: str) -> None:
    """Neither to look at nor to set; none is made by asking."""
    loggers = Loggers(FakeHerder())
    for ask in (loggers.get, lambda call: loggers.set(Call(call.path, body={"level": "DEBUG"}))):
        with pytest.raises(RestError, match=f"Logger {name} not found."):
            ask(Call({"logger": name}))
    assert name not in {"parquet_sink.nothing", "parquet_sink.test_"} & set(logging.Logger.manager.loggerDict)


def test_levels_are_set_over_http(api: Client) -> None:
    """200 with the names, 204 with a scope of the cluster, and Kafka Connect's errors."""
    path = f"/admin/loggers/{NAMES[0]}"
    assert api.ask("PUT", path, {"level": "WARN"}).json == list(NAMES[:2])
    cluster = api.ask("PUT", f"{path}?scope=CLUSTER", {"level": "INFO"})
    assert (cluster.status, cluster.raw) == (204, b"")
    assert api.get(path).json["level"] == "INFO"
    assert api.ask("PUT", path, {}).error == (400, KAFKA_CONNECT_NO_LEVEL)
    assert api.ask("PUT", path, {"level": "LOUD"}).error == (404, "invalid log level 'LOUD'.")
    assert "root" in api.get("/admin/loggers").json


def test_a_level_holds_for_loggers_to_come() -> None:
    """A part of the program that is loaded later says as much; what is none of this program's stays as it is."""
    log_levels.set_level("parquet_sink.test_later", "ERROR", 1)
    assert logging.getLogger("parquet_sink.test_later.inner").getEffectiveLevel() == logging.ERROR
    with pytest.raises(UnknownLogger, match="Logger py4j not found."):
        log_levels.set_level("py4j", "DEBUG", 1)


def test_a_failure_of_the_workers_is_told(api: Client, herder: FakeHerder) -> None:
    """Of all workers' level; the worker's own is set without them."""
    herder.fails = TimedOut("away")
    path = f"/admin/loggers/{NAMES[0]}"
    assert api.ask("PUT", f"{path}?scope=cluster", {"level": "INFO"}).status == 500
    assert api.ask("PUT", path, {"level": "INFO"}).status == 200


class Leader:
    """Has what it is sent on, and answers 204. It believes one signature."""

    def __init__(self) -> None:
        self.sent: list[tuple[str | None, str]] = []

    def forward(self, elsewhere: Elsewhere, request: Forwarded) -> Reply:
        self.sent.append((elsewhere.url, request.target))
        return Reply(status=204)

    def believes(self, request: Forwarded) -> bool:
        return request.headers[SIGNATURE.lower()] == "good"


@pytest.mark.parametrize("admin", [None, (Address("http", "127.0.0.1", 0),)])
def test_all_workers_levels_are_set_by_the_leader(admin: tuple[Address, ...] | None) -> None:
    """A follower sends the request on, from an address of its own, too; the leader takes it where workers ask."""
    herder, leader = FakeHerder(), Leader()
    path = f"/admin/loggers/{NAMES[0]}?scope=cluster"
    with serving(herder, RestSettings(listeners=LOOPBACK, admin=admin), peers=leader) as client:
        ours = client if admin is None else Client(client.admin_ports[0])
        herder.fails = NotLeader("http://leader:8083")
        assert ours.ask("PUT", path, {"level": "INFO"}).status == 204
        assert leader.sent == [("http://leader:8083", path)]
        herder.fails = None
        assert client.ask("PUT", path, {"level": "DEBUG"}, {SIGNATURE: "good"}).status == 204
        assert client.ask("PUT", path, {"level": "INFO"}, {SIGNATURE: "bad"}).status == 403
        assert ours.get(f"/admin/loggers/{NAMES[0]}").json["level"] == "DEBUG"
