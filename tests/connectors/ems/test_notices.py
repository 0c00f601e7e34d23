"""A connector file that asks for notices of accepted files."""

from collections.abc import Mapping

import pytest

from parquet_sink.config.machine import Machine
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.worker_config.worker import Worker
from tests.connectors.ems.connector_files import GOOD, E

TOPIC, URL, SECRET = f"{E}notify.topic", f"{E}notify.url", f"{E}notify.secret"


def loaded(changes: Mapping[str, str]) -> Loaded:
    """The good file with these changes."""
    return load({**GOOD, **changes}, Worker(machine=Machine()), source="f")


def test_without_keys_there_are_none() -> None:
    """Nothing is told unless it is asked for."""
    assert loaded({}).require().notify is None


def test_what_is_made_of_the_keys() -> None:
    """The table and folder of the connector, the producer as for dead letters, HTTP as for a target."""
    found = loaded(
        {
            TOPIC: "files",
            URL: "https://a/b",
            SECRET: "a secret of some length",
            f"{E}tmp.dir": "/tmp/x",
            "producer.override.bootstrap.servers": "b:1",
            f"{E}http.connect.timeout.ms": "7s",
            f"{E}notify.timeout.ms": "5m",
            f"{E}notify.max.waiting": "7",
        }
    )
    assert (found.problems, found.warnings) == ((), ())
    made = found.require().notify
    assert made is not None
    assert (made.topic, made.url, made.timeout_ms, made.max_waiting) == ("files", "https://a/b", 300_000, 7)
    assert (made.waiting, made.http.connect_timeout_ms) == ("/tmp/x/orders/.notices", 7_000)
    assert made.table == found.require().target.target_table
    assert made.producer["bootstrap.servers"] == "b:1"
    assert "a secret" not in repr(made)


def test_files_and_their_ranges_do_not_depend_on_it() -> None:
    """So what was begun before it was set goes on as the same files."""
    assert loaded({TOPIC: "files"}).require().fingerprint == loaded({}).require().fingerprint


@pytest.mark.parametrize(
    ("changes", "key", "cure"),
    [
        ({TOPIC: "orders"}, TOPIC, "name another topic"),
        (
            {TOPIC: "dead", "errors.deadletterqueue.topic.name": "dead", "errors.tolerance": "all"},
            TOPIC,
            "another topic",
        ),
        ({TOPIC: "a b"}, TOPIC, "1 to 249"),
        ({URL: "ftp://a"}, URL, "https://host/path"),
        ({URL: "https://user:pass@a/"}, URL, SECRET),
        ({URL: "http://elsewhere/"}, URL, "use https"),
        ({URL: "https://a/", SECRET: "short"}, SECRET, "24 or more"),
        ({URL: "https://a/", SECRET: "whsec_-no-base64-at-all-"}, SECRET, "copy the secret"),
    ],
)
def test_what_is_wrong_is_told(changes: Mapping[str, str], key: str, cure: str) -> None:
    """By key and cure; of a secret nothing is shown."""
    [problem] = loaded(changes).problems
    assert f"[{key}]" in problem
    assert cure in problem
    assert changes.get(SECRET, "nothing") not in problem


def test_keys_without_what_they_are_for_have_no_effect() -> None:
    """A secret without an address; a producer's setting without a topic to write to."""
    found = loaded({SECRET: "a secret of some length", "producer.override.linger.ms": "5"}).warnings
    assert any(f"[{SECRET}]" in one and URL in one for one in found)
    assert any("[producer.override.linger.ms]" in one and TOPIC in one for one in found)


def test_a_webhook_is_reached_as_a_push_api_whatever_the_target() -> None:
    """Keys of HTTP count for it where files go into a folder."""
    keys = {f"{E}endpoint": "directory:/data", f"{E}proxy.host": "p", f"{E}proxy.port": "3", URL: "https://a/"}
    found = load(
        {name: text for name, text in {**GOOD, **keys}.items() if name != f"{E}authorization.key"},
        Worker(machine=Machine()),
        source="f",
    )
    assert (found.problems, found.warnings) == ((), ())
