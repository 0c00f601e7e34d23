"""`/connector-plugins`: classes, their keys, and configurations validated key by key."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from parquet_sink import __version__
from parquet_sink.connectors.loading import Loaded
from parquet_sink.worker.herder.values import TargetState
from parquet_sink.worker.rest.call import Call
from parquet_sink.worker.rest.plugins import Plugins
from tests.connectors.packages import forget, install
from tests.messages import assert_says
from tests.worker.rest.fake_herder import FakeHerder, Kept
from tests.worker.rest.serving import GOOD, Client

VALIDATE = "/connector-plugins/EmsSink/config/validate"
KAFKA_CONNECT_MISSING_NAME = 'Missing required configuration "name" which has no default value.'


def _validated(api: Client, config: dict[str, Any]) -> dict[str, Any]:
    got = api.ask("PUT", VALIDATE, config)
    assert got.status == 200, got.raw
    found: dict[str, Any] = got.json
    return found


def _values(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["value"]["name"]: one["value"] for one in found["configs"]}


def _errors(found: dict[str, Any]) -> dict[str, list[str]]:
    return {name: value["errors"] for name, value in _values(found).items() if value["errors"]}


def test_connectors_are_listed_by_their_full_names(api: Client) -> None:
    """With type and version; all other classes when asked for."""
    connectors = api.get("/connector-plugins").json
    assert {"class": "parquet_sink.EmsSink", "type": "sink", "version": __version__} in connectors
    files = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    assert {"class": files, "type": "source", "version": __version__} in connectors
    every = api.get("/connector-plugins?connectorsOnly=false").json
    kinds = list(dict.fromkeys(one["type"] for one in every))
    assert kinds == ["sink", "source", "transformation", "predicate", "converter", "header_converter"]
    assert len({(one["class"], one["type"]) for one in every}) == len(every)


def test_a_source_and_a_broken_package_are_listed_as_what_they_are(
    api: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source is no sink; what cannot be loaded is of unknown type, and costs the others nothing."""
    monkeypatch.syspath_prepend(tmp_path)
    source = "class Tick:\n    kind, keys, prefixes = 'source', (), ()\n    check = settings = print\n"
    install(tmp_path, "tick_one", source, {"com.example.Tick": "tick_one:Tick"})
    install(tmp_path, "tick_two", "raise OSError", {"com.example.Tock": "tick_two:Tock"})
    found = {one["class"]: one["type"] for one in api.get("/connector-plugins").json}
    forget("tick_one")
    assert (found["com.example.Tick"], found["com.example.Tock"]) == ("source", "unknown")
    assert found["parquet_sink.EmsSink"] == "sink"


@pytest.mark.parametrize("name", ["EmsSink", "EmsSinkConnector", "parquet_sink.EmsSink"])
def test_the_keys_of_a_connector_are_told(api: Client, name: str) -> None:
    """Kafka Connect's own first, as it has them; the place in the group under both names that versions have for it."""
    keys = api.get(f"/connector-plugins/{name}/config").json
    by_name = {key["name"]: key for key in keys}
    assert [key["name"] for key in keys[:2]] == ["name", "connector.class"]
    assert {
        field: by_name["errors.log.enable"][field] for field in by_name["errors.log.enable"] if field != "documentation"
    } == {
        "name": "errors.log.enable",
        "type": "BOOLEAN",
        "required": False,
        "default_value": "false",
        "importance": "MEDIUM",
        "group": "Error Handling",
        "order_in_group": 4,
        "width": "SHORT",
        "display_name": "Log Errors",
        "dependents": [],
        "order": 4,
    }
    assert by_name["connect.ems.authorization.key"]["type"] == "PASSWORD"
    assert by_name["connect.ems.commit.records"]["required"] is True
    assert not [name for name in by_name if name.endswith("*")]
    assert all("`" not in key["documentation"] and "](" not in key["documentation"] for key in keys)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("org.apache.kafka.connect.transforms.Cast$Value", "spec"),
        ("Cast", "spec"),
        ("TopicNameMatches", "pattern"),
        ("JsonConverter", "schemas.enable"),
        ("Json", "schemas.enable"),
    ],
)
def test_the_keys_of_other_classes_are_told(api: Client, name: str, key: str) -> None:
    """By full or short name."""
    assert key in [one["name"] for one in api.get(f"/connector-plugins/{name.replace('$', '%24')}/config").json]


@pytest.mark.parametrize("name", ["Nothing", "os.path.join", "json.JSONDecoder", "%2e%2e%2f"])
def test_a_plugin_that_is_not_there_is_404(api: Client, name: str) -> None:
    """No module is imported because a path names it."""
    status, message = api.get(f"/connector-plugins/{name}/config").error
    assert (status, message.startswith("Unknown plugin ")) == (404, True)


def test_a_good_configuration_has_no_errors(api: Client) -> None:
    """Each key has its definition and its value, the default where none is given; no password is shown."""
    found = _validated(api, {**GOOD, "name": "c", "tasks.max": 2, "errors.log.enable": "TRUE"})
    values = _values(found)
    assert (found["name"], found["error_count"], _errors(found)) == ("parquet_sink.EmsSink", 0, {})
    assert values["connect.ems.authorization.key"]["value"] == "[hidden]"
    assert (values["tasks.max"]["value"], values["errors.log.enable"]["value"]) == ("2", "true")
    assert values["errors.tolerance"]["value"] == "none"
    assert values["topics.regex"]["value"] == ""
    assert values["connect.ems.error.policy"]["recommended_values"]
    assert found["groups"][:2] == ["Common", "Transforms"]
    assert {one["definition"]["group"] for one in found["configs"]} == set(found["groups"])
    assert [one["definition"]["name"] for one in found["configs"]] == list(values)


def test_a_size_and_a_duration_are_told_as_they_are_written(api: Client) -> None:
    """With their units; a plain number, too; one that is neither is null, with its error."""
    size, age = "connect.ems.commit.size.bytes", "connect.ems.commit.interval.ms"
    found = _validated(api, {**GOOD, "name": "c", size: "10MB", age: "1.5h"})
    assert (_values(found)[size]["value"], _values(found)[age]["value"], _errors(found)) == ("10MB", "1.5h", {})
    wrong = _validated(api, {**GOOD, "name": "c", size: "10M", age: "0.5ms"})
    assert (_values(wrong)[size]["value"], _values(wrong)[age]["value"]) == (None, None)
    assert set(_errors(wrong)) == {size, age}


def test_what_is_wrong_stands_beside_its_key(api: Client) -> None:
    """Each problem once, counted; a value that cannot be read is null."""
    config = {**GOOD, "tasks.max": "many", "connect.ems.endpoint": "nonsense", "transforms": "a"}
    found = _validated(api, config)
    errors = _errors(found)
    assert set(errors) >= {"name", "tasks.max", "connect.ems.endpoint", "transforms.a.type"}
    assert found["error_count"] == sum(map(len, errors.values()))
    assert errors["name"] == [f"Invalid [name]. {KAFKA_CONNECT_MISSING_NAME}"]
    assert _values(found)["tasks.max"]["value"] is None
    assert errors["tasks.max"][0].startswith("Invalid [tasks.max]. ")


def test_what_is_warned_about_is_no_error(api: Client) -> None:
    """A misspelt key with what was meant, one without effect; the rest is as without them, and no key is told twice."""
    good = {**GOOD, "name": "c"}
    odd = {**good, "connect.ems.obfuscation.feilds": "name", "connect.ems.obfuscation.sha512.salt": "pepper"}
    found, plain = _validated(api, odd), _validated(api, good)
    misspelt, idle = found.pop("warnings")
    assert_says(misspelt, "[connect.ems.obfuscation.feilds]", "unknown", "connect.ems.obfuscation.fields?")
    assert_says(idle, "[connect.ems.obfuscation.sha512.salt]", "no effect")
    assert "pepper" not in str(found)
    assert found["error_count"] == 0
    assert found.keys() == plain.keys()
    assert [one["definition"]["name"] for one in found["configs"]] == [
        one["definition"]["name"] for one in plain["configs"]
    ]
    nameless = _validated(api, GOOD)
    assert ("name" in _errors(nameless), nameless.get("warnings")) == (True, None)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("", "is empty"), (" ", "is empty"), (" x", "begins or ends with a blank"), ("${env:X}", "a placeholder")],
)
def test_a_name_is_validated_as_it_is_when_a_connector_is_made(api: Client, name: str, reason: str) -> None:
    """What POST refuses is refused here."""
    errors = _errors(_validated(api, {**GOOD, "name": name}))
    assert reason in errors["name"][0]


def test_a_problem_with_a_key_of_no_definition_is_told_too(api: Client) -> None:
    """As in Kafka Connect with a null definition."""
    found = _validated(
        api, {**GOOD, "name": "c", "transforms": "a", "transforms.a.type": "Cast", "transforms.a.spec": "x:y:z"}
    )
    assert "transforms.a.spec" in _errors(found)
    found = _validated(api, {**GOOD, "name": "c", "consumer.override.group.instance.id": "x"})
    for one in found["configs"]:
        assert (one["definition"] is None) <= bool(one["value"]["errors"])


def test_the_keys_of_transforms_come_with_their_names(api: Client) -> None:
    """In a group for each, as in Kafka Connect; an unknown key is neither listed nor refused."""
    found = _validated(
        api,
        {
            **GOOD,
            "name": "c",
            "nonsense": "1",
            "transforms": "cast",
            "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
            "transforms.cast.spec": "a:int32",
            "transforms.cast.predicate": "known",
            "predicates": "known",
            "predicates.known.type": "TopicNameMatches",
            "predicates.known.pattern": "orders",
        },
    )
    definitions = {one["definition"]["name"]: one["definition"] for one in found["configs"]}
    assert found["error_count"] == 0
    assert "nonsense" not in definitions
    assert definitions["transforms.cast.type"]["group"] == "Transforms: cast"
    assert definitions["transforms.cast.type"]["display_name"] == "Transformation type for cast"
    assert definitions["predicates.known.pattern"]["required"] is True
    assert found["groups"][-2:] == ["Transforms: cast", "Predicates: known"]


def test_settings_of_a_named_converter_are_told(api: Client) -> None:
    """And not those of others, unless they are given."""
    names = set(_values(_validated(api, {**GOOD, "name": "c"})))
    assert "value.converter.schemas.enable" in names
    others = {name for name in names if name.startswith(("key.converter.", "header.converter."))}
    assert others == {"key.converter.plugin.version", "header.converter.plugin.version"}
    assert not [name for name in names if name.startswith(("consumer.override.", "producer.override."))]


def test_classes_are_offered_to_choose_from(api: Client) -> None:
    """Of transforms, predicates and converters, by full names; nothing for other keys of Kafka Connect."""
    found = _values(_validated(api, {**GOOD, "name": "c", "transforms": "a", "predicates": "p"}))
    assert "org.apache.kafka.connect.transforms.Cast$Value" in found["transforms.a.type"]["recommended_values"]
    predicates = found["predicates.p.type"]["recommended_values"]
    assert {name.rpartition(".")[2] for name in predicates} == {"HasHeaderKey", "RecordIsTombstone", "TopicNameMatches"}
    assert "io.confluent.connect.avro.AvroConverter" in found["value.converter"]["recommended_values"]
    assert "io.confluent.connect.avro.AvroConverter" not in found["header.converter"]["recommended_values"]
    assert found["errors.tolerance"]["recommended_values"] == []


def test_the_workers_converters_are_defaults() -> None:
    """As the worker file has them."""
    plugins = Plugins(FakeHerder(), lambda config: Loaded(None, (), (), "c"), {"key.converter": "StringConverter"})
    found = plugins.validate(Call({"plugin": "EmsSink"}, body={**GOOD, "name": "c"})).content
    assert _values(found)["key.converter"]["value"] == "StringConverter"
    by_name = {one["definition"]["name"]: one["definition"] for one in found["configs"]}
    assert by_name["key.converter"]["default_value"] == "StringConverter"
    assert by_name["header.converter"]["default_value"].endswith(".SimpleHeaderConverter")


def test_a_hidden_password_stands_for_the_stored_one(api: Client, herder: FakeHerder) -> None:
    """A configuration that was read may be validated as it is; without a stored one there is a problem."""
    herder.kept["c"] = Kept({**GOOD, "name": "c"}, TargetState.STARTED)
    config = {**GOOD, "name": "c", "connect.ems.authorization.key": "[hidden]"}
    assert _validated(api, config)["error_count"] == 0
    other = _validated(api, {**config, "name": "new"})
    assert_says(_errors(other)["connect.ems.authorization.key"][0], "[hidden]", "stands for", "stored")


def test_placeholders_are_shown_as_they_are_written(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never what they stand for."""
    found = _validated(api, {**GOOD, "name": "c", "connect.ems.target.table": "${env:NOT_THERE}"})
    assert _values(found)["connect.ems.target.table"]["value"] == "${env:NOT_THERE}"
    assert found["error_count"] == 1


@pytest.mark.parametrize(
    ("path", "config", "status", "message"),
    [
        (VALIDATE, {"topics": "t"}, 500, "Connector config contains no connector type"),
        (VALIDATE, {"connector.class": "NoEmsSink"}, 500, "Failed to find any class that implements Connector"),
        ("/connector-plugins/Other/config/validate", dict(GOOD), 400, "does not match request type Other"),
        (VALIDATE, {"connector.class": "${env:X}EmsSink"}, 500, "is a placeholder here"),
        (VALIDATE, ["x"], 500, "it is not a JSON object"),
    ],
)
def test_what_cannot_be_validated_is_refused(api: Client, path: str, config: Any, status: int, message: str) -> None:
    """With Kafka Connect's statuses, and never with the configuration itself."""
    found, text = api.ask("PUT", path, config).error
    assert (found, message in text) == (status, True), text
    assert "secret-key" not in text


def test_a_configuration_is_validated_by_who_would_run_it() -> None:
    """What only the machine knows is told, too, and that sees the stored password."""
    herder = FakeHerder()
    herder.kept["c"] = Kept({**GOOD, "name": "c"})
    seen: list[Mapping[str, str]] = []
    problem = "Invalid [connect.ems.tmp.dir]. It is full."

    def validate(config: Mapping[str, str]) -> Loaded:
        seen.append(config)
        return Loaded(None, (problem,), (), "c")

    plugins = Plugins(herder, validate)
    config = {**GOOD, "name": "c", "connect.ems.authorization.key": "[hidden]"}
    found = plugins.validate(Call({"plugin": "EmsSink"}, body=config)).content
    assert (_errors(found), found["error_count"]) == ({"connect.ems.tmp.dir": [problem]}, 1)
    assert seen[0]["connect.ems.authorization.key"] == "AppKey secret-key"
