"""`parquet-sink check --connect` against a real broker and a real target, and against their absence."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from integration.conftest import TopicFactory
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.cli.main import main
from tests.messages import assert_says

WORKER = "value.converter=JsonConverter\nvalue.converter.schemas.enable=false\n"


class Check:
    """Writes a connector file, runs the command in this process, and keeps what it printed."""

    def __init__(self, folder: Path, broker: Broker, target: TargetProcess, out: pytest.CaptureFixture[str]) -> None:
        self._folder, self._out = folder, out
        self._base = {
            "name": folder.name.replace("_", "-"),
            "connect.ems.endpoint": target.endpoint(),
            "connect.ems.authorization.key": "AppKey demo",
            "connect.ems.target.table": "t",
            "connect.ems.commit.size.bytes": "1000000",
            "connect.ems.commit.records": "1000",
            "connect.ems.commit.interval.ms": "1000",
            "connect.ems.tmp.dir": str(folder / "tmp"),
            "consumer.override.bootstrap.servers": broker.bootstrap_servers,
        }
        self.group = f"connect-{self._base['name']}"
        self.said = ""

    def __call__(self, properties: Mapping[str, str], *options: str) -> int:
        (self._folder / "worker.properties").write_text(WORKER)
        file = self._folder / "connector.json"
        file.write_text(json.dumps({**self._base, **properties}))
        status = main(["check", "--worker", str(self._folder / "worker.properties"), *options, str(file)])
        self.said = self._out.readouterr().out
        return status

    def line(self, start: str) -> str:
        """The one line about an item."""
        [found] = [line for line in self.said.splitlines() if line[10:].startswith(start)]
        return found.strip()


@pytest.fixture
def check(tmp_path: Path, broker: Broker, target: TargetProcess, capsys: pytest.CaptureFixture[str]) -> Check:
    """The command, with files of its own."""
    return Check(tmp_path, broker, target, capsys)


def test_all_is_well(check: Check, broker: Broker, target: TargetProcess, topic: TopicFactory) -> None:
    """Each item is told with what was found; nothing is committed, and nothing stored."""
    name = topic(2)
    broker.produce(name, [(None, b"{}")] * 3, 1)
    assert check({"topics": name}, "--connect") == 0
    assert_says(check.line("brokers"), "OK      brokers", broker.bootstrap_servers, "1 in cluster")
    assert_says(check.line("topic "), "2 topic-partitions", "end exclusive", "0 holds 0 to 0", "1 holds 0 to 3")
    assert_says(check.line("rights"), "OK      rights", "read 1 topic")
    assert_says(check.line("group"), "no committed offsets", "earliest record")
    assert "can be written" in check.line("tmp.dir")
    assert_says(check.line("target"), f"OK      target {target.endpoint()}", "takes the key")
    assert target.client.statistics()["files"] == 0
    assert check.group not in broker.consumer_groups("--list")


def test_group_is_told_with_lag(check: Check, broker: Broker, topic: TopicFactory) -> None:
    """Where the group stands, how far behind, and who committed; offsets that Kafka lost fail."""
    name = topic()
    broker.produce(name, [(None, b"{}")] * 3)
    where = ("--reset-offsets", "--group", check.group, "--topic", name, "--to-offset", "1", "--execute")
    broker.consumer_groups(*where)
    assert check({"topics": name}, "--connect") == 0
    assert_says(check.line("group"), f"{name} 0 at 1 (lag 2)", "last committed", "an operator")


def test_unknown_topic_and_wrong_key_fail(check: Check) -> None:
    """Both are told in one go, each with its cure; the key's value is not."""
    assert check({"topics": "no-such", "connect.ems.authorization.key": "AppKey canary"}, "--connect") == 1
    assert_says(check.line("topics"), "FAILED  topics", "no-such", "does not exist")
    assert check.line("target").startswith("FAILED")
    assert "Correct connect.ems.authorization.key" in check.line("target")
    assert "canary" not in check.said


def test_regex_without_topics_is_a_warning(check: Check) -> None:
    """A pattern may match nothing yet."""
    assert check({"topics.regex": "never-.*"}, "--connect") == 0
    assert check.line("topics matching never-.*").endswith("there are none yet")


def test_what_a_pattern_leaves_out_is_listed(check: Check, broker: Broker, topic: TopicFactory) -> None:
    """Topics that the connector writes match its pattern, and are not read."""
    name = topic()
    for kind in ("dead", "notices"):
        broker.create_topic(f"{name}-{kind}")
    keys = {"topics.regex": f"{name}.*", "errors.tolerance": "all", "connect.ems.notify.topic": f"{name}-notices"}
    assert check({**keys, "errors.deadletterqueue.topic.name": f"{name}-dead"}, "--connect") == 0
    assert check.line(f"topic {name}")
    assert check.line("topics matching").endswith(f"left out: {name}-dead, {name}-notices")


def test_nobody_answers(check: Check, tmp_path: Path) -> None:
    """Addresses where nobody listens fail by name; a folder that cannot be made is a problem of the file."""
    (tmp_path / "file").write_text("")
    broker, target = f"127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}/items"
    properties = {
        "topics": "t",
        "consumer.override.bootstrap.servers": f"{broker},no-such-host.invalid:9092",
        "consumer.override.default.api.timeout.ms": "1000",
        "connect.ems.endpoint": target,
    }
    assert check(properties, "--connect") == 1
    assert_says(check.line("brokers"), f"{broker}: Connection refused", "no-such-host.invalid:9092", "name is unknown")
    assert "client settings" not in check.said
    assert "no connection" in check.line(f"target {target}")
    assert check({**properties, "connect.ems.tmp.dir": str(tmp_path / "file" / "below")}, "--connect") == 2
    assert f"{tmp_path / 'file'} is not a folder" in check.said


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("/elsewhere", "answered 404"),
        ("/healthz", "answered 405"),
    ],
)
def test_wrong_path(check: Check, target: TargetProcess, topic: TopicFactory, fault: str, expected: str) -> None:
    """An address without a push API is told with its status."""
    endpoint = target.url + fault
    assert check({"topics": topic(), "connect.ems.endpoint": endpoint}, "--connect") == 1
    assert_says(check.line("target"), f"FAILED  target {endpoint}", expected)


def test_settings_that_the_client_does_not_have(check: Check, topic: TopicFactory) -> None:
    """Settings without effect are a warning; unknown ones and stores that are not there are invalid."""
    name = topic()
    assert check({"topics": name, "consumer.override.max.poll.records": "5"}, "--connect") == 0
    assert check.line("client settings").endswith("max.poll.records: without effect here")
    assert check({"topics": name, "consumer.override.no.such": "5"}) == 2
    assert_says(check.said, "[consumer.override.no.such]", "The Kafka client", "no setting")
    assert check({"topics": name, "consumer.override.ssl.truststore.location": "/x.jks"}) == 2
    assert_says(check.said, "[consumer.override.ssl.truststore.location]", "/x.jks", "no such file")


def test_wrong_file_is_not_tried(check: Check) -> None:
    """With a problem in a file nothing is connected to, and the exit status is 2."""
    assert check({"topics": "t", "connect.ems.commit.records": "-1"}, "--connect") == 2
    assert "Invalid [connect.ems.commit.records]" in check.said
    assert "brokers" not in check.said
