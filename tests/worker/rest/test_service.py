"""`/`, `/health`, `/progress`, `/metrics`, and the OpenAPI document that describes all of them."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from parquet_sink import __version__
from parquet_sink.worker.herder.errors import ShuttingDown, TimedOut
from parquet_sink.worker.rest.call import Call
from parquet_sink.worker.rest.service import Service
from tests.worker.rest.fake_herder import FakeHerder, Kept
from tests.worker.rest.serving import GOOD, Client

KAFKA_CONNECT_HEALTHY = "Worker has completed startup and is ready to handle requests."


def test_the_version_is_that_of_the_api(api: Client) -> None:
    """Clients turn features on by it; our own stands beside it."""
    assert api.get("/").json == {
        "version": "4.1.2",
        "commit": f"parquet-sink {__version__}",
        "kafka_cluster_id": "cluster-1",
    }


def test_a_broker_that_is_away_costs_only_its_id(api: Client, herder: FakeHerder) -> None:
    """The worker is there, and says so."""
    herder.fails = TimedOut()
    assert api.get("/").json["kafka_cluster_id"] is None


def test_health_goes_from_starting_to_healthy_to_unhealthy() -> None:
    """503 until it was healthy once, 500 when it does not come round, 503 when it ends."""
    herder = FakeHerder()
    service = Service(herder, None)
    herder.fails = TimedOut()
    starting = service.health(Call())
    herder.fails = None
    healthy = service.health(Call())
    herder.fails = TimedOut()
    late = service.health(Call())
    herder.fails = ShuttingDown()
    ending = service.health(Call())
    found = [(one.status, one.content["status"]) for one in (starting, healthy, late, ending)]
    assert found == [(503, "starting"), (200, "healthy"), (500, "unhealthy"), (503, "unhealthy")]
    assert healthy.content["message"] == KAFKA_CONNECT_HEALTHY


def test_progress_is_told_in_our_own_names(api: Client, herder: FakeHerder) -> None:
    """Each connector with its status, figures and topic-partitions."""
    herder.kept["c"] = Kept(dict(GOOD))
    (one,) = api.get("/progress").json
    assert (one["status"]["name"], one["status"]["waits_for"], one["rows"]) == ("c", "", 30)
    assert one["partitions"][0] == {
        "topic": "orders",
        "partition": 0,
        "lag": 7,
        "oldest_s": 1.5,
        "records_per_s": 20.0,
        "away": False,
        "held_at": None,
        "held_s": None,
    }


def test_metrics_are_served_as_they_are(api: Client) -> None:
    """Bytes and media type of the exposition."""
    got = api.get("/metrics", Accept="application/openmetrics-text, text/plain")
    assert (got.status, got.raw) == (200, b"x 1\n")
    assert got.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_what_nobody_has_is_404(api: Client) -> None:
    """In Kafka Connect's form."""
    assert api.get("/nothing").error == (404, "HTTP 404 Not Found")


def test_the_document_is_valid_openapi(api: Client) -> None:
    """Judged by the specification's own schema, and every reference leads somewhere."""
    document = api.get("/openapi.json").json
    validate(document)
    named = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert named == set(document["components"]["schemas"])


def _questions(document: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for path, methods in document["paths"].items():
        for method in methods:
            yield method.upper(), path, _filled(path)


def _filled(path: str) -> str:
    plugin = "EmsSink"
    return (
        path.replace("{connector}", "c")
        .replace("{task}", "0")
        .replace("{plugin}", plugin)
        .replace("{logger}", "root")
        .replace("{flush}", "f1")
        .replace("{job}", "j")
    )


_BODIES: dict[str, Any] = {
    "NewConnector": {"name": "new", "config": GOOD},
    "Config": GOOD,
    "ConfigPatch": {"tasks.max": "2"},
    "NewOffsets": {"offsets": [{"partition": {"kafka_topic": "orders", "kafka_partition": 0}, "offset": None}]},
    "Level": {"level": "INFO"},
    "NewFlush": {"partitions": [{"kafka_topic": "orders"}]},
    **{name: {"topic": "none"} for name in ("NewReplay", "NewParkedReplay", "NewDrop", "NewVerification")},
}


@pytest.mark.parametrize("there", [True, False])
def test_every_answer_is_what_the_document_says(api: Client, herder: FakeHerder, there: bool) -> None:
    """Status and body of each endpoint, for a connector that is there and one that is not."""
    document = api.get("/openapi.json").json
    root = {"$schema": "https://json-schema.org/draft/2020-12/schema", "components": document["components"]}
    for method, path, filled in _questions(document):
        herder.kept = {"c": Kept({**GOOD, "name": "c"}, offsets={("orders", 0): 1})} if there else {}
        operation = document["paths"][path][method.lower()]
        takes = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        body = None if takes is None else _BODIES[takes["$ref"].rpartition("/")[2]]
        got = api.ask(method, filled, body)
        assert str(got.status) in operation["responses"], f"{method} {path}: {got.status}"
        content = operation["responses"][str(got.status)].get("content", {})
        if "application/json" in content:
            Draft202012Validator({**root, **content["application/json"]["schema"]}).validate(got.json)
        elif not content and path != "/openapi.json":
            assert got.raw == b"", f"{method} {path}"


def test_expanded_connectors_are_what_the_document_says(api: Client, herder: FakeHerder) -> None:
    """The other form of the list."""
    herder.kept["c"] = Kept({**GOOD, "name": "c"})
    document = api.get("/openapi.json").json
    schema = {"components": document["components"], "$ref": "#/components/schemas/Connectors"}
    Draft202012Validator(schema).validate(api.get("/connectors?expand=info&expand=status").json)
