"""Whatever is sent, the answer is one that the API has: JSON, a status that says whose fault it is, and no defect."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parquet_sink.worker.herder.values import TargetState
from parquet_sink.worker_config.rest.settings import RestSettings
from parquet_sink.worker_config.worker import Worker
from tests.thorough import FIXTURES_SHARED, examples
from tests.worker.rest.fake_herder import FakeHerder, Kept
from tests.worker.rest.serving import GOOD, LOOPBACK, Client, app_of, serving

_APP = app_of(FakeHerder(), Worker(), RestSettings(listeners=LOOPBACK))
PATHS = sorted({getattr(route, "path", "") for route in _APP.routes})
"""All that there are, with names of their parameters in braces."""
NAMES = st.one_of(
    st.sampled_from(["c", "EmsSink", "Cast", "root", "0", "parquet_sink", "", "..", "nobody"]), st.text(max_size=20)
)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text())
JSON = st.recursive(
    LEAVES, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3))
)
FIELDS = st.sampled_from(
    [
        *("name", "config", "initial_state", "offsets", "partition", "offset", "kafka_topic", "kafka_partition"),
        *("kafka_offset", "level", "connector.class", "topics", "transforms", "transforms.a.type", "tasks.max"),
        *("predicates", "value.converter", "consumer.override.group.id", "connect.ems.endpoint", "topics.regex"),
    ]
)
LIKELY = st.recursive(
    st.one_of(LEAVES, st.sampled_from(["EmsSink", "a", "Cast", "${env:X}", "[hidden]", "orders", "(", "Avro"])),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(FIELDS, inner, max_size=6)),
)
BODIES = st.one_of(JSON, LIKELY, st.dictionaries(FIELDS, LEAVES).map(lambda found: {**GOOD, **found})).map(
    lambda found: json.dumps(found).encode()
)

_MANY = b'{"tasks.max": "many"}'


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[FakeHerder, Client]]:
    """One server for all examples."""
    herder = FakeHerder()
    with serving(herder) as client:
        yield herder, client


@settings(max_examples=examples(400), suppress_health_check=FIXTURES_SHARED)
@given(
    method=st.sampled_from(["GET", "PUT", "POST", "PATCH", "DELETE"]),
    path=st.sampled_from(PATHS),
    names=st.lists(NAMES, min_size=2, max_size=2),
    body=st.one_of(BODIES, st.binary(max_size=30)),
    query=st.dictionaries(
        st.sampled_from(["expand", "includeTasks", "onlyFailed", "connectorsOnly", "scope"]), st.text(max_size=5)
    ),
)
@example(method="PATCH", path="/connectors/{connector}/offsets", names=["c", ""], body=b'{"offsets":[null]}', query={})
@example(method="PATCH", path="/connectors/{connector}/config", names=["c", ""], body=_MANY, query={})
def test_every_request_has_an_answer(
    asked: tuple[FakeHerder, Client], method: str, path: str, names: list[str], body: bytes, query: dict[str, str]
) -> None:
    """A defect of ours would be called an uncaught error."""
    herder, client = asked
    herder.kept = {"c": Kept({**GOOD, "name": "c"}, TargetState.STOPPED, offsets={("orders", 0): 1})}
    parts = iter(names)
    filled = "/".join(quote(next(parts), safe="") if part.startswith("{") else part for part in path.split("/"))
    asks = "&".join(f"{quote(name)}={quote(text)}" for name, text in query.items())
    got = client.ask(method, f"{filled}?{asks}", headers={"Content-Type": "application/json"}, raw=body)
    _check(got.status, got.raw, path)


def _check(status: int, raw: bytes, path: str) -> None:
    if status < 400:
        assert path == "/metrics" or raw == b"" or json.loads(raw) is not None
        return
    answer: Any = json.loads(raw)
    assert (set(answer), answer["error_code"]) == ({"error_code", "message"}, status)
    assert answer["message"]
    assert "uncaught error" not in answer["message"]
